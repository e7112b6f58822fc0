"""Link the text of a context to its sources: definitions and document links of each fragment.

1. If a fragment is its source's text unchanged, each line leads to the same line of the source. Any other
   fragment leads to the beginning of its source.
2. The first line of a fragment that is not blank is a link. Its target ends with `#L` and line and character,
   counted from 1, as editors read them.
"""

from collections.abc import Iterator
from typing import Any

from nexus_context.errors import Span
from nexus_context.text.lines import LineIndex
from nexus_daemon.lsp.convert import offset_at, position_at, range_of
from nexus_daemon.protocol.context import Fragment, Preview
from nexus_daemon.protocol.shapes import Location, Position, Range


def context_links(preview: Preview, encoding: str) -> list[dict[str, Any]]:
    """Return the links of a context, in the order of its text.

    Positions are in the LSP encoding `encoding`.
    """
    return list(_links(preview, encoding))


def context_definition(preview: Preview, position: Position) -> list[Location]:
    """Return the source of the text at a position. Empty for Nexus's own text."""
    cursor_order = _order(position)
    for fragment in preview.fragments:
        if _order(fragment.range.start) <= cursor_order < _order(fragment.range.end):
            source = _source_of(fragment, position)
            return [] if source is None else [source]
    return []


def _links(preview: Preview, encoding: str) -> Iterator[dict[str, Any]]:
    index = LineIndex(preview.text)
    for fragment in preview.fragments:
        start, end = (
            offset_at(index, position.line, position.character, encoding)
            for position in (fragment.range.start, fragment.range.end)
        )
        text = preview.text[start:end]
        start = end - len(text.lstrip())
        line = preview.text[start:end].split("\n", 1)[0].rstrip()
        source = _source_of(fragment, position_at(index, start, encoding)) if line else None
        if source is not None:
            source_start = source.range.start
            yield {
                "range": range_of(index, Span(start, start + len(line)), encoding),
                "target": f"{source.uri}#L{source_start.line + 1},{source_start.character + 1}",
            }


def _source_of(fragment: Fragment, position: Position) -> Location | None:
    source, start = fragment.source, fragment.range.start
    if source is None or not fragment.verbatim:
        return source
    lines = position.line - start.line
    column_shift = source.range.start.character - start.character if lines == 0 else 0
    source_position = Position(source.range.start.line + lines, max(position.character + column_shift, 0))
    return Location(source.uri, Range(source_position, source_position))


def _order(position: Position) -> tuple[int, int]:
    return position.line, position.character
