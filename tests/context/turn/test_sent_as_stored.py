"""What is sent differently from how it is stored is said, once; what is sent as it came is not mentioned."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.tokens import count_message, counter_for
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import AssembledContext, Options, Request
from support.fixture import write_fixture
from support.folders import load_configured, load_folder

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5.1",
    "openai-responses": "gpt-5.1",
    "gemini": "gemini-2.5-pro",
}
TURNS = 50


def assembled(root: Path, form: str, messages: list[Message], **options: Any) -> AssembledContext:
    config = '{"context": {"max_tokens": 100000, "datetime": {"placement": "off"}}}'
    snapshot = load_configured(root, config)
    conversation = ContextManager()
    conversation.add(messages)
    model = MODELS.get(form, "claude-sonnet-4-5")
    request = Request(Message("user", "And now?"), format=form, options=Options(model=model, **options))
    context = assemble(snapshot, conversation, request, now=NOON)
    assert sum(row.tokens for row in context.usage.rows) == context.usage.total
    return context


def check(context: AssembledContext, **metadata: Any) -> None:
    """What metadata says of differences: repairs by kind, and renamed tools."""
    repairs = [repair.kind for repair in context.metadata.get("repairs", [])]
    shown = {"repairs": repairs, "renamedTools": context.metadata.get("renamedTools")}
    assert {name: value for name, value in shown.items() if value} == metadata


def tool_turn(form: str, number: int) -> list[Message]:
    """A turn with a call, as a program of the provider's SDK appends it."""
    call_id, question = f"call_{number}", Message("user", "Look.")
    match form:
        case "anthropic":
            call: Any = {"type": "tool_use", "id": call_id, "name": "look", "input": {"n": number}}
            result: Any = {"type": "tool_result", "tool_use_id": call_id, "content": "north"}
        case "gemini":
            call = {"functionCall": {"name": "look", "args": {"n": number}}}
            result = {"functionResponse": {"name": "look", "response": {"output": "north"}}}
        case "openai-responses":
            call = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}
            result = {"type": "function_call_output", "call_id": call_id, "output": "north"}
        case _:
            calls = (ToolCall(call_id, "look", {"n": number}),)
            return [
                question,
                Message("assistant", None, calls),
                Message("tool", "north", tool_call_id=call_id),
            ]
    return [
        question,
        Message("assistant", [{"type": "text", "text": "I look."}, call]),
        Message("user", [result]),
    ]


@pytest.mark.parametrize("form", [*MODELS, "neutral"])
def test_normal_turns_with_tools_are_no_repairs(tmp_path: Path, form: str) -> None:
    for own in (form, "anthropic", "openai"):
        messages = [message for number in range(TURNS) for message in tool_turn(own, number)]
        context = assembled(tmp_path, form, messages)
        check(context)


def test_calls_of_gemini_without_ids_are_sent_without_ids(tmp_path: Path) -> None:
    turn = tool_turn("gemini", 1)
    body = assembled(tmp_path, "gemini", [*turn, *turn]).request
    assert body is not None
    assert body["contents"][1]["parts"][1] == turn[1].content[1]  # type: ignore[index]
    assert body["contents"][2]["parts"][0] == turn[2].content[0]  # type: ignore[index]


def test_renamed_tools_have_a_field_with_the_way_back(tmp_path: Path) -> None:
    names = [f"fs.read_{number}" for number in range(150)]
    tools = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in names]
    back = {name.replace(".", "_"): name for name in names}
    orphan = Message("tool", "lost", tool_call_id="gone")
    context = assembled(tmp_path, "anthropic", [Message("user", "a"), orphan], additional_tools=tools)
    check(context, repairs=["tool-renamed", "result-orphan"], renamedTools=back)
    assert "150 tool names" in context.metadata["repairs"][0].text


# ---------------------------------------------------------------- names of speakers

TALK = [
    Message("user", "The sky is blue.", name="charlie"),
    Message("user", [{"type": "text", "text": "It is green."}], name="maxine"),
    Message("assistant", "Noted.", name="clerk"),
    Message("user", "Who said green?", name="charlie"),
]


def test_openai_gets_the_names_of_speakers_as_a_field(tmp_path: Path) -> None:
    context = assembled(tmp_path, "openai", TALK)
    assert context.request is not None
    messages = context.request["messages"][1:]
    assert [message.get("name") for message in messages] == ["charlie", "maxine", "clerk", "charlie", None]
    check(context)


@pytest.mark.parametrize("form", ["anthropic", "openai-responses", "gemini"])
def test_others_get_the_names_in_the_text(tmp_path: Path, form: str) -> None:
    context = assembled(tmp_path, form, TALK)
    text = str(context.request)
    for line in (
        r"From charlie:\nThe sky",
        r"From maxine:\nIt is",
        r"From clerk:\nNoted.",
        r"From charlie:\nWho",
    ):
        assert line in text
    check(context, repairs=["name-as-text"])


def test_a_name_that_openai_refuses_stands_in_the_text(tmp_path: Path) -> None:
    context = assembled(tmp_path, "openai", [Message("user", "Blue.", name="Charlie\n Brown")])
    assert context.request is not None
    assert context.request["messages"][1]["content"].startswith("From Charlie Brown:\nBlue.")
    check(context, repairs=["name-as-text"])


def test_a_name_without_a_text_to_stand_in_is_said(tmp_path: Path) -> None:
    answer = Message("assistant", None, (ToolCall("c", "look"),), name="clerk")
    image = {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}}
    messages = [
        answer,
        Message("tool", "a", tool_call_id="c", name="look"),
        Message("user", [image], name="max"),
    ]
    context = assembled(tmp_path, "anthropic", [Message("user", "a"), *messages])
    check(context, repairs=["name-left-out", "name-as-text"])
    assert "From max:" in str(context.request)


@pytest.mark.parametrize("form", ["anthropic", "openai", "openai-responses", "gemini"])
def test_names_are_counted(tmp_path: Path, form: str) -> None:
    counter = counter_for(MODELS[form])
    named, plain = (
        assembled(tmp_path, form, [Message("user", "Blue.", name=name)]).usage.by_category()["history"]
        for name in ("charlie", None)
    )
    in_text = count_message(counter, "From charlie:\nBlue.") - count_message(counter, "Blue.")
    assert named - plain == (counter.count("charlie") if form == "openai" else in_text)


# ---------------------------------------------------------------- what a program set and nobody uses


def test_a_prompt_and_tools_that_are_not_sent_are_said(tmp_path: Path) -> None:
    snapshot = load_folder(write_fixture("//- /home/a/x\n", tmp_path), "/home/a")
    tool = {"name": "log", "parameters": {"type": "object", "properties": {}}}
    conversation = ContextManager()
    conversation.set_system_prompt("You are Pia.")
    conversation.set_tool_definitions([tool, {"name": "look"}])
    for form in ("anthropic", "neutral"):
        options = Options(model="claude-sonnet-4-5")
        request = Request(Message("user", "Hello"), format=form, options=options)
        context = assemble(snapshot, conversation, request, now=NOON)
        check(context, repairs=["prompt-not-sent", "tools-not-sent"])
        assert "log, look" in context.metadata["repairs"][1].text
    used = Options(
        model="claude-sonnet-4-5",
        additional_system_prompt="You are Pia.",
        additional_tools=[tool],
        disabled_tools=["x"],
    )
    context = assemble(snapshot, conversation, Request(format="neutral", options=used), now=NOON)
    assert "not sent: look." in context.metadata["repairs"][0].text
