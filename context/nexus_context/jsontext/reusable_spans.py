"""Pieces: valid members that follow each other, which outlive the text that they were read in.

1. A JSON value means the same wherever it stands. So a piece of text with its value holds in every text that
   has the same characters in a place where members are expected, and a delimiter behind them.
2. Places in a piece are counted from its own start: they need not change when it moves.
3. An edit moves the pieces behind it. A piece that it touches falls apart into the members before and those
   behind the touched one; the inside of that, if it is long and holds all of the edit, again.
4. This only says where pieces may be. Whether one is there is for `runs` to see, which compares the text.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from nexus_context.jsontext.pointer import Pointer
from nexus_context.jsontext.spans import SCAN, SPACE, Found, Member, Place, follow, members_in, path_in, pick

SHORT = 500
"""Characters of a piece that is read again rather than taken apart."""

_BLANK = " \t\r\n"
_COLON = re.compile(r"[ \t\r\n]*+:[ \t\r\n]*+")
_COMMA = re.compile(r"[ \t\r\n]*+,?[ \t\r\n]*+")


class Piece:
    """Valid members of one object or array, at least one.

    `text` is from the first one's key or value to the last one's end. `depth` is a number of brackets around
    it with which it is known not to be nested too deep. Immutable but for that, and what it remembers.
    """

    __slots__ = ("_found", "depth", "members", "text")

    def __init__(self, text: str, members: dict[str, Any] | list[Any], depth: int) -> None:
        self.text = text
        self.members = members
        self.depth = depth
        self._found: Found = {}

    def knows(self, step: str | int) -> bool:
        """Whether a member has been looked for before: then its place costs nothing."""
        return (step,) in self._found

    def find(self, path: Pointer) -> Place:
        """Place of a value whose path begins in the piece, an index with the piece's own first item as 0."""
        found = self._found
        if path[:1] not in found:
            found[path[:1]] = pick(self._each(), path[0])
        key, at = found[path[:1]]
        return follow(self.text, at, key, path, found, taken=1)

    def path_at(self, offset: int) -> list[str | int]:
        """Path of the innermost key or value that contains or touches an offset; indices as for `find`."""
        return path_in(self.text, self._each(), offset)

    def _each(self) -> Iterator[Member]:
        first = 0 if isinstance(self.members, list) else None
        return members_in(self.text, 0, len(self.text), first=first)


Placed = tuple[int, Piece]
"""A piece and where it begins."""


class Change(NamedTuple):
    """`old[start:old_end]` has become `new[start:new_end]`; the rest is the same."""

    start: int
    old_end: int
    new_end: int


def difference(old: str, new: str) -> Change:
    """What changed from one text to another, as little as one change can be."""
    start = _common(old, new)
    shorter = min(len(old), len(new)) - start
    behind = _common_end(old, new, shorter)
    return Change(start, len(old) - behind, len(new) - behind)


def whole(text: str, value: Any) -> list[Placed]:
    """All of a valid text as one piece; none if it is no container, or an empty one."""
    start = SPACE.match(text).end()  # type: ignore[union-attr]
    if not value or not isinstance(value, dict | list):
        return []
    return [_content(text[start:].rstrip(_BLANK), start, value, depth=1)]


def moved(pieces: Sequence[Placed], change: Change) -> dict[int, Piece]:
    """Pieces by where they begin after a change, if they are still there."""
    behind = change.new_end - change.old_end
    found: dict[int, Piece] = {}
    for start, piece in pieces:
        if start + len(piece.text) < change.start:
            found[start] = piece
        elif start >= change.old_end:
            found[start + behind] = piece
        else:
            for at, part in _split(start, piece, change):
                found[at if at < change.start else at + behind] = part
    return found


def _split(start: int, piece: Piece, change: Change) -> Iterator[Placed]:
    """What a change leaves of a piece, with places as they were before it."""
    text, members = piece.text, piece.members
    if len(text) <= SHORT:
        return
    low, high = change.start - start, change.old_end - start
    before = touched = before_end = 0
    inner: Placed | None = None
    for begin, at, end in _extents(text, is_object=isinstance(members, dict)):
        if begin >= high:
            yield start + begin, Piece(text[begin:], _slice(members, before + touched, None), piece.depth)
            break
        if end < low:
            before, before_end = before + 1, end
            continue
        touched += 1
        if end - at > SHORT and text[at] in "{[" and at < low and high < end:
            value = next(islice(_values(members), before, None))
            inner = _content(text[at:end], start + at, value, depth=piece.depth + 1)
    if before:
        yield start, Piece(text[:before_end], _slice(members, 0, before), piece.depth)
    if inner is not None:
        yield from _split(*inner, change)


def _content(source: str, start: int, value: Any, *, depth: int) -> Placed:
    """The members of a container that is not empty, with brackets, which begins at `start`."""
    inside = SPACE.match(source, 1).end()  # type: ignore[union-attr]
    return start + inside, Piece(source[inside:-1].rstrip(_BLANK), value, depth)


def _extents(text: str, *, is_object: bool) -> Iterator[tuple[int, int, int]]:
    """Where each member of a piece begins, where its value does, and where it ends."""
    at = 0
    while at < len(text):
        begin = at
        if is_object:
            at = _COLON.match(text, scanstring(text, at + 1)[1]).end()  # type: ignore[union-attr]
        end = SCAN(text, at)[1]
        yield begin, at, end
        at = _COMMA.match(text, end).end()  # type: ignore[union-attr]


def _slice(members: dict[str, Any] | list[Any], start: int, stop: int | None) -> dict[str, Any] | list[Any]:
    if isinstance(members, list):
        return members[start:stop]
    return dict(islice(members.items(), start, stop))


def _values(members: dict[str, Any] | list[Any]) -> Collection[Any]:
    return members if isinstance(members, list) else members.values()


def _common(a: str, b: str) -> int:
    """How many characters two texts have in common at the start: by halves, as comparing slices is quick."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if b.startswith(a[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(a: str, b: str, most: int) -> int:
    """How many characters, at most `most`, two texts have in common at the end."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if b.endswith(a[len(a) - middle : len(a) - low], 0, len(b) - low):
            low = middle
        else:
            high = middle - 1
    return low
