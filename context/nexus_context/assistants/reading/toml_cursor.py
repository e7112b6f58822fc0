"""Finds what may be written at a place in TOML text that is being written, whether or not it parses.

Values are read like JSON, so nothing is found in strings in single quotes and in those of several lines.
"""

import re

from nexus_context.errors import Span
from nexus_context.text.json import cursor
from nexus_context.text.json.cursor import CursorPlace

_HEADER = re.compile(r"^[ \t]*\[\[?[ \t]*([^\]\r\n]*?)[ \t]*\]\]?", re.MULTILINE)
_PAIR = re.compile(r"^[ \t]*([\w.\"'-]+?)[ \t]*=[ \t]*", re.MULTILINE)
_COMMENT = re.compile(r"(?:[^\"'#\n]|\"[^\"\n]*\"|'[^'\n]*')*+#")
_KEY = re.compile(r"[ \t]*((?:[\w-]+\.)*)([\w-]*)")
_WORD = re.compile(r"[\w-]*")
_COLON = re.compile(r"[ \t]*=")
_NAME = re.compile(r"\"([^\"]*)\"|'([^']*)'|([^.\s\"']+)")
_OBJECT = '{"":'


def find_place(text: str, offset: int) -> CursorPlace | None:
    """Find what can be written at an offset. Return None in a comment, in a table header, and behind a
    value.
    """
    line_start = text.rfind("\n", 0, offset) + 1
    if _COMMENT.match(text, line_start, offset):
        return None
    table = next(reversed(list(_HEADER.finditer(text, 0, line_start))), None)
    table_names = () if table is None else _names(table[1])
    start = 0 if table is None else table.end()
    pair = next(reversed(list(_PAIR.finditer(text, start, offset))), None)
    if pair is not None:
        value = _value_place(text, pair, table_names, offset=offset)
        if value is not None:
            return value
    key = _KEY.fullmatch(text, line_start, offset)
    if key is None:
        return None
    written = Span(key.start(2), _end(text, offset))
    next_header = _HEADER.search(text, offset)
    end = len(text) if next_header is None else next_header.start()
    names = [_names(match[1])[0] for match in _PAIR.finditer(text, start, end) if match.start() != line_start]
    return CursorPlace(
        container=(*table_names, *_names(key[1])),
        is_object=True,
        key=None,
        written=written,
        prefix=key[2],
        names=frozenset(() if key[1] else names),
        has_colon=_COLON.match(text, written.end) is not None,
    )


def _end(text: str, offset: int) -> int:
    match = _WORD.match(text, offset)
    return offset if match is None else match.end()


def _names(key: str) -> tuple[str, ...]:
    return (
        tuple(match[1] or match[2] or match[3] or "" for match in _NAME.finditer(key)) or ("",)[: bool(key)]
    )


def _value_place(
    text: str, pair: re.Match[str], table_names: tuple[str, ...], *, offset: int
) -> CursorPlace | None:
    """The place in the value of a pair; None if the value ends before."""
    value = text[pair.end() :]
    shift = pair.end() - len(_OBJECT)
    cursor_place = cursor.find_place(_OBJECT + value, offset - shift)
    is_done = "\n" in text[pair.end() : offset] and (cursor_place is None or not cursor_place.container)
    if cursor_place is None or is_done:
        return None
    keys = _names(pair[1]) or ("",)
    is_plain = not cursor_place.container
    return cursor_place._replace(
        container=(*table_names, *keys[:-1])
        if is_plain
        else (*table_names, *keys, *cursor_place.container[1:]),
        key=keys[-1] if is_plain else cursor_place.key,
        written=Span(cursor_place.written.start + shift, cursor_place.written.end + shift),
    )
