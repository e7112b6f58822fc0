"""Provider bodies: what each provider is sent, and that it is valid by that provider's own rules."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation import formats, settings
from nexus_context.conversation.message import Message, ToolCall

PNG = "iVBORw0KGgo="
ANTHROPIC_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
OPENAI_IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
ANTHROPIC_LINK = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
OPENAI_LINK = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}


def check(messages: list[Message], openai: list[Any], anthropic: list[Any], left_out: list[str]) -> None:
    """The messages of both bodies, as (role, content) without type and id noise, and what is left out."""
    body, openai_left = formats.openai("m", "", messages, [], {})
    assert [shown_openai(one) for one in body["messages"]] == openai
    other, anthropic_left = formats.anthropic("m", "", messages, [], {})
    assert [(one["role"], [shown_block(block) for block in one["content"]]) for one in other["messages"]] == (
        anthropic
    )
    assert (openai_left, anthropic_left[: len(openai_left)]) == (left_out, left_out)
    valid_openai(body)
    valid_anthropic(other)


def shown_openai(message: Any) -> tuple[str, Any]:
    if message["role"] == "tool":
        return "tool", (message["tool_call_id"], message["content"])
    calls = [call["id"] for call in message.get("tool_calls", [])]
    return message["role"], (message["content"], calls) if calls else message["content"]


def shown_block(block: Any) -> Any:
    if block["type"] == "tool_use":
        return "call", block["id"]
    if block["type"] == "tool_result":
        return "result", block["tool_use_id"]
    return block["text"] if block["type"] == "text" else block


def valid_openai(body: Any) -> None:
    """Each call is answered by the very next messages, and only they; nothing is empty."""
    open_calls: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls
        calls = message.get("tool_calls", [])
        open_calls = {call["id"] for call in calls}
        assert len(open_calls) == len(calls)
        assert message["content"] or calls
        assert all(isinstance(call["function"]["arguments"], str) for call in calls)
    assert not open_calls
    neighbours = itertools.pairwise(message["role"] for message in body["messages"])
    assert all(before != after or before in ("tool", "system") for before, after in neighbours)


def valid_anthropic(body: Any) -> None:
    """Roles alternate from a user on; the results of all calls open the next message; nothing is empty."""
    roles = [message["role"] for message in body["messages"]]
    assert roles == [("user", "assistant")[index % 2] for index in range(len(roles))]
    expected: set[str] = set()
    for message in body["messages"]:
        kinds = [block["type"] for block in message["content"]]
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert kinds
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        assert (set(results), len(results)) == (expected, len(expected))
        assert all(block["text"].strip() for block in message["content"] if block["type"] == "text")
        assert all(isinstance(block["input"], dict) for block in message["content"] if "input" in block)
        expected = set(calls)
    assert not expected


def user(content: Any) -> Message:
    return Message("user", content)


def assistant(content: Any, *calls: str) -> Message:
    return Message("assistant", content, tuple(ToolCall(call, "search", {"q": 1}) for call in calls))


def result(call: str, content: Any = "found") -> Message:
    return Message("tool", content, tool_call_id=call)


def test_neighbours_of_one_role_become_one() -> None:
    check(
        [
            user("a"),
            user([{"type": "text", "text": "b"}]),
            assistant("c"),
            assistant("d"),
            user("e"),
            user("f"),
        ],
        [
            ("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            ("assistant", "c\n\nd"),
            ("user", "e\n\nf"),
        ],
        [("user", ["a", "b"]), ("assistant", ["c", "d"]), ("user", ["e", "f"])],
        [],
    )


def test_results_stand_right_after_their_calls() -> None:
    check(
        [user("a"), assistant(None, "1", "2"), user("wait"), result("2"), result("1"), user("b")],
        [
            ("user", "a"),
            ("assistant", (None, ["1", "2"])),
            ("tool", ("1", "found")),
            ("tool", ("2", "found")),
            ("user", "wait\n\nb"),
        ],
        [
            ("user", ["a"]),
            ("assistant", [("call", "1"), ("call", "2")]),
            ("user", [("result", "1"), ("result", "2"), "wait", "b"]),
        ],
        [],
    )


def test_an_id_may_come_again() -> None:
    check(
        [user("a"), assistant("", "1"), result("1", "x"), assistant("", "1"), result("1", "y")],
        [
            ("user", "a"),
            ("assistant", (None, ["1"])),
            ("tool", ("1", "x")),
            ("assistant", (None, ["1"])),
            ("tool", ("1", "y")),
        ],
        [
            ("user", ["a"]),
            ("assistant", [("call", "1")]),
            ("user", [("result", "1")]),
            ("assistant", [("call", "1")]),
            ("user", [("result", "1")]),
        ],
        [],
    )


def test_calls_and_results_without_a_counterpart_are_left_out_and_said() -> None:
    check(
        [user("a"), result("0"), assistant("b", "1"), user("c"), assistant("", "2")],
        [("user", "a"), ("assistant", "b"), ("user", "c")],
        [("user", ["a"]), ("assistant", ["b"]), ("user", ["c"])],
        [
            "tool call 1, which has no result",
            "tool call 2, which has no result",
            "the result of tool call 0, which has no call",
        ],
    )


def test_what_says_nothing_is_left_out() -> None:
    blank = [{"type": "text", "text": " \n"}]
    check([user("a"), user(""), assistant(blank), user([])], [("user", "a")], [("user", ["a"])], [])


def test_anthropic_begins_with_a_user() -> None:
    messages = [assistant("hello"), assistant("", "1"), result("1"), user("a")]
    body, left_out = formats.anthropic("m", "", messages, [], {})
    assert [one["role"] for one in body["messages"]] == ["user"]
    assert left_out == [
        "a message of the role assistant before the first of a user",
        "a message of the role assistant before the first of a user",
        "a message of the role tool before the first of a user",
    ]
    assert [one["role"] for one in formats.openai("m", "", messages, [], {})[0]["messages"]] == [
        "assistant",
        "tool",
        "user",
    ]


def test_system_messages_of_the_history() -> None:
    messages = [user("a"), Message("system", "from now on"), user("b")]
    body, _ = formats.anthropic("m", "prompt", messages, [], {})
    assert body["system"] == [
        {"type": "text", "text": "prompt", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "from now on"},
    ]
    assert [one["role"] for one in body["messages"]] == ["user"]
    openai, _ = formats.openai("m", "prompt", [Message("system", "first"), *messages], [], {})
    assert [(one["role"], one["content"]) for one in openai["messages"]] == [
        ("system", "prompt"),
        ("system", "first"),
        ("user", "a"),
        ("system", "from now on"),
        ("user", "b"),
    ]


@pytest.mark.parametrize(
    ("part", "openai", "anthropic"),
    [
        (ANTHROPIC_IMAGE, OPENAI_IMAGE, ANTHROPIC_IMAGE),
        (OPENAI_IMAGE, OPENAI_IMAGE, ANTHROPIC_IMAGE),
        (ANTHROPIC_LINK, OPENAI_LINK, ANTHROPIC_LINK),
        (OPENAI_LINK, OPENAI_LINK, ANTHROPIC_LINK),
        ({"type": "input_image", "image_url": "https://x.example/a.png"}, OPENAI_LINK, ANTHROPIC_LINK),
        ({"type": "input_text", "text": "x"}, {"type": "text", "text": "x"}, {"type": "text", "text": "x"}),
        ("x", {"type": "text", "text": "x"}, {"type": "text", "text": "x"}),
        ({"type": "file", "id": 1}, {"type": "file", "id": 1}, {"type": "file", "id": 1}),
    ],
)
def test_parts_in_the_form_of_each_provider(part: Any, openai: Any, anthropic: Any) -> None:
    messages = [user([part])]
    assert formats.openai("m", "", messages, [], {})[0]["messages"][0]["content"] == [openai]
    assert formats.anthropic("m", "", messages, [], {})[0]["messages"][0]["content"] == [anthropic]


def test_an_image_in_a_result() -> None:
    messages = [user("a"), assistant("", "1"), result("1", [{"type": "text", "text": "see"}, OPENAI_IMAGE])]
    body, left_out = formats.openai("m", "", messages, [], {})
    assert (body["messages"][-1]["content"], left_out) == ("see", ["images in the result of tool call 1"])
    other, left_out = formats.anthropic("m", "", messages, [], {})
    assert (other["messages"][-1]["content"][0]["content"][-1], left_out) == (ANTHROPIC_IMAGE, [])


@pytest.mark.parametrize(
    ("arguments", "text", "given"),
    [
        ({"a": 1}, '{"a":1}', {"a": 1}),
        ('{"a": 1}', '{"a": 1}', {"a": 1}),
        ("", "", {}),
        ("no JSON", "no JSON", {"arguments": "no JSON"}),
        ([1], "[1]", {"arguments": [1]}),
        (None, "null", {}),
    ],
)
def test_arguments_of_a_call(arguments: Any, text: str, given: Any) -> None:
    messages = [user("a"), Message("assistant", "", (ToolCall("1", "search", arguments),)), result("1")]
    openai = formats.openai("m", "", messages, [], {})[0]["messages"][1]["tool_calls"][0]
    assert openai["function"] == {"name": "search", "arguments": text}
    anthropic = formats.anthropic("m", "", messages, [], {})[0]["messages"][1]["content"][0]
    assert anthropic["input"] == given


TOOL = {"name": "search", "description": "Finds.", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    "tool", [TOOL, {"type": "function", "function": {**TOOL, "parameters": {"type": "object"}}}]
)
def test_tools(tool: Any) -> None:
    openai = formats.openai("m", "", [user("a")], [tool], {})[0]["tools"][0]
    assert (openai["type"], openai["function"]["name"]) == ("function", "search")
    assert openai["function"]["parameters"] == {"type": "object"}
    anthropic = formats.anthropic("m", "", [user("a")], [tool], {})[0]["tools"][0]
    assert anthropic == {"name": "search", "description": "Finds.", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("parameters", "openai", "anthropic"),
    [
        ({}, ({}, []), ({"max_tokens": 8000}, [])),
        (
            {"temperature": 0.0, "top_p": 0.9, "top_k": 5, "max_tokens": 100},
            ({"temperature": 0.0, "top_p": 0.9, "max_completion_tokens": 100}, ["top_k"]),
            ({"max_tokens": 100, "temperature": 0.0, "top_p": 0.9, "top_k": 5}, []),
        ),
        (
            {"thinking": {"level": "low"}, "temperature": 0.5, "top_p": 0.95},
            ({"temperature": 0.5, "top_p": 0.95, "reasoning_effort": "low"}, []),
            (
                {
                    "max_tokens": 8000,
                    "thinking": {"type": "enabled", "budget_tokens": 4096},
                    "top_p": 0.95,
                },
                ["temperature"],
            ),
        ),
        (
            {"thinking": {"level": "high", "budget": 2000}},
            ({"reasoning_effort": "high"}, ["thinking.budget"]),
            ({"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 2000}}, []),
        ),
        (
            {"thinking": {"level": "high"}},
            ({"reasoning_effort": "high"}, []),
            ({"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 7999}}, []),
        ),
        (
            {"thinking": {"budget": 2000}, "max_tokens": 500},
            ({"max_completion_tokens": 500}, ["thinking.budget"]),
            ({"max_tokens": 500}, ["thinking"]),
        ),
        ({"thinking": {"level": "off"}}, ({}, ["thinking.level"]), ({"max_tokens": 8000}, [])),
    ],
)
def test_parameters(parameters: Any, openai: Any, anthropic: Any) -> None:
    assert settings.openai(parameters, thinks=True) == openai
    assert settings.anthropic(parameters, max_output=8000, thinks=True) == anthropic


def test_a_model_that_does_not_think_is_not_told_to() -> None:
    parameters = {"thinking": {"level": "high"}, "temperature": 0.5}
    assert settings.openai(parameters, thinks=False) == ({"temperature": 0.5}, ["thinking.level"])
    assert settings.anthropic(parameters, max_output=8000, thinks=False) == (
        {"max_tokens": 8000, "temperature": 0.5},
        ["thinking"],
    )


IDS = st.sampled_from(["1", "2", "3"])
CONTENTS = st.sampled_from(["", " ", "text", None])
MESSAGES = st.lists(
    st.one_of(
        st.builds(user, CONTENTS),
        st.builds(lambda content, ids: assistant(content, *ids), CONTENTS, st.lists(IDS, max_size=3)),
        st.builds(result, IDS, CONTENTS),
        st.builds(Message, st.just("system"), CONTENTS),
    ),
    max_size=12,
)


@given(MESSAGES)
def test_any_history_is_valid_for_both(messages: list[Message]) -> None:
    valid_openai(formats.openai("m", "prompt", messages, [], {})[0])
    valid_anthropic(formats.anthropic("m", "prompt", messages, [], {})[0])
