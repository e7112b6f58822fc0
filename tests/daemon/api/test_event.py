"""The event bus of a daemon, as clients and models see it."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_context.memory.events import Event
from support.desk import CONFIG, Desk, tell_story
from support.talk import Talk, call
from support.waiting import wait_until

SETTINGS = '{"provider": {"model": "gpt-4o"}}'
TURN = [
    {"role": "user", "content": "Fix x."},
    {
        "role": "assistant",
        "content": "I read x.",
        "toolCalls": [{"id": "1", "name": "read", "arguments": {"path": "x"}}],
    },
    {"role": "tool", "toolCallId": "1", "content": "x = 1"},
    {"role": "assistant", "content": "x is fixed."},
]

KINDS = ["execute", "thinking", "tool_call", "tool_result", "thinking"]
"""Of the parts of TURN."""

Story = Callable[["Events"], Awaitable[None]]


class Events:
    """A client of the folder /a."""

    def __init__(self, desk: Desk, talk: Talk) -> None:
        self._desk = desk
        self._talk = talk
        self._number = 0

    async def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        return await self._desk.ask(self._talk, self._number, f"nexus/{method}", **params)

    async def refusal(self, method: str, **params: Any) -> tuple[str, str]:
        self._number += 1
        self._talk.send(
            call(self._number, f"nexus/{method}", {"workspaceFolder": self._desk.uri("/a"), **params})
        )
        error = (await self._desk.reply(self._talk, self._number))["error"]
        return (error.get("data") or {}).get("code", str(error["code"])), error["message"]

    async def listed(self, **params: Any) -> list[str]:
        """`agent kind data` of the listed events."""
        events = (await self.ask("event/list", **params))["events"]
        for event in events:
            for name in ("id", "turn"):
                if isinstance(event["data"], dict):
                    event["data"].pop(name, None)
        return [f"{one['agent']} {one['kind']} {json.dumps(one['data'])}" for one in events]

    async def remembered(self, **params: Any) -> list[str]:
        """The lines of the section of events in the message of a turn."""
        turn = await self.ask("context/assemble", message="Go on.", **params)
        text = turn["currentMessage"]["content"].partition("## What agents did last")[2]
        return [line for line in text.partition("</memory>")[0].splitlines() if line]


def check(root: Path, story: Story, settings: str = SETTINGS) -> None:
    async def told(desk: Desk) -> None:
        await story(Events(desk, await desk.client()))

    tell_story(root, told, {CONFIG: settings})


async def spawn(events: Events) -> None:
    await events.ask("agent/spawn", agentId="boss", cwd=".", role="manager")
    await events.ask("agent/spawn", agentId="hand", cwd=".", parent="boss")
    await events.ask("agent/spawn", agentId="other", cwd=".")


def test_the_daemon_publishes_turns_compactions_and_messages(tmp_path: Path) -> None:
    async def story(events: Events) -> None:
        await events.ask("session/append", messages=TURN, idempotencyKey="k")
        await events.ask("session/append", messages=TURN, idempotencyKey="k")
        parts = [
            'main execute {"content": "Fix x."}',
            'main thinking {"content": "I read x."}',
            'main tool_call {"tool": "read", "arguments": {"path": "x"}}',
            'main tool_result {"content": "x = 1"}',
            'main thinking {"content": "x is fixed."}',
            'main turn {"messages": 4}',
        ]
        assert await events.listed() == parts
        await events.ask("agent/message", source="main", target="hand", content="Go.", task="t")
        message = {"source": "main", "target": "hand", "content": "Go.", "priority": 0.5, "task": "t"}
        for _ in range(3):
            await events.ask("session/append", messages=TURN * 3)
        await events.ask("session/compact")
        await events.ask("session/undoCompaction")
        listed = await events.listed(limit=1000)
        assert listed[6] == f"main node.message {json.dumps(message)}"
        assert listed[-2:] == [
            'main compaction {"reason": "compacted"}',
            'main compaction {"reason": "undone"}',
        ]
        assert await events.listed(session="other") == []

    check(tmp_path, story)


def test_a_manager_sees_what_its_workers_did_and_a_worker_nobody_else(tmp_path: Path) -> None:
    async def story(events: Events) -> None:
        await spawn(events)
        await events.ask("session/append", session="agent:hand", messages=TURN)
        await events.ask("event/publish", agent="hand", kind="tests.failed", data={"content": "Two of nine."})
        hands = [
            "hand (user): Fix x.",
            "hand (assistant): I read x.",
            'hand (assistant): [Calling read({"path":"x"})]',
            "hand (assistant): x is fixed.",
            "hand [tests.failed] Two of nine.",
        ]
        assert await events.remembered() == hands
        assert await events.remembered(agent="boss") == hands
        assert await events.remembered(agent="other") == []
        assert await events.remembered(agent="hand") == ["[tests.failed] Two of nine."]
        await events.ask("agent/message", source="boss", target="hand", content="Go on.")
        assert (await events.listed(agent="hand"))[-1].startswith("hand tests.failed")
        assert len(await events.listed(agent="boss")) == 8
        assert await events.listed(agent="other") == []
        await events.ask("agent/dispose", agentId="hand")
        assert await events.remembered(agent="boss") == hands

    check(tmp_path, story)


def test_a_turn_has_only_what_happened_since_the_last(tmp_path: Path) -> None:
    async def story(events: Events) -> None:
        for number in range(3):
            await events.ask("event/publish", kind="build", data=f"red {number}")
        await events.ask("event/publish", kind="build", data="elsewhere", session="other")
        expected = ["[build] red 0", "[build] red 1", "[build] red 2"]
        assert await events.remembered() == expected
        await events.ask("event/publish", kind="build", data="green", session="main")
        assert await events.remembered() == [*expected, "[build] green"]
        await events.ask("event/publish", kind="build", data="late")
        await events.ask("session/append", messages=TURN)
        assert await events.remembered() == ["[build] late"]
        await events.ask("session/append", messages=TURN)
        assert await events.remembered() == []
        assert await events.remembered(session="other") == [*expected, "[build] elsewhere", "[build] late"]

    check(tmp_path, story)


@pytest.mark.parametrize(("most", "expected"), [(0, []), (1, ["[build] 2"]), (2, ["[build] 1", "[build] 2"])])
def test_a_setting_limits_the_events_of_a_turn(tmp_path: Path, most: int, expected: list[str]) -> None:
    async def story(events: Events) -> None:
        for number in range(3):
            await events.ask("event/publish", kind="build", data=number)
        assert await events.remembered() == expected

    check(tmp_path, story, f'{{"provider": {{"model": "gpt-4o"}}, "memory": {{"events": {most}}}}}')


def test_events_are_listed_page_by_page(tmp_path: Path) -> None:
    async def story(events: Events) -> None:
        ids = [(await events.ask("event/publish", kind="n", data=number))["id"] for number in range(4)]
        page = await events.ask("event/list", since=ids[0], limit=2)
        assert [event["data"] for event in page["events"]] == [1, 2]
        assert page["more"] is True
        page = await events.ask("event/list", since=page["events"][-1]["id"])
        assert [(event["id"], event["data"]) for event in page["events"]] == [(ids[3], 3)]
        assert page.keys() == {"events"}
        page = await events.ask("event/list", since="00000000-1", limit=1)
        assert (page["events"][0]["id"], page["missed"], page["more"]) == (ids[0], True, True)

    check(tmp_path, story)


def test_an_event_of_a_megabyte_is_listed_whole_and_shortened_for_the_model(tmp_path: Path) -> None:
    async def story(events: Events) -> None:
        data = "x" * 1_000_000
        await events.ask("event/publish", kind="log", data=data)
        assert (await events.ask("event/list"))["events"][0]["data"] == data
        short = f"[log] {'x' * 267} [… 999600 characters left out …] {'x' * 133}"
        assert await events.remembered() == [short]
        code, message = await events.refusal("event/publish", kind="log", data="x" * 1_048_575)
        assert code == "event-too-large"
        assert message == (
            "data has 1,048,577 bytes as JSON; an event may have 1,048,576. Put the rest into a file and "
            "name the file."
        )

    check(tmp_path, story)


def test_clients_of_the_folder_are_notified_of_new_events(tmp_path: Path) -> None:
    def notices(talk: Talk) -> list[Any]:
        said = (one for one in talk.writer.messages() if one.get("method") == "nexus/event/published")
        return [one["params"] for one in said]

    async def story(desk: Desk) -> None:
        one, two, elsewhere = await desk.client(), await desk.client(), await desk.client("/home")
        first = await desk.ask(one, 1, "nexus/event/publish", kind="build", data="red")
        await wait_until(lambda: notices(two))
        assert notices(one) == notices(two) == [{"workspaceFolder": desk.uri("/a"), "id": first["id"]}]
        one.link.eof_received()
        await desk.ask(two, 2, "nexus/session/append", messages=TURN)
        page = await desk.ask(two, 3, "nexus/event/list", since=first["id"])
        assert [event["kind"] for event in page["events"]] == [*KINDS, "turn"]
        await wait_until(lambda: notices(two)[-1]["id"] == page["events"][-1]["id"])
        assert len(notices(two)) <= 1 + len(page["events"])  # those that come together are one notice
        assert len(notices(one)) == 1
        assert notices(elsewhere) == []

    tell_story(tmp_path, story)


def test_a_burst_of_events_is_one_notice(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/event/list")  # opens the ledger
        workspace = next(iter(desk.daemon.ledgers.writer.heads))
        batch = [Event(action="build", data=number) for number in range(5_000)]
        published = desk.daemon.ledgers.writer.bus.publish(workspace, batch)
        await wait_until(
            lambda: any(one.get("method") == "nexus/event/published" for one in talk.writer.messages())
        )
        said = [one for one in talk.writer.messages() if one.get("method") == "nexus/event/published"]
        assert [one["params"]["id"] for one in said] == [published[-1].id]

    tell_story(tmp_path, story)


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "publish",
        {"kind": "a b"},
        "bad-event",
        "kind is 'a b'; it must be a letter and at most 63 more ASCII letters, digits, `.`, `_` and `-`.",
    ),
    (
        "publish",
        {"kind": "turn"},
        "bad-event",
        "Events of the kind turn are published by Nexus: append the turn with `nexus/session/append`.",
    ),
    (
        "publish",
        {"kind": "thinking", "data": {"text": "Hm."}},
        "bad-event",
        "data of an event of the kind thinking must be an object with the text `content`.",
    ),
    (
        "publish",
        {"kind": "k", "session": ""},
        "bad-event",
        "session is empty; give a name, or leave it out.",
    ),
    ("list", {"limit": 0}, "bad-event", "limit is 0; it must be a whole number from 1 to 1,000."),
    ("list", {"limit": 1001}, "bad-event", "limit is 1001; it must be a whole number from 1 to 1,000."),
    (
        "list",
        {"since": "7"},
        "bad-event",
        "since is '7'; it must be the id of an event, such as `7f3a9c21-12`.",
    ),
    ("list", {"agent": ""}, "bad-event", "agent is empty; give a name, or leave it out."),
]


@pytest.mark.parametrize(("method", "params", "code", "message"), REFUSED)
def test_a_bad_request_names_what_is_wrong(
    tmp_path: Path, method: str, params: dict[str, Any], code: str, message: str
) -> None:
    async def story(events: Events) -> None:
        assert await events.refusal(f"event/{method}", **params) == (code, message)
        assert await events.listed() == []

    check(tmp_path, story)


def test_an_event_of_an_agent_that_has_ended_is_refused(tmp_path: Path) -> None:
    async def story(events: Events) -> None:
        await spawn(events)
        await events.ask("agent/dispose", agentId="other")
        code, message = await events.refusal("event/publish", agent="other", kind="k")
        assert code == "unknown-agent"
        assert message.startswith("Agent 'other' has ended.")

    check(tmp_path, story)


def test_messages_to_a_node(tmp_path: Path) -> None:
    async def story(events: Events) -> None:
        for content, node in (("all", None), ("left", "l"), ("right", "r")):
            await events.ask("agent/message", source="x", target="main", content=content, node=node)
        for node, expected in ((None, ["all", "left", "right"]), ("l", ["all", "left"]), ("z", ["all"])):
            turn = await events.ask("context/assemble", message="Go on.", node=node)
            text = turn["currentMessage"]["content"]
            assert [word for word in ("all", "left", "right") if f"From x:\n{word}" in text] == expected

    check(tmp_path, story)
