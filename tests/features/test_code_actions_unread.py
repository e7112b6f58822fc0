"""The quick fix of a file that is not read: what it writes, and that the file is read then."""

from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from nexus_context.errors import Span
from nexus_context.text.lines import LineIndex
from nexus_daemon.features.code_actions import code_actions
from nexus_daemon.features.edits import Editing
from nexus_daemon.lsp.convert import Locator, offset_at
from support.fixture import Fixture, write_fixture
from support.folders import load_folder

CONFIG = "/home/a/b/.nexus3/config.json"
COPILOT = "/home/a/b/.github/copilot-instructions.md"
ADDED = 'Read this file: add ".github/copilot-instructions.md" to "instruction_files"'


def fixes(fixture: Fixture, path: str, *, creates: bool = True) -> list[dict[str, Any]]:
    snapshot = load_folder(fixture, "/home/a/b")
    where = fixture.path(path)
    found: list[dict[str, Any]] = msgspec.to_builtins(
        code_actions(
            snapshot,
            where,
            Span(0, 0),
            locate=Locator(snapshot.layers, "utf-16"),
            editing=Editing(creates=creates),
        )
    )
    return found


def check(root: Path, text: str, path: str, title: str, written: str, after: str) -> None:
    """The one fix in a file: its title, and what the file that it writes says then; the file is read then."""
    fixture = write_fixture(f"//- /home/a/.git/HEAD\nx\n{dedent(text).lstrip()}", root)
    (fix,) = fixes(fixture, path)
    assert (fix["title"], fix["kind"], fix["isPreferred"]) == (title, "quickfix", False)
    apply(fix["edit"])
    assert Path(fixture.path(written)).read_text() == after
    snapshot = load_folder(fixture, "/home/a/b")
    assert fixture.path(path) not in {entry.path for entry in snapshot.layers.unread}
    assert snapshot.problems == ()


def apply(edit: dict[str, Any]) -> None:
    """Make a workspace edit on the disk."""
    changes = list(edit.get("changes", {}).items())
    for change in edit.get("documentChanges", ()):
        if change.get("kind") == "create":
            at = Path(unquote(change["uri"].removeprefix("file://")))
            at.parent.mkdir(parents=True, exist_ok=True)
            at.touch()
        else:
            changes.append((change["textDocument"]["uri"], change["edits"]))
    for uri, edits in changes:
        file = Path(unquote(uri.removeprefix("file://")))
        text = file.read_text()
        index = LineIndex(text)
        places = [
            [
                offset_at(index, one["range"][side]["line"], one["range"][side]["character"], "utf-16")
                for side in ("start", "end")
            ]
            for one in edits
        ]
        for (start, end), one in sorted(
            zip(places, edits, strict=True), key=lambda each: each[0], reverse=True
        ):
            text = text[:start] + one["newText"] + text[end:]
        file.write_text(text)


NAMES = '"NEXUS.md", "AGENTS.md", "CLAUDE.md"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{"context": {"instruction_files": ["AGENTS.md"]}}',
            '{"context": {"instruction_files": ["AGENTS.md", ".github/copilot-instructions.md"]}}',
        ),
        (
            '{"context": {"instruction_files": []}}',
            '{"context": {"instruction_files": [".github/copilot-instructions.md"]}}',
        ),
        (
            '{"context": {"git": false}}',
            (
                f'{{"context": {{\n    "instruction_files": [{NAMES}, ".github/copilot-instructions.md"],'
                '"git": false}}'
            ),
        ),
        (
            "{}",
            f'{{\n  "context": {{"instruction_files": [{NAMES}, ".github/copilot-instructions.md"]}}\n}}',
        ),
    ],
)
def test_a_setting_is_written_where_it_belongs(tmp_path: Path, before: str, after: str) -> None:
    text = f"//- {CONFIG}\n{before}\n//- {COPILOT}\nC\n"
    check(tmp_path, text, COPILOT, ADDED, CONFIG, f"{after}\n")


def test_settings_that_do_not_exist_are_created_where_the_client_can_do_it(tmp_path: Path) -> None:
    text = f"//- /home/a/b/AGENTS.md\nA\n//- {COPILOT}\nC\n"
    fixture = write_fixture(f"//- /home/a/.git/HEAD\nx\n{text}", tmp_path / "1")
    assert fixes(fixture, COPILOT, creates=False) == []
    names = "".join(f'      "{name}",\n' for name in ("NEXUS.md", "AGENTS.md", "CLAUDE.md"))
    after = (
        '{\n  "context": {\n    "instruction_files": [\n'
        f'{names}      ".github/copilot-instructions.md"\n    ]\n  }}\n}}\n'
    )
    check(tmp_path / "2", text, COPILOT, ADDED, CONFIG, after)


