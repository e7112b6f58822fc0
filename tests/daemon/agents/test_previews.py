"""Documents that only an agent would read, while it does not live: checked as they are typed."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_context.agents import AgentPool
from nexus_daemon.agents.registry import AgentRegistry
from nexus_daemon.workspace.agent_documents import named_document
from nexus_daemon.workspace.folders import MOST_PREVIEWS
from nexus_daemon.workspace.publish import Publisher
from support.asking import API, Asking, check, ended
from support.desk import CONFIG, TIMEOUT_S, Desk, published, tell_story, write
from support.talk import Message, Talk, call, tell
from support.waiting import wait_until, yield_to_loop

ZOE = "/a/.nexus3/AGENT.zoe.md"
API_ZOE = "/a/api/.nexus3/AGENT.zoe.md"
BROKEN = "You are Zoe.\n@missing.md\n"
FIXED = "You are Zoe.\n"
IMPORT = ["prompt.import-missing"]
CONFIGURED = '{"agents": {"zoe": {"cwd": "api"}}}'


def edit(desk: Desk, talk: Talk, path: str, version: int, text: str) -> None:
    document = {"uri": desk.uri(path), "version": version}
    talk.send(tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}))


async def shows(desk: Desk, talk: Talk, path: str, codes: list[str] | None) -> None:
    await wait_until(lambda: desk.shown(talk, path) == codes)


async def quiet(desk: Desk, talk: Talk) -> None:
    """Until all that is under way for folders and their agents has been done."""
    await talk.settle()
    for folder in tuple(desk.daemon.windows.folders):
        if folder.opening_agents is not None:
            await asyncio.wait([folder.opening_agents])
        await folder.current()
        if folder.agents is not None:
            await folder.agents.current()
        if not folder.programs._queue.is_cancelled:  # noqa: SLF001 - nobody else waits for it
            await folder.programs._queue.settled()  # noqa: SLF001


def versions(desk: Desk, talk: Talk, path: str) -> list[int | None]:
    said = [one["params"] for one in published(talk) if one["params"]["uri"] == desk.uri(path)]
    return [one.get("version") for one in said]


# ---------------------------------------------------------------- typing


def test_a_definition_is_checked_as_it_is_typed(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, ZOE, BROKEN)
        desk.open(ask.talk, ZOE, FIXED)  # unsaved text counts
        await shows(desk, ask.talk, ZOE, [])
        edit(desk, ask.talk, ZOE, 2, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        edit(desk, ask.talk, ZOE, 3, FIXED)
        await shows(desk, ask.talk, ZOE, [])
        edit(desk, ask.talk, ZOE, 4, FIXED)  # each version is answered for
        await wait_until(lambda: versions(desk, ask.talk, ZOE)[-1:] == [4])
        edit(desk, ask.talk, ZOE, 5, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        desk.close(ask.talk, ZOE)
        await shows(desk, ask.talk, ZOE, [])
        await quiet(desk, ask.talk)
        assert desk.shown(ask.talk, ZOE) == []
        assert (await ask.ids(), ask.told()) == ([], [])
        assert len(desk.daemon.windows.folders) == 1

    check(tmp_path, story)


def test_what_is_typed_while_a_document_is_looked_at_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in no snapshot's watch yet."""
    look = AgentPool.view_as
    looked: list[str | None] = []

    async def story(desk: Desk, ask: Asking) -> None:
        loop = asyncio.get_running_loop()
        await desk.daemon.watcher.close()  # which looks at everything once more, now and then

        def slow(self: AgentPool, agent_id: str | None = None, **asked: Any) -> Any:
            made = look(self, agent_id, **asked)
            looked.append(agent_id)
            if len(looked) == 1:
                typed = asyncio.run_coroutine_threadsafe(typing(), loop)
                typed.result(10)
            return made

        async def typing() -> None:
            edit(desk, ask.talk, ZOE, 2, BROKEN)

        monkeypatch.setattr(AgentPool, "view_as", slow)
        desk.open(ask.talk, ZOE, FIXED)
        await shows(desk, ask.talk, ZOE, IMPORT)
        assert looked == ["zoe", "zoe"]

    check(tmp_path, story)


