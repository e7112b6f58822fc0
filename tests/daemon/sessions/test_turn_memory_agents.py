"""What agents report to `main` comes into the turns of the folder, also of those that name no agent."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context.ledger.errors import LedgerError
from support.asking import Asking, again, check, ended
from support.desk import Desk, write
from support.waiting import pass_time

OWN: dict[str, dict[str, Any]] = {
    "no agent": {},
    "null": {"agent": None},
    "main": {"agent": "main"},
    "another conversation": {"session": "plan"},
}


def messages_of(desk: Any) -> Any:
    """The direct messages of the ledger that a window has open."""
    return desk.daemon.ledgers.writer.store.messages


def user(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def told(ask: Asking, **params: object) -> list[str]:
    """The ids of the messages that a turn is given; what they say stands before what the user does."""
    made = await ask("context/assemble", **{"message": "Go on.", **params})
    memory: dict[str, Any] = made["metadata"].get("memory", {})
    rows = [row["label"] for row in made["usage"]["rows"] if row["label"].startswith("message from")]
    ids: list[str] = memory.get("messages", [])
    assert len(rows) == len(ids)
    assert all(f"Report {one}." in str(made["currentMessage"]["content"]) for one in ids)
    return ids


async def report(ask: Asking, one: str, source: str = "hand", target: str = "main", **more: object) -> None:
    content = f"Report {one}."
    await ask("agent/message", source=source, target=target, content=content, id=one, **more)


async def waiting(ask: Asking, agent: str = "main") -> list[str]:
    return [one["id"] for one in (await ask("agent/messages", agent=agent))["messages"]]


@pytest.mark.parametrize("params", OWN.values(), ids=OWN)
def test_a_workers_report_comes_into_the_folders_own_turn(tmp_path: Path, params: dict[str, Any]) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        session = {"session": params["session"]} if "session" in params else {}
        await ask("session/append", **session, **user("Begin."))
        assert await told(ask, **params) == []
        await ask("agent/spawn", agentId="hand", cwd="api")
        await report(ask, "later")
        await report(ask, "urgent", priority=1)
        await report(ask, "elsewhere", source="planner", target="reviewer")
        assert await told(ask, **params, message=None) == []  # a look
        for _ in range(2):  # until the conversation goes on
            assert await told(ask, **params) == ["urgent", "later"]
        await ask("session/append", **session, **user("Go on."))
        assert await told(ask, **params) == await waiting(ask) == []
        assert await waiting(ask, "reviewer") == ["elsewhere"]

    check(tmp_path, story)


def test_of_two_conversations_the_one_that_goes_on_first_has_it(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await report(ask, "1")
        assert await told(ask, session="left") == ["1"]  # and nobody answers there
        assert await told(ask, session="one") == ["1"]
        await ask("session/append", session="one", **user("Go on."))
        assert await told(ask, session="two") == []
        await report(ask, "2")
        await ask("session/append", session="left", **user("Go on."))  # which was not given it
        assert await told(ask, session="two") == ["2"]

    check(tmp_path, story)


def test_what_has_expired_comes_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await report(ask, "brief", ttlSeconds=60)
        await report(ask, "lasting")
        assert await told(ask) == ["brief", "lasting"]
        pass_time(monkeypatch, 60)
        assert await told(ask) == ["lasting"]

    check(tmp_path, story)


def test_an_agents_conversation_is_given_what_waits_for_that_agent(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="hand", cwd="api")
        await report(ask, "up")
        await report(ask, "down", source="main", target="hand")
        own = {"session": "agent:hand"}
        for params in ({"agent": "hand"}, own, {"agent": "hand", "session": "plan"}):
            assert await told(ask, **params) == ["down"]
        assert await told(ask, agent="main", **own) == ["up"]
        await ask("session/append", **own, **user("Go on."))
        assert (await waiting(ask), await waiting(ask, "hand")) == ([], [])
        await report(ask, "again")
        assert await told(ask, agent="reviewer") == []  # of the client: its messages, not main's
        assert await told(ask) == ["again"]

    check(tmp_path, story)


def test_what_another_window_was_told_comes_into_the_next_turn_here(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        other, there = await again(desk)
        for number in range(3):
            assert await told(ask) == await told(there) == []
            await report(there, str(number))
            assert await told(ask) == [str(number)]
            await ask("session/append", **user("Go on."))
        await report(there, "left")
        await ended(other)
        await ended(desk)
        later, there = await again(desk)
        assert await told(there) == ["left"]
        await ended(later)

    check(tmp_path, story)


def test_it_comes_where_the_ledger_keeps_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/state", "no directory")
        assert await told(ask) == []
        await report(ask, "1")
        assert await told(ask) == ["1"]

    check(tmp_path, story)


def test_where_nothing_waits_a_chat_does_not_look_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own appends are no reason to look either."""

    async def story(desk: Desk, ask: Asking) -> None:
        assert await told(ask) == []
        ledger: Any = desk.daemon.ledgers.writer.store
        looked: list[str] = []
        real, where = ledger.messages.inbox, ["first"]

        def inbox(*args: Any, **more: Any) -> Any:
            looked.append(where[-1])
            return real(*args, **more)

        monkeypatch.setattr(ledger.messages, "inbox", inbox)
        for number in range(4):
            where.append("append")
            await ask("session/append", **user(f"Turn {number}."))
            where.append("turn")
            assert await told(ask) == []
        assert "turn" not in looked
        await report(ask, "1")
        assert await told(ask) == ["1"]
        assert "turn" in looked

    check(tmp_path, story)


def test_what_cannot_be_looked_for_is_said_and_the_turn_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise LedgerError("The disk failed.", code="ledger-io")

    async def story(desk: Desk, ask: Asking) -> None:
        await report(ask, "1")
        with monkeypatch.context() as patch:
            patch.setattr(messages_of(desk), "inbox", fail)
            made = await ask("context/assemble", message="Go on.")
            assert made["metadata"]["memory"] == {"failures": ["messages: The disk failed."]}
            assert (await ask("session/append", **user("Go on.")))["count"] == 2
        assert await told(ask) == ["1"]

    check(tmp_path, story)


def test_what_was_written_is_acknowledged_whatever_else_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise ZeroDivisionError

    async def story(desk: Desk, ask: Asking) -> None:
        await ask("session/append", **user("First."))
        await report(ask, "1")
        with monkeypatch.context() as patch:
            patch.setattr(messages_of(desk), "inbox", fail)
            await ask("session/append", **user("Go on."))
        said = [one["content"] for one in (await ask("session/messages"))["messages"]]
        assert said.count("Go on.") == 1

    check(tmp_path, story)
