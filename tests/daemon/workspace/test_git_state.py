"""Git in the turns of the daemon: who is trusted, what is remembered, and that nobody waits for long."""

import asyncio
import os
import subprocess
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, cast

import pytest

from nexus_daemon.workspace import git_state as working_trees
from nexus_daemon.workspace.fair_threads import MOST_OF_WINDOW
from support.desk import TIMEOUT_S, Desk, tell_story
from support.talk import HELLO, Talk, tell
from support.waiting import block_until, wait_until, yield_to_loop

ENVIRON = {
    "PATH": os.environ["PATH"],
    **dict.fromkeys(
        ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "a"
    ),
}


def git(desk: Desk, *arguments: str) -> None:
    folder = desk.tree.path("/a")
    subprocess.run(["git", *arguments], cwd=folder, env=ENVIRON, check=True, capture_output=True)


def prepared(desk: Desk, path: str = ENVIRON["PATH"]) -> None:
    """Make /a a repository with one commit and one new file; git is found on `path`."""
    cast("MutableMapping[str, str]", desk.folders.load_inputs.environ)["PATH"] = path
    git(desk, "init", "-b", "main")
    git(desk, "add", "-A")
    git(desk, "commit", "-m", "first")
    Path(desk.tree.path("/a/new.md")).write_text("new\n")


async def client(desk: Desk, *, trusted: object = True) -> Talk:
    options: dict[str, Any] = {"initializationOptions": {"trusted": trusted}}
    params = HELLO["params"]
    try:
        params.update(options)
        return await desk.client()
    finally:
        del params["initializationOptions"]


async def said(desk: Desk, talk: Talk, number: int, **params: object) -> list[str]:
    """The lines about git of a turn; its tokens have a row where there are any."""
    made = await desk.assemble(talk, number, **{"message": "Why?", **params})
    rows = [row["label"] for row in made["usage"]["rows"] if row["category"] == "event"]
    content: str = made["currentMessage"]["content"]
    head = content.partition("\n\n")[0].splitlines()[1:]
    assert rows == (["git state"] if head else []) + ["current message"]
    return head


