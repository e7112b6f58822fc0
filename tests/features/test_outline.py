"""Symbols, folds and selection ranges of a document; `$0` is the cursor."""

from typing import Any

import msgspec
import pytest

from nexus_context.tokens import TiktokenCounter
from nexus_daemon.features.open_document import KINDS, OpenDocument
from nexus_daemon.features.outline import folds, outline, selection_range, symbols
from nexus_daemon.lsp.convert import Locator, Texts

MARKDOWN = "# One\nhello world\n\n## Two\ntext\n\n```\n# no\n```\n# Three\nend\n"
JSON = '{\n "a": {\n  "b": [\n   1\n  ]\n },\n "c": true\n}'
TOML = 'a = 1\n[b.c]\nd = "x"\n\n[e]\nf = [\n 1,\n]\n'


def opened(text: str, suffix: str) -> OpenDocument:
    path = f"/a/x{suffix}"
    locate = Locator(Texts({path: text}), "utf-16")
    return OpenDocument(path, KINDS[suffix], locate, folder="/a", user_home="/h")


def tree(found: list[dict[str, Any]]) -> list[Any]:
    lines = [[each["range"][end]["line"] for end in ("start", "end")] for each in found]
    return [
        (each["name"], *at, *tree(each.get("children", []))) for each, at in zip(found, lines, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "suffix", "expected"),
    [
        (MARKDOWN, ".md", [("One", 0, 9, ("Two", 3, 9)), ("Three", 9, 11)]),
        (JSON, ".json", [("a", 1, 5, ("b", 2, 4)), ("c", 6, 6)]),
        (TOML, ".toml", [("a", 0, 0), ("b", 1, 2, ("c", 1, 2, ("d", 2, 2))), ("e", 4, 7, ("f", 5, 7))]),
        ('{"a": {"b": 1', ".json", [("a", 0, 0, ("b", 0, 0))]),
        ("a = ", ".toml", []),
        ("", ".md", []),
    ],
)
def test_the_parts_of_a_document(text: str, suffix: str, expected: list[Any]) -> None:
    document = opened(text, suffix)
    found = symbols(document, outline(document, TiktokenCounter()))
    assert tree(msgspec.to_builtins(found)) == expected


def test_a_section_says_its_tokens() -> None:
    document = opened(MARKDOWN, ".md")
    one = symbols(document, outline(document, TiktokenCounter()))[0]
    assert one["detail"] == f"{TiktokenCounter().count(MARKDOWN[: MARKDOWN.index('# Three')])} tokens"


@pytest.mark.parametrize(
    ("text", "suffix", "lines"),
    [
        (MARKDOWN, ".md", [(0, 8), (3, 8), (9, 10)]),
        (JSON, ".json", [(1, 4), (2, 3)]),
        ("# One\n\n\n# Two\n", ".md", []),
    ],
)
def test_what_folds(text: str, suffix: str, lines: list[tuple[int, int]]) -> None:
    document = opened(text, suffix)
    found = folds(document, outline(document, TiktokenCounter()))
    assert [(each["startLine"], each["endLine"]) for each in found] == lines


@pytest.mark.parametrize(
    ("text", "suffix", "selected"),
    [
        ("# One\n## Two\nte$0xt\n# Three\n", ".md", ["text", "## Two\ntext\n", "# One\n## Two\ntext\n", ""]),
        ('{\n "a": {"b": $01}}', ".json", ['"b": 1', '"a": {"b": 1}', ""]),
        ('{"a": {\n"b": $01\n}}', ".json", ['"b": 1', '"a": {\n"b": 1\n}', ""]),
        ("$0", ".md", [""]),
    ],
)
def test_a_selection_grows_from_the_line(text: str, suffix: str, selected: list[str]) -> None:
    offset, text = text.index("$0"), text.replace("$0", "")
    document = opened(text, suffix)
    found: dict[str, Any] | None = selection_range(document, outline(document, TiktokenCounter()), offset)
    texts = []
    while found is not None:
        span = document.locate.span(document.path, found["range"])
        texts.append(text[span.start : span.end])
        found = found.get("parent")
    assert texts == [*selected[:-1], text]
