"""The folder table: URI → folder, the innermost of a path, and who rebuilds when something changes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nexus_context.disk.deadline import Turns
from nexus_context.errors import RequestError
from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.workspace.folders import Folder, FolderEvents, FolderTable
from nexus_daemon.workspace.reload import Swap
from support.fixture import Fixture, write_fixture
from support.folders import load_inputs

Table = FolderTable[Folder]
Swaps = list[tuple[str, list[str]]]

FIXTURE = """
//- /home/a/NEXUS.md
See @shared/more.md
//- /home/a/shared/more.md
More.
//- /home/a/b/NEXUS.md
Inner.
//- /home/ab/NEXUS.md
Other.
"""


def check(root: Path, story: Callable[[Table, Fixture], Any]) -> Swaps:
    """Tell a story about a table with the folders /home/a, /home/a/b and /home/ab; what it rebuilt."""
    tree = write_fixture(FIXTURE, root)

    async def run() -> Swaps:
        swaps: Swaps = []

        def swapped(folder: Any, swap: Swap) -> None:
            swaps.append((folder.path.removeprefix(tree.root), sorted(swap.reasons)))

        with ThreadPoolExecutor(2) as executor:
            table = Table(
                Folder, load_inputs(tree.path("/home")), executor, turns=Turns(), events=FolderEvents(swapped)
            )
            for path in ("/home/a", "/home/a/b", "/home/ab"):
                table.add(path_to_uri(tree.path(path)))
            await settled(table)
            swaps.clear()
            outcome = story(table, tree)
            if outcome is not None:
                await outcome
            await settled(table)
        return sorted(swaps)

    return asyncio.run(run())


async def settled(table: Table) -> None:
    for folder in table:
        await asyncio.wait_for(folder.reload.settled(), 10)


@pytest.mark.parametrize(
    ("changed", "rebuilt"),
    [
        ("/home/a/NEXUS.md", ["/home/a", "/home/a/b"]),
        ("/home/a/shared/more.md", ["/home/a", "/home/a/b"]),
        ("/home/a/b/NEXUS.md", ["/home/a/b"]),
        ("/home/a/b/.nexus3/config.json", ["/home/a/b"]),
        ("/home/.nexus3/NEXUS.md", ["/home/a", "/home/a/b", "/home/ab"]),
        ("/home/a/main.py", []),
        ("/home/a/b/c/NEXUS.md", []),
    ],
)
def test_who_rebuilds(tmp_path: Path, changed: str, rebuilt: list[str]) -> None:
    swaps = check(tmp_path, lambda table, tree: table.changed([tree.path(changed)]))
    assert swaps == [(path, ["disk"]) for path in rebuilt]
    typed = check(tmp_path, lambda table, tree: table.set_overlay(tree.path(changed), "x", "instructions"))
    assert typed == [(path, ["instructions"]) for path in rebuilt]


def test_the_innermost_folder(tmp_path: Path) -> None:
    def story(table: Table, tree: Fixture) -> None:
        for path, expected in {
            "/home/a": "/home/a",
            "/home/a/b/c/d": "/home/a/b",
            "/home/a/bc": "/home/a",
            "/home/ab": "/home/ab",
            "/home/abc": None,
            "/home": None,
        }.items():
            found = table.containing(tree.path(path))
            assert (found and found.path) == (expected and tree.path(expected))
            uri = path_to_uri(tree.path(path))
            if expected is None:
                with pytest.raises(RequestError, match=r"Known folders: file://.*/home/a, .*Add the folder"):
                    table.at(uri)
            else:
                assert table.at(uri).path == tree.path(expected)

    check(tmp_path, story)


def test_unsaved_text_wins_and_goes(tmp_path: Path) -> None:
    async def story(table: Table, tree: Fixture) -> None:
        path = tree.path("/home/a/b/NEXUS.md")
        folder = table.at(path_to_uri(tree.path("/home/a/b")))
        for text, expected in (("Unsaved.", "Unsaved."), (None, "Inner.")):
            table.set_overlay(path, text, "instructions")
            snapshot = await folder.current()
            assert expected in snapshot.prompt.text
            assert folder.overlays.get(path) == text

    check(tmp_path, story)


def test_a_folder_is_known_once(tmp_path: Path) -> None:
    def story(table: Table, tree: Fixture) -> None:
        uri = path_to_uri(tree.path("/home/a"))
        known = table.get(uri)
        assert known is not None
        assert table.at_path(known.path) is known
        for spelling, now in ((uri + "/", False), (uri.replace("home", "%68ome"), True), (uri, False)):
            assert table.add(spelling, listed=now) is known
            assert known.is_listed
        assert len(table) == 3
        assert table.remove(uri + "//") is known
        assert table.at_path(known.path) is None
        assert table.remove(uri) is None
        assert table.add("untitled:x") is None
        assert len(table) == 2

    assert check(tmp_path, story) == []


def test_a_lone_folder_is_listed_once_the_client_lists_it(tmp_path: Path) -> None:
    def story(table: Table, tree: Fixture) -> None:
        uri = path_to_uri(tree.path("/home/lone"))
        listed = []
        for now in (False, False, True, False):
            folder = table.add(uri, listed=now)
            assert folder is not None
            listed.append(folder.is_listed)
        assert listed == [False, False, True, True]

    check(tmp_path, story)


def test_a_folder_that_cannot_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(table: Table, tree: Fixture) -> None:
        def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("nexus_context.folder.loading.load", fail)
        folder = table.add(path_to_uri(tree.path("/home/new")))
        assert folder is not None
        with pytest.raises(RequestError) as failed:
            await folder.current()
        assert failed.value.code == "folder-unreadable"
        kept = await table.at(path_to_uri(tree.path("/home/a"))).current()
        assert "More." in kept.prompt.text

    check(tmp_path, story)
