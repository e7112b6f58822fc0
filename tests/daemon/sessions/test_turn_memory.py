"""What a turn remembers in the daemon: files, messages between agents, L1; what it costs, who is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_context.ledger.errors import LedgerError
from nexus_context.tokens import SimpleTokenCounter
from nexus_daemon.workspace import knowledge
from support.desk import CONFIG, Desk, published, tell_story, write
from support.talk import Talk, user
from support.waiting import pass_time, wait_until

LOCKED = '{"memory": {"knowledge": {"paths": ["docs", "../outside"]}}, "provider": {"model": "gpt-4o"}}'


def messages_of(desk: Any) -> Any:
    """The direct messages of the ledger that a window has open."""
    return desk.daemon.ledgers.writer.store.messages


async def check(desk: Desk, talk: Talk, number: int, *labels: str, **params: object) -> Any:
    """Assemble a turn: these are the memory rows of it."""
    made = await desk.assemble(talk, number, **params)
    rows = made["usage"]["rows"]
    assert [row["label"] for row in rows if row["category"] == "memory"] == list(labels)
    return made


async def send(desk: Desk, talk: Talk, number: int, content: str, **more: object) -> str:
    params = {"source": "planner", "target": "worker", "content": content, **more}
    sent = await desk.ask(talk, number, "nexus/agent/message", **params)
    return str(sent["id"])


async def waiting(desk: Desk, talk: Talk, number: int, agent: str = "worker", **more: object) -> list[str]:
    listed = await desk.ask(talk, number, "nexus/agent/messages", agent=agent, **more)
    return [one["content"] for one in listed["messages"]]


def test_passages_stand_before_the_message_with_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge, "PATIENCE_S", 10.0)  # a busy machine may take longer to index the file

    async def story(desk: Desk) -> None:
        write(desk, CONFIG, LOCKED)
        write(desk, "/a/docs/deploy.md", "# Deploy\n\nTalk.\n\n## Rollback\n\nRun `make rollback`.\n")
        talk = await desk.client()
        await check(desk, talk, 1)  # no message: nothing is asked
        assert not Path(desk.tree.path("/state/knowledge")).exists()
        file = desk.tree.path("/a/docs/deploy.md")
        label = f"{file} › Deploy › Rollback"
        made = await check(desk, talk, 2, label, message="How is a rollback done?")
        content = made["currentMessage"]["content"]
        assert content.index("make rollback") < content.index("How is a rollback done?")
        (row,) = [row for row in made["usage"]["rows"] if row["category"] == "memory"]
        place = {"start": {"line": 4, "character": 0}, "end": {"line": 6, "character": 20}}
        assert row["source"] == {"uri": desk.uri("/a/docs/deploy.md"), "range": place}
        assert made["metadata"]["contextJson"]["memory"] == made["metadata"]["memory"]
        assert made["metadata"]["memory"]["included"] == [label]
        await check(desk, talk, 3, message="Something else?")

    tell_story(tmp_path, story)


def test_problems_of_the_paths_are_published_and_move_with_the_text(tmp_path: Path) -> None:
    def ranges(desk: Desk, talk: Talk) -> list[int]:
        uri = desk.uri(CONFIG)
        found = [one["params"]["diagnostics"] for one in published(talk) if one["params"]["uri"] == uri]
        return [one["range"]["start"]["line"] for one in found[-1]] if found else []

    async def story(desk: Desk) -> None:
        write(desk, CONFIG, LOCKED)
        talk = await desk.client()
        await wait_until(lambda: desk.shown(talk, CONFIG) == ["config.scope"])
        assert not Path(desk.tree.path("/state")).exists()
        layers = await desk.ask(talk, 1, "nexus/context/layers")
        assert [one["code"] for one in layers["problems"]] == ["config.scope"]
        status = await desk.ask(talk, 2, "nexus/status")
        assert status["folders"][0]["warnings"] == 1
        desk.open(talk, CONFIG, "\n\n" + LOCKED)
        await desk.ask(talk, 3, "nexus/context/layers")
        assert ranges(desk, talk) == [2]
        desk.close(talk, CONFIG)
        write(desk, CONFIG, json.dumps({"memory": {"knowledge": {"paths": ["docs"]}}}))
        desk.open(talk, CONFIG, LOCKED.replace(', "../outside"', ""))
        await desk.ask(talk, 4, "nexus/context/layers")
        assert desk.shown(talk, CONFIG) == []

    tell_story(tmp_path, story)


def test_a_message_is_delivered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await send(desk, talk, 1, "later", priority=0.2)
        await send(desk, talk, 2, "urgent", priority=1, task="release", metadata={"n": 1})
        await send(desk, talk, 3, "to another", target="other")
        await send(desk, talk, 4, "too late", ttlSeconds=60)
        pass_time(monkeypatch, 60)
        assert await waiting(desk, talk, 5) == ["urgent", "later"]
        await check(desk, talk, 6, message="Go on.")
        await check(desk, talk, 7, agent="worker")
        assert await waiting(desk, talk, 8) == ["urgent", "later"]
        planner = "message from planner"
        made = await check(desk, talk, 9, planner, planner, agent="worker", message="Go on.")
        content = made["currentMessage"]["content"]
        assert content.index("urgent") < content.index("later") < content.index("Go on.")
        assert len(made["metadata"]["memory"]["messages"]) == 2
        other: Any = {"agent": "worker", "message": "Other.", "options": {"model": "gpt-4o"}}
        for number, body in ((20, "openai"), (21, "anthropic")):
            await check(desk, talk, number, planner, planner, format=body, **other)
        await desk.ask(talk, 22, "nexus/session/append", messages=[user("Other.")])
        assert await waiting(desk, talk, 10) == []
        await check(desk, talk, 11, agent="worker", message="And now?")
        await check(desk, talk, 12, planner, agent="other", event={"id": "e1"})

    tell_story(tmp_path, story)


def test_until_the_conversation_goes_on_its_turns_are_given_the_same_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        turn: Any = {"agent": "worker", "message": "Go on.", "session": "new"}
        await send(desk, talk, 1, "first")
        planner = "message from planner"
        first = await check(desk, talk, 2, planner, **turn)
        await send(desk, talk, 3, "second", ttlSeconds=60)
        again = await check(desk, talk, 4, planner, planner, **turn)
        assert first["metadata"]["memory"]["messages"] == again["metadata"]["memory"]["messages"][:1]
        pass_time(monkeypatch, 60)
        await check(desk, talk, 5, planner, **turn)
        await desk.ask(talk, 6, "nexus/session/append", session="new", messages=[user("Go on.")])
        await check(desk, talk, 7, **turn)
        assert await waiting(desk, talk, 8) == []

    tell_story(tmp_path, story)


def test_what_has_no_room_waits(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await send(desk, talk, 1, "word " * 3000)
        options = {"maxContextTokens": 1200, "reserveTokens": 100}
        long = {"agent": "worker", "message": "word " * 900, "options": options}
        made = await check(desk, talk, 2, **long)
        assert made["metadata"]["memory"]["dropped"] == ["message from planner"]
        assert len(await waiting(desk, talk, 3)) == 1
        await check(desk, talk, 4, "message from planner", agent="worker", message="Go on.")

    tell_story(tmp_path, story)


def test_the_folders_clients_are_told_of_a_message(tmp_path: Path) -> None:
    def told(talk: Talk) -> list[Any]:
        said = (one for one in talk.writer.messages() if one.get("method") == "nexus/agent/didChange")
        return [(one["params"]["agentId"], one["params"]["reason"]) for one in said]

    async def story(desk: Desk) -> None:
        one, two, elsewhere = await desk.client(), await desk.client(), await desk.client("/home")
        assert await send(desk, one, 1, "hello", id="m1") == "m1"
        await send(desk, one, 2, "hello", id="m1")
        assert told(one)[0] == told(two)[0] == ("worker", "message")
        assert told(elsewhere) == []
        assert await waiting(desk, two, 3) == ["hello"]

    tell_story(tmp_path, story)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"ttlSeconds": 0}, "ttlSeconds is 0"),
        ({"priority": 2}, "priority is 2"),
        ({"content": " "}, "content is empty"),
        ({"target": ""}, "target is empty"),
    ],
)
def test_a_message_that_cannot_be_is_refused(params: dict[str, Any], said: str, tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        message = {"source": "planner", "target": "worker", "content": "hello", **params}
        code, text = await desk.refusal(talk, 1, "nexus/agent/message", **message)
        assert code == "bad-message"
        assert said in text
        assert await waiting(desk, talk, 2) == []

    tell_story(tmp_path, story)


def test_memory_tools_are_offered_and_run(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        said = [user("Never touch sign()."), {"role": "assistant", "content": "I never will."}]
        await desk.ask(talk, 1, "nexus/session/append", session="old", messages=said)
        made = await desk.assemble(talk, 2, options={"memoryTools": True})
        names = [tool["name"] for tool in made["tools"]]
        assert names == ["query_l2_memory", "query_l3_memory", "query_l4_memory"]
        calls = [
            ("query_l4_memory", {"query": "sign"}),
            ("query_l2_memory", '{"session_id": "old"}'),
            ("query_l3_memory", None),
        ]
        texts = []
        for number, (tool, arguments) in enumerate(calls, start=3):
            answer = await desk.ask(talk, number, "nexus/memory/query", tool=tool, arguments=arguments)
            texts.append(answer["text"])
        assert ["sign" in text for text in texts] == [True, True, False]
        for number, (tool, arguments, code) in enumerate(
            [
                ("query_l9_memory", None, "unknown-tool"),
                ("query_l2_memory", {"limit": 0}, "bad-argument"),
                ("query_l2_memory", {"session_id": "never"}, "unknown-session"),
            ],
            start=10,
        ):
            failed = await desk.refusal(talk, number, "nexus/memory/query", tool=tool, arguments=arguments)
            assert failed[0] == code

    tell_story(tmp_path, story)


def test_the_newest_messages_are_there_where_the_history_does_not_show_them(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for number in range(8):
            said = [user(f"Question {number}? " + "word " * 80), user(f"More {number}. " + "word " * 80)]
            await desk.ask(talk, number, "nexus/session/append", messages=said)
        await check(desk, talk, 10, message="Go on.")
        pins = ["Question 0?"]
        assert await desk.ask(talk, 11, "nexus/session/compact", pins=pins, overflow=True)
        shown = await desk.ask(talk, 12, "nexus/session/messages")
        made = await desk.assemble(talk, 13, message="Go on.")
        told = " ".join(str(one["content"]) for one in [*made["history"], made["currentMessage"]])
        assert all(f"{word} {number}" in told for number in (5, 6, 7) for word in ("Question", "More"))
        rows = [row["label"] for row in made["usage"]["rows"] if row["category"] == "memory"]
        kept = len(shown["messages"]) - 1
        assert len(rows) == max(6 - kept, 0)

    tell_story(tmp_path, story)


def test_looking_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/append", messages=[user("a")])
        ledger: Any = desk.daemon.ledgers.writer.store
        for part, method in ((ledger, "turns"), (ledger.messages, "inbox"), (ledger, "find")):
            monkeypatch.setattr(part, method, None)
        await check(desk, talk, 2, message="Go on.")
        await check(desk, talk, 3, agent="worker")
        await desk.ask(talk, 4, "nexus/context/usage")

    tell_story(tmp_path, story)


def test_what_fails_is_said_and_the_turn_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise LedgerError("The disk failed.", code="ledger-io")

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await send(desk, talk, 1, "hello")
        with monkeypatch.context() as patch:
            patch.setattr(messages_of(desk), "inbox", fail)
            made = await check(desk, talk, 2, agent="worker", message="Go on.")
            assert made["metadata"]["memory"] == {"failures": ["messages: The disk failed."]}
        with monkeypatch.context() as patch:
            patch.setattr(messages_of(desk), "delivered", fail)
            await check(desk, talk, 3, "message from planner", agent="worker", message="Go on.")
            assert await desk.ask(talk, 5, "nexus/session/append", messages=[user("Go on.")])
        assert await waiting(desk, talk, 4) == ["hello"]  # it comes again rather than never

    tell_story(tmp_path, story)


def test_a_removed_folder_lets_go_of_its_knowledge(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, CONFIG, LOCKED)
        write(desk, "/a/docs/a.md", "red")
        watcher = desk.daemon.watcher
        talk = await desk.client()
        await check(desk, talk, 1, desk.tree.path("/a/docs/a.md"), message="red")
        knowledge = desk.folders.at(desk.uri("/a")).knowledge
        state = Path(desk.tree.path("/state/knowledge"))
        await wait_until(lambda: any(desk.tree.path("/a/docs") in one for one in watcher.watched))
        assert list(state.glob("*-wal"))  # the index is open
        talk.link.eof_received()
        await wait_until(lambda: not len(desk.daemon.windows.folders) and not list(state.glob("*-wal")))
        await wait_until(lambda: not any(desk.tree.path("/a/docs") in one for one in watcher.watched))
        assert await knowledge.query("red", SimpleTokenCounter()) == []

    tell_story(tmp_path, story)


def test_only_who_has_files_is_watched(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/docs/a.md", "red")
        talk = await desk.client()
        await check(desk, talk, 1, message="red")
        await wait_until(lambda: desk.daemon.watcher.watched)
        assert not any(desk.tree.path("/a/docs") in one for one in desk.daemon.watcher.watched)

    tell_story(tmp_path, story)
