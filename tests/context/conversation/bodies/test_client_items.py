"""OpenAI's items of tools that the client runs, and its custom tools."""

from typing import Any

import pytest

from nexus_context.conversation.bodies import formats
from nexus_context.conversation.message import Message, ToolCall
from support.conversations import PNG, result, user
from support.provider_rules import CHECKS, check_openai, check_responses
from support.provider_types import check_openai_types, check_responses_types

SHELL = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "c1",
    "action": {"commands": ["ls"]},
    "status": "completed",
}
SHELL_OUTPUT = {
    "type": "shell_call_output",
    "call_id": "c1",
    "output": [{"stdout": "OUT", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
}
SCREEN = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}
PAIRS: dict[str, tuple[Any, Any]] = {
    "shell": (SHELL, SHELL_OUTPUT),
    "patch": (
        {
            "type": "apply_patch_call",
            "call_id": "c1",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
        },
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "OUT"},
    ),
    "computer": (
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "c1",
            "action": {"type": "screenshot"},
            "pending_safety_checks": [],
            "status": "completed",
        },
        {"type": "computer_call_output", "call_id": "c1", "output": SCREEN},
    ),
    "local shell": (
        {
            "type": "local_shell_call",
            "id": "ls_1",
            "call_id": "c1",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
            "status": "completed",
        },
        {"type": "local_shell_call_output", "id": "c1", "output": "OUT"},
    ),
    "custom": (
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "c1", "name": "free", "input": "as it is"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "OUT"},
    ),
    "approval": (
        {"type": "mcp_approval_request", "id": "c1", "arguments": "{}", "name": "n", "server_label": "s"},
        {"type": "mcp_approval_response", "approval_request_id": "c1", "approve": True},
    ),
}
CUSTOM = {"type": "custom", "name": "free", "format": {"type": "text"}}


def input_of(messages: list[Message], tools: Any = ()) -> tuple[list[Any], list[str]]:
    body, repairs = formats.openai_responses("gpt-5.5", "", messages, tools, {})
    check_responses(body)
    check_responses_types(body)
    return body["input"], [repair.kind for repair in repairs]


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_items_come_back_as_they_were(pair: tuple[Any, Any]) -> None:
    call, output = pair
    items, repairs = input_of([user("go"), Message("assistant", [call]), user(["and?", output])])
    assert (items[1:3], repairs) == ([call, output], [])
    assert [item["type"] for item in items] == ["message", call["type"], output["type"], "message"]


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_half_of_a_pair_is_a_text(pair: tuple[Any, Any]) -> None:
    call, output = pair
    for messages in (
        [user("go"), Message("assistant", [call])],
        [user("go"), Message("assistant", [call]), user("stop"), user([output])],
        [user("go"), user([output])],
        [user([call]), Message("assistant", [output])],
        [user("go"), Message("assistant", [call, call]), user([output])],
    ):
        items, repairs = input_of(messages)
        assert set(repairs) == {"item-as-text"}
        sent = {item["type"] for item in items}
        assert sent <= {"message", call["type"], output["type"]}


@pytest.mark.parametrize("form", ["openai", "anthropic", "gemini"])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_other_formats_get_what_was_said(form: str, pair: tuple[Any, Any]) -> None:
    write: Any = {"openai": formats.openai, "anthropic": formats.anthropic, "gemini": formats.gemini}[form]
    body, repairs = write("m", "", [user("go"), Message("assistant", [pair[0]]), user([pair[1]])], (), {})
    CHECKS[form](body)
    assert ("OUT" in str(body)) == ("OUT" in str(pair[1]))
    assert sum(repair.kind in ("part-as-text", "part-omitted") for repair in repairs) == 2


def test_a_call_of_a_custom_tool_has_a_text() -> None:
    call = ToolCall("c1", "free", "as *it* is")
    messages = [user("go"), Message("assistant", None, (call,)), result("c1")]
    items, repairs = input_of(messages, [CUSTOM])
    assert items[1:] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "free", "input": "as *it* is"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "found"},
    ]
    assert repairs == []
    body, logged = formats.openai("gpt-5.5", "", messages, [CUSTOM], {})
    check_openai(body)
    check_openai_types(body)
    assert body["messages"][1]["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "free", "input": "as *it* is"}}
    ]
    assert logged == []


def test_code_of_the_server_calls_a_function() -> None:
    program = {"type": "program", "id": "p1", "call_id": "p1", "code": "look()", "fingerprint": "f"}
    caller = {"type": "program", "caller_id": "p1"}
    mark = {"type": "tool_call", "id": "c1", "caller": caller}
    messages = [
        user("go"),
        Message("assistant", [program, mark], (ToolCall("c1", "look", {}),)),
        result("c1"),
    ]
    body, repairs = formats.openai_responses("gpt-5.5", "", messages, (), {})
    assert body["input"][1] == program
    assert (body["input"][2]["caller"], repairs) == (caller, [])
