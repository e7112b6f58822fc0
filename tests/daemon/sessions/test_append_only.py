"""A client's turns: each request begins with the bytes of the one before, also after a restart."""

from pathlib import Path
from typing import Any

import apsw

from support.desk import Desk, tell_story


def sent(context: Any) -> list[Any]:
    """The messages of a request."""
    current = [] if context["currentMessage"] is None else [context["currentMessage"]]
    return [*context["history"], *current]


def test_turns_are_appended_as_they_were_sent(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/agent/message", source="tester", target="main", content="It burns.")
        first = await desk.assemble(talk, 2, message="Where?", event={"platform": "repl"})
        assert first["history"][0]["content"].startswith("[Session started: ")  # from the first request on
        asked = {"role": "user", "content": "Where?"}
        call = {
            "role": "assistant",
            "content": None,
            "toolCalls": [{"id": "c", "name": "look", "arguments": {}}],
        }
        turn = [asked, call, {"role": "tool", "toolCallId": "c", "content": "a wall"}]
        await desk.ask(talk, 3, "nexus/session/append", messages=turn)
        second = await desk.assemble(talk, 4)
        assert sent(second)[: len(sent(first))] == sent(first)
        await desk.ask(talk, 5, "nexus/session/append", messages=[{"role": "assistant", "content": "There."}])
        third = await desk.assemble(talk, 6, message="Why?")
        assert sent(third)[: len(sent(second))] == sent(second)
        assert "It burns." in str(third["history"])
        cache = third["metadata"]["cache"]
        assert "broke" not in cache
        kept = await desk.ask(talk, 7, "nexus/session/messages")
        assert kept["messages"][1:4] == turn  # messages come back as they went in
        window = await desk.client()
        other = await desk.assemble(window, 1, message="Why?")
        assert other["history"] == third["history"]
        usage = await desk.ask(window, 2, "nexus/context/usage")
        labels = {row["label"] for row in usage["rows"] if row["category"] == "history"}
        assert labels == {"5 messages", "event text of user messages", "memory text of user messages"}

    tell_story(tmp_path, story)


def test_a_loop_that_goes_on_hours_later_is_told_the_time_also_by_another_daemon(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": None, "toolCalls": [{"id": "c", "name": "look", "arguments": {}}]}

    async def before(desk: Desk) -> None:
        talk = await desk.client()
        first = await desk.assemble(talk, 1, message="Where?")
        turn = [first["currentMessage"], call, {"role": "tool", "toolCallId": "c", "content": "a wall"}]
        await desk.ask(talk, 2, "nexus/session/append", messages=turn)
        assert (await desk.assemble(talk, 3))["currentMessage"] is None

    async def soon(desk: Desk) -> None:
        assert (await desk.assemble(await desk.client(), 1))["currentMessage"] is None

    async def later(desk: Desk) -> None:
        message = (await desk.assemble(await desk.client(), 1))["currentMessage"]
        assert message["content"].startswith("Current time: ")

    tell_story(tmp_path, before)
    tell_story(tmp_path, soon)
    (path,) = tmp_path.rglob("ledger.db")
    with apsw.Connection(str(path)) as connection:
        connection.execute("UPDATE session SET updated = '2026-01-02T03:04:05.678Z'")
    connection.close()
    tell_story(tmp_path, later)


def test_a_client_may_append_what_it_sent(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        first = await desk.assemble(talk, 1, message="Where?")
        answer = {"role": "assistant", "content": "There."}
        await desk.ask(talk, 2, "nexus/session/append", messages=[first["currentMessage"], answer])
        second = await desk.assemble(talk, 3, message="Why?")
        assert sent(second)[: len(sent(first))] == sent(first)
        kept = await desk.ask(talk, 4, "nexus/session/messages")
        assert kept["messages"][1:] == [{"role": "user", "content": "Where?"}, answer]

    tell_story(tmp_path, story)


def test_a_turn_that_an_event_began_has_its_message(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        first = await desk.assemble(talk, 1, event={"alarm": "fire"})
        await desk.ask(talk, 2, "nexus/session/append", messages=[{"role": "assistant", "content": "Run."}])
        second = await desk.assemble(talk, 3, message="Why?")
        assert sent(second)[: len(sent(first))] == sent(first)
        kept = await desk.ask(talk, 4, "nexus/session/messages")
        assert "alarm: fire" in kept["messages"][1]["content"]

    tell_story(tmp_path, story)


def test_a_message_that_no_request_was_made_for_is_as_the_client_wrote_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.assemble(talk, 1, message="Where?")
        said = [{"role": "user", "content": "Never mind."}, {"role": "assistant", "content": "Well."}]
        await desk.ask(talk, 2, "nexus/session/append", messages=said)
        context = await desk.assemble(talk, 3, message="Why?")
        assert context["history"][1:] == said

    tell_story(tmp_path, story)


def test_a_compaction_keeps_the_preamble_of_the_last_turn_only(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for number in range(1, 13, 2):
            text = f"Question {number}: {'where is the gate? ' * 40}"
            await desk.assemble(talk, number, message=text)
            said = [{"role": "user", "content": text}, {"role": "assistant", "content": "There. " * 40}]
            await desk.ask(talk, number + 1, "nexus/session/append", messages=said)
        await desk.ask(talk, 20, "nexus/session/compact")
        one = await desk.assemble(talk, 21, message="Why?")
        timed = [str(message["content"]).startswith("Current time") for message in one["history"]]
        assert timed.count(True) == 1
        window = await desk.client()
        assert (await desk.assemble(window, 1, message="Why?"))["history"] == one["history"]
        await desk.ask(talk, 22, "nexus/session/undoCompaction")
        undone = await desk.assemble(talk, 23, message="Why?")
        assert sum(str(each["content"]).startswith("Current time") for each in undone["history"]) == 6

    tell_story(tmp_path, story)
