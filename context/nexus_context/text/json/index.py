"""Finds all values of one document among the nodes of a scan."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.text.json.spans import Location, Pointer, as_index, touches

Node = tuple[int, int, int, str | int | None, int, int]
"""A value, in document order: start, end, number of its container, name or index there, its key's span.

The root's container is -1. The key's span is (-1, -1) where there is no key. The name is None for the root
and for a value that lacks its key. A plain tuple: every value has one.
"""


Members = dict[tuple[int, str | int | None], int]
"""The numbers of nodes, by container and name."""


class _Tables(NamedTuple):
    """The members of all containers, complete and incomplete."""

    complete: Members
    incomplete: Members


class NodeIndex:
    """Finds values among the nodes of a scan. Its tables are built on first use; any thread may call it.

    An incomplete member is a key that lacks its value. It never replaces a complete one: it is not in the
    document's value either, so everything in that value can be found.
    """

    __slots__ = ("_nodes", "_starts", "_tables", "_text")

    def __init__(self, text: str, nodes: Sequence[Node]) -> None:
        self._text = text
        self._nodes = nodes
        self._tables: _Tables | None = None  # set when they are complete
        self._starts: list[int] | None = None

    def find(self, path: Pointer) -> Location:
        """Return the location of a value. KeyError if there is none.

        Of several members with one name the last complete one counts. For an incomplete one, the location is
        where its value belongs.
        """
        if not self._nodes:
            raise KeyError(path)
        at = 0
        for step in path:
            child = self._child(at, step)
            if child is None:  # the other form of the step; None is the name of members without one
                other_form = str(step) if isinstance(step, int) else as_index(step)
                child = None if other_form is None else self._child(at, other_form)
            if child is None:
                raise KeyError(path)
            at = child
        start, end, _, _, key_start, key_end = self._nodes[at]
        return Location(Span(start, end), Span(key_start, key_end) if key_start >= 0 else None)

    def at(self, offset: int) -> Pointer:
        """Return the path of the innermost key or value that contains or touches an offset.

        It is () outside of all. An offset inside a member that a later one of the same name replaces counts
        as that member.
        """
        if self._starts is None:
            self._starts = [node[4] if node[4] >= 0 else node[0] for node in self._nodes]
        node = bisect_right(self._starts, offset) - 1
        while node >= 0 and not touches(self._text, offset, self._nodes[node][1]):
            node = self._nodes[node][2]
        path: list[str | int] = []
        while node > 0:
            _, _, parent, name, _, _ = self._nodes[node]
            if self._child(parent, name) != node:
                path.clear()
            if name is None:
                path.clear()
            else:
                path.append(name)
            node = parent
        return tuple(reversed(path))

    def _child(self, container: int, name: str | int | None) -> int | None:
        """The number of the last complete member of that name, else of an incomplete one."""
        tables = self._tables
        if tables is None:
            tables = self._tables = self._build_tables()
        child = tables.complete.get((container, name))
        return tables.incomplete.get((container, name)) if child is None else child

    def _build_tables(self) -> _Tables:
        tables = _Tables({}, {})
        for at, node in enumerate(self._nodes):
            members = tables.complete if node[0] < node[1] else tables.incomplete
            members[node[2], node[3]] = at
        return tables
