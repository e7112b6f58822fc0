"""Writes a whole session as lines of JSON, and reads it back. Exporting an imported export gives the same
lines.

1. A header line has format, version, session, and the model parameters that the session was created with. A
   line for each turn of the thread follows, oldest first, including compactions and undos, with everything
   that the ledger stores except the id.
2. A file may hold several sessions: each header begins one.
3. A line that cannot be read is a problem, and the rest is read. After it, turns that depend on previous
   lines (compactions and undos) are left out.
4. A session is left out, with a problem, if none of its turns can be read. A session without turns is kept.
5. Unknown fields of a line are ignored; a file of a newer version is refused.
6. Memory holds the file and the turns read, within the limits of `text.read_limits`. The time is
   linear in the file, whatever compactions and undos it has.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from nexus_context.assistants.importing import LIMIT
from nexus_context.config.check import check_value
from nexus_context.conversation.agent_result import TurnOutcome
from nexus_context.conversation.half_pairs import whole_message
from nexus_context.conversation.message import Message, text_of
from nexus_context.disk import files
from nexus_context.disk.files import foreign_encoding
from nexus_context.errors import Problem, Severity, Span
from nexus_context.ledger.records import Ranges, SessionOrigin, Turn, TurnType
from nexus_context.ledger.rows import json_text, unwritable, value_of
from nexus_context.text import read_limits
from nexus_context.text.decoding import convert_to, decode_as
from nexus_context.text.json import pointer_text
from nexus_context.text.read_limits import LONGEST_LINE, MOST_VALUES

FORMAT = "nexus-session"
VERSION = 1

_BOM = b"\xef\xbb\xbf"
_START = Span(0, 0)
_LINE = re.compile(r"\S[^\n]*", re.ASCII)  # skips blank lines, however many there are
_LINE_OF_BYTES = re.compile(rb"\S[^\n]*")
_BEGINNING = 4096
"""Code points at the beginning of a file that must hold its first header."""


class Exported(msgspec.Struct, frozen=True):
    """One session of an export. Turns without `counter` have no token counts."""

    session: str
    turns: tuple[Turn, ...]
    parameters: Mapping[str, Any] = {}


class _Header(msgspec.Struct, frozen=True, omit_defaults=True):
    format: str
    version: int
    session: str
    parameters: dict[str, Any] = {}
    origin: SessionOrigin | None = None  # for readers; an import does not make a session of ours a mirror


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn as it stands in its line."""

    seq: int
    type: TurnType
    created: str
    messages: tuple[Message, ...] = ()
    model: str | None = None
    role: str | None = None
    toolset: tuple[str, ...] = ()
    permissions: Any = None
    event: Any = None
    context: Any = None
    outcome: TurnOutcome | None = None
    compaction: str | None = None
    receipt: Any = None
    kept: Ranges = ()
    counter: str = ""
    counts: tuple[int, ...] = ()


_UNREADABLE = (msgspec.ValidationError, UnicodeError, RecursionError)
"""What msgspec raises for an invalid value: UnicodeError for a key with half a surrogate pair."""
_LONGEST_TOKEN = 200
"""Most characters of a token: one may have 128 blanks."""
_MOST_TOKENS = 1 << 32
"""Most tokens of one message: a larger count is not trusted."""
_WORDS = ("created", "model", "role", "compaction", "counter")

_FIELDS = tuple(field.name for field in msgspec.structs.fields(_Line))


def lines(
    session: str,
    turns: Iterable[Turn],
    parameters: Mapping[str, Any] = {},
    origin: SessionOrigin | None = None,
) -> Iterator[str]:
    """Yield the lines of a session, each with its line end."""
    yield json_text(_Header(FORMAT, VERSION, session, dict(parameters), origin=origin)) + "\n"
    for turn in turns:
        line = _Line(**{name: getattr(turn, name) for name in _FIELDS})
        yield _text(line) + "\n"


def _text(line: _Line) -> str:
    """JSON that reads back as the same turn, even if msgspec cannot write its messages."""
    try:
        encoded = msgspec.json.encode(line)
        if decode_as(encoded, _Line) == line:
            return encoded.decode()
    except (UnicodeError, msgspec.DecodeError):
        pass
    return json_text(msgspec.to_builtins(line))


def is_ours(beginning: str) -> bool:
    """Whether a text that begins so was written by `lines`, in any version."""
    first_line = beginning[:_BEGINNING].lstrip("\ufeff \t\r\n").partition("\n")[0]
    return _format_of(_value(first_line)) is not None


