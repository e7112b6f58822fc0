"""A record as a line: what is in it, what is covered, and that it can be read again."""

import logging
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import NexusError, RequestError
from nexus_daemon.process.logs.log_line import LONGEST, entry_of, line_of, read_line, short_path

CREATED = 1_763_905_690.123
KEY = "sk-a1b2c3d4e5f6g7h8i9j0"
HOME = os.path.expanduser("~")


def check(
    message: object, *args: object, error: BaseException | None = None, connection: int | None = None
) -> str:
    """The line of a record."""
    about = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("nexus_daemon.server", logging.WARNING, "", 0, message, args, about)
    record.created = CREATED
    line = line_of(entry_of(record, connection), "stdio-47")
    assert line.endswith("\n")
    assert line.count("\n") == 1
    return line.removesuffix("\n")


START = "2025-11-23T13:48:10.123Z WARNING stdio-47"


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:  # noqa: BLE001 - with its traceback
        return caught


@pytest.mark.parametrize(
    ("message", "args", "text"),
    [
        ("it works", (), "it works"),
        ("100 %", (), "100 %"),
        ("%s of %d", ("a", 3), "a of 3"),
        ("%(name)s", ({"name": "a"},), "a"),
        ("%d", ("no number",), "%d"),
        ("two\nlines\r", (), "two␊lines␍"),
        ("\x1b[31mred\x1b[0m \x85 \u2028 \u202e", (), "␛[31mred␛[0m � � �"),
        ("in %s/a and %sx", (HOME, HOME), f"in ~/a and {HOME}x"),
        ("Authorization: Bearer abcdef1234567890", (), "Authorization: Bearer ****************"),
        ("DB_PASSWORD=harbour9", (), "DB_PASSWORD=********"),
        (f"key {KEY} is not valid", (), f"key {'*' * len(KEY)} is not valid"),
        ("failed: %s", (ValueError("the user's words"),), "failed: ValueError"),
        ("failed: %s", (RequestError("There is no session a.", code="x"),), "failed: There is no session a."),
        (
            "failed: %s",
            (OSError(13, "Permission denied", "/a/b"),),
            "failed: PermissionError: Permission denied: /a/b",
        ),
        ("failed: %r", (KeyError("secret"),), "failed: 'KeyError'"),
    ],
)
def test_a_message(message: str, args: tuple[object, ...], text: str) -> None:
    assert check(message, *args) == f"{START} nexus_daemon.server: {text}"


def test_the_connection_that_is_concerned() -> None:
    assert check("a", connection=7) == f"{START} [7] nexus_daemon.server: a"


def test_a_long_message_is_cut() -> None:
    line = check("x" * (LONGEST + 1234))
    assert line == f"{START} nexus_daemon.server: {'x' * LONGEST}… (1,234 more characters)"


def test_what_others_log_may_quote_anything() -> None:
    text = "exception in %r\nfuture: <Task exception=ValueError('the user's words')>"
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, text, ("the user's words",), None)
    assert line_of(entry_of(record), "stdio-47").endswith(" ERROR stdio-47 asyncio: exception in %r\n")


def test_an_exception_says_where_and_not_what() -> None:
    error = raised(ValueError("the user's words"), cause=raised(NexusError("said for users")))
    first = raised.__code__.co_firstlineno + 2
    frame = f"  logs/test_log_line.py:{first} raised"
    assert check("it failed", error=error) == (
        f"{START} nexus_daemon.server: it failed␊ValueError␊{frame}␊after␊NexusError: said for users␊{frame}"
    )


@given(st.text(), st.integers(0, 10) | st.none())
def test_every_line_is_utf_8_and_is_read_again(message: str, connection: int | None) -> None:
    line = check("%s", message, connection=connection)
    parts = read_line(line.encode("utf-8", "backslashreplace").decode("utf-8"))
    assert parts is not None
    assert (parts["level"], parts["process"], parts["logger"]) == (
        "WARNING",
        "stdio-47",
        "nexus_daemon.server",
    )
    assert parts["connection"] == connection


@pytest.mark.parametrize(
    "line", ["", "Traceback", "2025-11-23 WARNING x: y", "13:48:10.123Z WARNING stdio-1 a: b"]
)
def test_other_lines_are_not_records(line: str) -> None:
    assert read_line(line) is None


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/opt/x/nexus_daemon/lsp/link.py", "nexus_daemon/lsp/link.py"),
        ("/usr/lib/python3.11/asyncio/events.py", "asyncio/events.py"),
        ("/v/lib/python3.11/site-packages/anyio/a.py", "anyio/a.py"),
        ("/home/ana/private/tool.py", "private/tool.py"),
        ("<string>", "<string>"),
    ],
)
def test_a_source_file_from_its_package_on(path: str, short: str) -> None:
    assert short_path(path) == short
