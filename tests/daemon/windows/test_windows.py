"""Two windows of one daemon: what each has for itself, and what one changes for the other at once."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.server import build
from nexus_daemon.windows import folder_ledgers
from support.asking import API, FILES, Asking
from support.desk import CONFIG, GOOD, WRONG, Desk, published, tell_story, write
from support.talk import HELLO, Talk, call, tell
from support.waiting import wait_until, yield_to_loop

NEXUS = "/a/NEXUS.md"


class Windows:
    """Two clients with the folder /a of one daemon. No poll of the ledger helps them."""

    def __init__(self, desk: Desk, one: Asking, two: Asking) -> None:
        self.desk, self.one, self.two = desk, one, two

    def type(self, ask: Asking, text: str, path: str = NEXUS) -> None:
        self.desk.open(ask.talk, path, text)

    def events(self, ask: Asking, method: str) -> list[Any]:
        return [one["params"] for one in ask.talk.writer.messages() if one.get("method") == method]

    def reasons(self, ask: Asking) -> list[str]:
        return [one["reason"] for one in self.events(ask, "nexus/context/didChange")]

    def changes(self, ask: Asking) -> list[tuple[str, str, str]]:
        changes = self.events(ask, "nexus/session/didChange")
        return [(one["session"], one["reason"], one["by"]) for one in changes]


def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: Callable[[Windows], Any]) -> None:
    """Tell a story about two windows."""
    monkeypatch.setattr(folder_ledgers, "POLL_S", 1_000.0)

    async def told(desk: Desk) -> None:
        await story(Windows(desk, Asking(desk, await desk.client()), Asking(desk, await desk.client())))

    tell_story(tmp_path, told, FILES)


# ---------------------------------------------------------------- unsaved texts


def test_each_window_sees_its_own_unsaved_text_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        desk, one, two = windows.desk, windows.one, windows.two
        windows.type(one, "Mine.\n")
        windows.type(two, "Yours, and longer by some words.\n")
        for ask, own, other in ((one, "Mine.", "Yours"), (two, "Yours", "Mine.")):
            assert own in (preview := await ask("context/preview"))["text"]
            assert other not in preview["text"]
            assembled = await ask("context/assemble", session="s", message="Hi")
            assert assembled["systemPrompt"] == preview["text"]
            usage = await ask("context/usage")
            rows = {row["source"]["uri"]: row["tokens"] for row in usage["rows"] if row.get("source")}
            count = await ask("tokens/count", uris=[desk.uri(NEXUS)])
            layers = [file for layer in (await ask("context/layers"))["layers"] for file in layer["files"]]
            (tokens,) = (file["tokens"] for file in layers if file["uri"] == desk.uri(NEXUS))
            assert (count["total"] > 5) == (ask is two)
            assert rows[desk.uri(NEXUS)] == tokens
        desk.close(two.talk, NEXUS)
        assert "\nA.\n" in (await two("context/preview"))["text"]
        assert "Mine." in (await one("context/preview"))["text"]

    check(tmp_path, monkeypatch, story)


def test_a_problem_in_the_text_of_one_window_is_nobody_else_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        desk, one, two = windows.desk, windows.one, windows.two
        windows.type(one, WRONG, CONFIG)
        await wait_until(lambda: desk.shown(one.talk, CONFIG))
        windows.type(two, GOOD, CONFIG)
        await wait_until(lambda: desk.shown(two.talk, CONFIG) == [])
        assert desk.shown(one.talk, CONFIG) == ["config.unknown-key"]
        assert (await one("context/layers"))["problems"] != (await two("context/layers"))["problems"]

    check(tmp_path, monkeypatch, story)


def test_a_request_is_never_answered_with_the_context_of_another_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both count their revisions by themselves: here they have the same revision, session and message."""

    async def story(windows: Windows) -> None:
        windows.type(windows.one, "One.\n")
        windows.type(windows.two, "Two.\n")
        seen = []
        for ask in (windows.one, windows.two, windows.one, windows.two):
            assembled = await ask("context/assemble", message="Hi")
            own = "One." in assembled["systemPrompt"]
            seen.append((assembled["revision"], own, assembled["metadata"]["cached"]))
        assert seen == [(2, True, False), (2, False, False), (2, True, True), (2, False, True)]

    check(tmp_path, monkeypatch, story)


