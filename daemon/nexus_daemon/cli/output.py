"""Prints for every command: the only door to standard output and standard error.

1. `line`, `page`, `console` and `complain` are for people. No control character of a file's text or name
   reaches the terminal or the log, and in a pipe no line is a workflow command of GitHub Actions.
2. `data` is for programs: exact in a pipe or a file, the same as `page` on a terminal.
3. `json_text` is JSON: equal in value wherever it goes, with escapes for control characters.
4. `commands` prints workflow commands for GitHub Actions, exactly.
5. While `guarded`, everything on standard error is made visible as by `page`, including what argparse,
   logging and the interpreter write.
"""

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO, cast

from nexus_context.text.visible import visible, visible_json, visible_line
from nexus_daemon.cli.guard import Guard, write_guarded
from nexus_daemon.cli.invocation import current

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_PATH = 4096  # characters; grep cannot find a folded path

# what GitHub Actions runs as a command: `::` after blanks at the start of a line, `##[` anywhere
_LEGACY_COMMAND = "##["


def line(text: str) -> None:
    """Print a line for people. Line ends in it are made visible."""
    write_guarded(current().stdout, visible_line(text) + "\n")


def page(text: str) -> None:
    """Print a text for people, with its own line ends."""
    write_guarded(current().stdout, visible(text))


def data(text: str) -> None:
    """Print a text for programs. A terminal shows it as `page` does."""
    stdout = current().stdout
    stdout.write(visible(text) if stdout.isatty() else text)


def json_lines(text: str) -> None:
    """Print lines of JSON, exact in a pipe. On a terminal, control characters in them are escaped."""
    stdout = current().stdout
    stdout.write(visible_json(text) if stdout.isatty() else text)


def json_text(text: str) -> None:
    """Print JSON with escapes for control characters, and for characters that the output's encoding lacks."""
    text = visible_json(text).replace(_LEGACY_COMMAND, "##\\u005b")
    stdout = current().stdout
    try:
        text.encode(stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text), indent=2) + "\n"
    stdout.write(text)


def json_value(value: Any) -> None:
    """Print a value as JSON, indented."""
    import json

    import msgspec

    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeError:  # a lone surrogate
        text = json.dumps(value, indent=2)
    json_text(text + "\n")


def commands(text: str) -> None:
    """Print workflow commands of GitHub Actions, a line each."""
    current().stdout.write(visible(text))


def complain(command: str, text: str) -> None:
    """Print a line for people on standard error, after the command's name."""
    write_guarded(current().stderr, f"nexus {command}: {visible_line(text)}\n")


def beside(text: str) -> None:
    """Print a text for people on standard error, at once."""
    write_guarded(current().stderr, visible(text))
    current().stderr.flush()


def flush() -> None:
    """Write what is buffered. OSError if it cannot be written."""
    streams: tuple[Any, ...] = (current().stdout, current().stderr)
    for stream in streams:
        if stream is not None and not stream.closed:  # Windows has none without a console
            stream.flush()


SLICE_S = 0.1
"""How often Windows is asked whether there is something to read."""


def pause(seconds: float, until: int | None = None) -> bool:
    """Sleep, but at most until the descriptor `until` can be read. True if it can.

    BrokenPipeError as soon as the reader of standard output is gone, if the system tells that.
    """
    import select

    if not hasattr(select, "poll"):  # Windows, whose `select` needs a descriptor and hears no Ctrl-C
        end = time.monotonic() + seconds
        while (remaining_s := end - time.monotonic()) > 0:
            time.sleep(min(remaining_s, SLICE_S))
            if until is not None and select.select([until], [], [], 0)[0]:
                return True
        return False
    poll = select.poll()
    with suppress(OSError, ValueError):  # not a file
        poll.register(current().stdout.fileno(), 0)  # errors and ends are always reported
    if until is not None:
        poll.register(until, select.POLLIN)
    ready = [number for number, _ in poll.poll(seconds * 1000)]
    if any(number != until for number in ready):
        raise BrokenPipeError
    return bool(ready)


def can_ask() -> bool:
    """Whether a person can be asked: standard input and standard error are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def is_confirmed(command: str, verb: str) -> bool:
    """Ask the user to confirm the printed action, which `verb` names. False without a terminal."""
    if can_ask():
        is_yes = says_yes(f"{verb.capitalize()} this?")
        if not is_yes:
            complain(command, "nothing was changed.")
        return is_yes
    complain(command, f"it asks for confirmation, which needs a terminal; use --yes to {verb} without it.")
    return False


def says_yes(question: str) -> bool:
    """Whether the user answers a question with yes. Call this only if `can_ask` is true."""
    beside(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return current().stderr.isatty()


def is_read_by_person() -> bool:
    """Whether standard output is a terminal."""
    return current().stdout.isatty()


def finish(code: int) -> int:
    """Write what is buffered, and return the exit code.

    It is 1 if that cannot be written, and 0 if the reader of the output is gone.
    """
    try:
        flush()
    except BrokenPipeError:
        drop()
        return 0
    except OSError as error:
        drop()
        write_guarded(current().stderr, f"nexus: the output cannot be written: {error.strerror}\n")
        return 1
    return code


def drop() -> None:
    """Discard buffered and later output. Its reader is gone, and the interpreter would complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # not a file
        os.dup2(null, current().stdout.fileno())
    os.close(null)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as "1 turn" or "2,000 turns"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def local_time(stamp: str) -> str:
    """Return an ISO 8601 time in the local time zone. Any other text stays as it is."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def console(*, stderr: bool = False) -> "Console":
    """Return a console for tables and coloured text. It interprets no markup, and honours NO_COLOR.

    It is as wide as the terminal; in a pipe, as wide as the longest path or COLUMNS.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Guarded(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    invocation = current()
    environ = invocation.environ
    file = cast("TextIO", Guard(invocation.stderr if stderr else invocation.stdout, styled=True))
    out = Guarded(file=file, highlight=False, markup=False, emoji=False, _environ=environ)
    size = invocation.terminal_size
    if not out.is_terminal:
        columns = environ.get("COLUMNS", "")
        out.width = (int(columns) if columns.isascii() and columns.isdecimal() else 0) or LONGEST_PATH
    elif size is not None and not out.is_dumb_terminal:  # as rich does for a terminal that it can measure
        columns, lines = environ.get("COLUMNS", ""), environ.get("LINES", "")
        out.size = (
            int(columns) if columns.isdigit() else size[0] or 80,
            int(lines) if lines.isdigit() else size[1] or 25,
        )
    return out


@contextmanager
def guarded() -> Iterator[None]:
    """Guard standard error in this `with` block.

    After an exception it stays guarded: the interpreter prints a traceback there.
    """
    plain = sys.stderr
    if plain is None:  # Windows without a console
        yield
        return
    sys.stderr = cast("TextIO", Guard(plain))
    yield
    sys.stderr = plain


def replace_unencodable() -> None:
    """Let standard output and error print `?` for characters that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
