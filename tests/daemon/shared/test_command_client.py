"""The client's side of a command that the shared daemon runs: what it copies, and when it runs it itself."""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_daemon.shared import command_client
from nexus_daemon.shared.command_runner import read_request
from nexus_daemon.shared.hello import with_environ

ENDED = "nexus: the daemon ended while the command ran. Run it again.\n"


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    daemon, client = socket.socketpair()
    with daemon, client:
        yield daemon, client


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"x 0\n", (0, "", "")),
        (b"o 3\nab\ne 2\nc\no 1\nd" + b"x 2\n", (2, "ab\nd", "c\n")),
        ("o 6\ngrößx 1\n".encode(), (1, "größ", "")),
        (b"o 0\n" * 3 + b"x 130\n", (130, "", "")),
        (b"", (None, "", "")),
        (b"o 0\n", (None, "", "")),
        (b"o 5\nab", (None, "", "")),
        (b"o 2\nab", (1, "ab", ENDED)),
        (b"o 2\nabe 9\nc", (1, "ab", ENDED)),
        (b"HTTP/1.1 400 Bad Request\n", (None, "", "")),
        (b"o x\n", (None, "", "")),
        (b"\xff 1\n", (None, "", "")),
        (b"o 2\nabq 1\n", (1, "ab", ENDED)),
    ],
)
def test_frames(
    ends: tuple[socket.socket, socket.socket],
    capfd: pytest.CaptureFixture[str],
    sent: bytes,
    expected: tuple[int | None, str, str],
) -> None:
    """The exit code and the output of a client whose daemon sends these bytes and ends."""
    daemon, client = ends
    daemon.sendall(sent)
    daemon.close()
    code = command_client.follow(client)
    assert (code, *capfd.readouterr()) == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"x 0\n", (0, b"", b"")),
        (b"o 3\nab\ne 2\nc\no 0\no 1\ndx 2\n", (2, b"ab\nd", b"c\n")),
        (b"", None),
        (b"o 2\nab", None),  # a daemon that ends: nothing was printed yet, so the command may run again
        (b"o 2\nabe 9\nc", None),
        (b"o 2\nabq 1\n", None),
        (b"HTTP/1.1 400 Bad Request\n", None),
    ],
)
def test_output_that_is_collected(
    ends: tuple[socket.socket, socket.socket], sent: bytes, expected: tuple[int, bytes, bytes] | None
) -> None:
    daemon, client = ends
    daemon.sendall(sent)
    daemon.close()
    assert command_client.collect(client) == expected


def test_output_that_is_collected_from_a_daemon_that_hangs(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_client, "FIRST_S", 0.05)
    monkeypatch.setattr(command_client, "SILENT_S", 0.05)
    ends[0].sendall(b"o 1\nx")
    assert command_client.collect(ends[1]) is None


def test_frames_that_come_byte_by_byte(
    ends: tuple[socket.socket, socket.socket], capfd: pytest.CaptureFixture[str]
) -> None:
    daemon, client = ends
    daemon.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)

    def send() -> None:
        for byte in b"o 11\nhello\nworlde 1\n!x 7\n":
            daemon.sendall(bytes((byte,)))

    sender = threading.Thread(target=send)
    sender.start()
    assert (command_client.follow(client), *capfd.readouterr()) == (7, "hello\nworld", "!")
    sender.join()


@pytest.mark.parametrize(("sent", "code", "err"), [(b"", None, ""), (b"o 1\nx", 1, ENDED)])
def test_a_daemon_that_hangs(
    ends: tuple[socket.socket, socket.socket],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    sent: bytes,
    code: int | None,
    err: str,
) -> None:
    monkeypatch.setattr(command_client, "FIRST_S", 0.05)
    monkeypatch.setattr(command_client, "SILENT_S", 0.05)
    daemon, client = ends
    daemon.sendall(sent)
    assert command_client.follow(client) == code
    assert capfd.readouterr().err == err


@pytest.mark.parametrize("setting", ["off", "0", "no"])
def test_the_switch(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("NEXUS_DAEMON", setting)
    assert command_client.run(["check"]) is None


def test_where_no_daemon_runs_nothing_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delitem(sys.modules, "nexus_daemon.shared.client", raising=False)
    assert command_client.run(["check"]) is None
    assert "nexus_daemon.shared.client" not in sys.modules


def test_what_the_daemon_learns_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    more = command_client.fields(["check", "a=b", "größe", ""])
    assert more is not None
    request = read_request(with_environ(more, {"A": "b=c"}))
    assert (request.arguments, request.cwd, request.environ) == (
        ("check", "a=b", "größe", ""),
        str(tmp_path),
        {"A": "b=c"},
    )
    assert (request.stdout.encoding, request.stdout.is_terminal) == (sys.stdout.encoding, False)
    assert request.encoding == sys.getfilesystemencoding()


@pytest.mark.skipif(sys.platform == "win32", reason="the directory is in use there")
def test_a_working_directory_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    os.rmdir(tmp_path / "gone")
    assert command_client.fields(["check"]) is None