CLEAN = ["Git: on branch main", "No changed files."]
NEW = ["Git: on branch main", "Changed files: 1 not tracked", "?? new.md"]


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give git the time that it needs on a busy machine."""
    monkeypatch.setattr(working_trees, "PATIENCE_S", 10.0)


@pytest.mark.usefixtures("patience")
def test_changed_files_are_told_where_the_client_trusts_the_folder(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for number, trusted in enumerate((False, None, 1, "true"), 1):
            talk = await client(desk, trusted=trusted)
            assert await said(desk, talk, number) == []  # no repository yet
        prepared(desk)
        assert await said(desk, talk, 5) == ["Git: on branch main"]
        talk = await client(desk)
        assert await said(desk, talk, 1) == NEW
        made = await desk.assemble(talk, 2, event={"git": "mine"})
        assert made["currentMessage"]["content"].splitlines()[1:] == ["git: mine"]

    tell_story(tmp_path, story)


@pytest.mark.usefixtures("patience")
def test_a_folder_that_is_added_is_trusted_only_where_the_client_says_so(tmp_path: Path) -> None:
    """A client that trusts what it started with has said nothing of a folder that comes later."""

    async def story(desk: Desk) -> None:
        prepared(desk)
        talk = await client(desk)
        number = 1

        async def check(untold: bool, **trusted: object) -> None:
            nonlocal number
            number += 2
            folders(talk, removed=[folder])
            folders(talk, added=[{**folder, **trusted}])
            head = await said(desk, talk, number, workspaceFolder=folder["uri"])
            assert (head == ["Git: on branch main"]) == untold

        for path in ("/a/inner", "/added"):
            Path(desk.tree.path(path)).mkdir()
            subprocess.run(["git", "init", "-qb", "main"], cwd=desk.tree.path(path), env=ENVIRON, check=True)
            folder = {"uri": desk.uri(path), "name": "added"}
            for trusted in ({}, {"trusted": False}, {"trusted": 1}, {"trusted": "true"}, {"trusted": None}):
                await check(True, **trusted)
            await check(False, trusted=True)
            await check(True)  # once it was removed
            await check(False, trusted=True)
            folders(talk, added=[folder])  # says nothing new
            assert await said(desk, talk, number + 1, workspaceFolder=folder["uri"]) != [
                "Git: on branch main"
            ]
            folders(talk, added=[{**folder, "trusted": False}])
            assert await said(desk, talk, number + 2, workspaceFolder=folder["uri"]) == [
                "Git: on branch main"
            ]
            number += 2

    tell_story(tmp_path, story)


@pytest.mark.usefixtures("patience")
def test_an_agent_in_an_added_folder_is_not_trusted_with_its_own(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        prepared(desk)
        Path(desk.tree.path("/a/inner")).mkdir()
        talk = await client(desk)
        await desk.ask(talk, 1, "nexus/agent/spawn", agentId="one", cwd="inner")
        assert await said(desk, talk, 2, agent="one") == CLEAN
        folders(talk, added=[{"uri": desk.uri("/a/inner"), "name": "inner"}])
        await desk.folders.at(desk.uri("/a/inner")).current()
        assert await said(desk, talk, 3, agent="one") == ["Git: on branch main"]

    tell_story(tmp_path, story)


def folders(talk: Talk, *, added: list[Any] = [], removed: list[Any] = []) -> None:  # noqa: B006 - not changed
    event = {"added": added, "removed": removed}
    talk.send(tell("workspace/didChangeWorkspaceFolders", {"event": event}))


@pytest.mark.usefixtures("patience")
def test_the_prompt_is_the_same_whatever_git_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        prepared(desk)
        talk = await client(desk)
        await desk.ask(talk, 9, "nexus/session/append", messages=[{"role": "user", "content": "Hello"}])
        first = await desk.assemble(talk, 1, message="Why?")
        again = await desk.assemble(talk, 2, message="Why?")
        same_minute = first["currentMessage"] == again["currentMessage"]
        assert again["metadata"]["cached"] == same_minute
        Path(desk.tree.path("/a/other.md")).write_text("x")
        git(desk, "checkout", "-q", "-b", "feature")
        monkeypatch.setattr(working_trees, "FRESH_S", 0.0)
        moved = await desk.assemble(talk, 3, message="Why?")
        assert "on branch feature" in moved["currentMessage"]["content"]
        assert "?? other.md" in moved["currentMessage"]["content"]
        assert not moved["metadata"]["cached"]
        assert moved["systemPrompt"] == first["systemPrompt"]
        assert moved["metadata"]["prefixHash"] == first["metadata"]["prefixHash"]
        assert moved["revision"] == first["revision"]

    tell_story(tmp_path, story)


def test_a_slow_git_delays_no_turn_and_ends_with_the_daemon(tmp_path: Path) -> None:
    program, pids = tmp_path / "bin" / "git", tmp_path / "pids"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $$ >> {pids}\nexec sleep 600\n")
    program.chmod(0o755)

    async def story(desk: Desk) -> None:
        prepared(desk, f"{program.parent}:{ENVIRON['PATH']}")
        talk = await client(desk)
        await desk.assemble(talk, 1, event={"git": "mine"})  # imports
        late = ["Git: on branch main", "Changed files: not known yet, git is still looking."]
        assert await said(desk, talk, 2) == late
        assert await said(desk, talk, 3) == late  # the same look is waited for
        await wait_until(lambda: pids.exists() and pids.read_text())

    tell_story(tmp_path, story)
    (process_id,) = pids.read_text().split()  # git was started once
    process = Path("/proc", process_id)
    block_until(lambda: not process.exists())


def test_many_folders_with_a_slow_git_hold_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_trees, "LOOK_S", 600.0)
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)

    async def story(desk: Desk) -> None:
        prepared(desk, f"{program.parent}:{ENVIRON['PATH']}")
        looking, environ = [], desk.folders.load_inputs.environ
        for number in range(2 * MOST_OF_WINDOW):
            folder = desk.tree.path(f"/a/{number}")
            Path(folder).mkdir()
            looking.append(
                asyncio.ensure_future(desk.daemon.git.state(folder, trusted=True, environ=environ))
            )
        await yield_to_loop()
        async with asyncio.timeout(TIMEOUT_S):
            assert await desk.daemon.workers.run(lambda: True)
            states = await asyncio.gather(*looking)
        assert {(state.branch, state.slow) for state in states if state} == {("main", True)}

    tell_story(tmp_path, story)


@pytest.mark.usefixtures("patience")
def test_what_was_known_is_told_while_git_is_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()

    async def story(desk: Desk) -> None:
        prepared(desk, f"{slow.parent}:{ENVIRON['PATH']}")
        monkeypatch.setattr(working_trees, "FRESH_S", 60.0)
        talk = await client(desk)
        assert await said(desk, talk, 1) == NEW
        Path(desk.tree.path("/a/new.md")).unlink()
        assert await said(desk, talk, 2) == NEW  # asked a moment ago
        monkeypatch.setattr(working_trees, "FRESH_S", 0.0)
        desk.daemon.git.patience_s = 0.01
        slow.write_text("#!/bin/sh\nexec sleep 600\n")
        slow.chmod(0o755)
        assert await said(desk, talk, 3) == NEW  # the best that is known
        git(desk, "checkout", "-q", "-b", "other")
        assert await said(desk, talk, 4) == [
            "Git: on branch other",
            "Changed files: not known yet, git is still looking.",
        ]

    tell_story(tmp_path, story)


@pytest.mark.usefixtures("patience")
def test_many_turns_at_once_ask_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        prepared(desk)
        talk = await client(desk)
        sessions = [said(desk, talk, number, session=f"s{number}") for number in range(1, 9)]
        assert await asyncio.gather(*sessions) == [NEW] * 8
        git(desk, "add", "-A")
        git(desk, "commit", "-m", "second")
        monkeypatch.setattr(working_trees, "FRESH_S", 0.0)
        assert await said(desk, talk, 20) == CLEAN

    tell_story(tmp_path, story)
