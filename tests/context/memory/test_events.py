"""What agents say and think, as events."""

from typing import Any

import pytest

from nexus_context.conversation.message import Message
from nexus_context.memory.events import events_of, memory_messages

PARTS: list[tuple[dict[str, Any], str]] = [
    ({"type": "thinking", "thinking": "North, then.", "signature": "c2ln"}, "North, then."),
    ({"type": "redacted_thinking", "data": "c2ln"}, ""),
    (
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "North."}]},
        "North.",
    ),
    ({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}, ""),
    ({"type": "reasoning_content", "text": "North?"}, "North?"),
    ({"text": "North!", "thought": True}, "North!"),
]


@pytest.mark.parametrize(("part", "thought"), PARTS)
def test_reasoning_is_thinking_apart_from_what_is_said(part: dict[str, Any], thought: str) -> None:
    message = Message("assistant", [part, {"type": "text", "text": "Behind the wall."}])
    events = [(event.action, event.text) for event in events_of([message], session="main")]
    assert events == [("thinking", each) for each in (thought, "Behind the wall.") if each]
    assert memory_messages([message]) == [Message("assistant", "Behind the wall.")]


def test_a_user_does_not_think() -> None:
    message = Message("user", [{"type": "thinking", "thinking": "x", "signature": "y"}, {"text": "Go."}])
    assert [(event.action, event.text) for event in events_of([message])] == [("execute", "Go.")]
