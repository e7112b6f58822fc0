"""Finds all values of one document among the nodes of a scan."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.jsontext.runs import Run
from nexus_context.jsontext.spans import Location, Pointer, as_index, touches

Node = tuple[int, int, int, str | int | None, int, int]
"""A value, in document order: start, end, number of its container, name or index there, its key's span.

The root's container is -1. The key's span is (-1, -1) where there is no key. The name is None for the root
and for a value that lacks its key. A run has one node, from the first member's start to the last one's end;
its name is the first item's index in an array and None in an object. A plain tuple: every value has one.
"""


Members = dict[tuple[int, str | int | None], int]
"""The numbers of nodes, by container and name."""


class _Tables(NamedTuple):
    """The members of all containers, complete and incomplete, and the runs of each container."""

    complete: Members
    incomplete: Members
    runs: dict[int, list[int]]


class NodeIndex:
    """Finds values among the nodes; its tables are built on first use, by any number of threads at once.

    `runs` are by the number of their node. Values inside a run are found by skipping through it; `lookups`
    counts how often. An incomplete member, a key that lacks its value, never replaces a complete one: it is
    not in the document's value either, so everything in that value can be found.
    """

    __slots__ = ("_nodes", "_runs", "_starts", "_tables", "_text", "lookups")

    def __init__(self, text: str, nodes: Sequence[Node], runs: Mapping[int, Run]) -> None:
        self._text = text
        self._nodes = nodes
        self._runs = runs
        self._tables: _Tables | None = None  # set when they are complete
        self._starts: list[int] | None = None
        self.lookups = 0

    def find(self, path: Pointer) -> Location:
        """Location of a value; KeyError if there is none.

        Of several members with one name the last complete one counts; of an incomplete one, it is where its
        value belongs.
        """
        if not self._nodes:
            raise KeyError(path)
        at = 0
        for taken, step in enumerate(path):
            child = self._child(at, step)
            if child is None:  # the other form of the step; None is the name of members without one
                other = str(step) if isinstance(step, int) else as_index(step)
                child = None if other is None else self._child(at, other)
            if child is None:
                raise KeyError(path)
            if child in self._runs:
                return self._find_in_run(child, path[taken:])
            at = child
        start, end, _, _, key_start, key_end = self._nodes[at]
        return Location(Span(start, end), Span(key_start, key_end) if key_start >= 0 else None)

    def at(self, offset: int) -> Pointer:
        """Path of the innermost key or value that contains or touches an offset; () outside all.

        An offset inside a member that a later one of the same name replaces counts as that member.
        """
        if self._starts is None:
            self._starts = [node[4] if node[4] >= 0 else node[0] for node in self._nodes]
        node = bisect_right(self._starts, offset) - 1
        while node >= 0 and not touches(self._text, offset, self._nodes[node][1]):
            node = self._nodes[node][2]
        path: list[str | int] = []
        if node in self._runs:
            run, node = node, self._nodes[node][2]
            path = self._path_in_run(run, offset)
            if path and self._child(node, path[0]) != run:
                del path[1:]
            path.reverse()
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

    def _find_in_run(self, run: int, path: Pointer) -> Location:
        """Location of a value whose path begins in a run."""
        start, _, _, first, _, _ = self._nodes[run]
        located = self._runs[run]
        step: str | int = str(path[0])
        if isinstance(first, int):
            step = (as_index(path[0]) or 0) - first
        self.lookups += not located.is_located(step)
        value, key = located.find((step, *path[1:]))
        return Location(_shifted(value, start), None if key is None else _shifted(key, start))

    def _path_in_run(self, run: int, offset: int) -> list[str | int]:
        self.lookups += 1
        start, _, _, first, _, _ = self._nodes[run]
        path = self._runs[run].path_at(offset - start)
        if path and isinstance(first, int):
            path[0] = first + int(path[0])
        return path

    def _child(self, container: int, name: str | int | None) -> int | None:
        """The number of the last complete member of that name, or of its run; else of an incomplete one."""
        tables = self._tables
        if tables is None:
            tables = self._tables = self._build_tables()
        child = tables.complete.get((container, name))
        for run in reversed(tables.runs.get(container, ())):
            if child is not None and run < child:
                break
            if self._has(run, name):
                return run
        return tables.incomplete.get((container, name)) if child is None else child

    def _build_tables(self) -> _Tables:
        tables = _Tables({}, {}, {})
        for at, node in enumerate(self._nodes):
            if at in self._runs:
                tables.runs.setdefault(node[2], []).append(at)
            else:
                members = tables.complete if node[0] < node[1] else tables.incomplete
                members[node[2], node[3]] = at
        return tables

    def _has(self, run: int, name: str | int | None) -> bool:
        members, first = self._runs[run].members, self._nodes[run][3]
        if isinstance(first, int):
            return isinstance(name, int) and first <= name < first + len(members)
        return name in members


def _shifted(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)
