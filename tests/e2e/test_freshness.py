"""A real daemon on a system that has no file watches left: nothing is missed, and users are told.

The kernel's own limit needs a user namespace, which not every machine allows: `tests/torture/watches.py` is
that. Here the daemon's process gets the error of the limit in place of a watch while a file is there.
"""

from pathlib import Path

from support.editor import Editor
from support.fixture import write_file

FULL = """
import os
from nexus_daemon.workspace import inotify, polling, portable_watches, watcher
inotify.IDLE_S = polling.POLL_S = watcher.RETRY_S = 0.1
portable_watches.IDLE_MS = watcher.CHECK_MS = 100
new_watches = watcher.new_watches
class Limited:
    def __init__(self):
        self.watches = new_watches()
    def open(self, directories):
        if os.path.exists({full!r}):
            raise OSError(28, "no space left on device")
        return self.watches.open(directories)
watcher.new_watches = Limited
"""


def check(editor: Editor, folder: Path, path: Path, text: str) -> None:
    """A file is written, and sooner or later the prompt holds its text."""
    write_file(path, text)
    editor.eventually(lambda: prompt(editor, folder), lambda prompt: text.partition("\n")[0] in prompt)


def prompt(editor: Editor, folder: Path) -> str:
    text: str = editor.ask("context/preview", folder)["text"]
    return text


def until(editor: Editor, folder: Path, state: str) -> None:
    """Wait until both requests say of a folder that its changes are noticed in this way."""
    editor.eventually(lambda: editor.layers(folder)["freshness"]["state"], lambda found: found == state)
    status = editor.request("nexus/status", {})["folders"]
    assert {one["freshness"]["state"] for one in status if one["name"] == folder.name} == {state}


def test_a_daemon_without_watches_misses_nothing_and_says_so(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.touch()
    with Editor(tmp_path.resolve() / "home", before=FULL.format(full=str(full))) as editor:
        root = Path(editor.tree("//- /a/NEXUS.md\nOld.\n//- /b/main.py\n").root)
        a, b = root / "a", root / "b"
        editor.hello(a)
        until(editor, a, "polled")
        check(editor, a, a / "NEXUS.md", "Changed.\n@docs/more.md\n")
        check(editor, a, a / "docs" / "more.md", "Imported.\n")
        check(editor, a, root / ".nexus3" / "NEXUS.md", "Of an ancestor.\n")
        check(editor, a, editor.home / ".nexus3" / "NEXUS.md", "Of every folder.\n")
        editor.add(b)
        until(editor, b, "polled")
        check(editor, b, b / "AGENTS.md", "The first of its folder.\n")
        (shown,) = editor.said("window/showMessage")
        assert shown["params"]["type"] == 2
        assert "no file watches are left for this user" in shown["params"]["message"]
        full.unlink()
        for folder in (a, b):
            until(editor, folder, "watched")
            check(editor, folder, folder / "NEXUS.md", f"Watched {folder.name}.\n")
        editor.until(lambda: "Files are watched again." in logged(editor))
        assert len(editor.said("window/showMessage")) == 1
        editor.goodbye()


def logged(editor: Editor) -> list[str]:
    return [one["params"]["message"] for one in editor.said("window/logMessage")]
