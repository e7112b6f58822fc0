"""What a Python program adds is checked whole, before anything changes; objects of SDKs become JSON."""

from typing import Any

import pytest
from anthropic import types as anthropic_types
from google.genai import types as gemini_types
from openai.types import chat as openai_types

from nexus_context import ContextManager, Message, RequestError, ToolCall
from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.bodies import formats
from nexus_context.conversation.message import Role


def check(message: Message, *sent: Message) -> None:
    """What is stored of a message."""
    conversation = ContextManager()
    conversation.add([message])
    assert conversation.messages == [*sent]


def broken(**fields: Any) -> Message:
    """A message with values of any type."""
    return Message(**({"role": "user", "content": "a"} | fields))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (None, r"messages\[1\] is None; it must be a Message"),
        ({"role": "user", "content": "a"}, r"messages\[1\] is of the type dict"),
        ("text", r"messages\[1\] is of the type str"),
        (broken(role="narrator"), r"messages\[1\]\.role is 'narrator'; it must be one of system, developer"),
        (broken(role=None), r"messages\[1\]\.role is None"),
        (broken(content=5), r"messages\[1\]\.content is of the type int"),
        (broken(content=b"a"), r"messages\[1\]\.content is of the type bytes"),
        (broken(content={"type": "text", "text": "a"}), "content is a single part; put it in a list"),
        (broken(content=["a", 5]), r"messages\[1\]\.content\[1\] is of the type int"),
        (
            broken(content=[{"type": "text", "text": object()}]),
            r"holds a value that is not JSON: an object of",
        ),
        (broken(content=[{"type": "text", "n": float("nan")}]), "not JSON: the number nan"),
        (broken(name=5), r"messages\[1\]\.name is of the type int"),
        (broken(role="tool", tool_call_id=5), r"messages\[1\]\.tool_call_id is of the type int"),
        (broken(role="assistant", tool_calls=5), r"messages\[1\]\.tool_calls is of the type int"),
        (
            broken(role="assistant", tool_calls=[{"id": "c", "name": "look", "arguments": {}}]),
            r"messages\[1\]\.tool_calls\[0\] is of the type dict; it must be ToolCall",
        ),
        (
            broken(role="assistant", tool_calls=(ToolCall(5, "look"),)),  # type: ignore[arg-type]
            r"messages\[1\]\.tool_calls\[0\]\.id is of the type int",
        ),
        (
            broken(role="assistant", tool_calls=(ToolCall("c", "look", {"at": object()}),)),
            r"tool_calls\[0\]\.arguments holds a value that is not JSON",
        ),
    ],
)
def test_one_bad_message_changes_nothing(wrong: Any, text: str) -> None:
    conversation = ContextManager()
    conversation.add([Message("user", "one"), Message("assistant", "two")])
    with pytest.raises(RequestError, match=text) as failed:
        conversation.add([Message("user", "three"), wrong])
    assert (failed.value.code, len(conversation)) == ("bad-message", 2)
    conversation.add_user_message("four")
    assert [message.content for message in conversation.build_messages()] == ["one", "two", "four"]


@pytest.mark.parametrize("messages", [None, 5, "text", {"role": "user"}, Message("user", "a")])
def test_a_batch_is_a_list(messages: Any) -> None:
    with pytest.raises(RequestError, match=r"messages is .*; it must be a list"):
        ContextManager().add(messages)


def test_a_nested_content_is_refused_rather_than_a_crash() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RequestError, match=r"messages\[0\]\.content is nested too deeply"):
        ContextManager().add([Message("user", [{"type": "text", "text": deep}])])


def test_usage_is_checked_before_anything_changes() -> None:
    conversation = ContextManager()
    for usage in ({"input_tokens": 5}, ProviderUsage(-1, 0)):
        with pytest.raises(RequestError):
            conversation.add([Message("assistant", "a")], usage=usage)  # type: ignore[arg-type]
    assert len(conversation) == 0