def test_other_files_are_followed(tmp_path: Path) -> None:
    """What it imports, on the disk and typed, and that of its folder's settings which is about it."""
    missing = "/a/.nexus3/missing.md"

    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        write(desk, missing, "There.\n")
        desk.folders.changed([desk.tree.path(missing)])
        await shows(desk, ask.talk, ZOE, [])
        desk.open(ask.talk, missing, "@nowhere.md\n")  # which the folder does not read either
        await shows(desk, ask.talk, missing, IMPORT)
        desk.close(ask.talk, missing)
        await shows(desk, ask.talk, missing, [])
        desk.open(ask.talk, missing, "@nowhere.md\n")
        await shows(desk, ask.talk, missing, IMPORT)
        desk.close(ask.talk, ZOE)
        await shows(desk, ask.talk, missing, [])

    check(tmp_path, story)


def test_the_settings_say_where_it_would_work(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, API_ZOE, FIXED)
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        desk.open(ask.talk, CONFIG, CONFIGURED)  # there it has another definition
        await shows(desk, ask.talk, ZOE, [])
        edit(desk, ask.talk, CONFIG, 2, "{}")
        await shows(desk, ask.talk, ZOE, IMPORT)

    check(tmp_path, story)


@pytest.mark.parametrize(
    "zoe",
    ['{"cwd": "nowhere"}', '{"parent": "nobody"}', '{"role": "manager", "parent": "hand"}'],
)
@pytest.mark.parametrize("path", [ZOE, API_ZOE])
def test_who_could_not_be_started_is_checked_all_the_same(tmp_path: Path, zoe: str, path: str) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, CONFIG, f'{{"agents": {{"hand": {{"role": "worker"}}, "zoe": {zoe}}}}}')
        next(iter(desk.daemon.windows.folders)).reload.request("disk")
        assert await ask.refused("agent/spawn", agentId="zoe")
        desk.open(ask.talk, path, BROKEN)
        await shows(desk, ask.talk, path, IMPORT)
        edit(desk, ask.talk, path, 2, FIXED)
        await shows(desk, ask.talk, path, [])

    check(tmp_path, story)


def test_a_directory_that_comes_to_be_is_noticed(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, CONFIG, '{"agents": {"zoe": {"cwd": "new"}}}')
        next(iter(desk.daemon.windows.folders)).reload.request("disk")
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        write(desk, "/a/new/.nexus3/AGENT.zoe.md", FIXED)
        desk.folders.changed([desk.tree.path("/a/new")])
        await shows(desk, ask.talk, ZOE, [])
        shutil.rmtree(desk.tree.path("/a/new"))
        desk.folders.changed([desk.tree.path("/a/new")])
        await shows(desk, ask.talk, ZOE, IMPORT)

    check(tmp_path, story)


WRONG = {
    "hidden text": ("You are Zoe.\u200b\u200b\u200b\n", "prompt.hidden-text"),
    "a secret": ("The key is sk-ant-api03-" + "aB3xY9" * 12 + "\n", "prompt.secret"),
}


@pytest.mark.parametrize(("text", "code"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("path", [ZOE, API_ZOE, "/home/.nexus3/AGENT.zoe.md"])
def test_all_that_is_wrong_in_a_prompts_file_is_told(tmp_path: Path, path: str, text: str, code: str) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, path, text)
        await shows(desk, ask.talk, path, [code])
        edit(desk, ask.talk, path, 2, FIXED)
        await shows(desk, ask.talk, path, [])

    check(tmp_path, story)


# ---------------------------------------------------------------- it is started, and ends


def test_it_is_the_live_agents_once_that_is_started(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, API_ZOE, FIXED)
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        before = len(versions(desk, ask.talk, ZOE))
        await ask("agent/spawn", agentId="zoe")
        assert desk.shown(ask.talk, ZOE) == IMPORT
        await ask("agent/dispose", agentId="zoe")
        assert desk.shown(ask.talk, ZOE) == IMPORT
        assert len(versions(desk, ask.talk, ZOE)) == before  # it was not taken back meanwhile
        await ask("agent/spawn", agentId="zoe", cwd="api")
        assert desk.shown(ask.talk, ZOE) == []  # what it has is another
        await ask("agent/dispose", agentId="zoe")
        assert desk.shown(ask.talk, ZOE) == IMPORT
        assert [reason for _, reason in ask.told()] == ["spawned", "disposed", "spawned", "disposed"]

    check(tmp_path, story)


def test_it_works_where_its_parent_does(tmp_path: Path) -> None:
    """Which is known once that lives."""

    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, CONFIG, '{"agents": {"lead": {"role": "manager"}, "zoe": {"parent": "lead"}}}')
        write(desk, API_ZOE, FIXED)
        next(iter(desk.daemon.windows.folders)).reload.request("disk")
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        await desk.daemon.watcher.close()  # which looks at everything once more, now and then
        await ask("agent/spawn", agentId="lead", cwd="api")
        assert desk.shown(ask.talk, ZOE) == []
        assert await ask.ids() == ["lead"]
        await ask("agent/dispose", agentId="lead")
        assert desk.shown(ask.talk, ZOE) == IMPORT

    check(tmp_path, story)


