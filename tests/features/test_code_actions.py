"""Quick fixes at the cursor: their titles, and the text after the first of them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_context.errors import Span
from nexus_context.text.lines import LineIndex
from nexus_daemon.features.code_actions import code_actions
from nexus_daemon.features.edits import Editing
from nexus_daemon.lsp.convert import Locator, offset_at, path_to_uri
from support.fixture import Fixture, write_fixture
from support.folders import load_folder

CONFIG = "//- /home/a/.nexus3/config.json\n"


def actions_at_cursor(fixture: Fixture, encoding: str = "utf-16") -> list[dict[str, Any]]:
    assert fixture.cursor_path is not None
    assert fixture.cursor is not None
    snapshot = load_folder(fixture, "/home/a")
    path, cursor = fixture.cursor_path, Span(fixture.cursor, fixture.cursor)
    found: list[dict[str, Any]] = msgspec.to_builtins(
        code_actions(snapshot, path, cursor, locate=Locator(snapshot.layers, encoding), editing=Editing())
    )
    return found


def check(root: Path, text: str, titles: list[str], after: str | None, encoding: str = "utf-16") -> None:
    """Titles of the fixes at the cursor, and the file's text after the first of them."""
    fixture = write_fixture(CONFIG + text, root)
    found = actions_at_cursor(fixture, encoding)
    assert [one["title"] for one in found] == titles
    assert all((one["kind"], one["isPreferred"]) == ("quickfix", True) for one in found)
    assert (applied(fixture.text, found[0], encoding) if found else None) == after


def applied(text: str, action: dict[str, Any], encoding: str) -> str:
    (edits,) = action["edit"]["changes"].values()
    index = LineIndex(text)
    for edit in sorted(edits, key=lambda one: one["range"]["start"]["character"], reverse=True):
        start, end = (
            offset_at(index, edit["range"][side]["line"], edit["range"][side]["character"], encoding)
            for side in ("start", "end")
        )
        text = text[:start] + edit["newText"] + text[end:]
    return text


@pytest.mark.parametrize(
    ("text", "titles", "after"),
    [
        ('{"tools": {"sum$0mery": true}}', ['Rename to "summary"'], '{"tools": {"summary": true}}'),
        ('{"tools": {$0"summery": true}}', ['Rename to "summary"'], '{"tools": {"summary": true}}'),
        ('{$0"tools": {"summery": true}}', [], None),
        ('{"tools": {},$0}', ["Remove the comma"], '{"tools": {}}'),
        ('{"tools": $0{', ["Insert }}"], '{"tools": {}}'),
        ('{"tools": {$0', ["Insert }}"], '{"tools": {}}'),  # where another checker sees the error
        ('{"too$0ls": {', [], None),
        ("{$0}", [], None),
        ('{"context": {"ancestor_depth": 9$09}}', [], None),
    ],
)
def test_the_fix_at_the_cursor(tmp_path: Path, text: str, titles: list[str], after: str | None) -> None:
    check(tmp_path, text, titles, after)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_edits_behind_wide_characters(tmp_path: Path, encoding: str) -> None:
    text = '{"_comment": "😀é", "tools": {"summ$0ery": true}}'
    check(
        tmp_path, text, ['Rename to "summary"'], '{"_comment": "😀é", "tools": {"summary": true}}', encoding
    )


def test_a_fix_carries_the_diagnostic_that_it_mends(tmp_path: Path) -> None:
    fixture = write_fixture(CONFIG + '{"tools": {"sum$0mery": true}}', tmp_path)
    (action,) = actions_at_cursor(fixture)
    (diagnostic,) = action["diagnostics"]
    assert (diagnostic["code"], diagnostic["source"]) == ("config.unknown-key", "nexus")
    assert list(action["edit"]["changes"]) == [path_to_uri(str(fixture.cursor_path))]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_fix_has_the_line_ends_of_its_file_and_the_version_of_its_document(
    tmp_path: Path, end: str
) -> None:
    fixture = write_fixture("//- /a/AGENTS.md\nRules.\n//- /a/CLAUDE.md\nMore.\n", tmp_path)
    path, other = fixture.path("/a/CLAUDE.md"), fixture.path("/a/AGENTS.md")
    for one in (path, other):
        Path(one).write_bytes(f"# Title{end}text{end}".encode())
    snapshot = load_folder(fixture, "/a")
    editing = Editing(is_versioned=True, uris={other: "file:///spelled"}, versions={other: 7})
    (action,) = code_actions(
        snapshot, path, Span(0, 0), locate=Locator(snapshot.layers, "utf-16"), editing=editing
    )
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": "file:///spelled", "version": 7}
    new = "".join(edit["newText"] for edit in change["edits"])
    assert new == f"{end}@CLAUDE.md{end}"


@pytest.mark.parametrize(
    ("path", "preferred"),
    [
        ("AGENTS.md", False),
        ("NEXUS.md", True),
        (".nexus3/AGENT.md", True),
        (".nexus3/skills/s/SKILL.md", True),
        (".claude/skills/s/SKILL.md", False),
    ],
)
def test_no_fix_of_prose_that_others_read_is_preferred(tmp_path: Path, path: str, preferred: bool) -> None:
    front = "---\nname: s\ndescription: d\n---\n" if path.endswith("SKILL.md") else ""
    settings = '//- /home/a/.nexus3/config.json\n{"skills": {"compat": true}}\n'
    fixture = write_fixture(f"{settings}//- /home/a/{path}\n{front}a\u200b$0b\n", tmp_path)
    assert [one["isPreferred"] for one in actions_at_cursor(fixture)] == [preferred]
