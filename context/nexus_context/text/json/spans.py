"""Finds the keys and values of valid JSON text by their paths, and reads JSON pointers.

Everything before a key or value is skipped by the C scanner.
"""

import re
from collections.abc import Iterator
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from nexus_context.errors import Span

SPACE = re.compile(r"[ \t\r\n]*+")
SCAN = JSONDecoder().scan_once  # type: ignore[attr-defined]

Pointer = tuple[str | int, ...]
"""Member names (str) and array indices (int, from 0) from the root to a value."""
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


class Location(NamedTuple):
    """Where a value is, and its key with the quotes. `key` is None for list items and the root."""

    value: Span
    key: Span | None


Waypoints = dict[Pointer, tuple[Span | None, int]]
"""Key's span and value's start of what was passed on the way to other values, by path."""

Member = tuple[str | int, Span | None, int]
"""Name or index, key's span and value's start."""


def find(text: str, path: Pointer, waypoints: Waypoints) -> Location:
    """Return the location of an existing value in valid text.

    `waypoints` collects the values that are passed, since the neighbours of a value are usually requested
    next.
    """
    return follow(text, skip_space(text, 0), None, path, waypoints=waypoints)


def find_at(text: str, offset: int) -> Pointer:
    """Return the path of the innermost key or value of valid text that contains or touches an offset."""
    return tuple(path_in(text, _content(text, skip_space(text, 0)), offset))


def touches(text: str, offset: int, end: int) -> bool:
    """Whether an offset is before `end`, or at the end of something that does not end with a bracket."""
    return offset < end or (offset == end and text[end - 1 : end] not in ("}", "]"))


def follow(
    text: str, at: int, key: Span | None, path: Pointer, waypoints: Waypoints, *, taken: int = 0
) -> Location:
    """Return the location of the value that a path leads to. KeyError if there is none.

    The first `taken` steps of the path lead to the value at the offset `at`, whose key is `key`.
    """
    start = len(path)
    while start > taken and path[:start] not in waypoints:
        start -= 1
    if start > taken:
        key, at = waypoints[path[:start]]
    for number in range(max(start, taken), len(path)):
        step = path[number]
        if text[at] == "{":
            key, at = _pick_member(text, at, str(step))
        else:
            key, at = pick(_content(text, at), as_index(step))
        waypoints[path[: number + 1]] = key, at
    return Location(Span(at, SCAN(text, at)[1]), key)


def _pick_member(text: str, start: int, name: str) -> tuple[Span, int]:
    """Key's span and value's start of a member of the object at `start`: a faster `pick`."""
    skip = SPACE.match
    at = skip(text, start + 1).end()  # type: ignore[union-attr]
    while text[at] == '"':
        key = at
        member_name, at = scanstring(text, at + 1)
        end = at
        at = skip(text, skip(text, at).end() + 1).end()  # type: ignore[union-attr]
        if member_name == name:
            return Span(key, end), at
        at = skip(text, SCAN(text, at)[1]).end()  # type: ignore[union-attr]
        if text[at] != ",":
            break
        at = skip(text, at + 1).end()  # type: ignore[union-attr]
    raise KeyError(name)


def pick(members: Iterator[Member], step: str | int | None) -> tuple[Span | None, int]:
    """Return the key's span and the value's start of the member that `step` names.

    KeyError if there is none.
    """
    for name, key, start in members:
        if name == (str(step) if key else step):
            return key, start
    raise KeyError(step)


def path_in(text: str, members: Iterator[Member], offset: int) -> list[str | int]:
    """Return the path of the innermost key or value that contains or touches an offset.

    The path begins with a name or an index of these `members`.
    """
    path: list[str | int] = []
    searching = True
    while searching:
        searching = False
        for name, key, start in members:
            if offset < (key.start if key else start):
                break
            if offset <= start or touches(text, offset, SCAN(text, start)[1]):
                path.append(name)
                members = _content(text, start)
                searching = True
                break
    return path


def _content(text: str, start: int) -> Iterator[Member]:
    """The members of the valid value that begins at `start`; none if it is not a container."""
    if text[start] not in "{[":
        return iter(())
    return members_in(text, start + 1, len(text), first=0 if text[start] == "[" else None)


def members_in(text: str, at: int, end: int, *, first: int | None) -> Iterator[Member]:
    """Yield the members of a container from the offset `at` to `end`.

    `first` is the index of the first item, or None in an object. A member is skipped only when the next one
    is requested.
    """
    at = skip_space(text, at)
    index = first or 0
    while at < end and text[at] not in "}]":
        if first is None:
            name, stop = scanstring(text, at + 1)
            key = Span(at, stop)
            at = skip_space(text, skip_space(text, stop) + 1)
            yield name, key, at
        else:
            yield index, None, at
        at = skip_space(text, SCAN(text, at)[1])
        if text[at : at + 1] == ",":
            at = skip_space(text, at + 1)
        index += 1


def skip_space(text: str, at: int) -> int:
    """Return the offset of the next character that is not white space."""
    return SPACE.match(text, at).end()  # type: ignore[union-attr]


def pointer_text(path: Pointer) -> str:
    """Return the JSON pointer of a path: `/a/0/b~1c` for `("a", 0, "b/c")`, the empty string for the root."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def parse_pointer(text: str) -> Pointer:
    """Return the path of a JSON pointer. ValueError unless the text is empty or begins with a slash.

    The text does not say whether `0` is an index or a name. It becomes an int, and every look-up of
    `JsonDocument` tries it as both.
    """
    if not text:
        return ()
    if text[0] != "/":
        raise ValueError(f"a JSON pointer is empty or begins with '/': {text!r}")
    steps = [step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/")]
    return tuple(step if (index := as_index(step)) is None else index for step in steps)


def as_index(step: str | int) -> int | None:
    """Return the list index that a step of a path can mean, or None.

    0 and `"0"` are indexes, `"00"` is not.
    """
    if isinstance(step, int):
        return step
    return int(step) if _INDEX.fullmatch(step) else None


def texts_in(value: object, path: Pointer = ()) -> Iterator[tuple[Pointer, str]]:
    """Yield (path, text) for each text in a value."""
    if isinstance(value, str):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member_value in items:
        yield from texts_in(member_value, (*path, key))
