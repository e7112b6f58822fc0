"""Every field of every type that a provider's request can have is in the body, or a repair tells of it.

The types are those of the SDKs that are installed. It was also run with others before them on the path: the
oldest that Nexus supports (anthropic 1.0, openai 2.0, google-genai 2.0) and the newest (2.14, 3.57, 3.6).
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from nexus_context.conversation import parts
from nexus_context.conversation.message import Message
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request
from support.folders import load_configured
from support.sdk_types import Example, examples_of

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MODELS = {
    "anthropic": "claude-opus-4-8",
    "openai": "gpt-4o",
    "openai-responses": "gpt-5.1",
    "gemini": "gemini-3-pro-preview",
}
BREAKPOINTS = ("cache_control", "prompt_cache_breakpoint")
"""Nexus sets its own."""
SERVERS = ("id", "status", "object", "role")
"""What the server writes down about an item: it needs nothing of that back when it stores nothing."""
REPLACED = ("part-omitted", "part-as-text", "item-as-text", "server-tool-left-out", "tool-left-out")
LEFT_OUT = ("thinking-left-out", "compaction-left-out", "message-empty", "compaction-as-text", "block-lifted")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return load_configured(tmp_path_factory.mktemp("folder"))


def parts_of(form: str) -> Any:
    """The union of the parts and items of a request in this format."""
    if form == "anthropic":
        from anthropic.types import ContentBlockParam

        return ContentBlockParam
    if form == "openai":
        from openai.types.chat import ChatCompletionContentPartParam

        return ChatCompletionContentPartParam
    if form == "openai-responses":
        from openai.types.responses import ResponseInputContentParam, ResponseInputItemParam

        return ResponseInputItemParam | ResponseInputContentParam
    from google.genai import types

    return types.Part


def tools_of(form: str) -> Any:
    """The union of the tools of a request in this format."""
    if form == "anthropic":
        from anthropic.types import ToolUnionParam

        return ToolUnionParam
    if form == "openai":
        from openai.types.chat import ChatCompletionToolUnionParam

        return ChatCompletionToolUnionParam
    if form == "openai-responses":
        from openai.types.responses import ToolParam

        return ToolParam
    from google.genai import types

    return types.Tool


def assembled(
    snapshot: Snapshot, form: str, messages: list[Message], tools: list[Any]
) -> tuple[Any, list[Any]]:
    chat = ContextManager()
    chat.add([Message("user", "go"), *messages])
    request = Request(
        Message("user", "and?"), format=form, options=Options(additional_tools=tools, model=MODELS[form])
    )
    made = assemble(snapshot, chat, request, now=NOW)
    return made.request, list(made.metadata.get("repairs", ()))


def around(example: Example, form: str) -> list[Message]:
    """The messages with a part: of the speaker who has it, beside its other half."""
    part, kind = example.value, str(example.value.get("type"))
    call: dict[str, Any]
    said = {"type": "text", "text": "said"}
    if form == "openai-responses" and kind in parts.CLIENT_CALLS:
        output = {"type": parts.CLIENT_CALLS[kind], "output": "x"}
        ids = {
            "call_id": part.get("call_id", "x"),
            "approval_request_id": part.get("id"),
            "id": part.get("call_id"),
        }
        return [Message("assistant", [part]), Message("user", [output | ids])]
    if form == "openai-responses" and kind in parts.CLIENT_CALLS.values():
        name = next(name for name, output in parts.CLIENT_CALLS.items() if output == kind)
        call = {
            "type": name,
            "call_id": parts.item_key(part),
            "id": parts.item_key(part),
            "execution": "client",
        }
        return [Message("assistant", [call]), Message("user", [part])]
    if kind == "tool_result":
        call = {"type": "tool_use", "id": part["tool_use_id"], "name": "look", "input": {}}
        return [Message("assistant", [call]), Message("user", [part])]
    if kind == "function_call_output":
        call = {
            "type": "function_call",
            "call_id": part.get("call_id", ""),
            "name": "look",
            "arguments": "{}",
        }
        return [Message("assistant", [call]), Message("user", [part])]
    if kind in parts.SERVER_RESULTS:
        call = {"type": "server_tool_use", "id": part["tool_use_id"], "name": "web_search", "input": {}}
        return [Message("assistant", [call, part, said])]
    if kind == "server_tool_use":
        found = {"type": "web_search_tool_result", "tool_use_id": part["id"], "content": []}
        return [Message("assistant", [part, found, said])]
    if "functionResponse" in part:
        call = {
            "functionCall": {"name": part["functionResponse"]["name"], "id": part["functionResponse"]["id"]}
        }
        return [Message("assistant", [call]), Message("user", [part])]
    is_users = kind.startswith(("input_", "image", "document", "file", "search_result", "container_upload"))
    is_users = is_users or bool({"inlineData", "fileData"} & part.keys())
    return [Message("user", [part])] if is_users else [Message("assistant", [part, said])]


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path)
    else:
        yield path, value


def silent(example: Example, form: str, body: Any, repairs: list[Any]) -> list[str]:
    """The fields of an example that are neither in the body nor in the repairs."""
    text = json.dumps(body)
    kinds = [repair.kind for repair in repairs]
    if any(kind in (*REPLACED, *LEFT_OUT[:-1]) for kind in kinds):
        return []
    told = " ".join(repair.text for repair in repairs)
    missing = []
    for path, value in leaves(example.value):
        if any(key in BREAKPOINTS for key in path) or path[-1] in (*SERVERS, "type"):
            continue
        is_mark = isinstance(value, str) and "mark-" in value
        is_sent = json.dumps(value)[1:-1] in text if is_mark else f'"{path[-1]}"' in text
        if not is_sent and not any(key in told for key in path):
            missing.append(".".join(path))
    return missing


@pytest.mark.parametrize("form", MODELS)
def test_no_field_of_a_part_is_dropped_in_silence(snapshot: Snapshot, form: str) -> None:
    dropped = {}
    for example in examples_of(parts_of(form)):
        body, repairs = assembled(snapshot, form, around(example, form), [])
        if lost := silent(example, form, body, repairs):
            dropped[example.label] = lost
    assert dropped == {}


@pytest.mark.parametrize("form", MODELS)
def test_no_field_of_a_tool_is_dropped_in_silence(snapshot: Snapshot, form: str) -> None:
    dropped = {}
    for example in examples_of(tools_of(form)):
        body, repairs = assembled(snapshot, form, [], [example.value, {"name": "other"}])
        if lost := silent(example, form, body, repairs):
            dropped[example.label] = lost
    assert dropped == {}
