"""Holds a JSON document: its value, its problems, and the location of each key and value."""

import json
import re
from itertools import chain
from typing import Any

from nexus_context.errors import Problem, Severity, Span
from nexus_context.text.json.index import NodeIndex
from nexus_context.text.json.scanner import DEEPEST, Scan, scan
from nexus_context.text.json.spans import Location, Pointer, Waypoints, as_index, find, find_at

FEW_LOOKUPS = 24
"""Look-ups by skipping through valid text, after which a table of all locations is built."""

MOST_VALUES = 100_000
"""Commas and opening brackets outside strings, past which a file is not read."""

_CONTAINERS = frozenset({dict, list})
_BLANK = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\\r\n]*+\\.){0,500}[^"\\\r\n]*+"?')


class JsonDocument:
    """One parsed text (RFC 8259). Immutable to callers; locations are worked out on first use.

    `value` is a plain Python value. For a broken text it is what could be recovered, or None. `problems` are
    in the order of the text, with codes `json.*`. `empty` is true if the text is blank.
    """

    __slots__ = (
        "_index",
        "_locations",
        "_lookups",
        "_waypoints",
        "empty",
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
        self._index = None if scanned is None else NodeIndex(text, scanned.nodes)
        self._lookups = 0
        self._locations: dict[Pointer, Location] = {}
        self._waypoints: Waypoints = {}

    def __repr__(self) -> str:
        return f"JsonDocument({self.path!r}, {len(self.text)} characters, {len(self.problems)} problems)"

    def span(self, pointer: Pointer) -> Span:
        """Return the span of the value at `pointer`. KeyError if there is none.

        The step 0 also finds a member with the name "0", and the step "0" an item of a list.
        """
        return self._locate(pointer).value

    def key_span(self, pointer: Pointer) -> Span | None:
        """Return the span of a value's key with its quotes. None for list items and the root.

        KeyError if there is no such value.
        """
        return self._locate(pointer).key

    def path_at(self, offset: int) -> Pointer:
        """Return the path of the innermost key or value that contains the offset, or ends there.

        () if there is none.
        """
        if self._index is None and self._count_lookup():
            return find_at(self.text, offset)
        return self._table().at(offset)

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
        if self._index is None:
            self._index = NodeIndex(self.text, scan(self.path, self.text).nodes)
        return self._index


def parse(path: str, text: str) -> JsonDocument:
    """Parse plain JSON (RFC 8259). Never raises, and reports every error of the text.

    Valid text is decoded by the C decoder. Text with errors, duplicate keys, or numbers out of range goes
    through the scanner, which also records all locations. Text of more than MOST_VALUES values is not read.
    """
    # a value and its separator are at least two characters
    if len(text) > 2 * MOST_VALUES and (count := _count_values(text)) > MOST_VALUES:
        message = (
            f"The file has about {count:,} values; at most {MOST_VALUES:,} are read. "
            "Split it, or remove what is not needed."
        )
        problem = Problem(path, Span(0, 1), "json.too-many-values", Severity.ERROR, message=message)
        return JsonDocument(path, text, None, (problem,), scanned=Scan(None, [], ()))
    try:
        return JsonDocument(path, text, _decode(text))
    except (ValueError, RecursionError):  # the scanner reports what is wrong
        scanned = scan(path, text)
        return JsonDocument(path, text, scanned.value, scanned.problems, scanned=scanned)


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


def has_escaped_halves(text: str) -> bool:
    """Whether there may be escaped surrogates in a text."""
    # searching one character is ten times as fast as searching two
    return "\\" in text and ("\\ud" in text or "\\uD" in text)


def count_members(value: Any, deepest: int) -> int | None:
    """Count the members of all objects in a value. None if it is nested more than `deepest` levels deep."""
    members = 0
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(deepest):
        objects = [container for container in level if type(container) is dict]
        members += sum(map(len, objects))
        arrays = [container for container in level if type(container) is list]
        inner = chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(arrays))
        level = [item for item in inner if type(item) in _CONTAINERS]
        if not level:
            return members
    return None


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
