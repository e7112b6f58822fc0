"""A JSON document: its value, its problems, and the location of each key and value."""

import json
import re
from typing import Any

from nexus_context.errors import Problem, Severity, Span
from nexus_context.jsontext.index import NodeIndex
from nexus_context.jsontext.runs import (
    DEEPEST,
    PlacedRun,
    Run,
    RunReader,
    as_runs,
    count_members,
    difference,
    has_escaped_halves,
    move_runs,
)
from nexus_context.jsontext.scanner import Scan, scan
from nexus_context.jsontext.spans import Location, Pointer, Waypoints, as_index, find, find_at

FEW_LOOKUPS = 24
"""Look-ups by skipping through valid text, after which a table of all locations is built."""

MOST_VALUES = 100_000
"""Commas and opening brackets outside strings, past which a file is not read."""

SHORT_TEXT = 4_000
"""Characters of a valid text below which decoding it anew is as fast as reusing runs."""

MOST_CHANGED = 4_000
"""Characters that one change may insert; after a larger change the whole text is parsed."""

MOST_RUNS = 100
"""Runs of a text, past which it is parsed anew, which leaves few runs again."""

_BLANK = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\\r\n]*+\\.){0,500}[^"\\\r\n]*+"?')


class JsonDocument:
    """One parsed text (RFC 8259). Immutable to callers; locations are worked out on first use.

    `value` is a plain Python value: of a broken text, what could be recovered, or None. `problems` are in the
    order of the text, with codes `json.*`. `empty` says that the text is blank. `notes` cache what a checker
    learned about the values; the document of the next text, which shares most values, starts with a copy.
    """

    __slots__ = (
        "_index",
        "_locations",
        "_lookups",
        "_runs",
        "_waypoints",
        "empty",
        "notes",
        "ok",
        "path",
        "problems",
        "text",
        "value",
    )

    def __init__(
        self,
        path: str,
        text: str,
        value: Any,
        problems: tuple[Problem, ...] = (),
        scanned: Scan | None = None,
    ) -> None:
        self.path = path
        self.text = text
        self.value = value
        self.problems = problems
        self.ok = all(problem.severity is not Severity.ERROR for problem in problems)
        self.empty = _BLANK.fullmatch(text) is not None
        self.notes: dict[Any, Any] = {}
        self._index = None if scanned is None else NodeIndex(text, scanned.nodes, scanned.runs)
        self._runs = None if scanned is None else scanned.placed_runs()
        self._lookups = 0
        self._locations: dict[Pointer, Location] = {}
        self._waypoints: Waypoints = {}

    def __repr__(self) -> str:
        return f"JsonDocument({self.path!r}, {len(self.text)} characters, {len(self.problems)} problems)"

    def span(self, pointer: Pointer) -> Span:
        """Span of a value; KeyError if there is none. Indices and names stand for each other."""
        return self._locate(pointer).value

    def key_span(self, pointer: Pointer) -> Span | None:
        """Span of a value's key with its quotes, None for items and the root; KeyError as for `span`."""
        return self._locate(pointer).key

    def path_at(self, offset: int) -> Pointer:
        """Path of the innermost key or value that contains the offset, or ends with it; () outside all."""
        if self._index is None and self._count_lookup():
            return find_at(self.text, offset)
        return self._table().at(offset)

    def runs(self) -> list[PlacedRun]:
        """The runs of valid members that the document of the next text may reuse."""
        return as_runs(self.text, self.value) if self._runs is None else self._runs

    def _locate(self, pointer: Pointer) -> Location:
        if self._index is not None:
            return self._table().find(pointer)
        location = self._locations.get(pointer)
        if location is None:
            _check_presence(self.value, pointer)
            if self._count_lookup():
                location = find(self.text, pointer, self._waypoints)
            else:
                location = self._table().find(pointer)
            self._locations[pointer] = location
        return location

    def _count_lookup(self) -> bool:
        self._lookups += 1
        return self._lookups <= FEW_LOOKUPS

    def _table(self) -> NodeIndex:
        if self._index is None or self._index.lookups >= FEW_LOOKUPS:
            scanned = scan(self.path, self.text)
            self._index = NodeIndex(self.text, scanned.nodes, scanned.runs)
        return self._index


def parse(path: str, text: str, before: JsonDocument | None = None) -> JsonDocument:
    """Parse plain JSON (RFC 8259); never raises, and reports every error of the text.

    Valid text is decoded by the C decoder. Text with errors, duplicate keys, or numbers out of range goes
    through the scanner, which also records all locations. Text of more than MOST_VALUES values is not read.
    `before` is the document of an earlier text: after a small change only what it touches is read, and the
    untouched values are the same objects.
    """
    # a value and its separator are at least two characters
    if len(text) > 2 * MOST_VALUES and (count := _count_values(text)) > MOST_VALUES:
        message = (
            f"The file has about {count:,} values; at most {MOST_VALUES:,} are read. "
            "Split it, or remove what is not needed."
        )
        problem = Problem(path, Span(0, 1), "json.too-many-values", Severity.ERROR, message=message)
        return JsonDocument(path, text, None, (problem,), scanned=Scan(None, [], {}, ()))
    reusable = None if before is None else _reusable_runs(before, text)
    if not reusable:
        try:
            return JsonDocument(path, text, _decode(text))
        except (ValueError, RecursionError):  # the scanner reports what is wrong
            pass
    scanned = scan(path, text, RunReader(text, reusable))
    document = JsonDocument(path, text, scanned.value, scanned.problems, scanned=scanned)
    if reusable and before is not None:
        document.notes = before.notes.copy()
    return document


def _reusable_runs(before: JsonDocument, text: str) -> dict[int, Run] | None:
    """The runs of an earlier text that are left in this one; None where reusing them gains little."""
    if before.ok and len(before.text) < SHORT_TEXT:
        return None
    runs = before.runs()
    if not 0 < len(runs) <= MOST_RUNS:
        return None
    change = difference(before.text, text)
    if change.new_end - change.start > MOST_CHANGED:
        return None
    return move_runs(runs, change)


def _count_values(text: str) -> int:
    """A lower bound of the number of values; strings are skipped only if there may be too many."""
    count = _count_separators(text)
    return count if count <= MOST_VALUES else _count_separators(_STRING.sub("", text))


def _count_separators(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def _decode(text: str) -> Any:
    """Value of a text without any problem; ValueError or RecursionError for any other."""
    value = _DECODER.decode(text)
    if has_escaped_halves(text):
        json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError for a lone surrogate
    if not text.isascii():
        text.encode()
    members = count_members(value, DEEPEST)
    if members is None:
        raise ValueError("too deep")
    if members != text.count('":'):  # a name is repeated, or colons also stand elsewhere: look closer
        return _CLOSE_DECODER.decode(text)
    return value


def _members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(members)
    if len(names) != len(members):
        raise ValueError("duplicate key")
    return names


def _finite(source: str) -> float:
    value = float(source)
    if value - value:  # infinite: the difference is NaN
        raise ValueError("out of range")
    return value


def _no_constant(source: str) -> Any:
    raise ValueError(f"{source} is not JSON")


# a Python function called for each object costs as much as the rest of the decoder
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
_CLOSE_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_finite, parse_constant=_no_constant
)


def _check_presence(value: Any, pointer: Pointer) -> None:
    """KeyError if a valid document has no value there."""
    for step in pointer:
        if isinstance(value, list):
            index = as_index(step)
            if index is None or not 0 <= index < len(value):
                raise KeyError(pointer)
            value = value[index]
        elif isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        else:
            raise KeyError(pointer)