def test_the_ledger_records_what_the_window_that_appends_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the other window asked later, with another text and for another model."""

    async def story(windows: Windows) -> None:
        desk, one, two = windows.desk, windows.one, windows.two
        windows.type(one, "One.\n")
        windows.type(two, "Two.\n")
        first = await one("context/assemble", message="From one", options={"model": "gpt-4o"})
        second = await two("context/assemble", message="From two", options={"model": "gpt-4o-mini"})
        assert first["metadata"]["contextJson"] != second["metadata"]["contextJson"]
        answer = {"role": "assistant", "content": "Yes."}
        await one("session/append", messages=[{"role": "user", "content": "From one"}, answer])
        await two("session/append", messages=[{"role": "user", "content": "From two"}, answer])
        folder = desk.folders.at(desk.uri("/a"))
        assert folder.ledger is not None
        turns = list(folder.ledger.store.turns(folder.ledger.workspace, "main"))
        assert [turn.model for turn in turns] == ["gpt-4o", "gpt-4o-mini"]
        assert [turn.context for turn in turns] == [
            each["metadata"]["contextJson"] for each in (first, second)
        ]
        # each user's message has the time that its own request had
        stored = [turn.messages[-2].preamble for turn in turns]
        assert [preamble is not None for preamble in stored] == [True, True]

    check(tmp_path, monkeypatch, story)


# ---------------------------------------------------------------- sessions


def test_what_one_window_changes_in_sessions_the_other_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a window that never asked for a session."""

    async def story(windows: Windows) -> None:
        one, two = windows.one, windows.two
        await wait_until(lambda: windows.reasons(two))  # the load's announcement would take in the later ones
        user = [{"role": "user", "content": "Hello"}]
        await one("session/append", messages=user)
        await one("session/fork", to="fork")
        await one("session/rename", session="fork", to="branch")
        await one("session/delete", session="branch")
        names = ["created", "appended", "forked", "renamed", "deleted"]
        await wait_until(lambda: len(windows.changes(two)) == len(names))
        assert [(reason, by) for _, reason, by in windows.changes(two)] == [(one, "other") for one in names]
        assert [(reason, by) for _, reason, by in windows.changes(one)] == [(one, "self") for one in names]
        await wait_until(lambda: windows.reasons(two)[-1:] == ["session"])
        assert await wait_until(lambda: windows.events(two, "nexus/event/published"))
        assert len((await two("session/messages"))["messages"]) == 2  # with the one that opens it
        assert (await two("event/list"))["events"] == (await one("event/list"))["events"] != []

    check(tmp_path, monkeypatch, story)


def test_windows_that_append_at_once_keep_the_order_of_their_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        asks = [windows.one, windows.two] * 10
        texts = [f"number {number}" for number in range(len(asks))]
        for number, (ask, text) in enumerate(zip(asks, texts, strict=True)):
            messages = [{"role": "user", "content": text}]
            params = {"workspaceFolder": windows.desk.uri("/a"), "messages": messages}
            ask.talk.send(call(number, "nexus/session/append", params))
        for ask in (windows.one, windows.two):
            messages = (await ask("session/messages"))["messages"]
            assert [message["content"] for message in messages[1:]] == texts
        # one conversation in memory, with one lock
        first, second = windows.desk.daemon.windows.folders
        assert first.conversations is second.conversations
        reasons = [reason for _, reason, _ in windows.changes(windows.two)]
        assert reasons == ["created", *["appended"] * len(texts)]

    check(tmp_path, monkeypatch, story)