@pytest.mark.parametrize(
    ("role", "meant"),
    [("developer", "system"), ("model", "assistant"), ("human", "user"), ("function", "tool")],
)
def test_roles_of_other_programs_are_known(role: Any, meant: Role) -> None:
    check(Message(role, "a"), Message(meant, "a"))


def test_an_answer_of_anthropics_sdk_comes_back_as_its_blocks() -> None:
    blocks: list[Any] = [
        anthropic_types.ThinkingBlock(type="thinking", thinking="Hm.", signature="c2ln"),
        anthropic_types.TextBlock(type="text", text="I look."),
        anthropic_types.ToolUseBlock(type="tool_use", id="t", name="look", input={"at": None}),
    ]
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    text = {"type": "text", "text": "I look."}
    call = {"type": "tool_use", "id": "t", "name": "look", "input": {"at": None}}
    conversation = ContextManager()
    conversation.add([Message("user", "Look."), Message("assistant", blocks)])
    assert conversation.messages[1].content == [
        {key: block[key] for key in sorted(block)} for block in (thinking, text, call)
    ]
    conversation.add_tool_result("t", "look", "north")
    body, repairs = formats.anthropic("claude-sonnet-5-5", "", conversation.messages, [], {})
    assert (body["messages"][1]["content"][:3:2], repairs) == ([thinking, call], [])


def test_calls_of_openais_sdk_are_calls() -> None:
    function = openai_types.chat_completion_message_function_tool_call.Function(
        name="look", arguments='{"a": 1}'
    )
    call: Any = openai_types.ChatCompletionMessageFunctionToolCall(id="c", type="function", function=function)
    check(
        Message("assistant", None, [call]),  # type: ignore[arg-type]
        Message("assistant", None, (ToolCall("c", "look", {"a": 1}),)),
    )


def test_parts_of_googles_sdk_keep_their_call_in_either_case() -> None:
    part = gemini_types.Part(
        function_call=gemini_types.FunctionCall(name="look", args={"a": 1}), thought_signature=b"\xff\xfe\xfa"
    )
    call = {"functionCall": {"name": "look", "args": {"a": 1}}, "thoughtSignature": "//76"}
    for form in (part, part.model_dump(), part.model_dump(exclude_none=True), part.model_dump(by_alias=True)):
        conversation = ContextManager()
        conversation.add(
            [Message("user", "a"), Message("assistant", [form]), Message("tool", "b", name="look")]
        )
        body, repairs = formats.gemini("gemini-3-pro", "", conversation.messages, [], {})
        response = {"functionResponse": {"name": "look", "response": {"output": "b"}}}
        assert [content["parts"] for content in body["contents"][1:]] == [[call], [response]]
        assert repairs == []


@pytest.mark.parametrize("data", [{"data": "aGVpYw==", "mime_type": "image/heic"}, {"data": b"heic"}])
def test_files_of_googles_sdk_reach_gemini(data: dict[str, Any]) -> None:
    conversation = ContextManager()
    blob = {"mime_type": "image/heic"} | data
    uri = {"file_uri": "https://generativelanguage.googleapis.com/v1beta/files/a", "mime_type": "video/mp4"}
    conversation.add([Message("user", [{"inline_data": blob}, {"file_data": uri}])])
    body, repairs = formats.gemini("gemini-3-pro", "", conversation.messages, [], {})
    assert body["contents"][0]["parts"] == [
        {"inlineData": {"mimeType": "image/heic", "data": "aGVpYw=="}},
        {"fileData": {"fileUri": uri["file_uri"], "mimeType": "video/mp4"}},
    ]
    assert repairs == []


def test_a_result_of_an_sdk_is_its_parts() -> None:
    conversation = ContextManager()
    conversation.add_tool_result("c", "look", [anthropic_types.TextBlock(type="text", text="north")])
    assert conversation.messages[0].content == [{"text": "north", "type": "text"}]
