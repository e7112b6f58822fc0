"""Hovers of headings and imports, and the Markdown of answers."""

import pytest

from nexus_context.assistants.views.readers import UNREAD, AssistantUse
from nexus_context.errors import Span
from nexus_context.tokens import counter_for
from nexus_daemon.features.answer_text import answers_text, code, escaped
from nexus_daemon.features.hover import TextReader, heading_at, hover, import_text, section_text
from nexus_daemon.features.open_document import OpenDocument
from nexus_daemon.lsp.convert import Locator, Texts
from nexus_daemon.protocol.explain import ExplainAnswer, ExplainLink
from nexus_daemon.protocol.shapes import Position, Range

COUNTER = counter_for("gpt-5")
CODEX = TextReader("Codex", AssistantUse("sent"), COUNTER, 1_000)
LATER = TextReader("Cursor", AssistantUse("later", reason="Sent with *.ts files."), COUNTER, None)
SILENT = TextReader("Gemini CLI", UNREAD, COUNTER, 1_000)
TOP = Range(Position(2, 0), Position(2, 4))


def opened(text: str) -> OpenDocument:
    return OpenDocument(
        "/a/CLAUDE.md", "instructions", Locator(Texts({"/a/CLAUDE.md": text}), "utf-16"), "/a", "/h"
    )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# On$0e\n", "One"),
        ("$0# One", "One"),
        ("# One\nte$0xt", None),
        ("```\n# O$0ne\n```", None),
        ("## A_b `c` ##$0", "A_b `c`"),
        ("$0", None),
    ],
)
def test_the_heading_at_an_offset(text: str, title: str | None) -> None:
    heading = heading_at(text.replace("$0", ""), text.index("$0"))
    assert (None if heading is None else heading.title) == title


def test_a_section_costs_each_view_that_sends_the_file() -> None:
    text = "# One\nhello world\n## Two\nhello\n# Three\n"
    heading = heading_at(text, 0)
    assert heading is not None
    assert section_text(text, heading, [CODEX, LATER, SILENT]) == (
        "**One**\n\nCodex: 11 tokens · 1.1 % of 1k\n\nCursor: 11 tokens · Sent with \\*.ts files."
    )


def test_an_import_says_what_it_brings_and_who_else_imports_it() -> None:
    assert import_text("docs/a.md", None, [CODEX], []) == (
        "`docs/a.md`: there is no such file, or it cannot be read."
    )
    assert import_text("docs/a.md", "hello world", [CODEX], ["AGENTS.md"]) == (
        "`docs/a.md`\n\nCodex: 2 tokens · 0.2 % of 1k\n\nAlso imported by `AGENTS.md`."
    )


def test_answers_of_several_views() -> None:
    won = ExplainLink("file:///a/x.json", TOP, '["a"]', wins=True)
    lost = ExplainLink("file:///h/y_z.json", TOP, '["`"]', wins=False)
    answers = [
        ExplainAnswer("codex", "1", "In force.", value=["a"], chain=[won, lost], documentation="Who *acts*."),
        ExplainAnswer("nexus", "1", "The default of Nexus.", note="Mind <this>."),
    ]
    assert answers_text(answers, lambda uri: uri.removeprefix("file://")) == (
        '**Codex**: Who \\*acts\\*.\n\nIn force: `["a"]`\n\n'
        '- [/a/x.json:3](file:///a/x.json#L3) `["a"]`\n'
        '- [/h/y\\_z.json:3](file:///h/y_z.json#L3) `` ["`"] `` (does not count)\n\n---\n\n'
        "**Nexus**: The default of Nexus.\n\nMind \\<this\\>."
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a`b*c`*d", "a`b*c`\\*d"), ("x\x1b[31m", "x"), ("<b>", "\\<b\\>")],
)
def test_texts_show_as_they_are(text: str, shown: str) -> None:
    assert escaped(text).startswith(shown)


def test_a_long_value_is_shortened() -> None:
    assert code("x" * 300) == f"`{'x' * 200} …`"


def test_a_client_without_markdown_gets_plain_text() -> None:
    document = opened("abc")
    text = "**A** `b` [c\\_d:1](file:///x#L1)\n\n---\n\n\\*"
    assert hover(document, Span(0, 1), text, has_markdown=False) == {
        "contents": {"kind": "plaintext", "value": "A b c_d:1\n\n*"},
        "range": Range(Position(0, 0), Position(0, 1)),
    }
    assert hover(document, Span(0, 1), "", has_markdown=True) is None
