"""Reasoning and compactions: byte for byte to their own provider, left out with a report for the others."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexus_context.conversation import parts
from nexus_context.conversation.bodies import formats
from nexus_context.conversation.bodies.breakpoints import Cache
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.conversation.repair import Repair
from nexus_context.tokens import SimpleTokenCounter, count_message
from support.conversations import MESSAGES, PARTS, TOOLS, assistant, result, user
from support.provider_rules import check_anthropic, check_gemini, check_openai, check_responses
from support.provider_types import (
    check_anthropic_types,
    check_gemini_types,
    check_openai_types,
    check_responses_types,
)

MODELS = {
    "openai": ("gpt-4.1", "gpt-5.6"),
    "openai-responses": ("gpt-4.1", "gpt-5.6"),
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-7", "claude-opus-5-5"),
    "gemini": ("gemini-2.5-flash", "gemini-3.5-flash"),
}
PROVIDERS = {"openai": None, "openai-responses": "openai", "anthropic": "anthropic", "gemini": "gemini"}


def body_of(form: str, messages: list[Message], *, model: str = "", **given: Any) -> tuple[Any, list[Repair]]:
    """A valid body in this format, and the repairs."""
    model = model or MODELS[form][-1]
    tools, system = given.pop("tools", ()), given.pop("system", "")
    if form == "openai":
        body, repairs = formats.openai(model, system, messages, tools, {}, **given)
        check_openai(body)
        check_openai_types(body)
    elif form == "openai-responses":
        body, repairs = formats.openai_responses(model, system, messages, tools, {}, **given)
        check_responses(body)
        check_responses_types(body)
    elif form == "anthropic":
        settings = {"max_tokens": 4000} | given.pop("settings", {})
        body, repairs = formats.anthropic(model, system, messages, tools, settings, **given)
        check_anthropic(body, prefill=model == "claude-sonnet-4-5" and "thinking" not in settings)
        check_anthropic_types(body)
    else:
        body, repairs = formats.gemini(model, system, messages, tools, {})
        check_gemini(body, is_strict="gemini-3" in model)
        check_gemini_types(body)
    return body, repairs


def check(form: str, messages: list[Message], expected: list[Any], kinds: list[str], **given: Any) -> None:
    """The messages, items or contents of a body, and the kinds of repairs."""
    body, repairs = body_of(form, messages, **given)
    sent = body.get("messages") or body.get("input") or body["contents"]
    assert (sent, [repair.kind for repair in repairs]) == (expected, kinds)


HELLO = user("Hello.")
THOUGHTS = [PARTS["thinking"], PARTS["redacted"], PARTS["reasoning"], PARTS["thought"]]
CALLS = (ToolCall("1", "search", {"q": 1}), ToolCall("2", "search", {"q": 2}))
PLACES = [{"type": "tool_call", "id": "1"}, {"type": "tool_call", "id": "2"}]


def text(words: str) -> Any:
    return {"type": "text", "text": words}


def item(role: str, words: str) -> Any:
    content = words if role == "assistant" else [{"type": "input_text", "text": words}]
    return {"type": "message", "role": role, "content": content}


def call_item(name: str, number: int) -> Any:
    arguments = f'{{"q":{number}}}'
    return {"type": "function_call", "call_id": name, "name": "search", "arguments": arguments}


def result_item(name: str) -> Any:
    return {"type": "function_call_output", "call_id": name, "output": "found"}


def function_call(name: str, number: int, **more: Any) -> Any:
    return {"functionCall": {"id": name, "name": "search", "args": {"q": number}}} | more


def function_response(name: str) -> Any:
    return {"functionResponse": {"id": name, "name": "search", "response": {"output": "found"}}}


# ---------------------------------------------------------------- reasoning


def test_each_provider_gets_its_own_reasoning() -> None:
    messages = [HELLO, assistant([*THOUGHTS, text("Hi.")]), user("Bye.")]
    left_out = ["thinking-left-out"]
    check(
        "anthropic",
        messages,
        [
            {"role": "user", "content": [text("Hello.")]},
            {"role": "assistant", "content": [PARTS["thinking"], PARTS["redacted"], text("Hi.")]},
            {"role": "user", "content": [text("Bye.")]},
        ],
        left_out,
        cache=None,
    )
    check(
        "openai-responses",
        messages,
        [item("user", "Hello."), PARTS["reasoning"], item("assistant", "Hi."), item("user", "Bye.")],
        left_out,
    )
    check(
        "gemini",
        messages,
        [
            {"role": "user", "parts": [{"text": "Hello."}]},
            {"role": "model", "parts": [PARTS["thought"], {"text": "Hi."}]},
            {"role": "user", "parts": [{"text": "Bye."}]},
        ],
        left_out,
    )
    check(
        "openai",
        messages,
        [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [text("Hi.")]},
            {"role": "user", "content": "Bye."},
        ],
        left_out,
    )


def test_reasoning_keeps_its_place_among_texts_and_calls() -> None:
    """A call stands where its mark is; reasoning between two calls stays there."""
    first, second = PLACES
    content = [PARTS["thinking"], text("One."), first, {**PARTS["thinking"], "thinking": ""}, second]
    check(
        "anthropic",
        [HELLO, Message("assistant", content, CALLS), result("1"), result("2")],
        [
            {"role": "user", "content": [text("Hello.")]},
            {
                "role": "assistant",
                "content": [
                    PARTS["thinking"],
                    text("One."),
                    {"type": "tool_use", "id": "1", "name": "search", "input": {"q": 1}},
                    {"type": "thinking", "thinking": "", "signature": "c2ln"},
                    {"type": "tool_use", "id": "2", "name": "search", "input": {"q": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": name, "content": [text("found")]}
                    for name in ("1", "2")
                ],
            },
        ],
        [],
        cache=None,
    )
    content = [PARTS["reasoning"], first, {**PARTS["reasoning"], "id": "rs_2"}, text("Two."), second]
    check(
        "openai-responses",
        [HELLO, Message("assistant", content, CALLS), result("1"), result("2")],
        [
            item("user", "Hello."),
            PARTS["reasoning"],
            call_item("1", 1),
            {**PARTS["reasoning"], "id": "rs_2"},
            item("assistant", "Two."),
            call_item("2", 2),
            result_item("1"),
            result_item("2"),
        ],
        [],
    )
    signed = [{**first, "thoughtSignature": "c2ln"}, text("Two."), second, PARTS["signature"]]
    check(
        "gemini",
        [HELLO, Message("assistant", signed, CALLS), result("1"), result("2")],
        [
            {"role": "user", "parts": [{"text": "Hello."}]},
            {
                "role": "model",
                "parts": [
                    function_call("1", 1, thoughtSignature="c2ln"),
                    {"text": "Two."},
                    function_call("2", 2),
                    {"text": "", "thoughtSignature": "c2lnbg=="},
                ],
            },
            {"role": "user", "parts": [function_response("1"), function_response("2")]},
        ],
        [],
    )


def test_an_answer_may_be_appended_as_its_provider_gave_it() -> None:
    """Calls inside a content are taken out, and keep their place where something depends on it."""
    output = [PARTS["reasoning"], call_item("1", 1), {**PARTS["reasoning"], "id": "rs_2"}, call_item("2", 2)]
    check(
        "openai-responses",
        [HELLO, assistant(output), result("1"), result("2")],
        [item("user", "Hello."), *output, result_item("1"), result_item("2")],
        [],
    )
    parts_of_gemini = [
        {"text": "Look."},
        function_call("1", 1, thoughtSignature="c2ln"),
        function_call("2", 2),
    ]
    check(
        "gemini",
        [HELLO, assistant(parts_of_gemini), user([function_response("1"), function_response("2")])],
        [
            {"role": "user", "parts": [{"text": "Hello."}]},
            {"role": "model", "parts": parts_of_gemini},
            {"role": "user", "parts": [function_response("1"), function_response("2")]},
        ],
        [],
    )


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("anthropic", ("cited", "MCP call", "MCP result", "fallback", "text")),
        ("openai-responses", ("reasoning", "search item")),
        ("gemini", ("code",)),
    ],
)
def test_what_only_the_provider_knows_comes_back(form: str, names: tuple[str, ...]) -> None:
    own = [PARTS[name] for name in names]
    body, repairs = body_of(form, [HELLO, assistant(own), user("Bye.")], cache=None)
    sent = body.get("messages") or body.get("contents")
    expected = sent[1].get("content", sent[1].get("parts")) if sent else body["input"][1:-1]
    assert (expected, repairs) == (own, [])


def test_a_message_item_is_sent_as_its_text() -> None:
    messages = [HELLO, assistant([PARTS["message item"]]), user("Bye.")]
    body, _ = body_of("openai-responses", messages)
    assert body["input"][1] == item("assistant", "said") | {"phase": "commentary"}
    body, repairs = body_of("anthropic", messages, cache=None)
    assert (body["messages"][1]["content"], repairs) == ([text("said")], [])


def test_a_mark_finds_its_call_when_a_repair_renames_it() -> None:
    content = [PLACES[0], PARTS["reasoning"], text("Done.")]
    again = Message("assistant", content, CALLS[:1])
    body, _ = body_of("openai-responses", [HELLO, again, result("1"), user("Again."), again, result("1")])
    assert [one.get("call_id", one["type"]) for one in body["input"]] == [
        *("message", "1", "reasoning", "message", "1"),
        *("message", "1-2", "reasoning", "message", "1-2"),
    ]


def test_reasoning_at_the_end_does_not_hold_a_call_in_its_place() -> None:
    content = [PLACES[0], text("One."), PARTS["thinking"]]
    body, repairs = body_of("anthropic", [HELLO, Message("assistant", content, CALLS[:1]), result("1")])
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text", "tool_use"]
    assert [repair.kind for repair in repairs] == ["thinking-left-out"]


def test_calls_come_last_for_anthropic_without_reasoning_after_one() -> None:
    content = [PARTS["thinking"], PLACES[0], text("One.")]
    body, _ = body_of("anthropic", [HELLO, Message("assistant", content, CALLS[:1]), result("1")])
    kinds = [block["type"] for block in body["messages"][1]["content"]]
    assert kinds == ["thinking", "text", "tool_use"]


@pytest.mark.parametrize(
    ("form", "content", "kind"),
    [
        ("anthropic", [PARTS["unsigned"], text("Hi.")], "thinking-left-out"),
        ("openai-responses", [PARTS["bare reasoning"], text("Hi.")], "thinking-left-out"),
        ("openai-responses", [text("Hi."), PARTS["reasoning"]], "thinking-left-out"),
        ("anthropic", [text("Hi."), PARTS["thinking"]], "thinking-left-out"),
        ("anthropic", [PARTS["signed text"]], "thinking-left-out"),
    ],
)
def test_reasoning_that_cannot_be_sent(form: str, content: list[Any], kind: str) -> None:
    body, repairs = body_of(form, [HELLO, assistant(content), user("Bye.")])
    assert [repair.kind for repair in repairs] == [kind]
    assert '"type": "thinking"' not in json.dumps(body)
    assert '"type": "reasoning"' not in json.dumps(body)
    assert "ignature" not in json.dumps(body)


def test_reasoning_from_before_a_change() -> None:
    thinking = assistant([PARTS["thinking"], text("Hi.")])
    messages = [HELLO, thinking, HELLO, thinking, HELLO]
    body, repairs = body_of("anthropic", messages, lapsed=(0, 1))
    kinds = [[block["type"] for block in one["content"]] for one in body["messages"]]
    assert kinds == [["text"], ["text"], ["text"], ["thinking", "text"], ["text"]]
    text_of_repair = "Reasoning is left out where messages before it have changed since."
    assert [(one.kind, one.index, one.text) for one in repairs] == [("thinking-left-out", 1, text_of_repair)]


@pytest.mark.parametrize(
    ("content", "thinks"), [([PARTS["thinking"], text("Hi.")], True), ([text("Hi.")], False)]
)
def test_a_budget_of_thinking_needs_reasoning_before_the_last_calls(content: list[Any], thinks: bool) -> None:
    settings = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    messages = [HELLO, Message("assistant", content, CALLS[:1]), result("1")]
    body, repairs = body_of("anthropic", messages, model="claude-sonnet-4-5", settings=settings)
    assert ("thinking" in body, [one.kind for one in repairs]) == (thinks, [] if thinks else ["thinking-off"])


def test_a_call_that_gemini_did_not_make_is_signed() -> None:
    messages = [HELLO, Message("assistant", None, CALLS), result("1"), result("2")]
    body, repairs = body_of("gemini", messages)
    assert [part.get("thoughtSignature") for part in body["contents"][1]["parts"]] == [
        "skip_thought_signature_validator",
        None,
    ]
    assert [one.kind for one in repairs] == ["signature-added"]
    body, repairs = body_of("gemini", messages, model="gemini-2.5-flash")
    assert (body["contents"][1]["parts"], repairs) == ([function_call("1", 1), function_call("2", 2)], [])


# ---------------------------------------------------------------- compactions


def test_a_compaction_comes_first() -> None:
    messages = [Message("system", "Be brief."), HELLO, assistant("Hi."), user("Bye.")]
    for form, name in (("anthropic", "compaction"), ("openai-responses", "compaction item")):
        compacted = [*messages, assistant([text("I compact."), PARTS[name]]), user("Go on.")]
        body, repairs = body_of(form, compacted, cache=None)
        if form == "anthropic":
            assert body["system"] == [text("Be brief.")]
            assert body["messages"] == [
                {"role": "assistant", "content": [PARTS[name]]},
                {"role": "user", "content": [text("Go on.")]},
            ]
        else:
            assert body["input"] == [item("developer", "Be brief."), PARTS[name], item("user", "Go on.")]
        assert [(one.kind, one.index) for one in repairs] == [("compaction-first", 4)]


@pytest.mark.parametrize("name", ["call item", "compaction", "Gemini result"])
def test_only_a_plain_system_message_stays_before_a_compaction(name: str) -> None:
    messages = [Message("system", [PARTS[name]]), assistant([PARTS["compaction"]]), HELLO]
    body, _ = body_of("anthropic", messages, cache=None)
    assert body["messages"][0] == {"role": "assistant", "content": [PARTS["compaction"]]}
    assert "system" not in body


def test_a_compaction_of_another_provider() -> None:
    readable = "[Summary of the conversation so far, made by a server of Anthropic:]\nThey greeted."
    opaque = "[The conversation so far was compacted by a server of OpenAI, in a form that only it can read.]"
    check(
        "gemini",
        [assistant([PARTS["compaction"]]), HELLO],
        [{"role": "user", "parts": [{"text": readable}, {"text": "Hello."}]}],
        ["compaction-as-text"],
    )
    check(
        "openai-responses",
        [assistant([PARTS["compaction"]]), HELLO],
        [item("user", readable), item("user", "Hello.")],
        ["compaction-as-text"],
    )
    for form in ("openai", "openai-responses"):  # chat completions have no place for it
        expected = [] if form == "openai-responses" else [{"role": "user", "content": f"{opaque}\n\nHello."}]
        kinds = ["compaction-as-text"] if expected else []
        sent = expected or [PARTS["compaction item"], item("user", "Hello.")]
        check(form, [assistant([PARTS["compaction item"]]), HELLO], sent, kinds)
    check(
        "anthropic",
        [HELLO, assistant([PARTS["failed compaction"], text("Hi.")]), HELLO],
        [
            {"role": "user", "content": [text("Hello.")]},
            {"role": "assistant", "content": [text("Hi.")]},
            {"role": "user", "content": [text("Hello.")]},
        ],
        ["compaction-left-out"],
        cache=None,
    )


# ---------------------------------------------------------------- large parts


@pytest.mark.parametrize("form", ["anthropic", "openai-responses", "gemini"])
def test_a_large_part_is_the_same_object(form: str) -> None:
    """Five megabytes are neither parsed nor copied, and cost what their bytes would as text, in limits."""
    data = "QUFB" * 1_250_000
    part: dict[str, Any] = {
        "anthropic": {"type": "redacted_thinking", "data": data},
        "openai-responses": {**PARTS["reasoning"], "encrypted_content": data},
        "gemini": {"text": "hm", "thought": True, "thoughtSignature": data},
    }[form]
    body, _ = formats_of(form, [HELLO, assistant([part, text("Hi.")]), user("Bye.")])
    sent = json.loads(json.dumps(body))
    assert json.dumps(part) in json.dumps(sent)
    key = next(key for key, value in part.items() if value is data)
    assert any(one.get(key) is data for one in _objects(body))
    assert count_message(SimpleTokenCounter(), [part]) == 4 + 128_000
    assert count_message(SimpleTokenCounter(), [{**part, key: data[:1600]}]) == 4 + 300


def formats_of(form: str, messages: list[Message]) -> tuple[Any, list[Repair]]:
    """A body without the checks of its types, which copy it."""
    write: Any = {
        "anthropic": formats.anthropic,
        "openai-responses": formats.openai_responses,
        "gemini": formats.gemini,
    }[form]
    body, repairs = write(MODELS[form][-1], "", messages, (), {})
    return body, repairs


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(one for item in value.values() for one in _objects(item))]
    return [one for item in value for one in _objects(item)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "thinking", "thinking": "x" * 400, "signature": "c2ln"}, 100),
        ({"type": "thinking", "thinking": "", "signature": "A" * 1600}, 300),
        ({"type": "compaction", "content": "x" * 400, "signature": "A" * 160}, 100),
        ({"text": "x" * 40, "thoughtSignature": "A" * 1600}, 300),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "x" * 400}]}, 100),
    ],
)
def test_an_opaque_part_costs_its_text_or_its_data(part: Any, tokens: int) -> None:
    assert count_message(SimpleTokenCounter(), [part]) == 4 + tokens


# ---------------------------------------------------------------- any history


TWO_COMPACTIONS = [
    {"type": "compaction", "content": "They greeted.", "signature": "c2ln"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"},
]


@given(
    MESSAGES,
    TOOLS,
    st.sampled_from(["", "prompt", "half \ud800"]),
    st.sampled_from([(form, model) for form, models in MODELS.items() for model in models]),
    st.booleans(),
)
@example([Message("assistant", TWO_COMPACTIONS)], [], "", ("anthropic", "claude-sonnet-4-5"), False)
def test_any_history_is_valid_in_any_format(
    messages: list[Message], tools: Any, system: str, pair: tuple[str, str], is_thinking: bool
) -> None:
    form, model = pair
    given: dict[str, Any] = {}
    if is_thinking and model == "claude-sonnet-4-5":
        given["settings"] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    if form.startswith("openai"):
        given["cache"] = Cache(minimum=0)
    body_of(form, messages, model=model, tools=tools, system=system, **given)


SOUND = st.lists(
    st.lists(
        st.sampled_from([*THOUGHTS, text("said"), PARTS["signed text"], PARTS["signature"]]), max_size=5
    ),
    max_size=5,
)


@given(SOUND, st.sampled_from(["anthropic", "openai-responses", "gemini"]))
def test_own_opaque_parts_are_byte_identical_and_in_order(contents: list[list[Any]], form: str) -> None:
    """What is missing is reported; the rest is there as it came."""
    messages = [one for content in contents for one in (HELLO, assistant([*content, text("Done.")]))]
    body, repairs = body_of(form, [*messages, HELLO])
    own = [
        part
        for message in messages
        for part in content_of(message)
        if isinstance(part, dict)
        and isinstance(kind := parts.read_part(part), parts.ThinkingPart)
        and kind.provider == PROVIDERS[form]
    ]
    sent = [one for one in _objects(body) if one in THOUGHTS]
    assert list(map(msgspec.json.encode, sent)) == list(map(msgspec.json.encode, own))
    others = [part for content in contents for part in content if part not in own and part != text("said")]
    signed = [part for part in others if parts.signature_of(part) and not part.get("thought")]
    if form == "gemini":
        assert json.dumps(body).count("c2ln") == len(signed) + len(own)
        others = [part for part in others if part not in signed]
    assert bool(others) == ("thinking-left-out" in [one.kind for one in repairs])
