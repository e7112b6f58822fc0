"""Build document symbols, folds and selection ranges: the sections of a text, the keys of a settings file.

1. A section is a heading with what is below it. Its tokens are the detail of its symbol and the text of its
   fold.
2. Positions come from the parsed text. For a text that cannot be parsed they come from what its parser
   recovered.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nexus_context.assistants.reading.toml import TomlDocument
from nexus_context.errors import Span
from nexus_context.folder.prompt.headings import Heading, find_headings
from nexus_context.text.json import JsonDocument
from nexus_context.tokens import TokenCounter
from nexus_daemon.features.open_document import OpenDocument
from nexus_daemon.features.settings_place import parse

MOST_NODES = 5_000
DEEPEST = 20
_STRING, _NUMBER, _BOOLEAN, _ARRAY, _OBJECT, _NULL = 15, 16, 17, 18, 19, 21  # `SymbolKind` of LSP


class Node(NamedTuple):
    """A part of a document. `name` is the span of its name, `span` the span of the whole part."""

    title: str
    kind: int
    name: Span
    span: Span
    detail: str
    children: "list[Node]"


def outline(document: OpenDocument, counter: TokenCounter) -> list[Node]:
    """Return the parts of a document in the order of its text, nested."""
    if document.kind == "instructions":
        return _sections(document.text, counter)
    parsed = parse(document)
    return [] if parsed is None else list(_members(parsed, parsed.value, ()))


def tokens_text(text: str, counter: TokenCounter) -> str:
    """Format the number of tokens of a text for people: `1,200 tokens`, with `≈` before an estimate."""
    tokens = counter.count(text)
    return f"{'' if counter.exact else '≈ '}{tokens:,} token{'' if tokens == 1 else 's'}"


def symbols(document: OpenDocument, nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Return `DocumentSymbol`s of the parts of a document."""
    locate, path = document.locate, document.path
    return [
        {
            "name": node.title or "…",
            "kind": node.kind,
            "range": locate.range(path, node.span),
            "selectionRange": locate.range(path, node.name),
            **({"detail": node.detail} if node.detail else {}),
            **({"children": symbols(document, node.children)} if node.children else {}),
        }
        for node in nodes
    ]


def folds(document: OpenDocument, nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the `FoldingRange`s of all parts that have more than one line."""
    return list(_folds(document, nodes))


def _folds(document: OpenDocument, nodes: Sequence[Node]) -> Iterator[dict[str, Any]]:
    locate, path = document.locate, document.path
    for node in nodes:
        text = document.text[node.span.start : node.span.end]
        end = node.span.start + len(text.rstrip())
        fold_range = locate.range(path, Span(node.name.start, end))
        is_container = node.kind in (_ARRAY, _OBJECT)
        last_line = fold_range.end.line - is_container  # the closing bracket stays
        if last_line > fold_range.start.line:
            fold: dict[str, Any] = {"startLine": fold_range.start.line, "endLine": last_line}
            if node.detail:
                fold["collapsedText"] = f"{node.title} · {node.detail}"
            yield fold
        yield from _folds(document, node.children)


def section_hints(document: OpenDocument, nodes: Sequence[Node], span: Span) -> list[dict[str, Any]]:
    """Return inlay hints with the tokens of the sections whose headings are in `span`."""
    return [
        hint(document, node.name.end, node.detail)
        for node in _flat(nodes)
        if node.detail and span.start <= node.name.end <= span.end
    ]


def hint(document: OpenDocument, offset: int, label: str) -> dict[str, Any]:
    """Return an inlay hint that is shown after the character at an offset."""
    position = document.locate.range(document.path, Span(offset, offset)).start
    return {"position": position, "label": label, "paddingLeft": True}


def _flat(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _flat(node.children)


def selection_range(document: OpenDocument, nodes: Sequence[Node], offset: int) -> dict[str, Any]:
    """Return the nested ranges around an offset, the line first."""
    locate, path, text = document.locate, document.path, document.text
    chain = [Span(0, len(text))]
    while True:
        node = next(
            (candidate for candidate in nodes if candidate.span.start <= offset < candidate.span.end), None
        )
        if node is None:
            break
        chain.append(node.span)
        nodes = node.children
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    chain.append(Span(start, len(text) if end < 0 else end))
    result: dict[str, Any] = {}
    outer: Span | None = None
    for span in chain:
        if outer is not None and not (outer.start <= span.start and span.end <= outer.end):
            continue
        if span != outer:
            result = {"range": locate.range(path, span), **({"parent": result} if result else {})}
            outer = span
    return result


def _sections(text: str, counter: TokenCounter) -> list[Node]:
    top: list[Node] = []
    ancestors: list[tuple[Heading, Node]] = []
    for heading in find_headings(text)[:MOST_NODES]:
        section = text[heading.section.start : heading.section.end]
        detail = tokens_text(section, counter)
        node = Node(heading.title, _STRING, heading.line, heading.section, detail=detail, children=[])
        while ancestors and ancestors[-1][0].level >= heading.level:
            ancestors.pop()
        (ancestors[-1][1].children if ancestors else top).append(node)
        ancestors.append((heading, node))
    return top


def _members(
    parsed: JsonDocument | TomlDocument, value: object, path: tuple[str | int, ...]
) -> Iterator[Node]:
    if not isinstance(value, dict) or len(path) > DEEPEST:
        return
    for name, member_value in list(value.items())[:MOST_NODES]:
        pointer = (*path, name)
        key, span = parsed.key_span(pointer), parsed.span(pointer)
        if key is None:
            continue
        full_span = Span(min(key.start, span.start), max(key.end, span.end))
        children = list(_members(parsed, member_value, pointer))
        if children and isinstance(parsed, TomlDocument):
            full_span = Span(full_span.start, max(full_span.end, *(child.span.end for child in children)))
        yield Node(str(name), _kind(member_value), key, full_span, detail="", children=children)


def _kind(value: object) -> int:
    kinds = {bool: _BOOLEAN, int: _NUMBER, float: _NUMBER, list: _ARRAY, dict: _OBJECT, str: _STRING}
    return kinds.get(type(value), _NULL)