def test_what_another_layer_lists_is_not_repeated(tmp_path: Path) -> None:
    listed = '{"context": {"instruction_files": ["AGENTS.md"]}}'
    text = f"//- /home/.nexus3/config.json\n{listed}\n//- {CONFIG}\n{{}}\n//- {COPILOT}\nC\n"
    after = '{\n  "context": {"instruction_files": [".github/copilot-instructions.md"]}\n}\n'
    check(tmp_path, text, COPILOT, ADDED, CONFIG, after)


def test_a_file_beside_another_is_imported(tmp_path: Path) -> None:
    text = "//- /home/a/b/AGENTS.md\nA\n//- /home/a/b/CLAUDE.md\nC\n"
    title = "Read this file: import it in AGENTS.md"
    check(tmp_path, text, "/home/a/b/CLAUDE.md", title, "/home/a/b/AGENTS.md", "A\n\n@CLAUDE.md\n")


def test_one_out_of_reach(tmp_path: Path) -> None:
    depth = '{"context": {"ancestor_depth": 0}}'
    text = f"//- {CONFIG}\n{depth}\n//- /home/a/AGENTS.md\nA\n"
    title = 'Read this file: set "ancestor_depth" to 1'
    check(tmp_path, text, "/home/a/AGENTS.md", title, CONFIG, '{"context": {"ancestor_depth": 1}}\n')


@pytest.mark.parametrize(
    ("settings", "path"),
    [("{,}", COPILOT), ("{}", "/home/a/b/.cursorrules"), ("{}", "/home/a/b/AGENTS.md")],
)
def test_there_is_none(tmp_path: Path, settings: str, path: str) -> None:
    text = f"//- {CONFIG}\n{settings}\n//- {path}\nx\n"
    assert fixes(write_fixture(text, tmp_path), path) == []


IMPORTING = {
    "plainly": "//- /home/a/b/CLAUDE.md\n@AGENTS.md\n",
    "with text": "//- /home/a/b/CLAUDE.md\n# For Claude\nSee @AGENTS.md, then go.\n",
    "spelt with a dot": "//- /home/a/b/CLAUDE.md\n@./AGENTS.md\n",
    "by a detour": "//- /home/a/b/CLAUDE.md\n@docs/../AGENTS.md\n//- /home/a/b/docs/x.md\nx\n",
    "from above": "//- /home/a/b/CLAUDE.md\n@../b/AGENTS.md\n",
    "from home": "//- /home/a/b/CLAUDE.md\n@~/a/b/AGENTS.md\n",
    "through another": "//- /home/a/b/CLAUDE.md\n@docs/x.md\n//- /home/a/b/docs/x.md\n@../AGENTS.md\n",
    "through two": (
        "//- /home/a/b/CLAUDE.md\n@x.md\n//- /home/a/b/x.md\n@y.md @x.md\n//- /home/a/b/y.md\n@AGENTS.md\n"
    ),
    "from a directory": "//- /home/a/b/.claude/CLAUDE.md\n@../AGENTS.md\n",
}


@pytest.mark.parametrize("text", IMPORTING.values(), ids=IMPORTING)
def test_no_fix_makes_a_cycle(tmp_path: Path, text: str) -> None:
    fixture = write_fixture(f"//- /home/a/.git/HEAD\nx\n//- /home/a/b/AGENTS.md\nA\n{text}", tmp_path)
    path = text.split()[1]
    snapshot = load_folder(fixture, "/home/a/b")
    (skipped,) = snapshot.layers.unread
    assert (skipped.path, skipped.remedy) == (fixture.path(path), None)
    assert skipped.cause == "imports AGENTS.md, which must not import it in turn"
    assert fixes(fixture, path) == []


def test_a_link_to_the_importer_makes_a_cycle_too(tmp_path: Path) -> None:
    text = "//- /home/a/.git/HEAD\nx\n//- /home/a/b/AGENTS.md\nA\n//- /home/a/b/CLAUDE.md\n@link.md\n"
    fixture = write_fixture(text, tmp_path)
    Path(fixture.path("/home/a/b/link.md")).symlink_to("AGENTS.md")
    assert fixes(fixture, "/home/a/b/CLAUDE.md") == []


def test_no_file_outside_the_repository_is_read_to_find_a_cycle(tmp_path: Path) -> None:
    text = "//- /home/a/.git/HEAD\nx\n//- /home/a/b/AGENTS.md\nA\n//- /home/a/b/CLAUDE.md\n@~/private.md\n"
    fixture = write_fixture(f"{text}//- /home/private.md\n@a/b/AGENTS.md\n", tmp_path)
    (fix,) = fixes(fixture, "/home/a/b/CLAUDE.md")
    assert fix["title"] == "Read this file: import it in AGENTS.md"


def test_a_code_span_imports_nothing(tmp_path: Path) -> None:
    text = "//- /home/a/b/AGENTS.md\nA\n//- /home/a/b/CLAUDE.md\nNo `@AGENTS.md` here.\n"
    title = "Read this file: import it in AGENTS.md"
    check(tmp_path, text, "/home/a/b/CLAUDE.md", title, "/home/a/b/AGENTS.md", "A\n\n@CLAUDE.md\n")