class Sessions(NamedTuple):
    """The sessions of an export and its problems. `lines` has the line of each problem, from 1."""

    exported: list[Exported]
    problems: list[Problem]
    lines: list[int]


def read(lines: "Iterable[Line]", path: str) -> Sessions:
    """Read the sessions in the lines of an export. It never raises, whatever they hold; `path` is for the
    problems.

    Only the turns of lines that were read are in memory.
    """
    reader = _Reader(path)
    values = 0
    for number, start, line in lines:
        reader.line = number
        span = Span(start, start + len(line))
        values += read_limits.values_in(line, MOST_VALUES)
        if values > MOST_VALUES:
            reader.tell(span, read_limits.too_many_values())
            return Sessions([], reader.problems, reader.lines)
        if len(line) > LONGEST_LINE:
            reader.leave_out(
                span, f"The line has {len(line):,} characters, and at most {LONGEST_LINE:,} are read"
            )
        else:
            reader.take(line.strip("\ufeff \t\r"), span)
    reader.close()
    return Sessions(reader.sessions, reader.problems, reader.lines)


class Line(NamedTuple):
    """A line that is not blank. `number` is from 1; `start` is the offset of its text in code points."""

    number: int
    start: int
    text: str


def lines_of(data: bytes, path: str, problems: list[Problem]) -> Iterator[Line]:
    """Yield the lines of an export. They are decoded one by one, so that a long file is never in memory
    twice.
    """
    if foreign_encoding(data[:_BEGINNING]) or data.startswith(_BOM):
        if len(data) > LIMIT:
            message = "The file is large and not UTF-8 without a BOM. Save it as UTF-8."
            problems.append(Problem(path, _START, "layer.encoding", Severity.ERROR, message=message))
            return
        decoded = files.decode(path, data)
        problems += (problem for problem in decoded.problems if problem.code == "layer.encoding")
        yield from split(decoded.text or "")
        return
    number, start, end, reported = 1, 0, 0, False
    for match in _LINE_OF_BYTES.finditer(data):
        number += data.count(b"\n", end, match.start())
        start += match.start() - end  # white space: one byte each
        end = match.end()
        try:
            text = match[0].decode()
        except UnicodeDecodeError as error:
            text = match[0].decode(errors="replace")
            if not reported:
                at = match.start() + error.start
                message = f"The file is not UTF-8: byte 0x{data[at]:02X} at byte {at} ({error.reason})."
                message = f"{message} Save the file as UTF-8."
                problems.append(Problem(path, _START, "layer.encoding", Severity.ERROR, message=message))
            reported = True
        yield Line(number, start, text)
        start += len(text)


def split(text: str) -> Iterator[Line]:
    """Yield the lines of a text that are not blank. Unlike `splitlines`, it leaves other line ends alone,
    which JSON may hold.
    """
    number, end = 1, 0
    for match in _LINE.finditer(text):
        number += text.count("\n", end, match.start())
        end = match.end()
        yield Line(number, match.start(), match[0])


