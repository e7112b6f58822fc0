"""Runs: consecutive valid members of an object or array, decoded by the C decoder and reused after an edit.

1. A JSON value means the same wherever it stands. So a run holds in every text that has the same characters
   where members are expected, followed by a delimiter.
2. Only what is near an error is scanned token by token. Wherever a member may begin, the scanner first asks
   for the run from there; its members are decoded one by one, up to the first invalid one.
3. Failed attempts cost time. The characters that they read have a budget; when it is spent, the rest of the
   text is scanned token by token.
4. Places in a run count from its own start, so they stay valid when the run moves.
5. An edit moves the runs behind it. A run that it touches is split into the members before and after the
   touched one; if the touched member is long and contains the whole edit, its content is split again.
6. After an edit, a run is reused where it is expected, if the text there is unchanged. What lies between two
   reusable runs is decoded as in rule 2.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from nexus_context.jsontext.spans import (
    SCAN,
    SPACE,
    Location,
    Member,
    Pointer,
    Waypoints,
    follow,
    members_in,
    path_in,
    pick,
)

DEEPEST = 200
"""Open brackets at one place of a file."""

SHORT = 500
"""Characters of a run that is read again rather than split."""

_BUDGET = 4
"""Characters that all failed attempts may read, in lengths of the text."""

_SPARE = 10_000
"""Characters that failed attempts may read in addition, so that short texts have their chance."""

_COST = 50
"""What an attempt costs, however short, in characters read."""

_COPY = 64
"""Characters that are copied in the time in which the decoder reads one."""

_AHEAD = 16_000
"""Characters between reusable runs that are copied and decoded at once."""

_BLANK = " \t\r\n"
_CONTAINERS = frozenset({dict, list})
_COLON = re.compile(r"[ \t\r\n]*+:[ \t\r\n]*+")
_COMMA = re.compile(r"[ \t\r\n]*+,?[ \t\r\n]*+")
_NAME = re.compile(r'[ \t\r\n]*+"([^"\\\x00-\x1f]*+)"[ \t\r\n]*+:[ \t\r\n]*+')
_AFTER = re.compile(r"[ \t\r\n]*+[,}\]]")

Members = dict[str, Any] | list[Any]


class Run:
    """Consecutive valid members of one object or array, at least one.

    `text` reaches from the first key or value to the end of the last member. `depth` is a number of enclosing
    brackets at which the run is known not to be nested too deep. Immutable but for `depth` and a cache.
    """

    __slots__ = ("_waypoints", "depth", "members", "text")

    def __init__(self, text: str, members: Members, depth: int) -> None:
        self.text = text
        self.members = members
        self.depth = depth
        self._waypoints: Waypoints = {}

    def is_located(self, step: str | int) -> bool:
        """Whether this member has been located before, so that locating it again costs nothing."""
        return (step,) in self._waypoints

    def find(self, path: Pointer) -> Location:
        """Location of a value in the run; indices count from the run's first item."""
        waypoints = self._waypoints
        if path[:1] not in waypoints:
            waypoints[path[:1]] = pick(self._each(), path[0])
        key, at = waypoints[path[:1]]
        return follow(self.text, at, key, path, waypoints=waypoints, taken=1)

    def path_at(self, offset: int) -> list[str | int]:
        """Path of the innermost key or value that contains or touches an offset; indices as for `find`."""
        return path_in(self.text, self._each(), offset)

    def _each(self) -> Iterator[Member]:
        first = 0 if isinstance(self.members, list) else None
        return members_in(self.text, 0, len(self.text), first=first)


PlacedRun = tuple[int, Run]
"""A run and the offset at which it begins."""


