"""Runs: members of an object or array that are valid as they stand, read by the C decoder at once.

1. Only what is near an error needs to be scanned token by token. Wherever a member may begin, the scanner
   first asks for the run of valid members from there.
2. The rest of the container is tried as a whole. If that fails, the decoder tells where the error is.
3. The members before the error are tried: up to the last one that is laid out as the first is.
4. If that does not fit either, the members are taken one by one.
5. What fails was for nothing: the characters of such attempts have a budget, and then there are no more runs.
6. After an edit most runs are known. Where a known one begins it is taken as it is, if its text is still
   there; what lies between them is taken one by one.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import chain
from json.decoder import JSONDecodeError
from typing import Any

from nexus_context.jsontext.reusable_spans import Piece, Placed

DEEPEST = 200
"""Open brackets at one place of a file."""

_BUDGET = 4
"""Characters that all failed attempts may read, in lengths of the text."""

_SPARE = 10_000
"""Characters that failed attempts may read beside, so that short texts have their chance."""

_COST = 50
"""What an attempt costs, however short, in characters read."""

_COPY = 64
"""Characters that are copied in the time in which the decoder reads one."""

_AHEAD = 16_000
"""Characters between known pieces that are looked at at once: they are copied."""

_CONTAINERS = frozenset({dict, list})
_LEAD = re.compile(r"[ \t\r\n]*+")
_NAME = re.compile(r'[ \t\r\n]*+"([^"\\\x00-\x1f]*+)"[ \t\r\n]*+:[ \t\r\n]*+')
_AFTER = re.compile(r"[ \t\r\n]*+[,}\]]")


class Runs:
    """Finds the runs of one text.

    `error` is where the text is known to be no JSON, -1 if that is unknown. `known` are pieces that may be
    runs of it, by where they would begin.
    """

    __slots__ = (
        "_budget", "_error", "_flawed", "_halves", "_known", "_scan", "_scan_closely",
        "_starts", "_text", "_until",
    )  # fmt: skip

    def __init__(self, text: str, error: int = -1, *, known: Mapping[int, Piece] | None = None) -> None:
        self._text = text
        self._known = known or {}
        self._starts = sorted(self._known)
        self._budget = _BUDGET * len(text) + _SPARE
        self._error = error
        self._until = error if error >= 0 else len(text)  # to try all the rest before it would be in vain
        self._halves = has_escaped_halves(text)
        self._flawed = False
        decoder = json.JSONDecoder(parse_float=self._number, parse_constant=self._constant)
        self._scan = decoder.scan_once  # type: ignore[attr-defined]
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=self._number, parse_constant=self._constant
        )
        self._scan_closely = decoder.scan_once  # type: ignore[attr-defined]

    def take(self, at: int, *, is_object: bool, seen: dict[str, int], depth: int) -> Placed | None:
        """The run of members from `at`, in a container with members `seen`; `depth` counts open brackets."""
        if self._budget <= 0:
            return None
        start = _LEAD.match(self._text, at).end()  # type: ignore[union-attr]
        piece = self._take_known(start, is_object, seen)
        if piece is None and not self._known and start > self._until:
            piece = self._rest(start, is_object, seen)
        if piece is None and not self._known and start < self._error:
            piece = self._before_error(at, start, is_object, seen)
        if piece is None:
            piece = self._one_by_one(start, is_object, seen)
        if piece is None or not piece.members:
            return None
        if piece.depth < depth:
            if _brackets(piece) > DEEPEST - depth and survey(piece.members, DEEPEST + 1 - depth) is None:
                self._budget = 0  # reported token by token
                return None
            piece.depth = depth
        return start, piece

    def _take_known(self, start: int, is_object: bool, seen: dict[str, int]) -> Piece | None:
        piece = self._known.get(start)
        if (
            piece is not None
            and isinstance(piece.members, dict) is is_object
            and self._text.startswith(piece.text, start)
            and _AFTER.match(self._text, start + len(piece.text))
            and not (is_object and not seen.keys().isdisjoint(piece.members))
        ):
            return piece
        return None

    def _rest(self, start: int, is_object: bool, seen: dict[str, int]) -> Piece | None:
        """All members up to the bracket that closes the container."""
        source = ("{" if is_object else "[") + self._text[start:]
        self._budget -= len(source) // _COPY
        found = self._decode(source, 0, start - 1)
        if found is None:
            return None
        members, end = found
        if is_object and not seen.keys().isdisjoint(members):
            self._fail(end, start + end)
            return None
        return Piece(source[1 : end - 1].rstrip(" \t\r\n"), members, 0)

    def _before_error(self, at: int, start: int, is_object: bool, seen: dict[str, int]) -> Piece | None:
        """The members before the last one above the error that begins as the one at `start` does."""
        text, error, until = self._text, self._error, self._until
        lead = text[at : start + 1]
        if ("\n" not in lead and "\r" not in lead) or lead[-1] not in ('"' if is_object else "{["):
            return None
        self._budget -= _COST + (error - at) // _COPY
        end = text.rfind("," + lead, start, error + 1)
        if end < 0:  # the error is in this very member: it is not tried in vain
            return Piece("", [], 0)
        source = f"{{{text[start:end]}}}" if is_object else f"[{text[start:end]}]"
        found = self._decode(source, 0, start - 1)
        if found is None or found[1] != len(source) or (is_object and not seen.keys().isdisjoint(found[0])):
            self._error, self._until = -1, until  # a wrong guess says nothing about the text
            return None
        return Piece(source[1:-1].rstrip(" \t\r\n"), found[0], 0)

    def _one_by_one(self, start: int, is_object: bool, seen: dict[str, int]) -> Piece | None:
        """The members up to the first one that is not valid, is there already, or begins a known piece."""
        text, base = (self._before_known(start), start) if self._known else (self._text, 0)
        values: list[Any] = []
        names: dict[str, None] = {}
        first = at = end = start - base
        while True:
            if is_object:
                found = _NAME.match(text, at)
                if not found or (name := found[1]) in seen or name in names:
                    break
                at = found.end()
            else:
                at = _LEAD.match(text, at).end()  # type: ignore[union-attr]
            if text[at : at + 1] in ",]}" or not (decoded := self._decode(text, at, base)):
                break
            value, stop = decoded
            after = _AFTER.match(text, stop)
            if not after:
                self._fail(stop - at, base + stop)
                break
            values.append(value)
            if is_object:
                names[name] = None
            end, at = stop, after.end()
            if text[at - 1] != ",":
                break
        members = dict(zip(names, values, strict=True)) if is_object else values
        return Piece(text[first:end], members, 0)

    def _before_known(self, start: int) -> str:
        """The text from an offset to the next known piece: what holds one is not read as a whole."""
        following, end = bisect_right(self._starts, start), start + _AHEAD
        return self._text[start : min([end, *self._starts[following : following + 1]])]

    def _decode(self, source: str, at: int, shift: int) -> tuple[Any, int] | None:
        """Value at an offset and its end; None, at a cost, if it is not valid or has anything to report."""
        self._flawed = False
        try:
            value, end = self._scan(source, at)
            if survey(value, DEEPEST) != source.count('":', at, end):
                # a name is there twice, or colons stand elsewhere, too, or it is deep: look closer
                value, end = self._scan_closely(source, at)
        except JSONDecodeError as error:
            self._error = error.pos + shift
            self._fail(error.pos - at + error.pos // _COPY, self._error)  # it counts lines from the start
        except StopIteration as stop:  # its value is where a value was expected
            read = stop.value - at if isinstance(stop.value, int) else len(source) - at
            self._fail(read, at + read + shift)
        except RecursionError:
            self._budget = 0
        except ValueError:  # an integer that is too long; how far the decoder came is unknown
            self._fail(len(source) - at, len(self._text))
        else:
            if not self._flawed and not (self._halves and _has_surrogate(value)):
                return value, end
            self._fail(end - at, end + shift)
        return None

    def _fail(self, read: int, until: int) -> None:
        self._budget -= read + _COST
        self._until = max(self._until, until)

    # What the decoder lets pass and the scanner has something to say about.

    def _object(self, members: list[tuple[str, Any]]) -> dict[str, Any]:
        names = dict(members)
        if len(names) != len(members):
            self._flawed = True
        return names

    def _number(self, source: str) -> float:
        value = float(source)
        if value - value:  # infinite: the difference is NaN
            self._flawed = True
        return value

    def _constant(self, _source: str) -> None:
        self._flawed = True


def has_escaped_halves(text: str) -> bool:
    """Whether there may be escaped surrogates in a text."""
    # a single character is found ten times as quickly as two
    return "\\" in text and ("\\ud" in text or "\\uD" in text)


def _brackets(piece: Piece) -> int:
    return piece.text.count("[") + piece.text.count("{")


def survey(value: Any, deepest: int) -> int | None:
    """How many members all objects of a value have; None if it is nested more than `deepest` levels deep."""
    members = 0
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(deepest):
        objects = [container for container in level if type(container) is dict]
        members += sum(map(len, objects))
        arrays = [container for container in level if type(container) is list]
        inner = chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(arrays))
        level = [each for each in inner if type(each) in _CONTAINERS]
        if not level:
            return members
    return None


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
