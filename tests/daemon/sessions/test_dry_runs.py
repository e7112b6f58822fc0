"""`dryRun`: what a turn would be, with an explanation; nothing changes."""

from pathlib import Path
from typing import Any

import pytest

from support.desk import Desk, tell_story

SMALL = {"maxContextTokens": 1_500, "reserveTokens": 100}
CHAT = [{"role": "user", "content": "Is the disk full?"}, {"role": "assistant", "content": "Yes. " * 700}]


def test_a_dry_run_is_the_turn_and_changes_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        message = {"source": "auth", "target": "main", "content": "The tests pass."}
        await desk.ask(talk, 1, "nexus/agent/message", **message)
        picked: Any = {"message": "Why?", "options": {"model": "o3"}}
        dry = [await desk.assemble(talk, number, **picked, dryRun={}) for number in (2, 3)]
        names = ("systemPrompt", "history", "tools", "tokenBudget")
        assert [[one[name] for name in names] for one in dry] == [[dry[0][name] for name in names]] * 2
        assert "The tests pass." in dry[0]["currentMessage"]["content"]
        focus = await desk.ask(talk, 4, "nexus/session/focus", session="main")
        assert "model" not in focus
        assert "requestId" not in dry[0]
        turn = await desk.assemble(talk, 5, **picked)
        assert turn["model"] == dry[0]["model"] == "o3"
        assert turn["systemPrompt"] == dry[0]["systemPrompt"]
        assert "explanation" not in turn
        assert "The tests pass." in turn["currentMessage"]["content"]
        bare = await desk.assemble(talk, 6, message="Why?", dryRun={"memory": False})
        assert "The tests pass." not in bare["currentMessage"]["content"]
        assert bare["explanation"]["pickedFor"] == "folder"  # it has no turn yet

    tell_story(tmp_path, story)


def test_the_next_turn_is_as_without_the_dry_runs_before_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/append", session="main", messages=CHAT)
        real = await desk.assemble(talk, 2, message="Real?")
        for number in range(3, 13):
            await desk.assemble(talk, number, message="Dry?", dryRun={})
        about = {"source": "auth", "target": "main", "content": "The tests pass."}
        await desk.ask(talk, 13, "nexus/agent/message", **about)
        await desk.assemble(talk, 14, message="Why?", dryRun={})
        turn = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
        await desk.ask(talk, 15, "nexus/session/append", session="main", messages=turn)
        stored = (await desk.ask(talk, 16, "nexus/session/messages", session="main"))["messages"]
        assert "preamble" not in stored[-2]
        conversation = next(iter(desk.folders)).conversations.peek("main")
        assert real["requestId"] in conversation.manager.requests
        after = await desk.assemble(talk, 17, message="And now?")
        assert "The tests pass." in after["currentMessage"]["content"]

    tell_story(tmp_path, story)


def test_an_agent_is_sent_its_own_prompt_after_a_view_of_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/append", session="main", messages=CHAT)
        for number, task in ((2, "AAA"), (3, "BBB")):
            view = {"viewAs": {"agentId": "api", "task": task}}
            seen = await desk.assemble(talk, number, session="main", message="Go.", dryRun=view)
            assert task in seen["systemPrompt"]
        await desk.ask(talk, 4, "nexus/agent/spawn", agentId="api", task="CCC")
        sent = await desk.assemble(talk, 5, agent="api", session="main", message="Go.")
        assert "CCC" in sent["systemPrompt"]

    tell_story(tmp_path, story)


def test_messages_of_no_conversation(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        dry = {"messages": CHAT * 4, "systemPrompt": "Be brief."}
        result = await desk.assemble(talk, 1, options=SMALL, dryRun=dry)
        explanation = result["explanation"]
        assert [one["title"] for one in explanation["fragments"]] == ["system prompt of the transcript"]
        cut = explanation["cut"]
        listed = explanation["messages"]
        positions = [one["position"] for one in listed if "position" in one]
        assert len(positions) + cut["messages"] == len(CHAT * 4)
        assert listed[0]["role"] == "system"
        assert listed[cut["at"]]["position"] == positions[-1] - len(listed) + cut["at"] + 1
        assert sum(one["tokens"] for one in listed[1:]) <= result["usage"]["available"]
        assert (await desk.ask(talk, 2, "nexus/session/list"))["sessions"] == []

    tell_story(tmp_path, story)


def test_an_agent_that_is_not_started(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        view = {"agentId": "api", "task": "Fix the API."}
        result = await desk.assemble(talk, 1, message="Go.", dryRun={"viewAs": view})
        assert (result["agent"], result["session"], result["role"]) == ("api", "agent:api", "worker")
        assert "Fix the API." in result["systemPrompt"]
        assert (await desk.ask(talk, 2, "nexus/agent/list"))["agents"] == []
        layers = await desk.ask(talk, 3, "nexus/context/layers", viewAs=view)
        assert layers["layers"]

    tell_story(tmp_path, story)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"agent": "main", "dryRun": {"viewAs": {}}}, "Both `agent` and `dryRun.viewAs` are set."),
        ({"dryRun": {"systemPrompt": "x"}}, "`dryRun.systemPrompt` goes with `dryRun.messages`"),
    ],
)
def test_options_that_exclude_each_other(tmp_path: Path, params: dict[str, object], said: str) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/context/assemble", **params)
        error = (await desk.reply(talk, 1))["error"]
        assert said in error["message"]
        assert error["data"]["code"] == "bad-option"

    tell_story(tmp_path, story)
