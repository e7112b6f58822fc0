"""OpenAI's Responses and Gemini's `generateContent`: what is special about each of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from nexus_context.conversation.bodies import formats
from nexus_context.conversation.message import Message, ToolCall
from support.conversations import MESSAGES, PARTS, PDF, PNG, TOOLS, assistant, result, user
from support.provider_rules import check_gemini, check_responses
from support.provider_types import check_gemini_types, check_responses_types

HIDDEN = "[A part of the type {} cannot be shown here.]"
DATA_URL = f"data:image/png;base64,{PNG}"
SCHEMA = {"type": "object", "properties": {}}


def responses(messages: list[Message], tools: Any = (), **given: Any) -> tuple[Any, list[str]]:
    """A valid body of Responses, and the kinds of repairs."""
    body, repairs = formats.openai_responses("gpt-5.5", "prompt", messages, tools, {}, **given)
    check_responses(body)
    check_responses_types(body)
    return body, [repair.kind for repair in repairs]


def gemini(
    messages: list[Message], tools: Any = (), *, model: str = "gemini-3.5-flash"
) -> tuple[Any, list[str]]:
    """A valid body of `generateContent`, and the kinds of repairs."""
    body, repairs = formats.gemini(model, "prompt", messages, tools, {})
    check_gemini(body, is_strict="gemini-3" in model)
    check_gemini_types(body)
    return body, [repair.kind for repair in repairs]


def check(messages: list[Message], items: list[Any], contents: list[Any], kinds: list[str]) -> None:
    """The input of Responses, the contents of Gemini, and the repairs of both."""
    body, response_kinds = responses(messages)
    assert (body["input"], response_kinds) == (items, kinds)
    body, gemini_kinds = gemini(messages)
    assert (body["contents"], [kind for kind in gemini_kinds if kind != "signature-added"]) == (
        contents,
        kinds,
    )


def item(role: str, *texts: str) -> Any:
    content: Any = texts[0]
    if role != "assistant":
        content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content}


def said(role: str, *texts: str) -> Any:
    return {"role": role, "parts": [{"text": text} for text in texts]}


# ---------------------------------------------------------------- messages


def test_a_body_has_nothing_else() -> None:
    body, _ = responses([user("a")], cache_key="main")
    assert body == {
        "model": "gpt-5.5",
        "instructions": "prompt",
        "input": [item("user", "a")],
        "store": False,
        "prompt_cache_key": "main",
    }
    body, _ = gemini([user("a")])
    assert body == {"contents": [said("user", "a")], "systemInstruction": {"parts": [{"text": "prompt"}]}}


def test_an_item_that_was_sent_does_not_change() -> None:
    """Responses gets an item for each text; Gemini alternates roles, so that new parts are appended."""
    check(
        [user("a"), user("b"), assistant([{"type": "text", "text": "c"}, "d"]), user("e")],
        [
            *(item("user", "a"), item("user", "b"), item("assistant", "c"), item("assistant", "d")),
            item("user", "e"),
        ],
        [said("user", "a", "b"), said("model", "c", "d"), said("user", "e")],
        [],
    )


def test_calls_and_results() -> None:
    failed = Message("tool", "no", tool_call_id="2", meta={"is_error": True})
    call = {"type": "function_call", "name": "search", "arguments": '{"q":1}'}
    check(
        [user("a"), assistant("b", "1", "2"), result("1"), failed, user("c")],
        [
            item("user", "a"),
            item("assistant", "b"),
            call | {"call_id": "1"},
            call | {"call_id": "2"},
            {"type": "function_call_output", "call_id": "1", "output": "found"},
            {"type": "function_call_output", "call_id": "2", "output": "no"},
            item("user", "c"),
        ],
        [
            said("user", "a"),
            {
                "role": "model",
                "parts": [
                    {"text": "b"},
                    {
                        "functionCall": {"id": "1", "name": "search", "args": {"q": 1}},
                        "thoughtSignature": "skip_thought_signature_validator",
                    },
                    {"functionCall": {"id": "2", "name": "search", "args": {"q": 1}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "1", "name": "search", "response": {"output": "found"}}},
                    {"functionResponse": {"id": "2", "name": "search", "response": {"error": "no"}}},
                    {"text": "c"},
                ],
            },
        ],
        [],
    )


def test_system_messages_of_the_history() -> None:
    messages = [Message("system", "first"), user("a"), Message("system", "from now on"), user("b")]
    body, kinds = responses(messages)
    assert [(one["role"], one["content"][0]["text"]) for one in body["input"]] == [
        *(("developer", "first"), ("user", "a"), ("developer", "from now on"), ("user", "b")),
    ]
    assert kinds == []
    body, kinds = gemini(messages)
    assert body["systemInstruction"] == {"parts": [{"text": "prompt"}, {"text": "first"}]}
    note = "<system_message>\nfrom now on\n</system_message>"
    assert (body["contents"], kinds) == ([said("user", "a", note, "b")], ["system-as-user"])


def test_gemini_begins_and_ends_with_the_user() -> None:
    body, kinds = gemini([assistant("hello")])
    assert body["contents"] == [
        said("user", "[Start of the conversation]"),
        said("model", "hello"),
        said("user", "[Continue.]"),
    ]
    assert kinds == ["conversation-opened", "conversation-continued"]
    assert gemini([])[1] == ["conversation-empty"]
    body, kinds = responses([])
    assert (body["input"], kinds) == ([item("user", "[Start of the conversation]")], ["conversation-empty"])


def test_the_phase_of_an_answer() -> None:
    messages = [user("a"), Message("assistant", "b", meta={"phase": "commentary"})]
    assert responses(messages)[0]["input"][1] == item("assistant", "b") | {"phase": "commentary"}
    messages[1] = Message("assistant", "b", meta={"phase": "loud"})
    assert responses(messages)[0]["input"][1] == item("assistant", "b")


# ---------------------------------------------------------------- parts


def input_text(text: str) -> Any:
    return {"type": "input_text", "text": text}


def hidden(kind: str) -> Any:
    return input_text(HIDDEN.format(kind)), {"text": HIDDEN.format(kind)}


@pytest.mark.parametrize(
    ("part", "response_form", "gemini_form"),
    [
        ("text", input_text("said"), {"text": "said"}),
        ("refusal", input_text("I will not."), {"text": "I will not."}),
        (
            "image",
            {"type": "input_image", "image_url": DATA_URL, "detail": "auto"},
            {"inlineData": {"mimeType": "image/png", "data": PNG}},
        ),
        (
            "image link",
            {"type": "input_image", "image_url": "https://x.example/a.png", "detail": "auto"},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/a.png"}},
        ),
        (
            "plain link",
            {"type": "input_image", "image_url": "http://x.example/a.png", "detail": "low"},
            {"fileData": {"mimeType": "image/png", "fileUri": "http://x.example/a.png"}},
        ),
        ("bitmap", *hidden("image/bmp")),
        (
            "file",
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": f"data:application/pdf;base64,{PDF}",
            },
            {"inlineData": {"mimeType": "application/pdf", "data": PDF}},
        ),
        ("uploaded", {"type": "input_file", "file_id": "file-1"}, hidden("file")[1]),
        (
            "audio",
            hidden("input_audio")[0],
            {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
        ),
        (
            "search_result",
            input_text("[X](https://x.example)\nsaid"),
            {"text": "[X](https://x.example)\nsaid"},
        ),
        ("video", *hidden("video")),
    ],
)
def test_a_part_in_the_form_of_each_provider(part: str, response_form: Any, gemini_form: Any) -> None:
    body, _ = responses([user([PARTS[part]])])
    assert body["input"][0]["content"] == [response_form]
    body, _ = gemini([user([PARTS[part]])])
    assert body["contents"][0]["parts"] == [gemini_form]


@pytest.mark.parametrize(
    ("link", "is_sent"),
    [
        ("https://x.example/a.JPEG?size=2", True),
        ("https://x.example/a.webp#top", True),
        ("https://x.example/a.gif", False),
        ("https://x.example/a", False),
        ("https://x.example/a.pdf", False),
    ],
)
def test_gemini_wants_to_know_the_type_of_a_link(link: str, is_sent: bool) -> None:
    body, kinds = gemini([user([{"type": "image_url", "image_url": {"url": link}}])])
    assert ("fileData" in body["contents"][0]["parts"][0], kinds) == (
        is_sent,
        [] if is_sent else ["part-omitted"],
    )


def test_images_in_a_result() -> None:
    messages = [user("a"), assistant("", "1"), result("1", [PARTS["text"], PARTS["image"]])]
    body, kinds = responses(messages)
    image = {"type": "input_image", "image_url": DATA_URL, "detail": "auto"}
    assert (body["input"][-1]["output"], kinds) == ([input_text("said"), image], [])
    inline = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    body, kinds = gemini(messages)
    response = {"id": "1", "name": "search", "response": {"output": "said"}}
    assert body["contents"][-1]["parts"] == [{"functionResponse": response | {"parts": [inline]}}]
    assert kinds == ["signature-added"]
    body, kinds = gemini(messages, model="gemini-2.5-pro")
    label = {"text": "[Images from the result of the tool call 1:]"}
    assert body["contents"][-1]["parts"] == [{"functionResponse": response}, label, inline]
    assert kinds == ["image-moved"]


def test_a_result_that_is_empty() -> None:
    messages = [user("a"), assistant("", "1"), result("1", None)]
    body, kinds = responses(messages)
    assert (body["input"][-1]["output"], kinds) == ("[The tool returned nothing.]", ["result-empty"])
    body, kinds = gemini(messages)
    assert body["contents"][-1]["parts"][0]["functionResponse"]["response"] == {"output": ""}


# ---------------------------------------------------------------- tools


def test_a_tool() -> None:
    tool = {"name": "search", "description": "Finds.", "inputSchema": {"type": "object"}}
    body, kinds = responses([user("a")], [tool])
    function = {"type": "function", "name": "search", "description": "Finds.", "parameters": SCHEMA}
    assert (body["tools"], kinds) == ([function | {"strict": False}], [])
    body, kinds = gemini([user("a")], [tool])
    declaration = {"name": "search", "description": "Finds.", "parametersJsonSchema": SCHEMA}
    assert (body["tools"], kinds) == ([{"functionDeclarations": [declaration]}], [])


def test_a_custom_tool_has_another_form_in_responses() -> None:
    grammar = {"definition": "a", "syntax": "lark"}
    custom = {"name": "query", "format": {"type": "grammar", "grammar": grammar}}
    body, kinds = responses([user("a")], [{"type": "custom", "custom": custom}])
    expected = {"type": "custom", "name": "query", "format": {"type": "grammar", **grammar}}
    assert (body["tools"], kinds) == ([expected], [])
    assert gemini([user("a")], [{"type": "custom", "custom": custom}])[1] == ["tool-left-out"]


def test_names_that_gemini_refuses() -> None:
    tools = [{"name": name} for name in ("2nd", "_2nd", "fs.read", "x" * 70)]
    calls = tuple(ToolCall(str(at), tool["name"]) for at, tool in enumerate(tools))
    body, kinds = gemini([user("a"), Message("assistant", "", calls)], tools)
    names = [one["name"] for one in body["tools"][0]["functionDeclarations"]]
    assert [names[0][:4], *names[1:3], len(names[3])] == ["_2nd", "_2nd", "fs_read", 64]
    assert len(set(names)) == 4
    assert [part["functionCall"]["name"] for part in body["contents"][1]["parts"]] == names
    assert kinds.count("tool-renamed") == 3


@given(MESSAGES, TOOLS)
def test_equal_histories_give_equal_bytes(messages: list[Message], tools: Any) -> None:
    for render in (formats.openai_responses, formats.gemini):
        rendered = [json.dumps(render("m", "prompt", messages, tools, {})[0]) for _ in range(2)]
        assert rendered[0] == rendered[1]


# ---------------------------------------------------------------- the checks themselves

CALL = {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "1", "output": "b"}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [item("user", " ")],
        [CALL],
        [RESULT],
        [CALL, item("user", "a"), RESULT],
        [CALL, RESULT, CALL, RESULT],
        [item("user", "a"), PARTS["reasoning"]],
        [PARTS["reasoning"], item("user", "a")],
        [item("user", "a"), PARTS["compaction item"]],
    ],
)
def test_the_rules_of_responses_refuse_what_is_wrong(items: Any) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_responses({"model": "m", "input": items, "store": False})


def function_call(**more: Any) -> Any:
    return {"functionCall": {"id": "1", "name": "a", "args": {}}, **more}


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [said("model", "a")],
        [said("user", "a"), said("user", "b")],
        [said("user", "a"), said("model", "b")],
        [said("user", " ")],
        [
            said("user", "a"),
            {"role": "model", "parts": [function_call(thoughtSignature="c2ln")]},
            said("user", "b"),
        ],
        [{"role": "user", "parts": [{"text": "a", "thoughtSignature": "c2ln"}]}],
        [{"role": "user", "parts": [{"text": "a", "functionCall": {}}]}],
    ],
)
def test_the_rules_of_gemini_refuse_what_is_wrong(contents: Any) -> None:
    with pytest.raises(AssertionError):
        check_gemini({"contents": contents})


def test_the_types_refuse_what_is_wrong() -> None:
    items: list[Any] = [{"type": "message", "role": "user"}, {**CALL, "more": 1}, {"type": "film"}]
    for wrong in items:
        with pytest.raises(ValidationError):
            check_responses_types({"model": "m", "input": [wrong]})
    parts_of_gemini: list[Any] = [{"film": 1}, {"text": 1}]
    for wrong in parts_of_gemini:
        with pytest.raises(ValidationError):
            check_gemini_types({"contents": [{"role": "user", "parts": [wrong]}]})
