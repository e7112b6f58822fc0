"""The name of an agent that has ended: who asks with it is told so, and does not act as the folder's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.asking import Asking, again, check, ended
from support.desk import Desk, write
from support.talk import call

REMEDY = "Leave out `agent` to use the folder's own agent, or start that agent again."
HAS_ENDED = ("unknown-agent", f"Agent 'api' has ended. {REMEDY}")
CONVERSATION = (
    "Agent 'api' has ended. Set `agent` to `main` to continue its conversation as the folder's own, or start "
    "the agent again."
)
BY_AGENT = ("context/assemble", "context/usage", "context/preview", "context/layers", "config/effective")
SAID = [{"role": "user", "content": "Never log a secret."}]


async def refused(ask: Asking, name: str, methods: Sequence[str] = BY_AGENT) -> set[tuple[str, str]]:
    """What all requests of an agent say: of one that is nobody's each says the same."""
    message = {"context/assemble": {"message": "Go on."}}
    return {await ask.refused(method, agent=name, **message.get(method, {})) for method in methods}


async def start_and_end(ask: Asking, name: str = "api") -> None:
    await ask("agent/spawn", agentId=name, cwd="api")
    await ask("agent/dispose", agentId=name)


def test_who_asks_for_an_agent_that_has_ended_is_told_so(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await start_and_end(ask)
        assert await refused(ask, "api") == {HAS_ENDED}
        assert await ask.refused("context/assemble", agent="api", session="plan", message="x") == HAS_ENDED
        assert (await ask("context/assemble", message="Go on."))["session"] == "main"
        made = await ask("context/assemble", agent="reviewer", message="Go on.")  # only the client knows it
        assert (made["session"], made["agent"], made["role"]) == ("main", "reviewer", "unified")
        await ask("agent/spawn", agentId="api", cwd="web")
        assert (
            "Rules of the web." in (await ask("context/assemble", agent="api", message="x"))["systemPrompt"]
        )

    check(tmp_path, story)


def test_who_ends_with_its_parent_has_ended_too(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="lead", cwd="web", role="manager")
        await ask("agent/spawn", agentId="api", cwd="api", parent="lead")
        await ask("agent/dispose", agentId="lead")
        assert await refused(ask, "api") == {HAS_ENDED}

    check(tmp_path, story)


def test_while_an_agent_ends_a_turn_is_its_own_or_refused(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api")
        folder = {"workspaceFolder": desk.uri("/a")}
        turns = [
            call(number, "nexus/context/assemble", {**folder, "agent": "api", "message": "Go on."})
            for number in range(1, 7)
        ]
        ask.talk.send(*turns[:3], call(9, "nexus/agent/dispose", {**folder, "agentId": "api"}), *turns[3:])
        assert (await desk.reply(ask.talk, 9))["result"] == {"disposed": ["api"]}
        for number in range(1, 7):
            reply = await desk.reply(ask.talk, number)
            told = reply.get("error", {}).get("message"), reply.get("result", {}).get("session")
            assert told in ((None, "agent:api"), (HAS_ENDED[1], None))
        assert await refused(ask, "api") == {HAS_ENDED}

    check(tmp_path, story)


def test_it_has_ended_for_another_window_and_for_the_next_daemon(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        before, there = await again(desk)  # a window that saw it live
        await ask("agent/spawn", agentId="api", cwd="api")
        assert (await there("context/assemble", agent="api", message="x"))["session"] == "agent:api"
        await ask("agent/dispose", agentId="api")
        assert await refused(there, "api") == {HAS_ENDED}
        await ended(before)
        await ended(desk)
        after, there = await again(desk)  # one that never did
        assert await refused(there, "api", BY_AGENT[:1]) == {HAS_ENDED}
        assert [folder.agents for folder in after.daemon.windows.folders] == [
            None
        ]  # nothing was made to say so
        assert await refused(there, "api") == {HAS_ENDED}
        await ended(after)

    check(tmp_path, story)


CASES = [
    ("Q", True, "There is no agent 'Q'. Did you mean 'q'?"),
    ("Q", False, f"There is no agent 'Q'. Did you mean 'q', which has ended? {REMEDY}"),
    ("MAIN", True, "There is no agent 'MAIN'. Did you mean 'main'?"),
]


@pytest.mark.parametrize(("asked", "lives", "said"), CASES, ids=["live", "ended", "main"])
@pytest.mark.parametrize("anew", [False, True], ids=["same daemon", "next daemon"])
def test_a_name_in_other_case_is_not_the_folders_own(
    tmp_path: Path, asked: str, lives: bool, said: str, anew: bool
) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="q", cwd="api")
        if not lives:
            await ask("agent/dispose", agentId="q")
        other, there = (desk, ask)
        if anew:
            await ended(desk)
            other, there = await again(desk)
        assert await refused(there, asked) == {("unknown-agent", said)}
        await ended(other)

    check(tmp_path, story)


def test_two_names_that_differ_in_case_are_two_agents(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await start_and_end(ask, "Ärger")
        await ask("agent/spawn", agentId="ärger", cwd="web")
        assert (await ask("context/assemble", agent="ärger", message="x"))["session"] == "agent:ärger"
        code, said = await ask.refused("context/assemble", agent="Ärger", message="x")
        assert (code, said) == ("unknown-agent", f"Agent 'Ärger' has ended. {REMEDY}")
        assert (await ask.refused("context/assemble", agent="ÄRGER", message="x"))[1].endswith("'ärger'?")

    check(tmp_path, story)


def test_what_an_agent_said_can_be_read_and_gone_on_with_when_that_is_said(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api")
        own = {"session": "agent:api"}
        await ask("session/append", **own, messages=SAID)
        assert "Rules of the api." in (await ask("context/assemble", **own, message="x"))["systemPrompt"]
        await ask("agent/dispose", agentId="api")
        assert await ask.refused("context/assemble", **own, message="x") == (
            "unknown-agent",
            CONVERSATION,
        )
        assert (await ask("context/usage", **own))["rows"][-1]["category"] == "history"
        assert "Never log" in str(await ask("session/messages", **own))
        assert (await ask("session/append", **own, messages=SAID))["count"] > 2
        made = await ask("context/assemble", **own, agent="main", message="Go on.")
        assert ("Never log" in str(made["history"]), made["session"]) == (True, "agent:api")
        other = {"session": "agent:reviewer"}  # of an agent that the client runs
        assert (await ask("context/assemble", **other, message="x"))["session"] == "agent:reviewer"

    check(tmp_path, story)


def test_who_has_ended_writes_to_nobody(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await start_and_end(ask)
        message = {"source": "api", "target": "main", "content": "Done."}
        assert await ask.refused("agent/message", **message) == (
            "unknown-agent",
            "Agent 'api' has ended. Start it again, or send the message under another name.",
        )
        assert (await ask("agent/messages", agent="main"))["messages"] == []

    check(tmp_path, story)


def test_one_that_cannot_be_brought_back_is_not_the_folders_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        from nexus_context.ledger.records import NewAgent

        await ask("session/append", messages=SAID)
        ledger: Any = desk.daemon.ledgers.writer.store
        folder = next(iter(desk.daemon.windows.folders))
        assert folder.ledger is not None
        ledger.agents.start(folder.ledger.workspace, NewAgent("api", None, {"no": "agent"}))
        code, said = await ask.refused("context/assemble", agent="api", message="x")
        assert (code, said.startswith("Agent 'api' cannot be restored")) == ("unknown-agent", True)
        assert "is not restored" in caplog.text
        assert await ask("agent/dispose", agentId="api") == {"disposed": ["api"]}
        assert await refused(ask, "api") == {HAS_ENDED}

    check(tmp_path, story)


def test_where_the_ledger_keeps_nothing_it_is_known_until_the_daemon_ends(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/state", "no directory")
        await start_and_end(ask)
        assert (await ask("status"))["ledger"]["persists"] is False
        assert await refused(ask, "api") == {HAS_ENDED}

    check(tmp_path, story)


def test_a_turn_of_the_folders_own_asks_nothing_about_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="web", cwd="web")
        await start_and_end(ask)
        stored: Any = desk.daemon.ledgers.writer.store
        ledger = stored.agents
        asked: list[str] = []
        real = ledger.names

        def agent_names(workspace: str, name: str) -> Any:
            asked.append(name)
            return real(workspace, name)

        monkeypatch.setattr(ledger, "names", agent_names)
        await ask("agent/list")
        monkeypatch.setattr(ledger, "running", None)  # all that live are not listed for it
        for params in ({}, {"agent": "main"}, {"session": "plan"}, {"agent": "web"}):
            await ask("context/assemble", message="Go on.", **params)
        assert asked == []
        await ask("context/assemble", message="Go on.", agent="reviewer")
        assert await refused(ask, "api", BY_AGENT[:1]) == {HAS_ENDED}
        assert asked == ["reviewer", "api"]

    check(tmp_path, story)


@pytest.mark.parametrize("target", ["Main", "MAIN", "API", "Hand"])
def test_a_message_to_a_name_that_is_spelled_wrong_is_refused(tmp_path: Path, target: str) -> None:
    """No turn could ever have it: such a name is nobody's."""

    async def story(desk: Desk, ask: Asking) -> None:
        await start_and_end(ask, "hand")
        await ask("agent/spawn", agentId="api", cwd="api")
        code, said = await ask.refused("agent/message", source="api", target=target, content="Done.")
        assert (code, "Did you mean" in said) == ("unknown-agent", True)

    check(tmp_path, story)


def test_messages_wait_for_agents_that_are_to_come(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await start_and_end(ask, "api")
        for target in ("api", "somebody"):
            await ask("agent/message", source="main", target=target, content="Go on.")
        await ask("agent/spawn", agentId="api", cwd="api")
        made = await ask("context/assemble", agent="api", message="x")
        assert "Go on." in made["currentMessage"]["content"]

    check(tmp_path, story)
