"""Workspace folders: any number, added and removed live, each with its own context; the innermost answers."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from support.client import ReplyError
from support.editor import Editor, editor_in, named, uri_of

NESTED = """
//- /a/NEXUS.md
Outer.
//- /a/b/NEXUS.md
Inner.
//- /a/b/src/main.py
"""


@pytest.mark.parametrize(
    ("folders", "asked", "answered"),
    [
        (["/a", "/a/b"], "/a", "/a"),
        (["/a", "/a/b"], "/a/b", "/a/b"),
        (["/a/b", "/a"], "/a/b/src/main.py", "/a/b"),
        (["/a", "/a/b"], "/a/b/not/there/yet.py", "/a/b"),
        (["/a", "/a/b"], "/a/bc", "/a"),
        (["/a"], "/a/b/src", "/a"),
    ],
)
def test_the_innermost_folder_answers(editor: Editor, folders: list[str], asked: str, answered: str) -> None:
    tree = editor.tree(NESTED)
    editor.add(*map(tree.path, folders))
    folder: str = editor.ask("context/assemble", tree.path(asked))["workspaceFolder"]
    assert folder.removeprefix(uri_of(tree.root)) == answered


def test_forty_folders_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    fixture = "\n".join(f"//- /f{n}/NEXUS.md\nThis is number {n}.\n" for n in range(40))
    with Editor(home) as editor:
        tree = editor.tree(fixture)
        folders = [tree.path(f"/f{n}") for n in range(40)]
        editor.hello(*folders)
        ids = [
            editor.send_request("nexus/context/preview", {"workspaceFolder": uri_of(folder)})
            for folder in folders
        ]
        texts = [editor.wait_reply(one)["result"]["text"] for one in ids]
        for number, text in enumerate(texts):
            assert f"This is number {number}.\n" in text
            assert text.count("This is number ") == 1
        assert len(editor.request("nexus/status", {})["folders"]) == 40
        editor.until(lambda: all(editor.changes(folder) for folder in folders))
        editor.goodbye()


def test_folders_come_and_go(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nA.\n//- /b/NEXUS.md\nB.\n")
    a, b = tree.path("/a"), tree.path("/b")
    editor.add(a)
    assert "A." in editor.ask("context/preview", a)["text"]
    assert refusal(editor, b)["code"] == "unknown-folder"
    editor.add(b)
    assert "B." in editor.ask("context/preview", b)["text"]
    editor.remove(a)
    assert refusal(editor, a)["code"] == "unknown-folder"
    editor.add(a)
    editor.add(a)
    assert "A." in editor.ask("context/preview", a)["text"]
    known = [one["uri"] for one in editor.request("nexus/status", {})["folders"]]
    assert known.count(uri_of(a)) == 1


def test_a_conversation_outlives_its_folder(editor: Editor) -> None:
    folder = editor.open_folder("//- /a/NEXUS.md\nA.\n")
    editor.ask("session/append", folder, messages=[{"role": "user", "content": "hello"}])
    before = editor.ask("session/messages", folder)["messages"]
    editor.remove(folder)
    editor.add(folder)
    assert editor.ask("session/messages", folder)["messages"] == before


def test_an_unknown_folder_is_answered_with_the_known_ones(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nA.\n")
    editor.add(tree.path("/a"))
    for method in (
        "context/assemble",
        "context/preview",
        "context/usage",
        "context/layers",
        "config/effective",
    ):
        with pytest.raises(ReplyError) as failed:
            editor.ask(method, tree.path("/elsewhere"))
        error = failed.value.error
        assert error["data"] == {"code": "unknown-folder", "problems": []}
        assert uri_of(tree.path("/elsewhere")) in error["message"]
        assert uri_of(tree.path("/a")) in error["message"]


@pytest.mark.parametrize(
    "uri", ["", "nonsense", "untitled:Untitled-1", "http://example.com/a", "file:", "/a"]
)
def test_a_folder_that_is_no_file_uri(editor: Editor, uri: str) -> None:
    editor.notify(
        "workspace/didChangeWorkspaceFolders",
        {"event": {"added": [{"uri": uri, "name": "x"}], "removed": []}},
    )
    with pytest.raises(ReplyError) as failed:
        editor.request("nexus/context/usage", {"workspaceFolder": uri})
    assert failed.value.error["data"]["code"] == "unknown-folder"


def refusal(editor: Editor, folder: str) -> Any:
    with pytest.raises(ReplyError) as failed:
        editor.ask("context/preview", folder)
    return failed.value.error["data"]


@pytest.mark.parametrize(
    "name", ["with space", "pro%cent", "ünï-漢", "a#b?c", "plus+and&", "[brackets]", "quote'\""]
)
def test_any_name_of_a_folder(editor: Editor, name: str) -> None:
    tree = editor.tree("//- /parent/NEXUS.md\nParent.\n")
    folder = Path(tree.path("/parent"), name)
    (folder / ".nexus3").mkdir(parents=True)
    (folder / ".nexus3" / "NEXUS.md").write_text("Mine.")
    (folder / ".nexus3" / "config.json").write_text("[]")
    editor.add(folder)
    assert "Mine." in editor.ask("context/preview", folder)["text"]
    assert editor.shown(folder / ".nexus3" / "config.json") != []


def test_every_spelling_of_a_uri_is_the_same_folder(editor: Editor) -> None:
    tree = editor.tree("//- /my work/NEXUS.md\nMine.\n")
    uri = uri_of(tree.path("/my work"))
    editor.add(uri)
    spellings = [
        uri + "/",
        uri.replace("work", "w%6Frk"),
        uri.replace("file:///", "file:/"),
        uri.replace("%20", " "),
    ]
    spellings += [uri.replace("file://", "FILE://"), uri.replace("file://", "file://localhost")]
    for spelling in spellings:
        assert editor.ask("context/assemble", spelling)["workspaceFolder"] == uri
        editor.add(spelling)
    assert [one["uri"] for one in editor.request("nexus/status", {})["folders"]].count(uri) == 1
    editor.remove(uri + "/")
    assert refusal(editor, uri)["code"] == "unknown-folder"


def test_a_folder_that_is_deleted_and_made_again(editor: Editor) -> None:
    tree = editor.tree('//- /a/.nexus3/NEXUS.md\nOld.\n//- /a/.nexus3/config.json\n{"a": 1}\n')
    folder = tree.path("/a")
    editor.add(folder)
    assert "Old." in editor.ask("context/preview", folder)["text"]
    shutil.rmtree(folder)
    editor.eventually(lambda: editor.ask("context/preview", folder)["text"], lambda text: "Old." not in text)
    editor.until(lambda: editor.shown(tree.path("/a/.nexus3/config.json")) == [])
    Path(folder, ".nexus3").mkdir(parents=True)
    Path(folder, ".nexus3", "NEXUS.md").write_text("New.")
    editor.eventually(lambda: editor.ask("context/preview", folder)["text"], lambda text: "New." in text)


def test_a_folder_that_is_not_there(editor: Editor) -> None:
    folder = editor.home / "nowhere"
    editor.add(folder)
    assert editor.ask("context/assemble", folder)["systemPrompt"] != ""
    assert editor.ask("context/layers", folder)["problems"] == []


@pytest.mark.parametrize("how", ["rootUri", "rootPath"])
def test_a_client_that_knows_one_root_only(tmp_path: Path, how: str) -> None:
    with Editor(tmp_path / "home") as editor:
        tree = editor.tree("//- /a/NEXUS.md\nRoot.\n")
        root = uri_of(tree.path("/a")) if how == "rootUri" else tree.path("/a")
        editor.request("initialize", {"processId": None, "capabilities": {}, "rootUri": None, how: root})
        editor.notify("initialized", {})
        assert "Root." in editor.ask("context/preview", tree.path("/a"))["text"]
        editor.goodbye()


@pytest.mark.parametrize("hello", [{"workspaceFolders": None}, {"workspaceFolders": []}, {}])
def test_no_folder_at_all(tmp_path: Path, hello: dict[str, Any]) -> None:
    with Editor(tmp_path / "home") as editor:
        editor.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}, **hello})
        editor.notify("initialized", {})
        assert editor.request("nexus/status", {})["folders"] == []
        assert refusal(editor, "/somewhere")["code"] == "unknown-folder"
        assert editor.request("nexus/tokens/count", {"texts": ["hello world"]})["total"] == 2
        editor.goodbye()


def test_the_folder_list_wins_over_the_root(tmp_path: Path) -> None:
    with Editor(tmp_path / "home") as editor:
        tree = editor.tree("//- /a/NEXUS.md\nA.\n//- /b/NEXUS.md\nB.\n")
        editor.hello(tree.path("/a"), rootUri=uri_of(tree.path("/b")))
        known = editor.request("nexus/status", {})["folders"]
        assert [(one["uri"], one["name"]) for one in known] == [tuple(named(tree.path("/a")).values())]
        editor.goodbye()


def test_two_spellings_of_the_home_are_one_layer(tmp_path: Path) -> None:
    """A workspace that is the home directory itself: its .nexus3 is the global layer, read once."""
    home = tmp_path / "home"
    (home / ".nexus3").mkdir(parents=True)
    (home / ".nexus3" / "NEXUS.md").write_text("Only once.")
    with editor_in(home, home) as editor:
        assert editor.ask("context/preview", home)["text"].count("Only once.") == 1