# ---------------------------------------------------------------- SOUL.<agent>.md


@pytest.mark.parametrize("name", ["SOUL.zoe.md", "IDENTITY.zoe.md", "CONTEXT.zoe.md"])
@pytest.mark.parametrize("directory", ["/a/.nexus3", "/a/api/.nexus3", "/home/.nexus3", "/lone/.nexus3"])
def test_what_nobody_reads_says_so(tmp_path: Path, directory: str, name: str) -> None:
    path = f"{directory}/{name}"

    def severity(desk: Desk, talk: Talk) -> int:
        said = [one["params"] for one in published(talk) if one["params"]["uri"] == desk.uri(path)]
        found: int = said[-1]["diagnostics"][0]["severity"]
        return found

    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, path, "Be brief.\n")
        await shows(desk, ask.talk, path, ["layer.no-variant"])
        assert severity(desk, ask.talk) == 3
        write(desk, f"{directory}/AGENT.zoe.md", FIXED)
        desk.folders.changed([desk.tree.path(f"{directory}/AGENT.zoe.md")])
        await wait_until(lambda: severity(desk, ask.talk) == 2)
        edit(desk, ask.talk, path, 2, "")
        await wait_until(lambda: versions(desk, ask.talk, path)[-1:] == [2])
        assert desk.shown(ask.talk, path) == ["layer.no-variant"]
        desk.close(ask.talk, path)
        await shows(desk, ask.talk, path, [])

    check(tmp_path, story)


def test_what_the_folders_own_agent_would_read_is_said(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, "/a/.nexus3/SOUL.main.md", "Be brief.\n")
        await shows(desk, ask.talk, "/a/.nexus3/SOUL.main.md", ["layer.no-variant"])
        (said,) = published(ask.talk)[-1]["params"]["diagnostics"]
        assert said["message"].endswith("Write it into SOUL.md.")

    check(tmp_path, story)


# ---------------------------------------------------------------- what agents of the settings would read


READ = {
    "instructions": ("/a/api/v1/AGENTS.md", BROKEN, IMPORT),
    "on the way": ("/a/api/AGENTS.md", BROKEN, IMPORT),
    "settings": ("/a/api/v1/.nexus3/config.json", '{"colour": "red"}', ["config.unknown-key"]),
    "a bootstrap file": ("/a/api/.nexus3/SOUL.md", BROKEN, IMPORT),
}


@pytest.mark.parametrize(("path", "text", "codes"), READ.values(), ids=READ)
def test_what_an_agent_of_the_settings_would_read_is_checked(
    tmp_path: Path, path: str, text: str, codes: list[str]
) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/api/v1/x", "")
        write(desk, CONFIG, '{"agents": {"zoe": {"cwd": "api/v1", "role": "manager"}}}')
        (folder,) = desk.daemon.windows.folders
        folder.reload.request("disk")
        await folder.current()
        desk.open(ask.talk, path, text)
        await shows(desk, ask.talk, path, codes)
        edit(desk, ask.talk, path, 2, "{}")
        await shows(desk, ask.talk, path, [])
        edit(desk, ask.talk, path, 3, text)
        await shows(desk, ask.talk, path, codes)
        alone = ".nexus3" in path  # it is one of its own directory, too, as it would be without the agent
        assert len(desk.daemon.windows.folders) == 1 + alone
        desk.open(ask.talk, CONFIG, "{}")  # now no agent would read it
        await quiet(desk, ask.talk)
        await shows(desk, ask.talk, path, codes)  # it is checked in its own directory
        desk.close(ask.talk, CONFIG)
        await shows(desk, ask.talk, path, codes)
        desk.close(ask.talk, path)
        await shows(desk, ask.talk, path, [])

    check(tmp_path, story)


