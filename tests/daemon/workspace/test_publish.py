"""Diagnostics to one client: the least set of notifications, and never an older text's."""

from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.features.diagnostics import diagnostics
from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.lsp.documents import OpenDocuments
from nexus_daemon.lsp.lsp_types import TextDocumentItem
from nexus_daemon.workspace.publish import PUBLISH, Publisher, without_programs
from support.fixture import Fixture, write_fixture
from support.folders import load_folder

WRONG = '{"tools": {"summery": 1}}\n'
CONFIG = "/a/.nexus3/config.json"
MCP = "/a/.nexus3/mcp.json"


class Screen:
    """A publisher and what it said since the last look, as (path, number of diagnostics, version)."""

    def __init__(self, tree: Fixture) -> None:
        self.tree = tree
        self.documents = OpenDocuments()
        self.said: list[Any] = []
        self.diagnostics: list[Any] = []  # of the last notification
        self.publisher = Publisher(self.documents, "utf-16", self._notify)

    def _notify(self, method: str, params: Any) -> None:
        assert method == PUBLISH
        path = params.uri.removeprefix(path_to_uri(self.tree.root))
        self.said.append((path, len(params.diagnostics), params.version))
        self.diagnostics = params.diagnostics

    def look(self) -> list[Any]:
        said, self.said = self.said, []
        return said

    def load(self, folder: str, **overlays: str) -> None:
        """Load a folder with unsaved texts for config.json and mcp.json, and swap it in."""
        texts = {f"/a/.nexus3/{name}.json": text for name, text in overlays.items()}
        snapshot = load_folder(self.tree, folder, overlays=texts)
        unsaved = {self.tree.path(path): text for path, text in texts.items()}
        self.publisher.swap(folder, without_programs(snapshot, unsaved))

    def leave(self, folder: str) -> None:
        self.publisher.swap(folder, None)

    def open(self, path: str, text: str, version: int = 1) -> None:
        self.documents.open(item(path_to_uri(self.tree.path(path)), text, version))

    def close(self, path: str) -> None:
        self.documents.close(path_to_uri(self.tree.path(path)))


def item(uri: str, text: str, version: int) -> TextDocumentItem:
    return TextDocumentItem(uri=uri, language_id="json", version=version, text=text)


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    (tmp_path / "home").mkdir()
    return Screen(
        write_fixture(
            f"//- {CONFIG}\n{WRONG}//- /a/.nexus3/mcp.json\n{{}}\n//- /a/b/NEXUS.md\nB.\n", tmp_path
        )
    )


def test_a_file_is_published_once_and_cleared_once(screen: Screen) -> None:
    screen.load("/a")
    assert screen.look() == [(CONFIG, 1, None)]
    screen.load("/a")
    assert screen.look() == []
    screen.leave("/a")
    assert screen.look() == [(CONFIG, 0, None)]
    screen.leave("/a")
    assert screen.look() == []


def test_two_folders_share_a_file(screen: Screen) -> None:
    screen.load("/a")
    screen.load("/a/b")
    assert screen.look() == [(CONFIG, 1, None)]
    screen.leave("/a")
    assert screen.look() == []
    screen.leave("/a/b")
    assert screen.look() == [(CONFIG, 0, None)]


def test_an_older_text_says_nothing_about_a_newer_one(screen: Screen) -> None:
    screen.load("/a")
    screen.look()
    screen.open(CONFIG, "{}")
    screen.load("/a")
    screen.load("/a", config="{")
    assert screen.look() == []
    screen.load("/a", config="{}")
    assert screen.look() == [(CONFIG, 0, 1)]


def test_every_version_is_published_even_without_a_problem(screen: Screen) -> None:
    for version in (1, 2, 3):
        screen.open("/a/.nexus3/mcp.json", "{}", version)
        screen.load("/a", mcp="{}")
    assert [said for said in screen.look() if said[0] != CONFIG] == [
        ("/a/.nexus3/mcp.json", 0, 1),
        ("/a/.nexus3/mcp.json", 0, 2),
        ("/a/.nexus3/mcp.json", 0, 3),
    ]


def test_the_disk_counts_again_after_closing(screen: Screen) -> None:
    screen.open(CONFIG, "{}")
    screen.load("/a", config="{}")
    screen.close(CONFIG)
    screen.load("/a")
    assert screen.look() == [(CONFIG, 0, 1), (CONFIG, 1, None)]


def test_an_open_document_that_nobody_reads_any_more_is_cleared(screen: Screen) -> None:
    screen.open(CONFIG, WRONG)
    screen.load("/a", config=WRONG)
    screen.leave("/a")
    assert screen.look() == [(CONFIG, 1, 1), (CONFIG, 0, 1)]


def test_a_text_that_cannot_be_read_as_it_is_is_still_answered(screen: Screen) -> None:
    """Too long, with a byte order mark, with half a character: the snapshot holds another text, or none."""
    for version, text in enumerate((" " * 5_000_000, "\ufeff{}", '"\ud800"', "{\0}\0"), 1):
        screen.open(CONFIG, text, version)
        screen.load("/a", config=text)
        ((path, _, told),) = screen.look()
        assert (path, told) == (CONFIG, version)


def test_another_spelling_of_the_uri_takes_the_diagnostics_over(screen: Screen) -> None:
    screen.load("/a")
    screen.look()
    spelled = path_to_uri(screen.tree.path(CONFIG)).replace("config", "c%6Fnfig")
    screen.documents.open(item(spelled, WRONG, 1))
    screen.load("/a", config=WRONG)
    assert screen.look() == [(CONFIG, 0, None), (CONFIG.replace("config", "c%6Fnfig"), 1, 1)]


def test_only_what_changed_is_made_anew(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counting(problems: Any, locate: Any, minders: Any) -> Any:
        made.append(problems[0].path.removeprefix(screen.tree.root))
        return diagnostics(problems, locate, minders)

    monkeypatch.setattr("nexus_daemon.workspace.publish.diagnostics", counting)
    screen.load("/a")
    assert made == [CONFIG]
    screen.load("/a", mcp="{")
    assert made == [CONFIG, MCP]
    screen.load("/a", mcp="{", config=WRONG)
    assert made == [CONFIG, MCP]
    screen.load("/a", mcp="{", config=WRONG + " ")
    assert made == [CONFIG, MCP, CONFIG]
    assert [said for said in screen.look() if said[0] == CONFIG] == [(CONFIG, 1, None)]


def test_the_same_problem_on_another_line_is_another_diagnostic(screen: Screen) -> None:
    lines = []
    for text in ('{ "summery": 1}', '{\n"summery": 1}'):
        screen.load("/a", config=text)
        lines += [one["range"].start.line for one in screen.diagnostics]
        assert screen.look() == [(CONFIG, 1, None)]
    assert lines == [0, 1]


def test_forty_folders_say_the_same_about_a_file_once(screen: Screen) -> None:
    for number in range(40):
        Path(screen.tree.path(f"/a/f{number}")).mkdir()
        screen.load(f"/a/f{number}")
    assert screen.look() == [(CONFIG, 1, None)]
    for number in range(40):
        screen.leave(f"/a/f{number}")
    assert screen.look() == [(CONFIG, 0, None)]
