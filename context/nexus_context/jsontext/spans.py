"""Where keys and values lie: on demand in valid text, or from the table of a whole scan."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
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


Names = Collection[str | int]
"""Names or indices of the members of a run. Its node has no name, and spans all of them."""


class Place(NamedTuple):
    """Where a value is, and its key with the quotes."""

    value: Span
    key: Span | None


Found = dict[Pointer, tuple[Span | None, int]]
"""Key's span and value's start of what was passed on the way to other places, by path."""


def find(text: str, path: Pointer, found: Found) -> Place:
    """Place of an existing value in valid text, found by skipping its predecessors with the C scanner.

    `found` remembers the way: the neighbours of a value are asked for next.
    """
    return _follow(text, _next(text, 0), None, path, found)


def find_at(text: str, offset: int) -> Pointer:
    """Path of the innermost key or value of valid text that contains or touches an offset."""
    return tuple(_path(text, _content(text, _next(text, 0)), offset))


def touches(text: str, offset: int, end: int) -> bool:
    """Whether an offset is before `end`, or at the end of something that no bracket closes."""
    return offset < end or (offset == end and text[end - 1 : end] not in ("}", "]"))


def key_spans(text: str, run: Node) -> dict[str | int, Span]:
    """Spans of the keys of a run of an object's members."""
    return {name: key for name, key, _ in _members(text, run[0], run[1], first=None) if key}


class Index:
    """All places of one document, from the nodes of a scan; its tables are built on first use.

    `names` are those of the members of each run. Places inside are found by skipping through the run;
    `lookups` counts how often.
    """

    __slots__ = ("_children", "_found", "_names", "_nodes", "_starts", "_text", "lookups")

    def __init__(self, text: str, nodes: list[Node], names: dict[int, Names]) -> None:
        self._text = text
        self._nodes = nodes
        self._names = names
        self._children: dict[tuple[int, str | int | None], int] | None = None
        self._starts: list[int] | None = None
        self._found: dict[int, Found] = {}  # for each run
        self.lookups = 0

    def find(self, path: Pointer) -> Place:
        """Place of a value; of several members with one name, of the last. KeyError if there is none."""
        if not self._nodes:
            raise KeyError(path)
        children = self._members()
        at = 0
        for taken, step in enumerate(path):
            child = children.get((at, step))
            if child is None:  # the other form of the step; None is the name of members without one
                other = str(step) if isinstance(step, int) else as_index(step)
                child = None if other is None else children.get((at, other))
            if child is None:
                raise KeyError(path)
            if child in self._names:
                return self._find_in_run(child, path[taken:])
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
        if node in self._names:
            run, node = node, self._nodes[node][2]
            path = self._path_in_run(run, offset)
            if path and children[node, path[0]] != run:
                del path[1:]
            path.reverse()
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

    def _find_in_run(self, run: int, path: Pointer) -> Place:
        """Place of a value whose path begins in a run."""
        found = self._found.setdefault(run, {})
        if path[:1] not in found:
            step = as_index(path[0]) if isinstance(self._names[run], range) else path[0]
            found[path[:1]] = _pick(self._run(run), step)
        key, at = found[path[:1]]
        return _follow(self._text, at, key, path, found, taken=1)

    def _path_in_run(self, run: int, offset: int) -> list[str | int]:
        return _path(self._text, self._run(run), offset)

    def _run(self, run: int) -> Iterator["_Member"]:
        self.lookups += 1
        start, end, _, _, _, _ = self._nodes[run]
        names = self._names[run]
        if isinstance(names, range):
            return _members(self._text, start, end, first=names.start)
        return _members(self._text, start, end, first=None)

    def _members(self) -> dict[tuple[int, str | int | None], int]:
        """Container's number and member's name or index to the member's number, or that of its run."""
        if self._children is None:
            children: dict[tuple[int, str | int | None], int] = {}
            for at, node in enumerate(self._nodes):
                if at in self._names:
                    children.update(((node[2], name), at) for name in self._names[at])
                else:
                    children[node[2], node[3]] = at
            self._children = children
        return self._children


_Member = tuple[str | int, Span | None, int]
"""Name or index, key's span and value's start."""


def _follow(text: str, at: int, key: Span | None, path: Pointer, found: Found, *, taken: int = 0) -> Place:
    """Place of the value that a path leads to; KeyError if there is none.

    The value at the offset is where the first `taken` steps of the path have led.
    """
    known = len(path)
    while known > taken and path[:known] not in found:
        known -= 1
    if known > taken:
        key, at = found[path[:known]]
    for number in range(max(known, taken), len(path)):
        step = path[number]
        if text[at] == "{":
            key, at = _pick_member(text, at, str(step))
        else:
            key, at = _pick(_content(text, at), as_index(step))
        found[path[: number + 1]] = key, at
    return Place(Span(at, _SCAN(text, at)[1]), key)


def _pick_member(text: str, start: int, name: str) -> tuple[Span, int]:
    """Key's span and value's start of a member of the object at `start`; `_members` without its steps."""
    skip = _SPACE.match
    at = skip(text, start + 1).end()  # type: ignore[union-attr]
    while text[at] == '"':
        key = at
        found, at = scanstring(text, at + 1)
        end = at
        at = skip(text, skip(text, at).end() + 1).end()  # type: ignore[union-attr]
        if found == name:
            return Span(key, end), at
        at = skip(text, _SCAN(text, at)[1]).end()  # type: ignore[union-attr]
        if text[at] != ",":
            break
        at = skip(text, at + 1).end()  # type: ignore[union-attr]
    raise KeyError(name)


def _pick(members: Iterator[_Member], step: str | int | None) -> tuple[Span | None, int]:
    for name, key, start in members:
        if name == (str(step) if key else step):
            return key, start
    raise KeyError(step)


def _path(text: str, members: Iterator[_Member], offset: int) -> list[str | int]:
    """Path, from these members on, of the innermost key or value that contains or touches an offset."""
    path: list[str | int] = []
    searching = True
    while searching:
        searching = False
        for name, key, start in members:
            if offset < (key.start if key else start):
                break
            if offset <= start or touches(text, offset, _SCAN(text, start)[1]):
                path.append(name)
                members = _content(text, start)
                searching = True
                break
    return path


def _content(text: str, start: int) -> Iterator[_Member]:
    """The members of the valid value that begins at `start`; none if it is no container."""
    if text[start] not in "{[":
        return iter(())
    return _members(text, start + 1, len(text), first=0 if text[start] == "[" else None)


def _members(text: str, at: int, end: int, *, first: int | None) -> Iterator[_Member]:
    """The members of a container from `at` to `end`; `first` is the first one's index, None in an object.

    A member is skipped only when the next one is asked for.
    """
    at = _next(text, at)
    index = first or 0
    while at < end and text[at] not in "}]":
        if first is None:
            name, stop = scanstring(text, at + 1)
            key = Span(at, stop)
            at = _next(text, _next(text, stop) + 1)
            yield name, key, at
        else:
            yield index, None, at
        at = _next(text, _SCAN(text, at)[1])
        if text[at : at + 1] == ",":
            at = _next(text, at + 1)
        index += 1


def _next(text: str, at: int) -> int:
    """Offset of the next character that is not white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]
