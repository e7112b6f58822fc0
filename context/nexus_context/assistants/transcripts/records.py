"""Splits a text of JSON into records: the lines of JSONL, the items of a list, or the one value.

1. A text that is one JSON value is read as such; otherwise each line that is not blank is a record.
2. A line that is not JSON is a problem, and the other lines are read. An unfinished last line, as in a file
   that is being written, is information, not an error.
3. A broken text that does not consist of lines is read as far as possible. If it ends in the middle of a
   record, that record is left out: what it says of itself, such as its role, may be missing.
4. Half a surrogate pair, which JavaScript writes if it cuts an emoji in two, becomes U+FFFD.
"""

import logging
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from nexus_context.assistants.reading.record_values import decode_value
from nexus_context.conversation.message import Message
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text import json as jsontext

logger = logging.getLogger(__name__)

MOST_PROBLEMS = 20
"""Problems of one severity that are listed one by one."""

MOST_EXPLAINED = 1 << 16
"""Longest line, in code points, whose JSON errors are explained."""

MOST_RECOVERED = 1 << 22
"""Longest broken text without lines, in code points, from which values are recovered."""

_UNFINISHED = "at the end, of which the file has only the beginning"
_RECORD_LISTS = frozenset(
    {
        *("messages", "history", "trajectory", "query", "attempts", "traj"),
        *("chat_messages", "items", "input", "output", "contents", "events", "parts"),
    }
)
"""Keys of lists whose items are messages, or parts that stand alone."""

_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{}\]]', re.DOTALL)
_LINE = re.compile(r"[^\r\n]+")


class LeftOut(msgspec.Struct, frozen=True):
    """Content that was left out on purpose: `count` of what `noun` names. `what` says why, in words that
    follow the noun.
    """

    reason: str
    count: int
    noun: str
    what: str

    def __str__(self) -> str:
        noun = self.noun if self.count == 1 else f"{self.noun}s"
        return f"Left out: {self.count:,} {noun} {self.what}."


class Record(NamedTuple):
    """One JSON value and its place: the span of its line, and `place`, a name for messages to people."""

    value: Any
    span: Span
    place: str


Refusal = Callable[[Message], str | None]
"""Why a message cannot be stored; None if it can."""


class Report:
    """Collects the problems of one transcript. Of each severity only MOST_PROBLEMS are listed, the others are
    counted.

    `refusal` returns why the caller cannot store a message, else None.
    """

    def __init__(self, path: str, refusal: Refusal = lambda _: None) -> None:
        self.refusal = refusal
        self._path = path
        self._listed: list[Problem] = []
        self._counts: dict[Severity, int] = {}
        self._left_out: dict[str, LeftOut] = {}

    def leave(self, reason: str, what: str, count: int = 1, noun: str = "record") -> None:
        """Count content that is left out on purpose. `reason` is a code, `what` the words for people that
        follow the noun.
        """
        if count > 0:
            left_out = self._left_out.get(reason, LeftOut(reason, 0, noun, what))
            self._left_out[reason] = msgspec.structs.replace(left_out, count=left_out.count + count)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return what was left out on purpose, with its numbers."""
        return tuple(self._left_out.values())

    def add(self, span: Span, code: str, message: str, severity: Severity = Severity.ERROR) -> None:
        """Add a problem to the report."""
        if self.lists_next(severity):
            self._listed.append(Problem(self._path, span, code, severity, message=message))
        self._counts[severity] = self._counts.get(severity, 0) + 1

    def add_internal(self, span: Span, what: str, error: Exception) -> None:
        """Report an internal error that came while `what` was read. Call it while the error is handled."""
        logger.debug("%s: %s cannot be read", self._path, what, exc_info=True)
        reason = f"an error in Nexus ({type(error).__name__}: {str(error)[:200]})"
        message = f"{what} cannot be read because of {reason}. It is left out; please report this."
        self.add(span, "internal", message)

    def lists_next(self, severity: Severity = Severity.ERROR) -> bool:
        """Whether the next problem of this severity would be listed. If not, it is only counted."""
        return self._counts.get(severity, 0) < MOST_PROBLEMS

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems sorted by place. What was left out is among them; the last ones say how many
        are not listed.
        """
        information = [
            Problem(
                self._path,
                Span(0, 0),
                f"transcript.{left_out.reason}",
                Severity.INFORMATION,
                message=str(left_out),
            )
            for left_out in self._left_out.values()
        ]
        problems = sorted([*information, *self._listed], key=lambda problem: problem.span)
        for severity, count in self._counts.items():
            if count > MOST_PROBLEMS:
                message = f"And {count - MOST_PROBLEMS:,} more like these."
                problems.append(
                    Problem(self._path, problems[-1].span, "transcript.more", severity, message=message)
                )
        return tuple(problems)


