"""Anthropic's server tools: paused answers, and results that come in the next answer."""

from typing import Any

import msgspec
import pytest

from nexus_context.conversation.bodies import formats
from nexus_context.conversation.message import Message, ToolCall
from support.conversations import result, user
from support.provider_rules import check_anthropic

SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
CODE = {"type": "server_tool_use", "id": "srv_2", "name": "code_execution", "input": {"code": "x"}}
RAN = {"type": "code_execution_tool_result", "tool_use_id": "srv_2", "content": {"type": "x"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SAID = {"type": "text", "text": "said"}
LEFT_OUT = "server-tool-left-out"
MODELS = ("claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5")


def answer(*content: Any, calls: tuple[str, ...] = (), **meta: str) -> Message:
    tool_calls = tuple(ToolCall(call, "look", {}) for call in calls)
    return Message("assistant", list(content), tool_calls, meta=meta or msgspec.UNSET)


def called(call: str, code: str) -> Message:
    """An answer whose code calls a tool of the client."""
    caller = {"type": "code_execution_20250825", "tool_id": code}
    mark = {"type": "tool_call", "id": call, "caller": caller}
    return Message("assistant", [mark], (ToolCall(call, "look", {}),))


def check(
    messages: list[Message], *shown: str, repairs: tuple[str, ...] = (), is_paused: bool = False
) -> None:
    """The messages that every model gets, each as its role and the kinds of its blocks."""
    for model in MODELS:
        body, logged = formats.anthropic(model, "", messages, (), {"max_tokens": 9})
        rendered = [
            f"{message['role']}: {' '.join(block['type'] for block in message['content'])}"
            for message in body["messages"]
        ]
        assert (rendered, [repair.kind for repair in logged]) == (list(shown), list(repairs)), model
        check_anthropic(body, is_paused=is_paused)


@pytest.mark.parametrize(
    "paused",
    [
        answer(SAID, SEARCH),
        answer(SAID, SEARCH, FOUND),
        answer(SEARCH, FOUND, SAID, stop_reason="pause_turn"),
        answer(SEARCH, FOUND, THOUGHT, stop_reason="pause_turn"),
    ],
    ids=["running", "answered", "said", "thought"],
)
def test_a_paused_answer_is_last_and_as_it_came(paused: Message) -> None:
    assert isinstance(paused.content, list)
    kinds = " ".join(part["type"] for part in paused.content)
    check([user("a"), paused], "user: text", f"assistant: {kinds}", is_paused=True)


def test_the_continuation_of_a_paused_answer_has_the_result() -> None:
    check(
        [user("a"), answer(SAID, SEARCH), answer(FOUND, SAID), user("b")],
        *("user: text", "assistant: text server_tool_use web_search_tool_result text", "user: text"),
    )


def test_a_paused_answer_that_the_user_interrupts_loses_the_call() -> None:
    check(
        [user("a"), answer(SAID, SEARCH), user("b")],
        *("user: text", "assistant: text", "user: text"),
        repairs=(LEFT_OUT,),
    )


def test_a_server_tool_beside_a_call_waits_for_the_next_answer() -> None:
    waiting = [user("a"), answer(SAID, SEARCH, calls=("1",)), result("1")]
    first = ("user: text", "assistant: text server_tool_use tool_use", "user: tool_result")
    check(waiting, *first)
    then = [*waiting, answer(FOUND, SAID), user("b")]
    check(then, *first, "assistant: web_search_tool_result text", "user: text")


@pytest.mark.parametrize(
    "between", [[user("wait")], [answer(SAID)], [answer(SAID, calls=("2",)), result("2")]]
)
def test_without_the_result_in_the_next_answer_the_call_is_left_out(between: list[Message]) -> None:
    messages = [user("a"), answer(SAID, SEARCH, calls=("1",)), result("1"), *between, answer(FOUND, SAID)]
    body, repairs = formats.anthropic("claude-opus-4-8", "", [*messages, user("b")], (), {"max_tokens": 9})
    check_anthropic(body)
    kinds = [block["type"] for message in body["messages"] for block in message["content"]]
    assert ("server_tool_use" in kinds) == ("web_search_tool_result" in kinds) == (between == [answer(SAID)])
    assert [repair.kind for repair in repairs].count(LEFT_OUT) == (between != [answer(SAID)])


def test_code_calls_tools_in_several_answers() -> None:
    running = [user("a"), answer(CODE, calls=()), called("1", "srv_2"), result("1"), called("2", "srv_2")]
    shown = ("user: text", "assistant: server_tool_use tool_use", "user: tool_result", "assistant: tool_use")
    check([*running, result("2")], *shown, "user: tool_result")
    ended = [*running, result("2"), answer(RAN, SAID), user("b")]
    check(ended, *shown, "user: tool_result", "assistant: code_execution_tool_result text", "user: text")
    body, _ = formats.anthropic("claude-opus-4-8", "", ended, (), {"max_tokens": 9})
    assert body["messages"][3]["content"][0]["caller"]["tool_id"] == "srv_2"


def test_two_calls_of_one_id_and_a_result_of_none_are_halves() -> None:
    check(
        [user("a"), answer(FOUND, SEARCH, SEARCH, FOUND, FOUND, SAID), user("b")],
        *("user: text", "assistant: server_tool_use web_search_tool_result text", "user: text"),
        repairs=(LEFT_OUT,),
    )
