"""Find document links and definitions of imports: an `@path` leads to its file.

1. Each import of an instruction file is a link, whether or not a program may include the file, since a person
   may read it.
2. An import whose file does not exist leads nowhere. Only the first imports of a file are looked up
   (`import_targets`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nexus_context.errors import Span
from nexus_context.folder.prompt.imports import import_targets
from nexus_daemon.features.open_document import OpenDocument

IsFile = Callable[[str], bool]
TOP = Span(0, 0)


def import_links(document: OpenDocument, *, is_file: IsFile) -> list[dict[str, Any]]:
    """Return the links of a document, in the order of its text."""
    return [
        {"range": document.locate.range(document.path, span), "target": document.locate.uri(target)}
        for span, target in imports_of(document)
        if is_file(target)
    ]


def import_definition(document: OpenDocument, offset: int, *, is_file: IsFile) -> list[dict[str, Any]]:
    """Return the location of the file that the import at an offset names.

    Empty if there is no import or no file.
    """
    locate = document.locate
    return [
        {"uri": locate.uri(target), "range": locate.range(target, TOP)}
        for _, target in imports_at(document, offset)
        if is_file(target)
    ]


def imports_at(document: OpenDocument, offset: int) -> Iterator[tuple[Span, str]]:
    """Return the imports at an offset, as (span, absolute path that it names)."""
    return ((span, target) for span, target in imports_of(document) if span.start <= offset <= span.end)


def imports_of(document: OpenDocument) -> Iterator[tuple[Span, str]]:
    """Return the imports of a document, as (span, absolute path that it names)."""
    return import_targets(document.path, document.text, document.user_home)


def semantic_tokens(document: OpenDocument, spans: Iterable[Span]) -> list[int]:
    """Encode spans, in the order of the text, as the `data` of LSP's `SemanticTokens`.

    All have the only type.
    """
    data, line, column = list[int](), 0, 0
    for span in spans:
        token_range = document.locate.range(document.path, span)
        start, length = token_range.start, token_range.end.character - token_range.start.character
        data += [start.line - line, start.character - (column if start.line == line else 0), length, 0, 0]
        line, column = start.line, start.character
    return data
