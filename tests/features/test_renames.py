"""Edits that follow the rename of a file."""

import pytest

from nexus_context.errors import Edit
from nexus_daemon.features.renames import import_edits

HOME = "/home/u"


def renamed(path: str, text: str, moves: dict[str, str]) -> str:
    """The text after the edits."""
    edits: list[Edit] = import_edits({path: text}, moves, HOME).get(path, [])
    for edit in sorted(edits, key=lambda each: each.span, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


@pytest.mark.parametrize(
    ("path", "text", "moves", "result"),
    [
        ("/a/CLAUDE.md", "See @docs/x.md.", {"/a/docs/x.md": "/a/docs/y.md"}, "See @docs/y.md."),
        ("/a/CLAUDE.md", "@./x.md @x.md", {"/a/x.md": "/a/d/x.md"}, "@./d/x.md @d/x.md"),
        ("/a/CLAUDE.md", "@docs/x.md @docs2/x.md", {"/a/docs": "/a/rules"}, "@rules/x.md @docs2/x.md"),
        ("/a/CLAUDE.md", "@x.md", {"/a/x.md": "/a/b c.md"}, "@b\\ c.md"),
        ("/a/CLAUDE.md", "@~/x.md", {"/home/u/x.md": "/home/u/y.md"}, "@~/y.md"),
        ("/a/CLAUDE.md", "@/a/x.md", {"/a/x.md": "/a/y.md"}, "@/a/y.md"),
        ("/a/CLAUDE.md", "`@x.md` and me@x.md", {"/a/x.md": "/a/y.md"}, "`@x.md` and me@x.md"),
        ("/a/CLAUDE.md", "@x.md", {"/a/CLAUDE.md": "/a/sub/CLAUDE.md"}, "@../x.md"),
        ("/a/d/R.md", "@x.md @../y.md", {"/a/d": "/a/e"}, "@x.md @../y.md"),
        ("/a/CLAUDE.md", "@x.md", {"/a/other.md": "/a/y.md"}, "@x.md"),
    ],
)
def test_imports_follow_their_file(path: str, text: str, moves: dict[str, str], result: str) -> None:
    assert renamed(path, text, moves) == result