class _Reader:
    """Groups lines into sessions."""

    def __init__(self, path: str) -> None:
        self.sessions: list[Exported] = []
        self.problems: list[Problem] = []
        self.lines: list[int] = []
        self.line = 0  # number of the current line
        self._path = path
        self._session: str | None = None
        self._parameters: dict[str, Any] = {}
        self._header, self._header_line = Span(0, 0), 0
        self._turns: list[Turn] = []
        self._messages = 0
        self._compactions: list[str] = []  # in force, oldest first
        self._in_force: Counter[str] = Counter()  # how often each is in force
        self._whole = True  # no turn of this session is missing

    def take(self, line: str, span: Span) -> None:
        value = _value(line)
        if _format_of(value) is not None:
            self._begin(value, span)
            return
        if self._session is None:
            return  # a line of a session with a refused header
        turn = self._turn(value, span)
        if turn is None:
            self._whole = False
            return
        self._turns.append(turn)
        self._messages += len(turn.messages)

    def leave_out(self, span: Span, why: str) -> None:
        """Leave out a turn without parsing it."""
        if self._session is not None:
            self._whole = False
            self.tell(span, f"{why}. It is left out.")

    def close(self) -> None:
        if self._session is not None and not (self._turns or self._whole):
            message = f"The session {self._session!r} has no turn that can be read; it is left out."
            self.tell(self._header, message, line=self._header_line)
        elif self._session is not None:
            self.sessions.append(Exported(self._session, tuple(self._turns), self._parameters))
        self._session = None
        self._turns, self._compactions, self._in_force = [], [], Counter()
        self._messages, self._whole = 0, True

    def _begin(self, value: dict[str, Any], span: Span) -> None:
        self.close()
        try:
            header = convert_to(value, _Header)
        except _UNREADABLE as error:
            message = (
                f"The header of the session cannot be read: {error}. Its turns are left out; export it again."
            )
            self.tell(span, message)
            return
        if header.version > VERSION:
            self.tell(
                span,
                f"The session {header.session!r} was exported by a newer version of Nexus (format "
                f"{header.version}, but only {VERSION} is supported); install that version to import it.",
            )
            return
        self._session, self._header, self._header_line = header.session, span, self.line
        self._parameters = dict(self._valid_parameters(header, span))

    def _valid_parameters(self, header: _Header, span: Span) -> Iterator[tuple[str, Any]]:
        """The parameters that a session may have; the others are problems."""
        for name, value in header.parameters.items():
            fault = check_value(pointer_text(("parameters", name)), value)
            if fault:
                subject = f"The parameter {name:.60} of the session {header.session!r} is left out"
                self.tell(span, f"{subject}: {fault}")
            else:
                yield name, value

    def _turn(self, value: Any, span: Span) -> Turn | None:
        if value is None:
            self.tell(span, "The line is not valid JSON; the turn is left out.")
            return None
        try:
            line = convert_to(value, _Line)
            reason = _unwritable(line)
        except _UNREADABLE as error:
            reason = f"{error}."
        if reason is not None:
            self.tell(span, f"The line is not a valid turn: {reason} It is left out.")
            return None
        if line.type != "query" and (reason := self._refused(line)):
            self.tell(
                span,
                f"{'A compaction' if line.type == 'compaction' else 'An undo'} {reason}; it is left out.",
            )
            return None
        counted = bool(line.counter) and len(line.counts) == len(line.messages)
        counted = counted and all(map(_is_plausible, line.messages, line.counts))
        fields = {name: getattr(line, name) for name in _FIELDS}
        fields["messages"] = tuple(map(whole_message, line.messages))
        fields |= {} if counted else {"counter": "", "counts": ()}
        return Turn(id="", tokens=sum(fields["counts"]), **fields)

    def _refused(self, line: _Line) -> str | None:
        """Why a compaction or an undo is invalid; otherwise it takes effect."""
        if not self._whole:
            return "follows a missing turn"
        if line.compaction is None:
            return "has no id"
        if line.type == "undo":
            if not self._in_force[line.compaction]:
                return f"takes back {line.compaction!r}, which is not in force"
            if line.messages:
                return "has messages"
            taken_back = None
            while taken_back != line.compaction:  # later ones are taken back with it
                taken_back = self._compactions.pop()
                self._in_force[taken_back] -= 1
            return None
        if len(line.messages) != 1:
            return "must have exactly one message, the summary"
        end = 0
        for range_start, range_end in line.kept:
            if not end <= range_start < range_end <= self._messages:
                return "keeps messages that do not exist"
            end = range_end
        self._compactions.append(line.compaction)
        self._in_force[line.compaction] += 1
        return None

    def tell(self, span: Span, message: str, *, line: int = 0) -> None:
        self.lines.append(line or self.line)
        self.problems.append(Problem(self._path, span, "transcript.session", Severity.ERROR, message=message))


def _is_plausible(message: Message, count: int) -> bool:
    """Whether a message can have so many tokens: counts in files are not trusted."""
    return len(text_of(message)) // _LONGEST_TOKEN <= count <= _MOST_TOKENS


def _unwritable(line: _Line) -> str | None:
    """Why a turn cannot be written, as a sentence; None if it can."""
    for name in _WORDS:
        word = getattr(line, name)
        if word is not None and not word.isascii() and word.encode(errors="replace").decode() != word:
            return f"`{name}` holds half a surrogate pair."
    try:
        for value in (line.event, line.context, line.receipt, line.toolset, line.permissions, line.outcome):
            json_text(value)
    except RecursionError:
        return "its values are nested too deeply."
    for at, message in enumerate(line.messages):
        reason = unwritable(message)
        if reason is not None:
            return f"messages[{at}] cannot be stored: {reason}"
    return None


def _value(line: str) -> Any:
    """The JSON value of a line; None if it is invalid."""
    try:
        return value_of(line)
    except (ValueError, RecursionError):
        return None


def _format_of(value: Any) -> Any:
    return value if isinstance(value, dict) and value.get("format") == FORMAT else None
