"""A JSON document: its value, its problems, and where each key and value is."""

import json
import re
from json.decoder import JSONDecodeError
from typing import Any

from nexus_context.errors import Problem, Severity, Span
from nexus_context.jsontext.index import Index
from nexus_context.jsontext.pointer import Pointer, as_index
from nexus_context.jsontext.recovery import Scan, scan
from nexus_context.jsontext.reusable_spans import Piece, Placed, difference, moved, whole
from nexus_context.jsontext.runs import DEEPEST, Runs, has_escaped_halves, survey
from nexus_context.jsontext.spans import Found, Place, find, find_at

FEW_LOOKUPS = 24
"""Look-ups by skipping through valid text, after which a table of all places is built."""

MOST_VALUES = 100_000
"""Commas and opening brackets outside strings, past which a file is not read."""

SHORT_TEXT = 4_000
"""Characters of a text without errors that is parsed as quickly as what remains of it is found."""

MOST_CHANGED = 4_000
"""Characters that one change may bring; one that brings more is met by parsing the text anew."""

MOST_PIECES = 100
"""Pieces of a text, past which it is parsed anew, and is of few pieces again."""

_BLANK = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\\r\n]*+\\.){0,500}[^"\\\r\n]*+"?')


class JsonDocument:
    """One parsed text (RFC 8259). Immutable to callers; places are worked out when first asked for.

    `value` is a plain Python value; of a broken text, what could be recovered; None if nothing could.
    `problems` are in the order of the text, with codes `json.*`. `empty` says that the text is blank.
    `notes` are what others found out about its values, under keys of theirs; the document of the next text,
    which has most values in common with this one, begins with them.
    """

    __slots__ = (
        "_found",
        "_index",
        "_lookups",
        "_pieces",
        "_places",
        "_scanned",
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
        self._scanned = scanned is not None
        self._index = None if scanned is None else Index(text, scanned.nodes, scanned.pieces)
        self._pieces = None if scanned is None else scanned.placed()
        self._lookups = 0
        self._places: dict[Pointer, Place] = {}
        self._found: Found = {}

    def __repr__(self) -> str:
        return f"JsonDocument({self.path!r}, {len(self.text)} characters, {len(self.problems)} problems)"

    def span(self, pointer: Pointer) -> Span:
        """Span of a value; KeyError if there is none. Indices and names stand for each other."""
        return self._place(pointer).value

    def key_span(self, pointer: Pointer) -> Span | None:
        """Span of a value's key with its quotes, None for items and the root; KeyError as for `span`."""
        return self._place(pointer).key

    def path_at(self, offset: int) -> Pointer:
        """Path of the innermost key or value that contains the offset, or ends with it; () outside all."""
        if self._skips() and self._count_lookup():
            return find_at(self.text, offset)
        return self._table().at(offset)

    def pieces(self) -> list[Placed]:
        """The valid members that the document of the next text may take over."""
        return whole(self.text, self.value) if self._pieces is None else self._pieces

    def _skips(self) -> bool:
        """Whether places are still found by skipping through the text, which is valid then."""
        return self._index is None and not self._scanned

    def _place(self, pointer: Pointer) -> Place:
        if not self._skips():
            return self._table().find(pointer)
        place = self._places.get(pointer)
        if place is None:
            _check_presence(self.value, pointer)
            found = (
                find(self.text, pointer, self._found) if self._count_lookup() else self._table().find(pointer)
            )
            place = self._places[pointer] = found
        return place

    def _count_lookup(self) -> bool:
        self._lookups += 1
        return self._lookups <= FEW_LOOKUPS

    def _table(self) -> Index:
        if self._index is None or self._index.lookups >= FEW_LOOKUPS:
            found = scan(self.path, self.text)
            self._index = Index(self.text, found.nodes, found.pieces)
        return self._index


def parse(path: str, text: str, before: JsonDocument | None = None) -> JsonDocument:
    """Parse plain JSON (RFC 8259); never raises, and reports every error of the text.

    Valid text takes the C decoder. Text with errors, duplicate keys, or numbers out of range takes the
    scanner, which also knows where everything is. Text of more than MOST_VALUES values is not read.
    `before` is the document of an earlier text: of a small change only what it touches is read, and the
    values that are untouched are the very same objects.
    """
    # a value and what separates it from the next are two characters at least
    if len(text) > 2 * MOST_VALUES and (count := _count_values(text)) > MOST_VALUES:
        message = (
            f"The file has about {count:,} values; at most {MOST_VALUES:,} are read. "
            "Split it, or remove what is not needed."
        )
        problem = Problem(path, Span(0, 1), "json.too-many-values", Severity.ERROR, message)
        return JsonDocument(path, text, None, (problem,), Scan(None, [], {}, ()))
    if before is not None and (known := _untouched(before, text)):
        scanned = scan(path, text, Runs(text, known=known))
        document = JsonDocument(path, text, scanned.value, scanned.problems, scanned)
        document.notes = before.notes.copy()
        return document
    error = -1
    try:
        return JsonDocument(path, text, _decode(text))
    except JSONDecodeError as failure:
        error = failure.pos
    except (ValueError, RecursionError):  # some problem that is no error of syntax
        pass
    scanned = scan(path, text, Runs(text, error))
    return JsonDocument(path, text, scanned.value, scanned.problems, scanned)


def _untouched(before: JsonDocument, text: str) -> dict[int, Piece] | None:
    """The pieces of an earlier text that are left in this one; None where there is little to be gained."""
    if before.ok and len(before.text) < SHORT_TEXT:
        return None
    pieces = before.pieces()
    if not 0 < len(pieces) <= MOST_PIECES:
        return None
    change = difference(before.text, text)
    if change.new_end - change.start > MOST_CHANGED:
        return None
    return moved(pieces, change)


def _count_values(text: str) -> int:
    """At least how many values a text has; the strings are looked at only if there might be too many."""
    count = _count_separators(text)
    return count if count <= MOST_VALUES else _count_separators(_STRING.sub("", text))


def _count_separators(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def _decode(text: str) -> Any:
    """Value of text that has no problem at all; ValueError or RecursionError for any other."""
    value = _DECODER.decode(text)
    if has_escaped_halves(text):
        json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError for a lone surrogate
    if not text.isascii():
        text.encode()
    found = survey(value, DEEPEST)
    if found is None:
        raise ValueError("too deep")
    if found != text.count('":'):  # a name is there twice, or colons stand elsewhere, too: look closer
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
    raise ValueError(f"{source} is no JSON")


# a function of ours for each object costs as much as the rest of the decoder
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