class RunReader:
    """Reads the runs of one text; `reusable` are runs of the text before the edit, by their offset now."""

    __slots__ = ("_budget", "_flawed", "_halves", "_reusable", "_scan", "_scan_closely", "_starts", "_text")

    def __init__(self, text: str, reusable: Mapping[int, Run] | None = None) -> None:
        self._text = text
        self._reusable = reusable or {}
        self._starts = sorted(self._reusable)
        self._budget = _BUDGET * len(text) + _SPARE
        self._halves = has_escaped_halves(text)
        self._flawed = False
        decoder = json.JSONDecoder(parse_float=self._number, parse_constant=self._constant)
        self._scan = decoder.scan_once  # type: ignore[attr-defined]
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=self._number, parse_constant=self._constant
        )
        self._scan_closely = decoder.scan_once  # type: ignore[attr-defined]

    def read(self, at: int, *, is_object: bool, names: Mapping[str, int], depth: int) -> PlacedRun | None:
        """The run from `at`, in a container that has members of these names; `depth` counts open brackets."""
        if self._budget <= 0:
            return None
        start = SPACE.match(self._text, at).end()  # type: ignore[union-attr]
        run = self._reuse(start, is_object, names) or self._decode_members(start, is_object, names)
        if not run.members:
            return None
        if run.depth < depth:
            brackets = run.text.count("[") + run.text.count("{")
            if brackets > DEEPEST - depth and count_members(run.members, DEEPEST + 1 - depth) is None:
                self._budget = 0  # the scanner reports it
                return None
            run.depth = depth
        return start, run

    def _reuse(self, start: int, is_object: bool, names: Mapping[str, int]) -> Run | None:
        run = self._reusable.get(start)
        if (
            run is not None
            and isinstance(run.members, dict) is is_object
            and self._text.startswith(run.text, start)
            and _AFTER.match(self._text, start + len(run.text))
            and not (is_object and not names.keys().isdisjoint(run.members))
        ):
            return run
        return None

    def _decode_members(self, start: int, is_object: bool, names: Mapping[str, int]) -> Run:
        """The members up to the first one that is invalid, repeats a name, or begins a reusable run."""
        text, base = (self._before_reusable(start), start) if self._reusable else (self._text, 0)
        values: list[Any] = []
        new_names: dict[str, None] = {}
        first = at = end = start - base
        while True:
            if is_object:
                head = _NAME.match(text, at)
                if not head or (name := head[1]) in names or name in new_names:
                    break
                at = head.end()
            else:
                at = SPACE.match(text, at).end()  # type: ignore[union-attr]
            if text[at : at + 1] in ",]}" or not (decoded := self._decode(text, at)):
                break
            value, stop = decoded
            after = _AFTER.match(text, stop)
            if not after:
                self._budget -= stop - at + _COST
                break
            values.append(value)
            if is_object:
                new_names[name] = None
            end, at = stop, after.end()
            if text[at - 1] != ",":
                break
        members = dict(zip(new_names, values, strict=True)) if is_object else values
        return Run(text[first:end], members, 0)

    def _before_reusable(self, start: int) -> str:
        """The text up to the next reusable run: a member that contains one is not decoded as a whole."""
        number, end = bisect_right(self._starts, start), start + _AHEAD
        return self._text[start : min([end, *self._starts[number : number + 1]])]

    def _decode(self, text: str, at: int) -> tuple[Any, int] | None:
        """Value at an offset and its end; None, at a cost, if there is anything to report."""
        self._flawed = False
        try:
            value, end = self._scan(text, at)
            if count_members(value, DEEPEST) != text.count('":', at, end):
                # a name is repeated, colons also stand elsewhere, or it is deep: look closer
                value, end = self._scan_closely(text, at)
        except JSONDecodeError as error:
            self._budget -= error.pos - at + error.pos // _COPY + _COST  # it counts lines from the start
        except StopIteration as stop:  # its value is where a value was expected
            self._budget -= (stop.value if isinstance(stop.value, int) else len(text)) - at + _COST
        except RecursionError:
            self._budget = 0
        except ValueError:  # an integer that is too long; how far the decoder came is unknown
            self._budget -= len(text) - at + _COST
        else:
            if not self._flawed and not (self._halves and _has_surrogate(value)):
                return value, end
            self._budget -= end - at + _COST
        return None

    # What the decoder accepts and the scanner reports.

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
    # searching one character is ten times as fast as searching two
    return "\\" in text and ("\\ud" in text or "\\uD" in text)


