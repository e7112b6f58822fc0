"""The sessions of a folder: begun by their first message, each turn once."""

import re

import pytest

from nexus_context.conversation.message import Message
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
    begun = sessions.open("x")
    assert sessions.open("x") is begun
    assert sessions.peek("x") is begun
    sessions.open("a")
    assert sessions.names() == ["a", "x"]
