"""What the providers' servers refuse beyond their types: tools, schemas, images, citations."""

import struct
from base64 import b64encode
from typing import Any

import pytest

from nexus_context.conversation.bodies import formats, parameter_fields
from nexus_context.conversation.bodies.breakpoints import Cache
from nexus_context.conversation.bodies.server_rules import is_strict_schema
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.tokens import get_model_limits
from support.conversations import PDF, assistant, result, user
from support.provider_rules import CHECKS, check_anthropic
from support.provider_types import (
    check_anthropic_types,
    check_gemini_types,
    check_openai_types,
    check_responses_types,
)

TYPES = {
    "anthropic": check_anthropic_types,
    "openai": check_openai_types,
    "openai-responses": check_responses_types,
    "gemini": check_gemini_types,
}
WRITERS: dict[str, Any] = {
    "anthropic": formats.anthropic,
    "openai": formats.openai,
    "openai-responses": formats.openai_responses,
    "gemini": formats.gemini,
}
CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def body_of(
    form: str, messages: list[Message], tools: Any = (), *, model: str = "m", **given: Any
) -> tuple[Any, list[Any]]:
    """A valid body, and its repairs."""
    body, repairs = WRITERS[form](
        model, "", messages, tools, {"max_tokens": 9} if form == "anthropic" else {}, **given
    )
    if form == "anthropic":
        check_anthropic(body, window=get_model_limits(model).context_window)
    else:
        CHECKS[form](body)
    TYPES[form](body)
    return body, repairs


def tools_of(form: str, *tools: Any) -> tuple[list[Any], list[str]]:
    """The tools of a body, each without its wrapping, and the texts of the repairs."""
    body, repairs = body_of(form, [user("a")], tools)
    sent = []
    for tool in body.get("tools", []):
        sent += tool.get("functionDeclarations", [tool.get("function", tool)])
    return sent, [repair.text for repair in repairs]


