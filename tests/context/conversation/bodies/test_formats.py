"""Request bodies: what each provider receives, and that it is valid by its rules and types."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nexus_context.conversation.bodies import formats, parameter_fields
from nexus_context.conversation.bodies.breakpoints import Cache
from nexus_context.conversation.message import Message, ToolCall
from support.conversations import MESSAGES, PARTS, PDF, PNG, TOOLS, assistant, result, user
from support.provider_rules import check_anthropic, check_openai, check_responses
from support.provider_types import check_anthropic_types, check_openai_types, check_responses_types

MISSING = "[No result of this call was recorded.]"
LATE = '<late_tool_result call="0">\nfound\n</late_tool_result>'
OPENS = "[Start of the conversation]"
REQUIRED = {"max_tokens": 100}
IMAGE_LINK = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}


def openai(messages: list[Message], tools: Any = (), system: str = "") -> tuple[Any, list[str]]:
    """A valid body, and what is said about it: kinds."""
    body, said = formats.openai("m", system, messages, tools, {})
    check_openai(body)
    check_openai_types(body)
    return body, [one.kind for one in said]


def anthropic(
    messages: list[Message], tools: Any = (), system: str = "", *, model: str = "m", **given: Any
) -> tuple[Any, list[str]]:
    """A valid body, and what is said about it: kinds."""
    body, said = formats.anthropic(model, system, messages, tools, REQUIRED | given)
    check_anthropic(body, prefill=parameter_fields.takes_prefill(model) and not given)
    check_anthropic_types(body)
    return body, [one.kind for one in said]


def check(
    messages: list[Message], openai_form: list[Any], anthropic_form: list[Any], said: list[str]
) -> None:
    """The messages of both bodies, as (role, content) without type and id noise, and what is said of both."""
    body, kinds = openai(messages)
    assert [shown_openai(one) for one in body["messages"]] == openai_form
    assert kinds == said
    body, kinds = anthropic(messages)
    made = [(one["role"], [shown_block(block) for block in one["content"]]) for one in body["messages"]]
    assert made == anthropic_form
    assert kinds == said


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


# ---------------------------------------------------------------- messages


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
            ("tool", ("2", "found")),
            ("tool", ("1", "found")),
            ("user", "wait\n\nb"),
        ],
        [
            ("user", ["a"]),
            ("assistant", [("call", "1"), ("call", "2")]),
            ("user", [("result", "2"), ("result", "1"), "wait", "b"]),
        ],
        ["result-moved", "result-moved"],
    )


def test_a_broken_history_is_repaired_and_said() -> None:
    check(
        [user("a"), result("0"), assistant("b", "1"), user("c"), user(" "), assistant("", "1"), result("1")],
        [
            ("user", f"a\n\n{LATE}"),
            ("assistant", ("b", ["1"])),
            ("tool", ("1", MISSING)),
            ("user", "c"),
            ("assistant", (None, ["1-2"])),
            ("tool", ("1-2", "found")),
        ],
        [
            ("user", ["a", LATE]),
            ("assistant", ["b", ("call", "1")]),
            ("user", [("result", "1"), "c"]),
            ("assistant", [("call", "1-2")]),
            ("user", [("result", "1-2")]),
        ],
        ["result-orphan", "result-missing", "message-empty", "call-renamed"],
    )


def test_a_conversation_of_nothing_is_opened() -> None:
    check([], [("user", OPENS)], [("user", [OPENS])], ["conversation-empty"])
    assert openai([], system="prompt") == ({"model": "m", "messages": [SYSTEM]}, [])


SYSTEM = {"role": "system", "content": "prompt"}


def test_anthropic_begins_with_a_user() -> None:
    body, said = anthropic([assistant("hello"), assistant("", "1"), result("1"), user("a")])
    assert [[shown_block(block) for block in one["content"]] for one in body["messages"]] == [
        [OPENS],
        ["hello", ("call", "1")],
        [("result", "1"), "a"],
    ]
    assert said == ["conversation-opened"]
    assert openai([assistant("hello"), user("a")])[1] == []


def test_system_messages_of_the_history() -> None:
    messages = [Message("system", "first"), user("a"), Message("system", "from now on"), user("b")]
    body, said = anthropic(messages, system="prompt")
    assert [block["text"] for block in body["system"]] == ["prompt", "first"]
    note = "<system_message>\nfrom now on\n</system_message>"
    assert [(one["role"], [block["text"] for block in one["content"]]) for one in body["messages"]] == [
        ("user", ["a", note, "b"])
    ]
    assert said == ["system-as-user"]
    body, said = openai(messages, system="prompt")
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("system", "prompt"),
        ("system", "first"),
        ("user", "a"),
        ("system", "from now on"),
        ("user", "b"),
    ]
    assert said == []


NOTE = Message("system", "from now on")


@pytest.mark.parametrize(
    ("messages", "roles", "said"),
    [
        ([user("a"), NOTE], ["user", "system"], []),
        ([user("a"), NOTE, user("b")], ["user", "system"], []),
        ([user("a"), NOTE, NOTE, assistant("c"), user("d")], ["user", "system", "assistant", "user"], []),
        ([user("a"), assistant("c"), NOTE, user("d")], ["user", "assistant", "user", "system"], []),
        (
            [user("a"), assistant("c"), NOTE, assistant("d"), user("e")],
            ["user", "assistant", "user", "assistant", "user"],
            ["system-as-user"],
        ),
        ([user("a"), assistant("c"), NOTE], ["user", "assistant", "user"], ["system-as-user"]),
        (
            [user("a"), assistant("", "1"), NOTE, result("1")],
            ["user", "assistant", "user", "system"],
            ["result-moved"],
        ),
    ],
)
def test_a_model_that_takes_system_messages(
    messages: list[Message], roles: list[str], said: list[str]
) -> None:
    body, kinds = anthropic(messages, model="claude-opus-4-8")
    assert ([one["role"] for one in body["messages"]], kinds) == (roles, said)


def test_anthropic_keeps_what_it_caches_as_long_as_it_is_told() -> None:
    tool = {"type": "bash_20250124", "name": "bash", "cache_control": {"type": "ephemeral"}}
    for ttl, mark in (("5m", {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"})):
        cache = Cache(minimum=0, ttl=ttl)  # type: ignore[arg-type]
        body, _ = formats.anthropic("m", "prompt", [user("a"), user("b")], [tool], REQUIRED, cache=cache)
        check_anthropic(body)
        check_anthropic_types(body)
        assert body["tools"] == [{"type": "bash_20250124", "name": "bash"}]
        assert body["system"] == [{"type": "text", "text": "prompt", "cache_control": mark}]
        assert [block["cache_control"] for block in body["messages"][0]["content"]] == [mark, mark]


def test_openai_caches_at_the_end_of_the_prompt_and_of_what_comes_again() -> None:
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    messages = [user("a"), assistant("", "1"), result("1"), assistant("b"), user("c")]
    cache = Cache(stable=4, minimum=0)
    body, _ = formats.openai("gpt-5.6", "prompt", messages, [], {}, cache=cache)
    check_openai(body)
    check_openai_types(body)
    assert [one["content"] for one in body["messages"]] == [
        [{"type": "text", "text": "prompt"} | mark],
        [{"type": "text", "text": "a"}],
        None,
        [{"type": "text", "text": "found"} | mark],
        "b",
        [{"type": "text", "text": "c"}],
    ]
    body, _ = formats.openai_responses("gpt-5.6", "prompt", messages, [], {}, cache=cache)
    check_responses(body)
    check_responses_types(body)
    assert [one.get("content", one.get("output")) for one in body["input"]] == [
        [{"type": "input_text", "text": "prompt"} | mark],
        [{"type": "input_text", "text": "a"}],
        None,
        [{"type": "input_text", "text": "found"} | mark],
        "b",
        [{"type": "input_text", "text": "c"}],
    ]
    assert "instructions" not in body
    for model, minimum in (("gpt-5.5", 0), ("gpt-5.6", 1_024)):
        body, _ = formats.openai(model, "prompt", messages, [], {}, cache=Cache(minimum=minimum))
        assert "prompt_cache_breakpoint" not in json.dumps(body)
    sized = Cache(stable=4, minimum=100, tools=0, system=90, messages=[5, 5, 5, 5, 5])
    body, _ = formats.openai("gpt-5.6", "prompt", messages, [], {}, cache=sized)
    assert [
        mark.keys() <= one["content"][0].keys() for one in body["messages"] if one["role"] != "assistant"
    ] == [*(False, False, True, False)]


@pytest.mark.parametrize(
    ("model", "given", "end", "said"),
    [
        ("claude-sonnet-4-5", {}, ("assistant", "The answer is"), ["space-trimmed"]),
        ("claude-opus-4-6", {}, ("user", "[Continue.]"), ["conversation-continued"]),
        ("claude-sonnet-5", {}, ("user", "[Continue.]"), ["conversation-continued"]),
        (
            "claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            ("user", "[Continue.]"),
            ["conversation-continued"],
        ),
    ],
)
def test_an_assistant_at_the_end(model: str, given: Any, end: tuple[str, str], said: list[str]) -> None:
    body, kinds = anthropic([user("a"), assistant("The answer is \n")], model=model, **given)
    last = body["messages"][-1]
    assert ((last["role"], last["content"][-1]["text"]), kinds) == (end, said)


def test_reasoning_at_the_end_of_a_message() -> None:
    reasoning = PARTS["thinking"]
    body, said = anthropic([user("a"), assistant([reasoning]), user("b"), assistant([reasoning], "1")])
    assert [[block["type"] for block in one["content"]] for one in body["messages"]] == [
        ["text", "text"],
        ["thinking", "tool_use"],
        ["tool_result"],
    ]
    assert said == ["result-missing", "thinking-left-out"]


def test_a_failed_result() -> None:
    failed = Message("tool", [PARTS["image"]], tool_call_id="1", meta={"is_error": True})
    empty = Message("tool", "", tool_call_id="2", meta={"isError": True})
    body, said = anthropic([user("a"), assistant("", "1", "2"), failed, empty])
    assert [
        (block["is_error"], block["content"][0]["text"]) for block in body["messages"][-1]["content"]
    ] == [
        (True, "[A part of the type image cannot be shown here.]"),
        (True, "[The tool returned nothing.]"),
    ]
    assert said == ["part-omitted"]


def test_a_result_that_is_empty() -> None:
    messages = [user("a"), assistant("", "1"), result("1", None)]
    body, said = openai(messages)
    assert (body["messages"][-1]["content"], said) == ("[The tool returned nothing.]", ["result-empty"])
    body, said = anthropic(messages)
    assert (body["messages"][-1]["content"], said) == ([{"type": "tool_result", "tool_use_id": "1"}], [])


def test_images_in_a_result() -> None:
    messages = [user("a"), assistant("", "1", "2"), result("1", [PARTS["text"], PARTS["image"]]), result("2")]
    body, said = openai(messages)
    assert body["messages"][-3:] == [
        {"role": "tool", "tool_call_id": "1", "content": "said"},
        {"role": "tool", "tool_call_id": "2", "content": "found"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[Images from the result of the tool call 1:]"},
                IMAGE_LINK,
            ],
        },
    ]
    assert said == ["image-moved"]
    body, said = anthropic(messages)
    assert body["messages"][-1]["content"][0]["content"] == [PARTS["text"], PARTS["image"]]
    assert said == []


# ---------------------------------------------------------------- parts

SAID = {"type": "text", "text": "said"}
HIDDEN = "[A part of the type {} cannot be shown here.]"
LINK = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
PDF_FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}}
PDF_BLOCK = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}


def hidden(kind: str) -> Any:
    return {"type": "text", "text": HIDDEN.format(kind)}


@pytest.mark.parametrize(
    ("part", "openai_form", "anthropic_form"),
    [
        ("text", SAID, SAID),
        ("input_text", SAID, SAID),
        ("cached text", SAID, SAID),
        ("bare text", SAID, SAID),
        ("number", {"type": "text", "text": "7"}, {"type": "text", "text": "7"}),
        ("refusal", {"type": "text", "text": "I will not."}, {"type": "text", "text": "I will not."}),
        ("image", IMAGE_LINK, PARTS["image"]),
        ("data link", IMAGE_LINK, PARTS["image"]),
        (
            "misnamed",
            IMAGE_LINK,
            PARTS["image"],
        ),
        ("MCP image", IMAGE_LINK, PARTS["image"]),
        ("image link", LINK, PARTS["image link"]),
        ("input_image", LINK, PARTS["image link"]),
        ("plain link", PARTS["plain link"], hidden("image")),
        ("bitmap", hidden("image/bmp"), hidden("image/bmp")),
        ("local image", *[hidden("image with an invalid URL")] * 2),
        ("no image", hidden("image"), hidden("image")),
        ("pdf", {**PDF_FILE, "file": {**PDF_FILE["file"], "filename": "document.pdf"}}, PDF_BLOCK),  # type: ignore[dict-item]
        ("file", PDF_FILE, {**PDF_BLOCK, "title": "a.pdf"}),
        ("text file", SAID, SAID),
        ("uploaded", PARTS["uploaded"], hidden("file")),
        ("no file", hidden("file"), hidden("file")),
        ("audio", PARTS["audio"], hidden("input_audio")),
        ("resource", SAID, SAID),
        ("resource_link", *[{"type": "text", "text": "[a](file:///a)"}] * 2),
        ("search_result", {"type": "text", "text": "[X](https://x.example)\nsaid"}, PARTS["search_result"]),
        ("video", hidden("video"), hidden("video")),
    ],
)
def test_a_part_in_the_form_of_each_provider(part: str, openai_form: Any, anthropic_form: Any) -> None:
    messages = [user([PARTS[part]])]
    body, said = openai(messages)
    assert body["messages"][0]["content"] == [openai_form]
    assert bool(said) == (openai_form["type"] == "text" and part in HAS_NO_TEXT)
    body, said = anthropic(messages)
    assert body["messages"][0]["content"] == [anthropic_form]
    assert bool(said) == (anthropic_form["type"] == "text" and part in HAS_NO_TEXT)


HAS_NO_TEXT = set(PARTS) - {
    *("text", "input_text", "cached text", "bare text", "number", "refusal"),
    *("text file", "resource", "resource_link"),
}


def test_what_an_assistant_says() -> None:
    given = ["thinking", "redacted", "unsigned", "image", "refusal", "server call", "server result", "text"]
    messages = [user("a"), assistant([PARTS[name] for name in given]), user("b")]
    body, said = openai(messages)
    assert body["messages"][1]["content"] == [hidden("image"), PARTS["refusal"], *SERVER_HIDDEN, SAID]
    assert sorted(set(said)) == ["part-omitted", "thinking-left-out"]
    body, said = anthropic(messages)
    assert body["messages"][1]["content"] == [
        PARTS["thinking"],
        PARTS["redacted"],
        hidden("image"),
        {"type": "text", "text": "I will not."},
        PARTS["server call"],
        PARTS["server result"],
        SAID,
    ]
    assert said == ["thinking-left-out", "part-omitted"]


SERVER_HIDDEN = [hidden("server_tool_use"), hidden("web_search_tool_result")]


def test_half_of_a_call_of_the_providers_own_tool() -> None:
    body, said = anthropic([user("a"), assistant([PARTS["server result"], PARTS["server call"], SAID])])
    assert (body["messages"][1]["content"], said) == ([SAID], ["server-tool-left-out"])


def test_what_happens_often_is_said_once() -> None:
    messages = [user([PARTS["video"], PARTS["video"]]), user([PARTS["video"]])]
    _, said = formats.openai("m", "", messages, [], {})
    text = "A part of the type video is not allowed in a message of the role user; a text replaces it."
    assert [(one.kind, one.index, one.text) for one in said] == [("part-omitted", 0, f"{text} (3 times)")]


# ---------------------------------------------------------------- calls and tools


@pytest.mark.parametrize(
    ("arguments", "text", "given", "said"),
    [
        ({"a": 1}, '{"a":1}', {"a": 1}, []),
        ('{"a": 1}', '{"a": 1}', {"a": 1}, []),
        ('{"arguments": 1}', '{"arguments":1}', {"arguments": 1}, []),
        ("", "{}", {}, []),
        (None, "{}", {}, []),
        ("no JSON", '{"arguments":"no JSON"}', {"arguments": "no JSON"}, ["arguments-wrapped"]),
        ("[1]", '{"arguments":[1]}', {"arguments": [1]}, ["arguments-wrapped"]),
        ([1], '{"arguments":[1]}', {"arguments": [1]}, ["arguments-wrapped"]),
    ],
)
def test_arguments_of_a_call(arguments: Any, text: str, given: Any, said: list[str]) -> None:
    messages = [user("a"), Message("assistant", "", (ToolCall("1", "search", arguments),)), result("1")]
    body, kinds = openai(messages)
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "search", "arguments": text}
    assert kinds == said
    body, kinds = anthropic(messages)
    assert (body["messages"][1]["content"][0]["input"], kinds) == (given, said)


TOOL = {"name": "search", "description": "Finds.", "inputSchema": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    "tool",
    [
        TOOL,
        {"type": "custom", **TOOL},
        {"type": "function", **TOOL},
        {"type": "function", "function": {**TOOL, "parameters": {}}},
        {"name": "search", "description": "Finds.", "cache_control": {"type": "ephemeral"}},
    ],
)
def test_a_tool_in_the_form_of_each_provider(tool: Any) -> None:
    body, said = openai([user("a")], [tool])
    function = {"name": "search", "description": "Finds.", "parameters": SCHEMA}
    assert (body["tools"], said) == ([{"type": "function", "function": function}], [])
    body, said = anthropic([user("a")], [tool])
    assert body["tools"] == [{"name": "search", "description": "Finds.", "input_schema": SCHEMA}]
    assert said == []


def test_names_that_a_provider_refuses() -> None:
    tools = [
        {"name": name}
        for name in ("github.search", "github_search", "läs", "x" * 100, "x" * 99 + ".", "search", "search")
    ]
    calls = tuple(ToolCall(str(at), tool["name"]) for at, tool in enumerate([*tools, {"name": "gone.by"}]))
    body, said = anthropic([user("a"), Message("assistant", "", calls)], tools)
    defined = [tool["name"] for tool in body["tools"]]
    assert defined == [
        *("github_search-de1a9f76", "github_search", "l_s", "x" * 100, "x" * 99 + "_", "search"),
    ]
    called = [block["name"] for block in body["messages"][1]["content"]]
    assert called == [*defined, "search", "gone_by"]
    body, _ = openai([user("a"), Message("assistant", "", calls)], tools)
    short = [tool["function"]["name"] for tool in body["tools"]]
    assert short[:3] == defined[:3]
    assert [len(name) for name in short[3:]] == [64, 64, 6]
    assert len(set(short)) == 6
    assert [call["function"]["name"] for call in body["messages"][1]["tool_calls"]][:6] == short
    assert said.count("tool-renamed") == 4
    _, entries = formats.anthropic("m", "", [], tools[:1], {})
    assert (entries[0].given, entries[0].sent, entries[0].text) == (
        "github.search",
        "github_search",
        "The provider rejects the tool name github.search; it is sent as github_search.",
    )


def test_ids_that_a_provider_refuses() -> None:
    messages = [user("a"), assistant("", "a.b", "a_b", "x" * 50), *map(result, ("a.b", "a_b", "x" * 50))]
    body, said = anthropic(messages)
    ids = [block["id"] for block in body["messages"][1]["content"]]
    assert ids == ["a_b-5ab33c2a", "a_b", "x" * 50]
    assert [block["tool_use_id"] for block in body["messages"][2]["content"]] == ids
    assert said == ["id-changed"]
    body, said = openai(messages)
    ids = [call["id"] for call in body["messages"][1]["tool_calls"]]
    assert (ids[:2], ids[2][:32], len(ids[2]), said) == (["a.b", "a_b"], "x" * 31 + "-", 40, ["id-changed"])
    assert [message["tool_call_id"] for message in body["messages"][2:]] == ids


@pytest.mark.parametrize(
    ("tool", "openai_kinds", "anthropic_kinds"),
    [
        ({"name": ""}, ["tool-left-out"], ["tool-left-out"]),
        ({"type": "web_search_20250305", "name": "web_search"}, ["tool-left-out"], []),
        ({"type": "custom", "custom": {"name": "grammar"}}, [], ["tool-left-out"]),
        ({"name": "a", "parameters": {"type": "array"}}, ["schema-changed"], ["schema-changed"]),
        ({"name": "a", "parameters": {"anyOf": []}}, ["schema-changed"], ["schema-changed"]),
    ],
)
def test_tools_that_a_provider_does_not_take(
    tool: Any, openai_kinds: list[str], anthropic_kinds: list[str]
) -> None:
    assert openai([user("a")], [tool])[1] == openai_kinds
    assert anthropic([user("a")], [tool])[1] == anthropic_kinds


def test_requests_of_one_session_find_its_cache() -> None:
    body, _ = formats.openai("m", "", [user("a")], [], {}, cache_key="main")
    check_openai_types(body)
    assert body["prompt_cache_key"] == "main"


# ---------------------------------------------------------------- any history


@given(MESSAGES, TOOLS, st.sampled_from(["", "prompt", "half \ud800"]))
def test_any_history_is_valid_for_openai(messages: list[Message], tools: Any, system: str) -> None:
    openai(messages, tools, system)


@given(
    MESSAGES,
    TOOLS,
    st.sampled_from(["", "prompt", "half \ud800"]),
    st.sampled_from(["m", "claude-sonnet-4-5", "claude-opus-4-7"]),
)
def test_any_history_is_valid_for_anthropic(
    messages: list[Message], tools: Any, system: str, model: str
) -> None:
    anthropic(messages, tools, system, model=model)


@given(MESSAGES, TOOLS)
def test_equal_histories_give_equal_bytes(messages: list[Message], tools: Any) -> None:
    for render in (formats.openai, formats.anthropic):
        rendered = [json.dumps(render("m", "prompt", messages, tools, {})[0]) for _ in range(2)]
        assert rendered[0] == rendered[1]


# ---------------------------------------------------------------- the checks themselves


@pytest.mark.parametrize(
    "message",
    [
        {"role": "nobody", "content": "a"},
        {"role": "user", "content": "a", "more": 1},
        {"role": "user"},
        {"role": "user", "content": 1},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "text", "text": "a", "more": 1}]},
        {"role": "user", "content": [{"type": "movie", "text": "a"}]},
    ],
)
def test_the_providers_types_refuse_what_is_wrong(message: Any) -> None:
    right = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    for check_types in (check_openai_types, check_anthropic_types):
        check_types({"model": "m", "messages": [right]} | SIZES[check_types])
        with pytest.raises(ValidationError):
            check_types({"model": "m", "messages": [right, message]} | SIZES[check_types])


SIZES: dict[Any, Any] = {check_openai_types: {}, check_anthropic_types: REQUIRED}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": " "}],
        [{"role": "tool", "tool_call_id": "1", "content": "a"}],
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]}
            for CALL in [{"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}]
        ],
    ],
)
def test_the_rules_refuse_what_is_wrong_for_openai(messages: Any) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_openai({"model": "m", "messages": messages})


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [[]],
        [[{"type": "text", "text": " "}]],
        [[SAID], [PARTS["thinking"]]],
        [[SAID], [{"type": "text", "text": "a "}]],
        [[SAID], [PARTS["call"]]],
        [[SAID], [PARTS["call"]], [SAID, PARTS["result"]]],
        [[SAID], [PARTS["call"], SAID], [PARTS["result"]]],
        [[SAID], [{**PARTS["call"], "id": "a.b"}], [{**PARTS["result"], "tool_use_id": "a.b"}]],
        [[PARTS["result"]]],
    ],
)
def test_the_rules_refuse_what_is_wrong_for_anthropic(contents: Any) -> None:
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": content} for index, content in enumerate(contents)]
    with pytest.raises(AssertionError):
        check_anthropic({"model": "m", "messages": messages})