def count_members(value: Any, deepest: int) -> int | None:
    """Count the members of all objects in a value; None if it is nested more than `deepest` levels deep."""
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


class TextChange(NamedTuple):
    """`old[start:old_end]` has become `new[start:new_end]`; the rest is the same."""

    start: int
    old_end: int
    new_end: int


def difference(old: str, new: str) -> TextChange:
    """The smallest single change from one text to another."""
    start = _common_start(old, new)
    after = _common_end(old, new, min(len(old), len(new)) - start)
    return TextChange(start, len(old) - after, len(new) - after)


def as_runs(text: str, value: Any) -> list[PlacedRun]:
    """A whole valid text as one run; none if its value is not a container, or is empty."""
    start = SPACE.match(text).end()  # type: ignore[union-attr]
    if not value or not isinstance(value, dict | list):
        return []
    return [_content(text[start:].rstrip(_BLANK), start, value, depth=1)]


def move_runs(runs: Sequence[PlacedRun], change: TextChange) -> dict[int, Run]:
    """The runs that a change leaves, by where they would begin after it."""
    shift = change.new_end - change.old_end
    moved: dict[int, Run] = {}
    for start, run in runs:
        if start + len(run.text) < change.start:
            moved[start] = run
        elif start >= change.old_end:
            moved[start + shift] = run
        else:
            for at, part in _split(start, run, change):
                moved[at if at < change.start else at + shift] = part
    return moved


def _split(start: int, run: Run, change: TextChange) -> Iterator[PlacedRun]:
    """What a change leaves of a run, with offsets as they were before it."""
    text, members = run.text, run.members
    if len(text) <= SHORT:
        return
    low, high = change.start - start, change.old_end - start
    before = touched = before_end = 0
    inner: PlacedRun | None = None
    for begin, at, end in _extents(text, is_object=isinstance(members, dict)):
        if begin >= high:
            yield start + begin, Run(text[begin:], _slice(members, before + touched, None), run.depth)
            break
        if end < low:
            before, before_end = before + 1, end
            continue
        touched += 1
        if end - at > SHORT and text[at] in "{[" and at < low and high < end:
            values = members if isinstance(members, list) else members.values()
            value = next(islice(values, before, None))
            inner = _content(text[at:end], start + at, value, depth=run.depth + 1)
    if before:
        yield start, Run(text[:before_end], _slice(members, 0, before), run.depth)
    if inner is not None:
        yield from _split(*inner, change)


def _content(source: str, start: int, value: Any, *, depth: int) -> PlacedRun:
    """The members of a container that is not empty; `source` is its text with brackets, from `start`."""
    inside = SPACE.match(source, 1).end()  # type: ignore[union-attr]
    return start + inside, Run(source[inside:-1].rstrip(_BLANK), value, depth)


def _extents(text: str, *, is_object: bool) -> Iterator[tuple[int, int, int]]:
    """Where each member of a run begins, where its value does, and where it ends."""
    at = 0
    while at < len(text):
        begin = at
        if is_object:
            at = _COLON.match(text, scanstring(text, at + 1)[1]).end()  # type: ignore[union-attr]
        end = SCAN(text, at)[1]
        yield begin, at, end
        at = _COMMA.match(text, end).end()  # type: ignore[union-attr]


def _slice(members: Members, start: int, stop: int | None) -> Members:
    if isinstance(members, list):
        return members[start:stop]
    return dict(islice(members.items(), start, stop))


def _common_start(a: str, b: str) -> int:
    """How many characters two texts share at the start: by bisection, as comparing slices is fast."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if b.startswith(a[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(a: str, b: str, most: int) -> int:
    """How many characters, at most `most`, two texts share at the end."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if b.endswith(a[len(a) - middle : len(a) - low], 0, len(b) - low):
            low = middle
        else:
            high = middle - 1
    return low