def test_an_agent_that_comes_into_the_settings_has_its_documents_checked(tmp_path: Path) -> None:
    path = "/a/api/AGENTS.md"

    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, path, BROKEN)
        await quiet(desk, ask.talk)
        assert [folder.agents for folder in desk.daemon.windows.folders] == [None, None], (
            "one is its own directory"
        )
        desk.open(ask.talk, CONFIG, CONFIGURED)
        await shows(desk, ask.talk, path, IMPORT)

    check(tmp_path, story)


@pytest.mark.parametrize("path", ["/a/AGENTS.md", "/a/api/app.py", "/a/api/notes.md", "/a/web/AGENTS.md"])
def test_what_no_agent_of_the_settings_would_read_makes_nothing(tmp_path: Path, path: str) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, CONFIG, CONFIGURED)
        (folder,) = desk.daemon.windows.folders
        folder.reload.request("disk")
        await folder.current()
        desk.open(ask.talk, path, BROKEN)
        await quiet(desk, ask.talk)
        assert folder.agents is None

    check(tmp_path, story)


# ---------------------------------------------------------------- whose it is


@pytest.mark.parametrize(
    "path",
    ["/a/AGENT.zoe.md", "/a/docs/AGENT.zoe.md", "/a/.nexus3/AGENT.md", "/a/.nexus3/AGENT.main.md", "/a/x.md"],
)
def test_other_documents_make_nothing(tmp_path: Path, path: str) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, path, BROKEN)
        await quiet(desk, ask.talk)
        assert [folder.agents for folder in desk.daemon.windows.folders] == [None]

    check(tmp_path, story)


def test_a_document_of_no_folder_is_one_of_its_own(tmp_path: Path) -> None:
    path = "/lone/.nexus3/AGENT.zoe.md"

    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, path, BROKEN)
        await shows(desk, ask.talk, path, IMPORT)
        assert len(desk.daemon.windows.folders) == 2
        desk.close(ask.talk, path)
        await shows(desk, ask.talk, path, [])
        assert len(desk.daemon.windows.folders) == 1

    check(tmp_path, story)


def moved(**event: object) -> Message:
    params = {"event": {"added": [], "removed": [], **event}}
    return tell("workspace/didChangeWorkspaceFolders", params)


def test_a_folder_that_leaves_and_comes(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        folder = {"uri": desk.uri("/a"), "name": "a"}
        for path in (ZOE, API_ZOE):
            desk.open(ask.talk, path, BROKEN)
            await shows(desk, ask.talk, path, IMPORT)
        ask.talk.send(moved(removed=[folder]))
        await quiet(desk, ask.talk)
        assert {one.path for one in desk.daemon.windows.folders} == {
            desk.tree.path("/a")
        }  # of the open documents
        await shows(desk, ask.talk, ZOE, IMPORT)
        ask.talk.send(moved(added=[folder]))
        await quiet(desk, ask.talk)
        for path in (ZOE, API_ZOE):
            edit(desk, ask.talk, path, 2, FIXED)
            await shows(desk, ask.talk, path, [])

    check(tmp_path, story)


@pytest.mark.parametrize("turns", [0, 1, 3, 10])
def test_a_folder_that_is_removed_while_a_document_is_looked_at(tmp_path: Path, turns: int) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, ZOE, BROKEN)
        await yield_to_loop(turns)
        desk.close(ask.talk, ZOE)
        ask.talk.send(moved(removed=[{"uri": desk.uri("/a"), "name": "a"}]))
        await ask.talk.settle()
        assert len(desk.daemon.windows.folders) == 0
        await ended(desk)  # waits for the folder's end, too
        assert not desk.shown(ask.talk, ZOE)

    check(tmp_path, story)


