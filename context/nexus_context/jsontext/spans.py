"""Where keys and values lie: on demand in valid text, or from the table of a whole scan."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.jsontext.pointer import Pointer, as_index

_SPACE = re.compile(r"[ \t\r\n]*+")
_SCAN = JSONDecoder().scan_once  # type: ignore[attr-defined]


Node = tuple[int, int, int, str | int | None, int, int]
"""A value, in document order: start, end, number of its container, name or index there, its key's span.

The root's container is -1. The key's span is (-1, -1) where there is no key. The name is None for the
root and for a value that lacks its key. A plain tuple: one is made for each value of a file.
"""


class Place(NamedTuple):
    """Where a value is, and its key with the quotes."""

    value: Span
    key: Span | None


def find(text: str, path: Pointer) -> Place:
    """Place of an existing value in valid text, found by skipping its predecessors with the C scanner."""
    at = _next(text, 0)
    key = None
    for step in path:
        name = as_index(step) if text[at] == "[" else str(step)
        key, at = next((key, start) for each, key, start in _members(text, at) if each == name)
    return Place(Span(at, _SCAN(text, at)[1]), key)


def find_at(text: str, offset: int) -> Pointer:
    """Path of the innermost key or value of valid text that contains or touches an offset."""
    path: list[str | int] = []
    at = _next(text, 0)
    while at >= 0 and text[at] in "{[":
        container, at = at, -1
        for name, key, start in _members(text, container):
            if offset < (key.start if key else start):
                break
            if offset <= start or touches(text, offset, _SCAN(text, start)[1]):
                path.append(name)
                at = start
                break
    return tuple(path)


def touches(text: str, offset: int, end: int) -> bool:
    """Whether an offset is before `end`, or at the end of something that no bracket closes."""
    return offset < end or (offset == end and text[end - 1 : end] not in ("}", "]"))


class Index:
    """All places of one document, from the nodes of a scan; its tables are built on first use."""

    __slots__ = ("_children", "_nodes", "_starts", "_text")

    def __init__(self, text: str, nodes: list[Node]) -> None:
        self._text = text
        self._nodes = nodes
        self._children: dict[tuple[int, str | int | None], int] | None = None
        self._starts: list[int] | None = None

    def find(self, path: Pointer) -> Place:
        """Place of a value; of several members with one name, of the last. KeyError if there is none."""
        if not self._nodes:
            raise KeyError(path)
        children = self._members()
        at = 0
        for step in path:
            child = children.get((at, step))
            if child is None:  # the other form of the step; None is the name of members without one
                other = str(step) if isinstance(step, int) else as_index(step)
                child = None if other is None else children.get((at, other))
            if child is None:
                raise KeyError(path)
            at = child
        start, end, _, _, key_start, key_end = self._nodes[at]
        return Place(Span(start, end), Span(key_start, key_end) if key_start >= 0 else None)

    def at(self, offset: int) -> Pointer:
        """Path of the innermost key or value that contains or touches an offset; () outside all.

        What `find` does not know, the inside of a member that a later one of the same name replaces,
        counts as that member.
        """
        if self._starts is None:
            self._starts = [node[4] if node[4] >= 0 else node[0] for node in self._nodes]
        node = bisect_right(self._starts, offset) - 1
        while node >= 0 and not touches(self._text, offset, self._nodes[node][1]):
            node = self._nodes[node][2]
        children = self._members()
        path: list[str | int] = []
        while node > 0:
            _, _, parent, name, _, _ = self._nodes[node]
            if children[parent, name] != node:
                path.clear()
            if name is None:
                path.clear()
            else:
                path.append(name)
            node = parent
        return tuple(reversed(path))

    def _members(self) -> dict[tuple[int, str | int | None], int]:
        """Container's number and member's name or index to the member's number."""
        if self._children is None:
            self._children = {(node[2], node[3]): at for at, node in enumerate(self._nodes)}
        return self._children


def _members(text: str, start: int) -> Iterator[tuple[str | int, Span | None, int]]:
    """Name or index, key's span and value's start of each member of the container that opens at `start`.

    A member is skipped only when the next one is asked for.
    """
    is_object = text[start] == "{"
    at = _next(text, start + 1)
    index = 0
    while text[at] not in "}]":
        if is_object:
            name, end = scanstring(text, at + 1)
            key = Span(at, end)
            at = _next(text, _next(text, end) + 1)
            yield name, key, at
        else:
            yield index, None, at
        at = _next(text, _SCAN(text, at)[1])
        if text[at] == ",":
            at = _next(text, at + 1)
        index += 1


def _next(text: str, at: int) -> int:
    """Offset of the next character that is not white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]
