"""Finds what stands around a place in JSON text that is being written, whether or not it parses.

1. One pass up to the place, and on to the end of the object around it: strings end with their line, comments
   are skipped, brackets that do not match are left out.
2. A word without quotes counts as a key or value that is being written.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.text.json.spans import Pointer
from nexus_context.text.json.strings import meaning

_STRING = r'"(?:[^"\\\r\n]|\\[^\r\n])*+'
_TOKEN = re.compile(
    rf'(?P<string>{_STRING}(?P<closed>"?))|(?P<mark>[\[\]{{}},:])'
    r'|(?P<word>[^\s\[\]{},:"/]+)|(?P<comment>//[^\r\n]*|/\*[\s\S]*?(?:\*/|\Z))|/'
)
_INSIDE = rf'(?:[^{{}}\[\]"/]|{_STRING}")*+'
_FLAT_TEXT = rf"(?:\{{{_INSIDE}\}}|\[{_INSIDE}\])"
_FLAT = re.compile(_FLAT_TEXT)
"""A container without others in it, as a whole: a large file consists of them."""
_MEMBER = re.compile(rf'\s*({_STRING}")\s*:\s*(?:{_STRING}"|[^\s\[\]{{}},:"/]+|{_FLAT_TEXT})\s*(?:,|(?=\}}))')
"""A key with its value and comma."""
_CLOSES = {"}": "{", "]": "["}
_OPENS = frozenset(_CLOSES.values())


class CursorPlace(NamedTuple):
    """Where a key or value is, or may be written, in JSON text.

    `container` is the path of the object or list around the place. `key` is the name whose value belongs at
    the place; it is None where a key may stand, and in a list. `written` is the range of the token at the
    place, with its quotes; `prefix` is what the token says up to the place. `names` are the other keys of the
    object. `has_colon` is true if a colon follows the key.
    """

    container: Pointer
    is_object: bool
    key: str | None
    written: Span
    prefix: str
    names: frozenset[str] = frozenset()
    has_colon: bool = False

    @property
    def pointer(self) -> Pointer:
        """The path of the value at the place. In a list, and where a key may stand, it is the container's."""
        return self.container if self.key is None else (*self.container, self.key)


class _Container:
    """An object or list that is open: its path, and what was read of it last."""

    def __init__(self, mark: str, path: Pointer) -> None:
        self.mark = mark
        self.path = path
        self.names: list[str] = []
        self.name: str | None = None  # the last text at the place of a key
        self.key: str | None = None  # the key whose value is next, after its colon
        self.index = 0

    @property
    def below(self) -> Pointer:
        """The path of the next value."""
        if self.mark == "[":
            return (*self.path, self.index)
        return self.path if self.key is None else (*self.path, self.key)

    @property
    def awaits_key(self) -> bool:
        """Whether a key is next."""
        return self.mark == "{" and self.name is None and self.key is None

    def take_text(self, text: str) -> None:
        if self.mark == "{" and self.key is None:
            self.name = text
            self.names.append(text)

    def take_mark(self, mark: str) -> None:
        if mark == ":":
            self.key, self.name = self.name, None
        elif mark == ",":
            self.key = self.name = None
            self.index += 1


def find_place(text: str, offset: int) -> CursorPlace | None:
    """Return what can be written at an offset. None in a comment, and outside of the outermost brackets."""
    containers: list[_Container] = []
    end = 0  # of what was read
    for token in _tokens(text, 0, containers, offset=offset):
        if token.start() >= offset or _contains(token, offset):
            return _cursor_place(text, containers, token, offset=offset)
        _take(containers, token)
        end = token.end()
    return _cursor_place(text, containers, None, offset=max(offset, end))


def _tokens(text: str, start: int, containers: list[_Container], *, offset: int) -> Iterator[re.Match[str]]:
    """The tokens from a place on; members and flat containers that do not hold the offset are taken whole.

    The caller takes each token into the containers before it asks for the next one.
    """
    end = start
    while True:
        if containers and containers[-1].awaits_key:
            end = _skip_members(text, end, containers[-1], offset)
        token = _TOKEN.search(text, end)
        if token is None:
            return
        yield token
        end = token.end()
        if token["mark"] in _OPENS and (flat := _FLAT.match(text, token.start())) is not None:
            is_around = token.start() < offset < flat.end()
            end = end if is_around else flat.end() - 1  # its closing bracket is a token


def _skip_members(text: str, start: int, inside: _Container, offset: int) -> int:
    """Take the names of the members that follow; return where the last one ends."""
    end = start
    while (member := _MEMBER.match(text, end)) is not None and not end <= offset <= member.end():
        inside.names.append(meaning(member[1][1:-1]))
        end = member.end()
    return end


def _contains(token: re.Match[str], offset: int) -> bool:
    """Whether the text at the offset is a part of a token that began before."""
    is_open = bool(token["word"]) or (bool(token["string"]) and not token["closed"])
    is_open = is_open or token[0].startswith("//")
    return offset < token.end() or (is_open and offset == token.end())


def _take(containers: list[_Container], token: re.Match[str]) -> None:
    mark = token["mark"]
    if mark is None:
        if containers and (token["string"] or token["word"]):
            containers[-1].take_text(_content(token))
    elif mark in "{[":
        containers.append(_Container(mark, containers[-1].below if containers else ()))
    elif mark in "}]":
        if any(container.mark == _CLOSES[mark] for container in containers):
            while containers.pop().mark != _CLOSES[mark]:
                pass
    elif containers:
        containers[-1].take_mark(mark)


def _content(token: re.Match[str]) -> str:
    if not token["string"]:
        return token[0]
    return meaning(token[0][1 : len(token[0]) - len(token["closed"])])


def _cursor_place(
    text: str, containers: list[_Container], token: re.Match[str] | None, *, offset: int
) -> CursorPlace | None:
    if not containers or (token is not None and token["comment"] and token.start() < offset):
        return None
    inside = containers[-1]
    written, prefix = Span(offset, offset), ""
    if token is not None and token.start() < offset and (token["string"] or token["word"]):
        written = Span(*token.span())
        prefix = meaning(text[token.start() : offset].removeprefix('"'))
    names, has_colon = _keys_after(text, inside, written.end) if inside.mark == "{" else ([], False)
    return CursorPlace(
        container=inside.path,
        is_object=inside.mark == "{",
        key=inside.key,
        written=written,
        prefix=prefix,
        names=frozenset((*inside.names, *names)),
        has_colon=has_colon,
    )


def _keys_after(text: str, inside: _Container, start: int) -> tuple[list[str], bool]:
    """The keys in the rest of an object, and whether a colon comes first."""
    following_object = _Container("{", ())
    following_object.key = inside.key
    containers, has_colon = [following_object], None
    for token in _tokens(text, start, containers, offset=start):
        mark = token["mark"]
        if not (mark or token["string"] or token["word"]):
            continue  # a comment
        has_colon = mark == ":" if has_colon is None else has_colon
        if mark in _CLOSES and len(containers) == 1:
            break
        _take(containers, token)
    return following_object.names, has_colon is True
