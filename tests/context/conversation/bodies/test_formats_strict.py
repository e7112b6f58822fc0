"""Conversations that only grow, sent to the strict provider: nothing is refused, dropped or cached twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.bodies import formats
from nexus_context.conversation.bodies.breakpoints import Cache
from nexus_context.conversation.message import Message, ToolCall, content_of
from support.conversations import result, user
from support.strict_provider import Answer, Pricing, Refused, Reply, StrictProvider

PRICES = Pricing(input=4, output=20, cache_read=0.4, cache_write=5, cache_write_1h=8)
TOOLS = [{"name": "look", "inputSchema": {"type": "object"}}]
NOTE = Message("system", "The rules have changed.")


class Talk:
    """A conversation with a provider whose answers are appended as they come. A word is a token."""

    def __init__(self, model: str, ttl: Any = "5m") -> None:
        self.messages: list[Message] = []
        self.replies: list[Reply] = []
        self._model = model
        self._ttl = ttl
        self._is_claude = model.startswith("claude")
        self._provider = StrictProvider(
            "anthropic" if self._is_claude else "openai",
            clock=lambda: 0.0,
            count=lambda text: len(text.split()),
            pricing=PRICES,
            minimum=0,
        )

    def ask(self, *messages: Message, answer: Answer) -> None:
        """Append these messages and the answer to them."""
        self.messages += messages
        cache = Cache(stable=len(self.messages), minimum=0, ttl=self._ttl)
        if self._is_claude:
            settings = {"max_tokens": 4_000}
            body, repairs = formats.anthropic(
                self._model, "prompt", self.messages, TOOLS, settings, cache=cache
            )
        else:
            body, repairs = formats.openai(self._model, "prompt", self.messages, TOOLS, {}, cache=cache)
        assert {repair.kind for repair in repairs} <= {"block-lifted", "system-as-user"}
        reply = self._provider.send(body, answer)
        self.replies.append(reply)
        calls = tuple(
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in reply.message.get("tool_calls", ())
        )
        self.messages.append(Message("assistant", reply.message["content"], calls))

    def turn(self, number: int, steps: list[int], note: int) -> None:
        """A turn with that many calls in each step; a system message before or after the user's."""
        question = user(f"question {number}")
        messages = [question, NOTE] if note == 1 else [NOTE, question] if note == 2 else [question]
        for step, count in enumerate([*steps, 0]):
            words = (f"I think of {number} {step}.",) * (1 + step % 2)
            calls = tuple(("look", {"at": at}) for at in range(count))
            self.ask(*messages, answer=Answer("" if count else "Done.", words, calls))
            messages = [result(name, f"found {name}", name="look") for name in self._call_ids(count)]
            if not count:
                return

    def _call_ids(self, count: int) -> list[str]:
        return [f"call_{len(self.replies)}_{at}" for at in range(count)]


TURNS = st.lists(
    st.tuples(st.lists(st.integers(0, 9), max_size=5), st.integers(0, 2)), min_size=1, max_size=5
)


@given(
    TURNS,
    st.sampled_from(["claude-opus-5-5", "claude-opus-4-8", "claude-sonnet-4-5", "gpt-5.6", "gpt-4o"]),
    st.sampled_from(["5m", "1h"]),
)
def test_what_was_sent_once_is_read_from_the_cache(
    turns: list[tuple[list[int], int]], model: str, ttl: str
) -> None:
    talk = Talk(model, ttl)
    for number, (steps, note) in enumerate(turns):
        talk.turn(number, steps, note)
    assert [reply.dropped for reply in talk.replies] == [()] * len(talk.replies)
    if model != "gpt-4o":  # which rounds down
        for before, now in zip(talk.replies, talk.replies[1:], strict=False):
            assert now.usage.cache_read >= before.usage.sent
    assert all(not reply.usage.cache_write_1h for reply in talk.replies) or ttl == "1h"


def test_thinking_comes_back_and_is_refused_behind_anything_else() -> None:
    talk = Talk("claude-opus-5-5")
    talk.turn(0, [2], 0)
    talk.turn(1, [], 1)
    thoughts = [part for message in talk.messages for part in content_of(message) if isinstance(part, dict)]
    assert [part["type"] for part in thoughts].count("thinking") == 4
    talk.messages[0] = user("another question")
    with pytest.raises(Refused):
        talk.turn(2, [], 0)