def png(width: int, height: int, extra: int = 0) -> dict[str, Any]:
    """A part with the head of a PNG of this size; `extra` are bytes behind it."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 0, 0, 0, 0)
    data = b64encode(head + bytes(4 + extra)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def images_in(body: Any) -> list[bool]:
    """For each part of the user: whether it is an image."""
    blocks = [
        block for message in body["messages"] if message["role"] == "user" for block in message["content"]
    ]
    return [block["type"] == "image" for block in blocks]


# ---------------------------------------------------------------- tools

FIELDS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "strict": True,
        "defer_loading": True,
        "allowed_callers": ["direct", "code_execution_20250825"],
        "input_examples": [{}],
        "eager_input_streaming": True,
    },
    "openai": {"strict": True},
    "openai-responses": {
        "strict": True,
        "defer_loading": True,
        "allowed_callers": ["programmatic"],
        "output_schema": {"type": "string"},
        "async": True,
    },
    "gemini": {"behavior": "BLOCKING", "responseJsonSchema": {"type": "string"}},
}


@pytest.mark.parametrize("form", FIELDS)
@pytest.mark.parametrize("owner", FIELDS)
def test_each_field_of_a_definition_is_sent_or_reported(form: str, owner: str) -> None:
    fields = FIELDS[owner]
    tool = {"name": "look", "inputSchema": CLOSED, "title": "Look", "_meta": {}, "annotations": {}} | fields
    sent, repairs = tools_of(form, tool, {"name": "other"})
    look = next(tool for tool in sent if tool["name"] == "look")
    for name, value in fields.items():
        assert (look.get(name) == value) != any(name in text for text in repairs), name
    if form == owner:
        assert repairs == []


HOSTED = [
    ("openai-responses", {"type": "web_search"}),
    ("openai-responses", {"type": "file_search", "vector_store_ids": ["vs_1"]}),
    ("openai-responses", {"type": "code_interpreter", "container": {"type": "auto"}}),
    ("openai-responses", {"type": "mcp", "server_label": "a b", "server_url": "https://x.example"}),
    ("openai-responses", {"type": "shell"}),
    ("openai-responses", {"type": "apply_patch"}),
    ("openai-responses", {"type": "custom", "name": "free", "format": {"type": "text"}}),
    ("gemini", {"googleSearch": {}}),
    ("gemini", {"codeExecution": {}}),
    ("gemini", {"url_context": {}}),
    ("anthropic", {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}),
]


@pytest.mark.parametrize(("owner", "tool"), HOSTED, ids=[str(tool) for _, tool in HOSTED])
def test_a_providers_own_tool_is_sent_to_it_alone(owner: str, tool: Any) -> None:
    for form in WRITERS:
        sent, repairs = tools_of(form, tool)
        is_custom = tool.get("type") == "custom" and form == "openai"
        if form == owner or is_custom:
            assert (sent, repairs) == ([tool] if form == owner else sent, [])
        else:
            assert sent == []
            assert "only " in repairs[0]


def test_two_servers_of_one_type_are_two_tools() -> None:
    servers = [{"type": "mcp", "server_label": name, "server_url": "https://x.example"} for name in "ab"]
    assert tools_of("openai-responses", *servers) == (servers, [])


@pytest.mark.parametrize(("form", "most"), [("openai", 128), ("openai-responses", 128), ("gemini", 512)])
def test_the_first_tools_are_sent_and_the_others_named(form: str, most: int) -> None:
    tools = [{"name": f"t{number}"} for number in range(most + 2)]
    sent, repairs = tools_of(form, *tools)
    assert [tool["name"] for tool in sent] == [tool["name"] for tool in tools[:most]]
    assert repairs == [f"The provider takes {most} tools; these are left out: t{most}, t{most + 1}."]
    assert len(tools_of("anthropic", *tools)[0]) == most + 2


ARRAY = {"type": "array"}
NESTED = {
    "type": "object",
    "properties": {
        "type": {"type": ["array", "null"]},
        "deep": {"type": "object", "properties": {"x": ARRAY}},
        "in items": {"type": "array", "items": ARRAY},
        "choice": {"anyOf": [ARRAY, {"type": "string"}]},
        "values": {"enum": [{"type": "array"}], "default": {"type": "array"}},
        "fine": {"type": "array", "prefixItems": [ARRAY], "items": False},
    },
    "$defs": {"d": ARRAY},
}


@pytest.mark.parametrize("form", ["openai", "openai-responses"])
def test_an_array_gets_items_wherever_it_is(form: str) -> None:
    sent, repairs = tools_of(form, {"name": "a", "inputSchema": NESTED})
    whole = {"type": "array", "items": {}}
    assert sent[0]["parameters"] == {
        "type": "object",
        "properties": {
            "type": {"type": ["array", "null"], "items": {}},
            "deep": {"type": "object", "properties": {"x": whole}},
            "in items": {"type": "array", "items": whole},
            "choice": {"anyOf": [whole, {"type": "string"}]},
            "values": NESTED["properties"]["values"],  # type: ignore[index]
            "fine": {"type": "array", "prefixItems": [whole], "items": False},
        },
        "$defs": {"d": whole},
    }
    assert len(repairs) == 1
    assert tools_of(form, {"name": "a", "inputSchema": CLOSED | {"properties": {"a": whole}}})[1] == []


def test_keys_that_anthropic_refuses_get_others_in_schema_and_calls() -> None:
    keys = ("$filter", "filter", "_filter", "tags[]", "金額", "k" * 70, "a.b-c")
    schema = {"type": "object", "properties": {key: {} for key in keys}, "required": ["$filter", "金額"]}
    call = ToolCall("1", "find", {"$filter": 1, "filter": 2, "other key": 3})
    body, repairs = body_of(
        "anthropic",
        [user("a"), Message("assistant", None, (call,)), result("1")],
        [{"name": "find", "parameters": schema}],
    )
    sent = body["tools"][0]["input_schema"]
    renamed = {repair.given: repair.sent for repair in repairs}
    assert list(sent["properties"]) == [renamed.get(key, key) for key in keys]
    assert renamed.keys() == {"$filter", "tags[]", "金額", "k" * 70}
    assert len(set(sent["properties"])) == len(keys)
    assert sent["required"] == [renamed["$filter"], renamed["金額"]]
    assert body["messages"][1]["content"][0]["input"] == {renamed["$filter"]: 1, "filter": 2, "other key": 3}
    assert tools_of("openai", {"name": "find", "parameters": schema})[0][0]["parameters"] == schema


def test_strict_wants_a_closed_schema() -> None:
    half = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert is_strict_schema(half, all_required=False)
    assert not is_strict_schema(half, all_required=True)
    assert not is_strict_schema(CLOSED | {"properties": {"a": {"type": "object"}}}, all_required=False)
    for form, strict in (("anthropic", True), ("openai", False), ("openai-responses", False)):
        sent, repairs = tools_of(form, {"name": "a", "parameters": half, "strict": True})
        assert (sent[0]["strict"], len(repairs)) == (strict, int(not strict))


def test_not_all_tools_are_deferred_and_no_deferred_tool_has_a_breakpoint() -> None:
    tools = [{"name": name, "defer_loading": True, "description": "d" * 9_000} for name in "ab"]
    sent, repairs = tools_of("anthropic", *tools)
    assert [tool.get("defer_loading") for tool in sent] == [None, None]
    assert "defer_loading" in repairs[0]
    body, _ = body_of(
        "anthropic", [user("a")], [{"name": "0", "description": "d" * 9_000}, *tools], cache=Cache()
    )
    assert ["cache_control" in tool for tool in body["tools"]] == [True, False, False]


# ---------------------------------------------------------------- images


@pytest.mark.parametrize(
    "part", [png(9_000, 10), png(10, 8_001), png(10, 10, 5 << 20)], ids=["wide", "high", "big"]
)
@pytest.mark.parametrize("is_result", [False, True])
def test_an_image_that_anthropic_refuses_is_a_text(part: Any, is_result: bool) -> None:
    messages = [user([png(8_000, 10), part])]
    if is_result:
        messages = [user("a"), assistant(None, "1"), result("1", [part])]
    body, repairs = body_of("anthropic", messages)
    assert [repair.kind for repair in repairs] == ["image-too-large"]
    assert images_in(body) == ([False, False] if is_result else [True, False])


@pytest.mark.parametrize(
    ("sizes", "sent"),
    [
        ([2_400] * 20, [True] * 20),
        ([2_000] * 30, [True] * 30),
        ([2_400] + [100] * 30, [False] + [True] * 30),
        ([2_400] * 21, [False] * 5 + [True] * 16),
        ([2_400] * 25, [False] * 5 + [True] * 20),
        ([100] * 101, [False] * 25 + [True] * 76),
    ],
    ids=["20 large", "30 small", "one large", "21 large", "25 large", "101"],
)
def test_the_oldest_images_leave_in_steps(sizes: list[int], sent: list[bool]) -> None:
    body, repairs = body_of("anthropic", [user([png(size, 10)]) for size in sizes])
    assert images_in(body) == sent
    assert {repair.kind for repair in repairs} == (set() if all(sent) else {"images-over-limit"})


def test_a_large_window_takes_600_images() -> None:
    body, repairs = body_of("anthropic", [user([png(9, 9)] * 600)], model="claude-opus-4-8")
    assert (all(images_in(body)), repairs) == (True, [])
    body, repairs = body_of("anthropic", [user([png(9, 9)] * 601)], model="claude-opus-4-8")
    assert images_in(body).count(False) == 150


@pytest.mark.parametrize("form", ["openai", "openai-responses"])
def test_openai_takes_500_images(form: str) -> None:
    body, repairs = body_of(
        form, [user([{"type": "image_url", "image_url": {"url": "https://x.example"}}] * 501)]
    )
    assert [repair.kind for repair in repairs] == ["images-over-limit"]
    assert str(body).count("https://x.example") == 376


def test_reasoning_that_is_bound_does_not_follow_an_image_that_left() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    early = [user("a"), Message("assistant", [thought, "b"])]
    late = [user([png(9, 9)]), Message("assistant", [thought, "c"]), user([png(9, 9)] * 600)]
    for model, thoughts in (("claude-opus-5-5", 1), ("claude-opus-4-8", 2)):
        body, _ = body_of("anthropic", [*early, *late], model=model)
        assert str(body).count("'thinking': 'hm'") == thoughts


# ---------------------------------------------------------------- citations


def document(**fields: Any) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "application/pdf", "data": PDF}
    return {"type": "document", "source": source} | fields


@pytest.mark.parametrize("is_cited", [(True, False, False), (False, True, False), (False, False, True)])
def test_citations_are_for_all_documents_or_none(is_cited: tuple[bool, ...]) -> None:
    found = {
        "type": "search_result",
        "source": "x",
        "title": "X",
        "content": [{"type": "text", "text": "said"}],
    }
    parts = [document(), document(), found]
    for part, is_on in zip(parts, is_cited, strict=True):
        part |= {"citations": {"enabled": True}} if is_on else {}
    messages = [user([parts[0]]), assistant(None, "1"), result("1", [parts[1]]), user([parts[2]])]
    body, repairs = body_of("anthropic", messages)
    assert str(body).count("'citations': {'enabled': True}") == 3
    assert [repair.kind for repair in repairs] == ["citations-enabled"]
    assert body_of("anthropic", [user([document(), document(citations={"enabled": False})])])[1] == []


# ---------------------------------------------------------------- max_tokens


@pytest.mark.parametrize(
    ("model", "parameters", "most"),
    [
        ("claude-sonnet-4-5", {}, 21_333),
        ("claude-opus-4-1", {}, 8_192),
        ("claude-opus-4-20250514", {}, 8_192),
        ("claude-opus-4-8", {"thinking": {"level": "high"}}, 21_333),
        ("claude-sonnet-4-5", {"thinking": {"level": "high"}}, 64_000),
        ("claude-sonnet-4-5", {"max_tokens": 50_000}, 50_000),
    ],
)
def test_an_answer_that_nobody_limited_needs_no_streaming(model: str, parameters: Any, most: int) -> None:
    settings, unsent = parameter_fields.anthropic(parameters, max_output=64_000, thinks=True, model=model)
    assert (settings["max_tokens"], unsent) == (most, [])
