"""The workspace folders of a client: whatever it sends, the folders are the set that it describes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.lsp.framing import encode
from nexus_daemon.lsp.lsp_types import initialize_params
from nexus_daemon.shared.tracker import Tracker, frame
from nexus_daemon.windows.connection import _folders as first_folders
from support.desk import Desk, tell_story
from support.talk import tell
from support.waiting import yield_to_loop

CHANGED = "workspace/didChangeWorkspaceFolders"
NAMES = st.sampled_from(["a", "b", "c"])
EVENTS = st.lists(st.tuples(st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=3)), max_size=6)


def event(desk: Desk, removed: list[str], added: list[str]) -> dict[str, Any]:
    removals, additions = (
        [{"uri": desk.uri(f"/{name}"), "name": name} for name in names] for names in (removed, added)
    )
    return tell(CHANGED, {"event": {"removed": removals, "added": additions}})


def described(folders: set[str], events: list[tuple[list[str], list[str]]]) -> set[str]:
    for removed, added in events:
        folders = (folders - set(removed)) | set(added)
    return folders


@pytest.mark.parametrize(
    "events",
    [
        [(["a"], ["a"])],
        [(["a"], ["b"]), (["b"], ["a", "b"])],
        [([], ["a", "b"]), (["b", "a", "b"], ["b"])],
        [(["c"], []), ([], [])],
    ],
)
def test_the_folders_are_the_set_that_events_describe(
    tmp_path: Path, events: list[tuple[list[str], list[str]]]
) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for removed, added in events:
            talk.send(event(desk, removed, added))
        await yield_to_loop()
        status = await desk.ask(talk, 1, "nexus/status")
        assert {Path(one["uri"]).name for one in status["folders"]} == described({"a"}, events)

    tell_story(tmp_path, story)


def test_a_folder_that_is_renamed_stays_with_its_new_name(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        folder = desk.folders.get(desk.uri("/a"))
        old, new = ({"uri": desk.uri("/a"), "name": name} for name in ("a", "web"))
        talk.send(tell(CHANGED, {"event": {"removed": [old], "added": [new]}}))
        await yield_to_loop()
        assert desk.folders.get(desk.uri("/a")) is folder
        assert folder is not None
        assert folder.name == "web"

    tell_story(tmp_path, story)


@given(EVENTS)
def test_the_next_daemon_is_told_the_same_set(events: list[tuple[list[str], list[str]]]) -> None:
    tracker = Tracker()
    first = {"workspaceFolders": [{"uri": "a", "name": ""}]}
    tracker.feed(frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}))
    for removed, added in events:
        lists = {"removed": [{"uri": one} for one in removed], "added": [{"uri": one} for one in added]}
        tracker.feed(frame({"jsonrpc": "2.0", "method": CHANGED, "params": {"event": lists}}))
    folders = {"a"}
    for data in tracker.replay():
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        if message["method"] == CHANGED:
            change = message["params"]["event"]
            removed, added = ([one["uri"] for one in change[kind]] for kind in ("removed", "added"))
            folders = described(folders, [(removed, added)])
    assert folders == described({"a"}, events)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"workspaceFolders": [], "rootUri": "file:///a"}, ["file:///a"]),
        ({"workspaceFolders": None, "rootUri": "file:///a", "rootPath": "/b"}, ["file:///a"]),
        ({"workspaceFolders": [], "rootUri": None, "rootPath": "/b"}, ["file:///b"]),
        ({"workspaceFolders": [{"uri": "file:///c", "name": "c"}], "rootUri": "file:///a"}, ["file:///c"]),
        ({"workspaceFolders": [{"name": "c"}], "rootUri": "file:///a"}, ["file:///a"]),
        ({"workspaceFolders": [], "rootUri": None}, []),
    ],
)
def test_an_empty_list_does_not_hide_the_root(fields: dict[str, Any], expected: list[str]) -> None:
    params = initialize_params(encode({"processId": None, "capabilities": {}, **fields}))
    assert [folder.uri for folder in first_folders(params)] == expected
