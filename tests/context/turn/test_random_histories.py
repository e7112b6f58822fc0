"""Any history × current models: each body is one that the provider takes, and nothing is lost in silence.

Each example is one history for all models. `make fuzz TESTS=tests/context/turn/test_random_histories.py
TIMES=500` draws 10,000 of them.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.conversation.bodies import parameter_fields
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request
from support.conversations import PARTS
from support.folders import load_configured
from support.provider_rules import check_anthropic, check_gemini, check_openai, check_responses
from support.provider_types import (
    check_anthropic_types,
    check_gemini_types,
    check_openai_types,
    check_responses_types,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MODELS = [
    ("anthropic", "claude-opus-5-5"),
    ("anthropic", "claude-opus-4-8"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai", "gpt-5.5"),
    ("openai", "gpt-4o"),
    ("openai-responses", "gpt-5.6"),
    ("openai-responses", "gpt-5.1"),
    ("gemini", "gemini-3-pro-preview"),
    ("gemini", "gemini-2.5-flash"),
]
MARK = "mark-{}-"
"""What each text of a generated history holds, with a number of its own."""


def marked(value: Any, numbers: Iterator[int]) -> Any:
    """A copy of a part with a mark in each of its texts that a model is meant to read."""
    if isinstance(value, list):
        return [marked(item, numbers) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: MARK.format(next(numbers))
        if key in ("text", "stdout") and isinstance(item, str) and item.strip()
        else marked(item, numbers)
        for key, item in value.items()
    }


HOSTED: list[Any] = [
    {"type": "server_tool_use", "id": "srv_2", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_2", "content": []},
    {"type": "shell_call", "call_id": "sh_1", "action": {"commands": ["ls"]}},
    {
        "type": "shell_call_output",
        "call_id": "sh_1",
        "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    {"type": "custom_tool_call", "call_id": "cu_1", "name": "free", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "cu_1", "output": "x"},
]
# what is no object is refused where it is added
OBJECTS = [part for part in PARTS.values() if isinstance(part, dict)]
CONTENTS = st.lists(st.sampled_from([*OBJECTS, *HOSTED]), max_size=4) | st.sampled_from(
    ["said", "", " ", None]
)
IDS = st.sampled_from(["1", "2", "3", "", "a.b", "call_" + "x" * 60, "é"])
NAMES = st.sampled_from(["search", "fs.read", "free", "n" * 140, "läs"])
CALLS = st.lists(
    st.builds(ToolCall, IDS, NAMES, st.sampled_from([{}, {"$filter": 1}, "text", None])), max_size=3
)
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), CONTENTS),
    st.builds(Message, st.just("assistant"), CONTENTS, CALLS.map(tuple)),
    st.builds(Message, st.just("tool"), CONTENTS, tool_call_id=IDS, name=st.none() | NAMES),
)
TOOLS: list[Any] = [
    {
        "name": "search",
        "inputSchema": {"type": "object", "properties": {"$filter": {}, "all": {"type": "array"}}},
    },
    {"name": "fs.read", "parameters": {"anyOf": [{"type": "object"}]}, "strict": True},
    {"type": "custom", "name": "free", "format": {"type": "text"}},
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "web_search"},
    {"type": "mcp", "server_label": "a", "server_url": "https://x.example"},
    {"googleSearch": {}},
    {"name": "late", "defer_loading": True, "input_examples": [{}]},
]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return load_configured(tmp_path_factory.mktemp("folder"))


def with_marks(messages: list[Message]) -> list[Message]:
    """The messages with a mark in each text."""
    numbers = iter(range(1_000_000))
    return [
        Message(
            message.role,
            MARK.format(next(numbers)) if message.content == "said" else marked(message.content, numbers),
            message.tool_calls,
            tool_call_id=message.tool_call_id,
            name=message.name,
        )
        for message in messages
    ]


def judge(form: str, model: str, body: Any) -> None:
    """By the types of the SDK, and by what servers refuse beyond them."""
    if form == "anthropic":
        check_anthropic_types(body)
        check_anthropic(body, prefill=parameter_fields.takes_prefill(model), window=200_000)
    elif form == "openai":
        check_openai_types(body)
        check_openai(body)
    elif form == "openai-responses":
        check_responses_types(body)
        check_responses(body)
    else:
        check_gemini_types(body)
        check_gemini(body, is_strict="gemini-3" in model)


def silently_lost(messages: list[Message], body: Any, repairs: list[Any]) -> list[str]:
    """The marks that are not in the body, and of whose messages no repair tells.

    A compaction stands for what is before it, the beginning of its own message included. It makes another
    history of what is behind it: there any repair tells.
    """
    text = json.dumps(body)
    told = {repair.index for repair in repairs}
    compacted = [
        index for index, message in enumerate(messages) if '"compaction"' in json.dumps(message.content)
    ]
    is_told = any(repair.text.endswith(" times)") or repair.kind == "more" for repair in repairs)
    is_told = is_told or bool(compacted and repairs)
    lost = []
    for index, message in enumerate(messages):
        if index <= max(compacted, default=-1):
            continue
        said = json.dumps(message.content)
        marks = [f"mark-{piece.split('-')[0]}-" for piece in said.split("mark-")[1:]]
        if index not in told and not is_told:
            lost += [f"{mark} of message {index}" for mark in marks if mark not in text]
    return lost


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(MESSAGES, max_size=12), st.lists(st.sampled_from(TOOLS), max_size=6), st.booleans())
def test_any_history_is_taken_by_each_current_model(
    snapshot: Snapshot, history: list[Message], tools: list[Any], has_message: bool
) -> None:
    messages = with_marks(history)
    for form, model in MODELS:
        chat = ContextManager()
        chat.add(messages)
        asked = Message("user", "and?") if has_message else None
        request = Request(asked, format=form, options=Options(additional_tools=tools, model=model))
        made = assemble(snapshot, chat, request, now=NOW)
        judge(form, model, made.request)
        lost = silently_lost(messages, made.request, list(made.metadata.get("repairs", ())))
        assert lost == [], (form, model)


def test_a_system_message_ends_the_users_turn_where_an_answer_was_only_reasoning(snapshot: Snapshot) -> None:
    chat = ContextManager()
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    chat.add(
        [
            Message("user", "Go."),
            Message("system", "Be brief."),
            Message("assistant", [thinking]),
            Message("user", "And?"),
        ]
    )
    request = Request(format="anthropic", options=Options(model="claude-opus-4-8"))
    body = assemble(snapshot, chat, request, now=NOW).request
    assert body is not None
    judge("anthropic", "claude-opus-4-8", body)
    assert [message["role"] for message in body["messages"]] == ["user", "system"]
    assert [block["text"] for block in body["messages"][0]["content"]] == ["Go.", "And?"]


def test_a_result_of_a_server_tool_without_its_call_is_no_paused_answer(snapshot: Snapshot) -> None:
    chat = ContextManager()
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    chat.add([Message("user", "Go."), Message("assistant", [thinking, result])])
    request = Request(format="anthropic", options=Options(model="claude-sonnet-4-5"))
    body = assemble(snapshot, chat, request, now=NOW).request
    judge("anthropic", "claude-sonnet-4-5", body)
    assert body is not None
    assert [message["role"] for message in body["messages"]] == ["user"]


def test_a_repeated_call_of_a_server_tool_is_no_paused_answer(snapshot: Snapshot) -> None:
    chat = ContextManager()
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    chat.add([Message("user", "Go."), Message("assistant", [call, {"type": "text", "text": "said"}, call])])
    request = Request(format="anthropic", options=Options(model="claude-opus-4-8"))
    body = assemble(snapshot, chat, request, now=NOW).request
    judge("anthropic", "claude-opus-4-8", body)
    assert "server_tool_use" not in json.dumps(body)
