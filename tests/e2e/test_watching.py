"""Files that change on disk: everything that configuration can do is noticed, wherever it lives."""

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.editor import Editor, editor_in, uri_of
from support.fixture import write_file

WRONG = '{"tools": {"summery": true}}\n'


def watched(editor: Editor, fixture: str) -> Path:
    """Write a fixture and add its folder /a; the watcher stands before this returns, see `settle`."""
    root = Path(editor.tree(fixture).root)
    editor.add(root / "a")
    editor.layers(root / "a")
    settle(editor)
    return root


def settle(editor: Editor) -> None:
    """Wait until a change of another folder is noticed: the watch was set anew for all of them."""
    probe = Path(editor.tree("//- /probe/NEXUS.md\n0\n").root, "probe")
    editor.add(probe)
    editor.layers(probe)
    replace(probe / "NEXUS.md", "Probed.")
    editor.eventually(lambda: prompt(editor, probe), lambda text: "Probed." in text)
    editor.remove(probe)


def prompt(editor: Editor, folder: Path) -> str:
    text: str = editor.ask("context/preview", folder)["text"]
    return text


def shown(editor: Editor, path: Path) -> bool:
    return editor.shown(path) != []


def clear(editor: Editor, path: Path) -> bool:
    return editor.shown(path) == []


def replace(path: Path, text: str) -> None:
    """As editors save: a new file takes the old one's place."""
    temporary = path.with_name(f".{path.name}.tmp")
    write_file(temporary, text)
    temporary.replace(path)


def test_what_editors_and_tools_do_to_a_file(editor: Editor) -> None:
    root = watched(editor, "//- /a/.nexus3/NEXUS.md\nOld.\n")
    folder, path = root / "a", root / "a" / ".nexus3" / "NEXUS.md"

    def then(expected: str, unexpected: str = "Old.") -> None:
        editor.eventually(
            lambda: prompt(editor, folder), lambda text: expected in text and unexpected not in text
        )

    replace(path, "Replaced.")
    then("Replaced.")
    write_file(path, "Written.")
    then("Written.", "Replaced.")
    with path.open("a") as file:
        file.write("Appended.")
    then("Appended.")
    path.rename(path.with_name("moved.md"))
    then("", "Appended.")
    path.with_name("moved.md").rename(path)
    then("Appended.")
    path.unlink()
    then("", "Appended.")
    path.symlink_to("target.md")
    write_file(path.with_name("target.md"), "Through a link.")
    then("Through a link.")


NEW = "New."
APPEARS: dict[str, tuple[str, str, str]] = {
    "the first .nexus3": ("//- /a/main.py\n", "/a/.nexus3/NEXUS.md", NEW),
    "the first AGENTS.md": ("//- /a/main.py\n", "/a/AGENTS.md", NEW),
    "a name that goes first": ("//- /a/AGENTS.md\nOld\n", "/a/NEXUS.md", NEW),
    "the first .claude": ("//- /a/main.py\n", "/a/.claude/CLAUDE.md", NEW),
    "an override": ("//- /a/AGENTS.md\nOld\n", "/a/AGENTS.override.md", NEW),
    "the first in an ancestor": ("//- /a/main.py\n", "/.nexus3/NEXUS.md", NEW),
    "an ancestor's": ("//- /NEXUS.md\nOld\n//- /a/main.py\n", "/NEXUS.md", NEW),
    "an imported one": ("//- /a/NEXUS.md\n@docs/b/c.md\n//- /a/docs/b/c.md\nOld\n", "/a/docs/b/c.md", NEW),
    "an imported one that was missing": ("//- /a/NEXUS.md\n@docs/b/c.md\n", "/a/docs/b/c.md", NEW),
    "one imported by an import": (
        "//- /a/NEXUS.md\n@one.md\n//- /a/one.md\n@two.md\n//- /a/two.md\nOld\n",
        "/a/two.md",
        NEW,
    ),
    "a setting that names another file": (
        "//- /a/.nexus3/config.json\n{}\n//- /a/OTHER.md\nNew.\n",
        "/a/.nexus3/config.json",
        '{"context": {"instruction_files": ["OTHER.md"]}}',
    ),
    "a setting that adds an ancestor": (
        '//- /a/.nexus3/config.json\n{"context": {"ancestor_depth": 0}}\n//- /NEXUS.md\nNew.\n',
        "/a/.nexus3/config.json",
        '{"context": {"ancestor_depth": 1}}',
    ),
    "the README that stands in": ("//- /a/main.py\n", "/a/README.md", NEW),
}


@pytest.mark.parametrize("replaced", [False, True], ids=["written", "replaced"])
@pytest.mark.parametrize(("fixture", "path", "text"), APPEARS.values(), ids=APPEARS)
def test_what_appears(editor: Editor, fixture: str, path: str, text: str, replaced: bool) -> None:
    root = watched(editor, fixture)
    (replace if replaced else write_file)(root / path.strip("/"), text)
    editor.eventually(lambda: prompt(editor, root / "a"), lambda text: NEW in text)