def test_a_folder_that_is_removed_before_its_agents_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here by a ledger that does not answer."""

    async def story(desk: Desk, ask: Asking) -> None:
        (folder,) = desk.daemon.windows.folders
        asked, never = asyncio.Event(), asyncio.Event()

        async def silent(*_: object) -> None:
            asked.set()
            await never.wait()

        monkeypatch.setattr(desk.daemon.ledgers, "of", silent)
        desk.open(ask.talk, ZOE, BROKEN)
        await asyncio.wait_for(asked.wait(), TIMEOUT_S)
        desk.close(ask.talk, ZOE)
        ask.talk.send(moved(removed=[{"uri": desk.uri("/a"), "name": "a"}]))
        await ask.talk.settle()
        opening = folder.opening_agents
        assert opening is not None
        await wait_until(opening.cancelled)

    check(tmp_path, story)


def test_a_document_that_was_open_before_its_folder(tmp_path: Path) -> None:
    """As with an editor that restores its documents first."""

    async def told(desk: Desk) -> None:
        write(desk, ZOE, FIXED)
        talk = await desk.client("/lone")
        desk.open(talk, ZOE, BROKEN)
        talk.send(moved(added=[{"uri": desk.uri("/a"), "name": "a"}]))
        await shows(desk, talk, ZOE, IMPORT)

    tell_story(tmp_path, told)


def test_two_clients_with_one_document(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        other = await desk.client()
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        await quiet(desk, ask.talk)
        assert desk.shown(other, ZOE) is None  # it is not open there
        desk.open(other, ZOE, BROKEN)
        await shows(desk, other, ZOE, IMPORT)
        desk.close(ask.talk, ZOE)
        await shows(desk, ask.talk, ZOE, [])
        await quiet(desk, ask.talk)
        assert desk.shown(other, ZOE) == IMPORT
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        other.link.eof_received()  # without a word
        await ask.talk.settle()
        edit(desk, ask.talk, ZOE, 2, FIXED)
        await shows(desk, ask.talk, ZOE, [])

    check(tmp_path, story)


def test_a_client_that_goes_without_a_word_takes_its_documents_along(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        other = await desk.client()
        desk.open(other, ZOE, BROKEN)
        await shows(desk, other, ZOE, IMPORT)
        mine, others = desk.daemon.windows.folders
        assert others.agents is not None
        assert others.agents.view_reading(desk.tree.path(ZOE)) is not None
        other.link.eof_received()
        await wait_until(lambda: desk.daemon.windows.folders == (mine,))
        await quiet(desk, ask.talk)
        assert desk.shown(ask.talk, ZOE) is None  # a document of one window is nobody else's business
        assert len(desk.daemon.windows.clients) == 1

    check(tmp_path, story)


def test_a_file_beside_it_that_no_live_agent_reads_is_one_of_its_own_directory(tmp_path: Path) -> None:
    """In whichever order they are opened, and whoever was looked at before."""
    soul = "/a/api/.nexus3/SOUL.md"

    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, API_ZOE, BROKEN)
        await shows(desk, ask.talk, API_ZOE, IMPORT)
        await ask("context/preview", viewAs={"cwd": "api"})
        desk.open(ask.talk, soul, BROKEN)
        await shows(desk, ask.talk, soul, IMPORT)
        assert {one.path for one in desk.daemon.windows.folders} == {
            desk.tree.path(path) for path in ("/a", "/a/api")
        }

    check(tmp_path, story)


def test_an_agent_that_ends_while_a_file_that_nobody_reads_is_open(tmp_path: Path) -> None:
    """What it said is taken back before anybody looks after that file."""

    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, API, '{"colour": "red"}')
        desk.open(ask.talk, "/a/.nexus3/notes.md", "Notes.\n")
        await ask("agent/spawn", agentId="api", cwd="api")
        assert desk.shown(ask.talk, API) == ["config.unknown-key"]
        await desk.daemon.watcher.close()
        await ask("agent/dispose", agentId="api")
        assert desk.shown(ask.talk, API) == []

    check(tmp_path, story)


def test_features_work_in_it(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/.nexus3/missing.md", "There.\n")
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, [])
        ask.talk.send(call(1, "textDocument/codeLens", {"textDocument": {"uri": desk.uri(ZOE)}}))
        first, *_ = (await desk.reply(ask.talk, 1))["result"]
        assert "tokens" in first["command"]["title"]

    check(tmp_path, story)


# ---------------------------------------------------------------- what it costs


class Counted:
    """How often functions were called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: dict[str, int] = {}
        self._monkeypatch = monkeypatch

    def watch(self, owner: type, name: str) -> None:
        call: Callable[..., Any] = getattr(owner, name)
        self.calls[name] = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return call(*args, **kwargs)

        self._monkeypatch.setattr(owner, name, counted)

    def again(self) -> None:
        self.calls = dict.fromkeys(self.calls, 0)