def test_a_compaction_of_one_window_holds_for_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        one, two = windows.one, windows.two
        for number in range(40):
            text = f"Question {number} about /src/module_{number}.py. " * 20
            messages = [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
            await one("session/append", messages=messages)
        long = await two("context/usage")
        done = await one("session/compact")
        short = await two("context/usage")
        assert short == done["usage"]
        assert short["total"] < long["total"]
        await wait_until(lambda: ("main", "compacted", "other") in windows.changes(two))
        await two("session/undoCompaction")
        assert (await one("context/usage"))["total"] == long["total"]
        await wait_until(lambda: ("main", "undone", "other") in windows.changes(one))

    check(tmp_path, monkeypatch, story)


def test_a_picked_model_is_that_of_all_windows_and_a_focus_that_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        one, two, desk = windows.one, windows.two, windows.desk
        for ask in (one, two):
            windows.type(ask, "{}", CONFIG)  # which leaves the model to the editor
        for session in ("x", "y"):
            await one("session/append", session=session, messages=[{"role": "user", "content": "Hi"}])
        await one("model/pick", session="x", model="gpt-4o-mini")
        await two("model/pick", session="y", model="claude-sonnet-4-5")
        for ask in (one, two):
            usages = [await ask("context/usage", session=session) for session in ("x", "y")]
            assert [usage["model"] for usage in usages] == ["gpt-4o-mini", "claude-sonnet-4-5"]
        folders = desk.daemon.windows.folders

        def choices() -> list[str | None]:
            return [None if one.choice is None else one.choice.model for one in folders]

        await wait_until(lambda: choices() == ["claude-sonnet-4-5"] * 2)
        assert (await one("session/focus", session="x"))["model"] == "gpt-4o-mini"
        assert choices() == ["gpt-4o-mini", "claude-sonnet-4-5"]
        await two("model/pick", session="x", model="gpt-4o")  # which the first window is viewing
        await wait_until(lambda: choices() == ["gpt-4o", "gpt-4o"])

    check(tmp_path, monkeypatch, story)


# ---------------------------------------------------------------- agents


def test_an_agent_of_one_window_is_an_agent_of_the_other_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        one, two = windows.one, windows.two
        await one("agent/spawn", agentId="api", cwd="api")
        await wait_until(lambda: two.told() == [("api", "spawned")])
        assert await two.ids() == ["api"]
        await two("agent/spawn", agentId="db", cwd="api", parent="api")
        await wait_until(lambda: one.told()[1:] == [("db", "spawned")])
        code, message = await one.refused("agent/spawn", agentId="db", cwd="web")
        folder = windows.desk.tree.path("/a")
        remedy = "Choose another name, or dispose of that one."
        assert (code, message) == ("agent-exists", f"Agent 'db' already exists in {folder}. {remedy}")
        await one("agent/message", source="main", target="api", content="Hello")
        await wait_until(lambda: ("api", "message") in two.told())
        await one("agent/dispose", agentId="api")
        await wait_until(lambda: two.told()[-2:] == [("db", "disposed"), ("api", "disposed")])
        assert await two.ids() == []
        await one("agent/spawn", agentId="api", cwd="web")
        await wait_until(lambda: two.told()[-1:] == [("api", "spawned")])
        assert [each for each in one.told() if each[1] != "message"] == [
            each for each in two.told() if each[1] != "message"
        ]
        names = [reason for _, reason in two.told()]
        assert (names.count("spawned"), names.count("disposed")) == (3, 2)

    check(tmp_path, monkeypatch, story)


def test_the_files_of_an_agent_of_one_window_are_checked_in_the_other_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = "/a/web/.nexus3/config.json"

    def is_wrong(desk: Desk, ask: Asking, path: str) -> bool:
        return desk.shown(ask.talk, path) == ["config.unknown-key"]

    async def story(windows: Windows) -> None:
        one, two, desk = windows.one, windows.two, windows.desk
        for path in (API, web):
            write(desk, path, WRONG)
        for agent, path in (("api", API), ("web", web)):
            await one("agent/spawn", agentId=agent, cwd=agent)
            await wait_until(partial(is_wrong, desk, two, path))
        await one("agent/dispose", agentId="web")
        await wait_until(lambda: desk.shown(two.talk, web) == [])

    check(tmp_path, monkeypatch, story)


def test_an_agent_has_the_context_of_the_window_that_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "/a/api/AGENTS.md"

    async def story(windows: Windows) -> None:
        one, two = windows.one, windows.two
        await one("agent/spawn", agentId="api", cwd="api")
        windows.type(two, "Unsaved rules.\n", rules)
        assert "Unsaved rules." in (await two("context/preview", agent="api"))["text"]
        assert "Rules of the api." in (await one("context/preview", agent="api"))["text"]
        windows.type(two, '{"colour": "red"}', API)
        await wait_until(lambda: windows.desk.shown(two.talk, API) == ["config.unknown-key"])
        assert windows.desk.shown(one.talk, API) is None

    check(tmp_path, monkeypatch, story)


# ---------------------------------------------------------------- knowledge


def test_windows_share_one_index_and_each_searches_its_own_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        desk, one, two = windows.desk, windows.one, windows.two
        settings = '{"memory": {"knowledge": {"paths": %s}}}'
        both, narrow = settings % '["docs", "notes"]', settings % '["notes"]'
        write(desk, "/a/docs/a.md", "# Red\nRed roses.\n")
        write(desk, "/a/notes/b.md", "# Red\nRed tulips.\n")
        for ask in (one, two):
            windows.type(ask, both, CONFIG)

        async def found(ask: Asking, query: str) -> list[str]:
            passages = (await ask("knowledge/query", query=query))["passages"]
            return sorted(Path(passage["uri"]).name for passage in passages)

        async def finds(ask: Asking, query: str, *names: str) -> None:
            async def probe() -> bool:
                return await found(ask, query) == list(names)

            await wait_until(probe)

        for ask in (one, two):
            await finds(ask, "red", "a.md", "b.md")
        desk.open(two.talk, CONFIG, narrow)  # and not saved
        await finds(two, "red", "b.md")
        write(desk, "/a/notes/c.md", "# Red\nRed poppies.\n")
        for ask, names in ((two, ["b.md", "c.md"]), (one, ["a.md", "b.md", "c.md"])):
            await finds(ask, "red", *names)
        two.talk.link.eof_received()
        await wait_until(lambda: len(desk.daemon.windows.clients) == 1)
        Path(desk.tree.path("/a/docs/a.md")).unlink()
        await finds(one, "red", "b.md", "c.md")

    check(tmp_path, monkeypatch, story)


# ---------------------------------------------------------------- leaving and hanging


@pytest.mark.parametrize("how", ["end", "close"])
def test_a_window_that_leaves_takes_only_what_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def story(windows: Windows) -> None:
        desk, one, two = windows.desk, windows.one, windows.two
        await one("agent/spawn", agentId="api", cwd="api")
        await one("session/append", messages=[{"role": "user", "content": "Hi"}])
        await two("context/assemble", message="Half a turn")
        await two.ids()
        windows.type(two, "Yours.\n")
        only = "/home/only/NEXUS.md"
        write(desk, only, "Only.\n")
        added = {"added": [{"uri": desk.uri("/home/only"), "name": "only"}], "removed": []}
        two.talk.send(tell("workspace/didChangeWorkspaceFolders", {"event": added}))
        await two("context/preview", workspaceFolder=desk.uri("/home/only"))
        mine, *others = desk.daemon.windows.folders
        assert len(others) == 2
        two.talk.send(tell("exit")) if how == "end" else two.talk.link.eof_received()
        await wait_until(lambda: desk.daemon.windows.folders == (mine,))
        assert all(folder.reload.cancelled for folder in others)
        only_directory = desk.tree.path("/home/only")
        await wait_until(lambda: only_directory not in desk.daemon.watcher.watched[-1])
        assert desk.tree.path("/a") in desk.daemon.watcher.watched[-1]
        assert desk.daemon.windows.clients == {desk.connection(one.talk)}
        assert await one.ids() == ["api"]
        assert len((await one("session/messages"))["messages"]) == 2
        assert "\nA.\n" in (await one("context/preview"))["text"]
        later = Asking(desk, await desk.client("/a", "/home/only"))
        _, again, anew = desk.daemon.windows.folders
        assert again.conversations is mine.conversations
        assert anew.conversations not in [folder.conversations for folder in others]
        assert await later.ids() == ["api"]
        assert "\nA.\n" in (await later("context/preview"))["text"]

    check(tmp_path, monkeypatch, story)


def test_a_window_may_leave_at_any_moment_of_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its folder and its agents are being loaded; nothing may be left to asyncio to complain about."""

    async def story(windows: Windows) -> None:
        desk, one = windows.desk, windows.one
        await one("agent/spawn", agentId="api", cwd="api")
        staying = desk.daemon.windows.folders
        for turns in (*range(8), *range(10, 400, 30)):
            talk = Talk(partial(build, lambda: desk.daemon))
            listed = [{"uri": desk.uri("/a"), "name": "a"}]
            talk.send({**HELLO, "params": {**HELLO["params"], "workspaceFolders": listed}})
            desk.open(talk, API, WRONG)
            await yield_to_loop(turns)
            talk.link.eof_received()
            await wait_until(lambda: desk.daemon.windows.folders == staying)
        assert await one.ids() == ["api"]

    check(tmp_path, monkeypatch, story)


def test_a_window_that_reads_nothing_delays_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(windows: Windows) -> None:
        desk, one, two = windows.desk, windows.one, windows.two
        two.talk.writer.stuck = True
        before = len(windows.events(one, "nexus/context/didChange"))
        for number in range(30):
            text = f"number {number} " * 2_000
            await one("session/append", messages=[{"role": "user", "content": text}])
            desk.open(one.talk, CONFIG, WRONG if number % 2 else GOOD)
        windows.type(one, "Mine.\n")
        await wait_until(lambda: windows.events(one, "nexus/context/didChange")[before:])
        assert "Mine." in (await one("context/preview"))["text"]
        assert len(published(one.talk)) > 1
        two.talk.writer.stuck = False
        two.talk.read()
        await yield_to_loop(5)
        assert len((await two("session/messages"))["messages"]) == 31

    check(tmp_path, monkeypatch, story)


# ---------------------------------------------------------------- status


def test_the_status_names_the_windows_and_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(windows: Windows) -> None:
        desk, one, two = windows.desk, windows.one, windows.two
        await one("agent/spawn", agentId="api", cwd="api")
        await wait_until(two.told)
        await two("session/append", messages=[{"role": "user", "content": "Hi"}])
        await two.ids()
        status = await one("status")
        uri = desk.uri("/a")
        assert status["clients"] == [
            {"name": "editor", "folders": [uri], "running": 1, "unreadBytes": 0},
            {"name": "editor (2)", "folders": [uri], "running": 0, "unreadBytes": 0},
        ]
        named = [(each["uri"], each["client"]) for each in status["folders"]]
        assert named == [(uri, "editor"), (uri, "editor (2)")]
        assert (status["sessions"], status["agents"], status["connections"]) == (1, 1, 2)
        assert status["rssBytes"] == status["memory"] > 0
        assert status["uptimeSeconds"] == status["uptime"]
        assert status["pid"] > 0

    check(tmp_path, monkeypatch, story)
