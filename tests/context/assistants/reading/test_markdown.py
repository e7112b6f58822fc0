"""How Claude Code reads Markdown; the cases of `tests/assistants` show the same of the program itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.assistants.reading import markdown

PIECES = ("<!--", "-->", "\n", "\r\n", "@a.md", " ", "    ", "```", "~~~", "`", "- ", "> ", "<div>", "*", "_")
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("text", "stripped", "paths"),
    [
        ("See @a.md and @./b.md.", "See @a.md and @./b.md.", ["a.md", "./b.md."]),
        ("`@a.md`\n```\n@b.md\n```\n\n    @c.md\n", "`@a.md`\n```\n@b.md\n```\n\n    @c.md\n", []),
        ("<!-- x -->\n\nText\n", "Text\n", []),
        ("A <!-- inline --> B\n", "A <!-- inline --> B\n", []),
        ("- item\n  <!-- stays -->\n", "- item\n  <!-- stays -->\n", []),
        ("- item\n\n<!-- goes -->\nend\n", "- item\n\nend\n", []),
        ("One\r\n\r\n<!-- x -->\r\nTwo\r\n", "One\n\nTwo\n", []),
        ("```\n<!-- code -->\n```\n", "```\n<!-- code -->\n```\n", []),
        ("<!-- open\n@a.md", "<!-- open\n@a.md", []),
        ("mail me@x.md, (@y.md) **@z.md** @z.md", "mail me@x.md, (@y.md) **@z.md** @z.md", ["z.md"]),
        ("@a\\ b.md @c.md#part @{d}.md", "@a\\ b.md @c.md#part @{d}.md", ["a b.md", "c.md"]),
    ],
)
def test_comments_and_imports(text: str, stripped: str, paths: list[str]) -> None:
    """The text without comments, and the paths that it imports."""
    tokens = markdown.import_tokens(text)
    assert (markdown.strip_comments(text), [token.path for token in tokens]) == (stripped, paths)


@given(MARKDOWN)
def test_an_import_stands_where_its_span_says(text: str) -> None:
    for token in markdown.import_tokens(text):
        assert text[token.span.start : token.span.end].startswith("@")
        assert text[token.span.start + 1 : token.span.end].partition("#")[0].replace("\\ ", " ") == token.path


@given(MARKDOWN)
def test_stripping_only_removes(text: str) -> None:
    stripped = markdown.strip_comments(text)
    plain = iter(text.replace("\r\n", "\n") if stripped != text else text)
    assert all(character in plain for character in stripped)


def test_work_grows_with_the_text() -> None:
    for piece in ("<!-- ", "@a.md\n", "- \n", "`", "[a](", "    x\n\n", "> ", "*_"):
        markdown.import_tokens(piece * 20_000)
        markdown.strip_comments(piece * 20_000 + "<!--")
    markdown.import_tokens("    x" + "\n" * 300_000 + "    x")