@pytest.mark.parametrize("number", [1, 5])
def test_a_keystroke_in_the_settings_costs_the_same_with_any_number_of_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    counted = Counted(monkeypatch)

    async def story(desk: Desk, ask: Asking) -> None:
        for index in range(number):
            path = f"/a/.nexus3/AGENT.z{index}.md"
            desk.open(ask.talk, path, BROKEN)
            await shows(desk, ask.talk, path, IMPORT)
        desk.open(ask.talk, CONFIG, '{"tools": ')
        await quiet(desk, ask.talk)
        await desk.daemon.watcher.close()  # which looks at everything once more, now and then
        for owner, name in ((Publisher, "swap"), (AgentPool, "view_as"), (AgentRegistry, "_publish")):
            counted.watch(owner, name)
        edit(desk, ask.talk, CONFIG, 2, '{"tools": {')
        await quiet(desk, ask.talk)
        assert counted.calls["view_as"] == 0  # it stays broken: nothing that an agent has is another
        assert counted.calls["swap"] <= 1 + counted.calls["_publish"]  # of the folder, and of all documents
        counted.again()
        edit(desk, ask.talk, CONFIG, 3, '{"tools": {"disabled": ["rm"]}}')
        await quiet(desk, ask.talk)
        assert counted.calls["view_as"] == number
        assert counted.calls["swap"] <= 1 + counted.calls["_publish"]

    check(tmp_path, story)


def test_a_document_that_is_typed_in_has_no_other_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)

    async def story(desk: Desk, ask: Asking) -> None:
        for name in ("ann", "zoe"):
            desk.open(ask.talk, f"/a/.nexus3/AGENT.{name}.md", BROKEN)
            await shows(desk, ask.talk, f"/a/.nexus3/AGENT.{name}.md", IMPORT)
        await desk.daemon.watcher.close()  # which looks at everything once more, now and then
        await quiet(desk, ask.talk)
        counted.watch(AgentPool, "view_as")
        edit(desk, ask.talk, ZOE, 2, FIXED)
        await quiet(desk, ask.talk)
        assert desk.shown(ask.talk, ZOE) == []
        assert counted.calls == {"view_as": 1}
        await ask("agent/list")
        assert counted.calls == {"view_as": 1}

    check(tmp_path, story)


def test_documents_are_looked_at_up_to_a_number(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        paths = [f"/a/.nexus3/AGENT.z{index}.md" for index in range(MOST_PREVIEWS + 2)]
        for path in paths:
            desk.open(ask.talk, path, BROKEN)
        await quiet(desk, ask.talk)
        await shows(desk, ask.talk, paths[0], IMPORT)
        assert [desk.shown(ask.talk, path) for path in paths[MOST_PREVIEWS:]] == [None, None]
        desk.close(ask.talk, paths[0])
        await shows(desk, ask.talk, paths[MOST_PREVIEWS], IMPORT)

    check(tmp_path, story)


def test_nothing_is_written_for_it(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, ZOE, BROKEN)
        await shows(desk, ask.talk, ZOE, IMPORT)
        (folder,) = desk.daemon.windows.folders
        assert folder.ledger is not None
        ledger, workspace = folder.ledger.store, folder.ledger.workspace
        version = ledger.version()
        edit(desk, ask.talk, ZOE, 2, FIXED)
        await shows(desk, ask.talk, ZOE, [])
        assert ledger.version() == version
        assert (list(ledger.agents.running(workspace)), list(ledger.sessions(workspace))) == ([], [])

    check(tmp_path, story)


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("AGENT.zoe.md", "zoe"),
        ("SOUL.a.b.md", "a.b"),
        ("AGENT.main.md", None),
        ("AGENT.md", None),
        ("README.zoe.md", None),
        ("AGENT.zoe.txt", None),
        ("AGENT..md", None),
    ],
)
def test_what_is_a_document_of_one_agent(name: str, agent: str | None) -> None:
    found = named_document(f"/a/.nexus3/{name}")
    assert (found and found.agent) == agent
