"""A session entire as lines of JSON, and back: what was exported and imported is exported the same.

1. A header line names format, version and session; then comes a line for each turn of its thread, oldest
   first, compactions and undos among them, each with all that the ledger knows of it but its id.
2. Several sessions may follow each other: each header begins one.
3. A line that cannot be read is a problem, and the rest is read. What depends on the lines before it, a
   compaction's kept positions and an undo, is left out from there on.
4. A session of which no turn can be read is a problem, and no session; one that has none is one.
5. What stands in a line beside what is known is ignored; a newer version's file is refused.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.errors import Problem, Severity, Span
from nexus_context.ledger.records import Ranges, Turn, TurnType
from nexus_context.ledger.rows import json_text, value_of

FORMAT = "nexus-session"
VERSION = 1

_BEGINNING = 4096
"""Code points of a file in which its first header must stand, to be told from other files."""


class Exported(msgspec.Struct, frozen=True):
    """One session of a file. Turns without `counter` have not been counted."""

    session: str
    turns: tuple[Turn, ...]


class _Header(msgspec.Struct, frozen=True):
    format: str
    version: int
    session: str


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn as it stands in its line."""

    seq: int
    type: TurnType
    created: str
    messages: tuple[Message, ...] = ()
    model: str | None = None
    role: str | None = None
    toolset: tuple[str, ...] = ()
    permissions: str | None = None
    event: Any = None
    context: Any = None
    compaction: str | None = None
    receipt: Any = None
    kept: Ranges = ()
    counter: str = ""
    counts: tuple[int, ...] = ()


_FIELDS = tuple(field.name for field in msgspec.structs.fields(_Line))


def lines(session: str, turns: Iterable[Turn]) -> Iterator[str]:
    """The lines of a session, each with its line end."""
    yield json_text(_Header(FORMAT, VERSION, session)) + "\n"
    for turn in turns:
        line = _Line(**{name: getattr(turn, name) for name in _FIELDS})
        yield _text(line) + "\n"


def _text(line: _Line) -> str:
    """JSON that is read back as the same turn, also where messages hold what msgspec does not write."""
    try:
        encoded = msgspec.json.encode(line)
        if msgspec.json.decode(encoded, type=_Line) == line:
            return encoded.decode()
    except (UnicodeError, msgspec.DecodeError):
        pass
    return json_text(msgspec.to_builtins(line))


def is_ours(beginning: str) -> bool:
    """Whether a text that begins so was written by `lines`, by whichever version."""
    first = beginning[:_BEGINNING].lstrip("\ufeff \t\r\n").partition("\n")[0]
    return _format_of(_value(first)) is not None


def read(text: str, path: str) -> tuple[list[Exported], list[Problem]]:
    """The sessions of a file, and what is wrong with it; never raises. `path` is for the problems."""
    reader = _Reader(path)
    start = 0
    for line in text.split("\n"):  # not splitlines: JSON holds other line ends as they are
        if line and not line.isspace():
            reader.take(line.strip("\ufeff \t\r"), Span(start, start + len(line)))
        start += len(line) + 1
    reader.close()
    return reader.sessions, reader.problems


class _Reader:
    """Sorts lines into sessions."""

    def __init__(self, path: str) -> None:
        self.sessions: list[Exported] = []
        self.problems: list[Problem] = []
        self._path = path
        self._session: str | None = None
        self._header = Span(0, 0)
        self._turns: list[Turn] = []
        self._messages = 0
        self._compactions: list[str] = []  # in force, oldest first
        self._whole = True  # no turn of this session is missing

    def take(self, line: str, span: Span) -> None:
        value = _value(line)
        if _format_of(value) is not None:
            self._begin(value, span)
            return
        if self._session is None:
            return  # of a session whose header was refused
        turn = self._turn(value, span)
        if turn is None:
            self._whole = False
            return
        self._turns.append(turn)
        self._messages += len(turn.messages)

    def close(self) -> None:
        if self._session is not None and not (self._turns or self._whole):
            said = f"The session {self._session!r} has no turn that can be read; it is left out."
            self._tell(self._header, said)
        elif self._session is not None:
            self.sessions.append(Exported(self._session, tuple(self._turns)))
        self._session = None
        self._turns, self._compactions = [], []
        self._messages, self._whole = 0, True

    def _begin(self, value: dict[str, Any], span: Span) -> None:
        self.close()
        try:
            header = msgspec.convert(value, _Header)
        except (msgspec.ValidationError, RecursionError) as error:
            self._tell(span, f"The header of the session cannot be read: {error}. Export it again.")
            return
        if header.version > VERSION:
            self._tell(
                span,
                f"The session {header.session!r} was exported by a newer version of Nexus (format "
                f"{header.version}, known up to {VERSION}); install that version to import it.",
            )
            return
        self._session, self._header = header.session, span

    def _turn(self, value: Any, span: Span) -> Turn | None:
        if value is None:
            self._tell(span, "The line is no JSON; the turn is left out.")
            return None
        try:
            line = msgspec.convert(value, _Line)
        except (msgspec.ValidationError, RecursionError) as error:
            self._tell(span, f"The line is no turn: {error}. It is left out.")
            return None
        if line.type != "query" and (reason := self._refused(line)):
            self._tell(
                span, f"{'A compaction' if line.type == 'compaction' else 'An undo'} {reason}; left out."
            )
            return None
        counted = bool(line.counter) and len(line.counts) == len(line.messages)
        fields = {name: getattr(line, name) for name in _FIELDS}
        fields |= {} if counted else {"counter": "", "counts": ()}
        return Turn(id="", tokens=sum(fields["counts"]), **fields)

    def _refused(self, line: _Line) -> str | None:
        """Why a compaction or an undo cannot be; else it is in force from now on."""
        if not self._whole:
            return "that comes after a turn that is missing"
        if line.compaction is None:
            return "without an id"
        if line.type == "undo":
            if line.compaction not in self._compactions:
                return f"of {line.compaction!r}, which is not in force"
            if line.messages:
                return "that holds messages"
            del self._compactions[self._compactions.index(line.compaction) :]
            return None
        if len(line.messages) != 1:
            return "that holds not one message, the summary"
        end = 0
        for first, after in line.kept:
            if not end <= first < after <= self._messages:
                return "that keeps messages which are not there"
            end = after
        self._compactions.append(line.compaction)
        return None

    def _tell(self, span: Span, message: str) -> None:
        self.problems.append(Problem(self._path, span, "transcript.session", Severity.ERROR, message))


def _value(line: str) -> Any:
    """The JSON of a line; None where it is none."""
    try:
        return value_of(line)
    except (ValueError, RecursionError):
        return None


def _format_of(value: Any) -> Any:
    return value if isinstance(value, dict) and value.get("format") == FORMAT else None


__all__ = ["FORMAT", "VERSION", "Exported", "is_ours", "lines", "read"]
