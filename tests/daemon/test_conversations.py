"""The sessions of a folder: begun by their first message, each turn once."""

import asyncio
import re

import pytest

from nexus_context.conversation.message import Message
from nexus_context.errors import RequestError
from nexus_daemon.conversations import REMEMBERED_KEYS, Conversation, Conversations


def check(*turns: tuple[str, str | None]) -> list[object]:
    """Append one message a turn, each with its key; the contents that are held after the opening message."""
    conversation = Conversation()
    for content, key in turns:
        conversation.append([Message("user", content)], key)
    return [message.content for message in conversation.manager.messages[1:]]


@pytest.mark.parametrize(
    ("turns", "held"),
    [
        ([("a", None), ("a", None)], ["a", "a"]),
        ([("a", "1"), ("a", "1")], ["a"]),
        ([("a", "1"), ("b", "1")], ["a"]),
        ([("a", "1"), ("b", "2"), ("c", "1")], ["a", "b"]),
        ([("a", ""), ("b", "")], ["a"]),
        ([], []),
    ],
)
def test_append(turns: list[tuple[str, str | None]], held: list[object]) -> None:
    assert check(*turns) == held


def test_a_repeated_key_is_answered_with_its_turn() -> None:
    conversation = Conversation()
    first = conversation.append([Message("user", "a")], "k")
    assert conversation.append([Message("user", "a")], None) != first
    assert conversation.append([Message("user", "a")], "k") == first


def test_old_keys_are_forgotten() -> None:
    conversation = Conversation()
    first = conversation.append([], "first")
    for number in range(REMEMBERED_KEYS):
        conversation.append([], str(number))
    assert conversation.append([], "first") != first
    assert conversation.append([], str(REMEMBERED_KEYS - 1)) is not None


def test_a_session_opens_with_its_start_and_again_after_clear() -> None:
    conversation = Conversation()
    for _ in range(2):
        assert conversation.manager.messages == []
        conversation.append([Message("user", "a")], None)
        opening = conversation.manager.messages[0]
        assert opening.role == "user"
        assert re.fullmatch(r"\[Session started: .{16} \(local\)\]", str(opening.content))
        conversation.clear()


def test_reading_does_not_begin_a_session() -> None:
    sessions = Conversations()
    assert sessions.peek("x").manager.messages == []
    assert (len(sessions), sessions.names()) == (0, [])


def test_a_session_is_kept_while_it_holds_a_message() -> None:
    async def run() -> None:
        sessions = Conversations()
        for session in ("x", "a", "a"):
            async with sessions.changing(session) as begun:
                assert sessions.peek(session) is begun
                begun.append([Message("user", "hi")], "key")
        assert (len(sessions), sessions.names()) == (2, ["a", "x"])
        async with sessions.changing("x", begin=False) as cleared:
            cleared.clear()
        with pytest.raises(ZeroDivisionError):
            async with sessions.changing("fails"):
                raise ZeroDivisionError
        assert sessions.names() == ["a"]
        assert sessions.peek("x") is not cleared
        assert list(sessions._by_name) == ["a"]
        async with sessions.changing("x") as again:
            assert again.append([Message("user", "hi")], "key") is not None
            assert len(again.manager) == 2

    asyncio.run(run())


def test_who_waits_for_a_session_finds_it_after_it_was_cleared() -> None:
    async def run() -> None:
        sessions = Conversations()
        order = []

        async def change(content: str) -> None:
            async with sessions.changing("x", begin=content != "") as session:
                order.append(content)
                await asyncio.sleep(0)
                if content:
                    session.append([Message("user", content)], None)
                else:
                    session.clear()

        await asyncio.gather(*map(change, ["a", "", "b", "c"]))
        assert order == ["a", "", "b", "c"]
        assert [one.content for one in sessions.peek("x").manager.messages[1:]] == ["b", "c"]

    asyncio.run(run())


def test_there_is_an_end_to_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_daemon.conversations.MOST_SESSIONS", 2)

    async def run() -> None:
        sessions = Conversations()
        for session in ("a", "b"):
            async with sessions.changing(session) as begun:
                begun.append([Message("user", "hi")], None)
        with pytest.raises(RequestError, match=r"has 2 conversations, .* 'c' was not begun") as failed:
            async with sessions.changing("c"):
                pass
        assert failed.value.code == "too-many-sessions"
        for session in ("c", "a"):
            async with sessions.changing(session, begin=False) as cleared:
                cleared.clear()
        async with sessions.changing("c") as begun:
            begun.append([Message("user", "hi")], None)
        assert sessions.names() == ["b", "c"]

    asyncio.run(run())