def test_diagnostics_follow_the_disk(editor: Editor) -> None:
    root = watched(editor, "//- /a/main.py\n")
    config = root / "a" / ".nexus3" / "config.json"
    for path in (
        config,
        root / ".nexus3" / "config.json",
        root / "a" / ".mcp.json",
        root / "a" / ".vscode" / "mcp.json",
    ):
        write_file(path, '{"surprise": 1}')
        editor.until(partial(shown, editor, path))
        replace(path, '{"mcpServers": {}}' if path.name == ".mcp.json" else "{}")
        editor.until(partial(clear, editor, path))
        replace(path, "{")
        editor.until(partial(shown, editor, path))
        path.unlink()
        editor.until(partial(clear, editor, path))
    assert editor.layers(root / "a")["problems"] == []


def test_a_directory_that_is_deleted_and_made_again(editor: Editor) -> None:
    root = watched(editor, f"//- /a/.nexus3/config.json\n{WRONG}")
    config = root / "a" / ".nexus3" / "config.json"
    for _ in range(3):
        assert editor.codes(config) == ["config.unknown-key"]
        shutil.rmtree(config.parent)
        editor.until(lambda: editor.shown(config) == [])
        write_file(config, WRONG)
        editor.until(lambda: editor.shown(config) != [])
    replace(config, "{}")
    editor.until(lambda: editor.shown(config) == [])


def test_a_directory_that_is_swapped_for_another(editor: Editor) -> None:
    """What a branch switch does: the same name, another directory, nothing in between."""
    root = watched(editor, "//- /a/.nexus3/NEXUS.md\nOne.\n//- /other/NEXUS.md\nTwo.\n")
    here, other = root / "a" / ".nexus3", root / "other"
    here.rename(root / "kept")
    other.rename(here)
    editor.eventually(lambda: prompt(editor, root / "a"), lambda text: "Two." in text)
    replace(here / "NEXUS.md", "Three.")
    editor.eventually(lambda: prompt(editor, root / "a"), lambda text: "Three." in text)


def test_the_global_layer(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with editor_in(home) as editor:
        root = watched(editor, "//- /a/NEXUS.md\nA.\n//- /b/NEXUS.md\nB.\n")
        editor.add(root / "b")
        write_file(home / ".nexus3" / "NEXUS.md", "For all folders.")
        for folder in ("a", "b"):
            editor.eventually(partial(prompt, editor, root / folder), lambda text: "For all folders." in text)
        write_file(home / ".nexus3" / "config.json", WRONG)
        editor.until(lambda: editor.shown(home / ".nexus3" / "config.json") != [])
        shutil.rmtree(home / ".nexus3")
        editor.until(lambda: editor.shown(home / ".nexus3" / "config.json") == [])
        for folder in ("a", "b"):
            editor.eventually(partial(prompt, editor, root / folder), lambda text: "For all" not in text)


def test_no_change_is_missed_however_fast(editor: Editor) -> None:
    """The last state always arrives, whatever happens while a rebuild or a new watch is under way."""
    root = watched(editor, "//- /a/main.py\n")
    for number in range(30):
        path = root / "a" / ".nexus3" / ("NEXUS.md" if number % 2 else "config.json")
        replace(path, f"State {number}." if number % 2 else reserve(number))
        if number % 7 == 3:
            shutil.rmtree(path.parent)
            write_file(path, f"State {number}.")
    editor.eventually(lambda: prompt(editor, root / "a"), lambda text: "State 29." in text)
    editor.eventually(
        lambda: editor.ask("config/effective", root / "a")["config"]["context"]["reserve_tokens"],
        lambda n: n == 28,
    )


def reserve(tokens: int) -> str:
    return f'{{"context": {{"reserve_tokens": {tokens}}}}}'


def test_unsaved_text_stays_when_the_disk_changes(editor: Editor) -> None:
    root = watched(editor, "//- /a/NEXUS.md\nDisk.\n")
    folder, path = root / "a", root / "a" / "NEXUS.md"
    editor.open(path, "Unsaved.")
    replace(path, "Changed on disk.")
    replace(folder / "AGENTS.md", "x")
    assert "Unsaved." in prompt(editor, folder)
    editor.close(path)
    editor.eventually(lambda: prompt(editor, folder), lambda text: "Changed on disk." in text)


def test_what_the_clients_own_watcher_says_counts_at_once(editor: Editor) -> None:
    """No wait for our own watcher, which may be blind on a network drive."""
    root = watched(editor, "//- /a/NEXUS.md\nOld.\n")
    replace(root / "a" / "NEXUS.md", "New.")
    change: Any = {"uri": uri_of(root / "a" / "NEXUS.md"), "type": 2}
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
    assert "New." in prompt(editor, root / "a")


def test_other_files_disturb_nothing(editor: Editor) -> None:
    root = watched(editor, "//- /a/NEXUS.md\nA.\n//- /a/src/main.py\n")
    editor.until(lambda: editor.changes(root / "a"))
    before = len(editor.changes(root / "a"))
    for number in range(50):
        write_file(root / "a" / f"file{number}.txt", "x")
        write_file(root / "a" / "src" / f"file{number}.txt", "x")
    settle(editor)
    assert len(editor.changes(root / "a")) == before
    os.utime(root / "a" / "NEXUS.md")
    settle(editor)
    assert editor.layers(root / "a")["revision"] == 1