def records(path: str, text: str, report: Report) -> list[Record]:
    """Return the records in a text. What cannot be read is reported."""
    value, error = decode_value(text)
    if not error:
        return _items(value)
    if _has_lines(text):
        return _lines(path, text, report)
    if len(text) > MOST_RECOVERED:
        report.add(Span(0, 1), "transcript.json", f"The file is not JSON: {error}. Export it again.")
        return []
    document = jsontext.parse(path, text)
    for problem in document.problems:
        report.add(problem.span, problem.code, problem.message, problem.severity)
    if _drop_unfinished(text, document.value):
        report.leave("unfinished", _UNFINISHED)
    return _items(document.value)


def _drop_unfinished(text: str, value: Any) -> bool:
    """Remove the last record if the text ends in the middle of it; returns whether it did."""
    # how many lists and objects are open where the text ends
    depth = sum((token[0] in "[{") - (token[0] in "]}") for token in _BRACKET.finditer(text))
    last_list: list[Any] | None = value if isinstance(value, list) and depth > 1 else None
    for level in range(2, depth + 1):
        key = next(reversed(value), None) if isinstance(value, dict) else -1
        if key is None or (key == -1 and not (isinstance(value, list) and value)):
            break
        value = value[key]
        if key in _RECORD_LISTS and isinstance(value, list) and value:
            last_list = value if depth > level else None
    if not last_list:
        return False
    last_list.pop()
    return True


def _items(value: Any) -> list[Record]:
    if not isinstance(value, list):
        return [] if value is None else [Record(value, Span(0, 0), "The value")]
    return [Record(item, Span(0, 0), f"Item {number:,}") for number, item in enumerate(value, 1)]


def _has_lines(text: str) -> bool:
    """Whether the text is JSONL, broken or not: one line is JSON, or the text does not begin like a value."""
    tried = 0
    for line in _LINE.finditer(text):
        if line[0].isspace():
            continue
        if line[0][0] not in " \t" and not decode_value(line[0])[1]:
            return True
        tried += 1
        if tried == MOST_PROBLEMS:
            break
    return text.lstrip()[:1] not in ("[", "{")


def _lines(path: str, text: str, report: Report) -> list[Record]:
    parsed_records = []
    broken_line: tuple[Span, str] | None = None
    for line in _LINE.finditer(text):
        if line[0].isspace():
            continue
        if broken_line is not None:
            _report_broken(path, text, broken_line, report)
            broken_line = None
        span = Span(*line.span())
        value, error = decode_value(line[0])
        if error:
            broken_line = (span, error)
        else:
            parsed_records.append(Record(value, span, "The line"))
    if broken_line is not None and broken_line[0].end == len(text) and text[broken_line[0].start] in "[{":
        message = "The last line is unfinished: something still writes to the file. The line is left out."
        report.add(broken_line[0], "transcript.unfinished", message, Severity.INFORMATION)
    elif broken_line is not None:
        _report_broken(path, text, broken_line, report)
    return parsed_records


def _report_broken(path: str, text: str, broken_line: tuple[Span, str], report: Report) -> None:
    """Report a line that is not JSON, with its error if the line is short."""
    (start, end), error = broken_line
    if "\0" in text[start:end]:
        message = "The line is not JSON: it holds NUL characters, as after a crash. It is left out."
        report.add(Span(start, end), "transcript.json", message)
        return
    if end - start <= MOST_EXPLAINED and report.lists_next():
        errors = (
            problem
            for problem in jsontext.parse(path, text[start:end]).problems
            if problem.severity is Severity.ERROR
        )
        for problem in errors:
            span = Span(start + problem.span.start, start + problem.span.end)
            report.add(span, problem.code, f"{problem.message} The line is left out.")
            return
    message = f"The line is not JSON: {error}. Fix or remove it; it is left out."
    report.add(Span(start, end), "transcript.json", message)
