"""Sessions of one daemon with several clients: who is told what, what stays in memory, what is cancelled."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.sessions import conversations
from nexus_daemon.windows import folder_ledgers
from support.desk import TIMEOUT_S, Desk, replies, tell_story
from support.talk import Talk, call, tell, user
from support.waiting import wait_until, yield_to_loop

Told = list[tuple[str, str, str]]


def check(talk: Talk) -> Told:
    """What a client was told of sessions so far."""
    said = [one["params"] for one in talk.writer.messages() if one.get("method") == "nexus/session/didChange"]
    return [(one["reason"], one["session"], one["by"]) for one in said]


async def contents(desk: Desk, talk: Talk, message_id: int, **params: object) -> list[Any]:
    result = await desk.ask(talk, message_id, "nexus/session/messages", **params)
    return [message["content"] for message in result["messages"]]


def test_every_client_of_the_folder_is_told_who_did_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        one, two, elsewhere = await desk.client(), await desk.client(), await desk.client("/home")
        await desk.ask(one, 1, "nexus/session/append", messages=[user("a")])
        await desk.ask(two, 1, "nexus/session/append", messages=[user("b")])
        await desk.ask(two, 2, "nexus/session/rename", to="b")
        assert check(one) == [
            ("created", "main", "self"),
            ("appended", "main", "self"),
            ("appended", "main", "other"),
            ("renamed", "b", "other"),
        ]
        assert [by for _, _, by in check(two)] == ["other", "other", "self", "self"]
        assert check(elsewhere) == []
        (renamed,) = [
            one["params"]
            for one in one.writer.messages()
            if one.get("method") == "nexus/session/didChange" and one["params"]["reason"] == "renamed"
        ]
        assert renamed["former"] == "main"

    tell_story(tmp_path, story)


def test_what_is_not_in_memory_any_more_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MOST_IN_MEMORY", 2)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for number in range(6):
            await desk.ask(talk, number, "nexus/session/append", session=f"{number}", messages=[user("x")])
        conversations_in_memory = desk.folders.at(desk.uri("/a")).conversations
        assert len(conversations_in_memory) < 6  # announcements may use more than two
        for number in range(6):
            assert (await contents(desk, talk, 10 + number, session=f"{number}"))[1:] == ["x"]
        status = await desk.ask(talk, 20, "nexus/status")
        assert (status["sessions"], status["ledger"]["sessions"]) == (6, 6)

    tell_story(tmp_path, story)


def test_a_cancelled_append_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/append", messages=[user("first")])
        held, written, go_on = threading.Event(), threading.Event(), threading.Event()
        write = desk.daemon.ledgers.writer.write

        def announced(*args: Any, **named: Any) -> Any:
            written.set()
            return write(*args, **named)

        monkeypatch.setattr(desk.daemon.ledgers.writer, "write", announced)

        def hold() -> None:
            held.set()
            go_on.wait(TIMEOUT_S)

        desk.daemon.ledgers.writer.submit(hold)
        assert await asyncio.to_thread(held.wait, TIMEOUT_S)
        append = {"workspaceFolder": desk.uri("/a"), "messages": [user("second")]}
        talk.send(call(2, "nexus/session/append", append))
        assert await asyncio.to_thread(written.wait, TIMEOUT_S)  # its thread waits for the writer's
        talk.send(tell("$/cancelRequest", {"id": 2}))
        assert (await desk.reply(talk, 2))["error"]["code"] == -32800
        talk.send(call(3, "nexus/session/messages", {"workspaceFolder": desk.uri("/a")}))
        assert await desk.ask(talk, 4, "nexus/context/layers")
        assert replies(talk, 3) == []
        go_on.set()
        messages = (await desk.reply(talk, 3))["result"]["messages"]
        assert [message["content"] for message in messages[1:]] == ["first", "second"]
        assert check(talk)[-1] == ("appended", "main", "self")

    tell_story(tmp_path, story)


def test_nothing_of_a_ledger_is_begun_before_a_session_is_asked_for(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for number, method in enumerate(("context/preview", "context/layers", "config/effective", "status")):
            await desk.ask(talk, number, f"nexus/{method}")
        assert desk.daemon.ledgers.writer.store is None
        assert not Path(desk.tree.path("/state")).exists()
        await desk.ask(talk, 9, "nexus/context/usage")
        assert desk.daemon.ledgers.writer.store is not None

    tell_story(tmp_path, story)


def test_who_comes_later_is_told_of_the_ledger_too(tmp_path: Path) -> None:
    def shown(talk: Talk) -> list[str]:
        said = [one for one in talk.writer.messages() if one.get("method") == "window/showMessage"]
        return [one["params"]["message"] for one in said]

    async def story(desk: Desk) -> None:
        Path(desk.tree.path("/state")).write_text("in the way")
        one = await desk.client()
        assert shown(one) == []
        await desk.ask(one, 1, "nexus/context/usage")
        await desk.ask(one, 2, "nexus/context/usage")
        two = await desk.client()
        assert shown(one) == shown(two)
        assert ["are lost when Nexus ends" in text for text in shown(two)] == [True]

    tell_story(tmp_path, story)


def test_two_folders_that_are_one_share_their_sessions(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        Path(desk.tree.path("/link")).symlink_to(desk.tree.path("/a"))
        one, two = await desk.client("/a"), await desk.client("/link")
        link = desk.uri("/link")
        assert await contents(desk, two, 1, workspaceFolder=link) == []
        await desk.ask(one, 1, "nexus/session/append", messages=[user("a")])
        assert (await contents(desk, two, 2, workspaceFolder=link))[1:] == ["a"]
        await desk.ask(two, 3, "nexus/session/append", workspaceFolder=link, messages=[user("b")])
        assert (await contents(desk, one, 4))[1:] == ["a", "b"]
        assert check(two)[0] == ("created", "main", "other")

    tell_story(tmp_path, story)


def test_nobody_looks_at_the_ledger_while_nobody_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_ledgers, "POLL_S", 0.0)  # with each turn of the loop

    async def story(desk: Desk) -> None:
        looks: list[int] = []
        look = desk.daemon.ledgers.writer.look

        def counted() -> None:
            looks.append(1)
            look()

        monkeypatch.setattr(desk.daemon.ledgers.writer, "look", counted)
        talk = await desk.client()
        await yield_to_loop(50)
        assert looks == []
        await desk.ask(talk, 1, "nexus/context/usage")
        await wait_until(lambda: looks)
        talk.link.eof_received()
        await wait_until(lambda: not desk.daemon.windows.clients)
        await asyncio.wrap_future(desk.daemon.ledgers.writer.submit(lambda: None))  # the last look has ended
        before = len(looks)
        await yield_to_loop(50)
        await asyncio.wrap_future(desk.daemon.ledgers.writer.submit(lambda: None))
        assert len(looks) == before

    tell_story(tmp_path, story)


async def code(desk: Desk, talk: Talk, number: int, method: str, **params: object) -> object:
    assert await desk.ask(talk, number, method, **params) is None
    error = (await desk.reply(talk, number))["error"]
    return error.get("data", {}).get("code", error["code"])


def test_null_is_as_good_as_nothing_where_a_field_may_be_left_out(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        options = {"parameters": None, "disabledTools": None, "skipSkills": None, "skills": None}
        event = {"id": None, "note": None}
        made = await desk.assemble(talk, 1, session=None, format=None, options=options, event=event)
        assert (made["session"], "note: null" in str(made["currentMessage"])) == ("main", True)
        assert await desk.ask(talk, 2, "nexus/session/search", query="x", limit=None) == {"hits": []}
        assert (await desk.ask(talk, 3, "nexus/tokens/count", texts=None, uris=None))["total"] == 0
        assert await code(desk, talk, 4, "nexus/session/search", query=None, limit=None) == "invalid-params"
        assert await code(desk, talk, 5, "nexus/context/assemble", session=None, format=1) == "invalid-params"

    tell_story(tmp_path, story)


def test_a_key_names_one_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        append = "nexus/session/append"
        for number in (1, 2):
            await desk.ask(talk, number, append, messages=[user("a")], idempotencyKey="")
        assert len(await contents(desk, talk, 3)) == 3
        await desk.ask(talk, 4, append, messages=[user("b")], idempotencyKey="k", session="b")
        twice = {"messages": [user("b"), user("c")], "idempotencyKey": "k", "session": "b"}
        assert await code(desk, talk, 5, append, **twice) == "key-reused"
        monkeypatch.setattr(conversations, "MOST_IN_MEMORY", 1)
        await contents(desk, talk, 8)
        in_memory = desk.folders.at(desk.uri("/a")).conversations
        await wait_until(lambda: list(in_memory) == ["main"])  # only the ledger has the key now
        assert await code(desk, talk, 6, append, **twice) == "key-reused"
        again = await desk.ask(talk, 7, append, messages=[user("b")], idempotencyKey="k", session="b")
        assert again["count"] == 2

    tell_story(tmp_path, story)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/append", messages=[user("a")])
        numbers = iter(range(2, 100))
        for name in ("", " ", "a\nb", "a\u202eb", "a\u2028b", "x" * 201):
            for method, about in (
                ("create", {"session": name}),
                ("append", {"session": name, "messages": [user("a")]}),
                ("fork", {"to": name}),
                ("rename", {"to": name}),
            ):
                found = await code(desk, talk, next(numbers), f"nexus/session/{method}", **about)
                assert found == "bad-session-name"
        for method in ("compact", "undoCompaction"):
            found = await code(desk, talk, next(numbers), f"nexus/session/{method}", session="never")
            assert found == "unknown-session"
        assert await code(desk, talk, 100, "nexus/session/search", query="a", limit=0) == "bad-option"
        assert await code(desk, talk, 101, "nexus/agent/list/all") == "method-not-found"

    tell_story(tmp_path, story)


def test_who_listens_is_told_which_session_moved(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await wait_until(
            lambda: [one for one in talk.writer.messages() if one.get("method") == "nexus/context/didChange"]
        )
        done = await desk.ask(talk, 1, "nexus/session/append", messages=[user("a")], session="b")
        assert "persists" not in done
        changes = await wait_until(
            lambda: [
                one["params"]
                for one in talk.writer.messages()
                if one.get("method") == "nexus/context/didChange" and one["params"]["reason"] == "session"
            ]
        )
        assert changes[-1]["session"] == "b"

    tell_story(tmp_path, story)


def test_an_append_says_that_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/list")
        monkeypatch.setattr(type(desk.daemon.ledgers.writer.store), "persists", property(lambda _: False))
        done = await desk.ask(talk, 2, "nexus/session/append", messages=[user("a")])
        assert done["persists"] is False

    tell_story(tmp_path, story)


def test_the_list_has_the_tokens_that_would_be_sent_now(tmp_path: Path) -> None:
    """Fewer after a compaction, as before after its undoing: the history of `nexus/context/usage`."""

    async def story(desk: Desk) -> None:
        talk = await desk.client()

        async def tokens(number: int) -> int:
            (session,) = (await desk.ask(talk, number, "nexus/session/list"))["sessions"]
            spent = await desk.ask(talk, number + 1, "nexus/context/usage")
            history: int = sum(row["tokens"] for row in spent["rows"] if row["category"] == "history")
            assert session["tokens"] == history
            return history

        said = [{"role": role, "content": "The vault opens. " * 300} for role in ("user", "assistant")] * 6
        await desk.ask(talk, 1, "nexus/session/append", messages=said)
        before = await tokens(10)
        receipt = (await desk.ask(talk, 20, "nexus/session/compact"))["receipt"]
        assert await tokens(30) == receipt["tokensAfter"] < before
        await desk.ask(talk, 40, "nexus/session/append", messages=[user("b")])
        later = await tokens(50)
        assert later > receipt["tokensAfter"]
        await desk.ask(talk, 60, "nexus/session/undoCompaction")
        assert await tokens(70) == before + later - receipt["tokensAfter"]
        await desk.ask(talk, 80, "nexus/session/fork", to="other")
        listed = (await desk.ask(talk, 90, "nexus/session/list"))["sessions"]
        assert len({session["tokens"] for session in listed}) == 1

    tell_story(tmp_path, story)
