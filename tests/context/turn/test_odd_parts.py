"""Parts of any type with a value that no provider would write there: each format sends or replaces them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation import parts
from nexus_context.conversation.message import Message, Role
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request
from support.folders import load_configured

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MODELS = {
    "neutral": "gpt-4o",
    "openai": "gpt-4o",
    "openai-responses": "gpt-5.6",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3.5-flash",
}
ODD = ({"type": ["tool_result"], "content": 7}, ["x"], [["x"]], 7, None, True, "", "\ud800")
TYPES = (
    *("text", "image", "image_url", "input_image", "document", "file", "input_audio", "refusal", "thinking"),
    *("tool_use", "tool_result", "function_call", "function_call_output", "search_result", "reasoning"),
    *(*parts.CLIENT_CALLS, *parts.CLIENT_CALLS.values(), *parts.OPENAI_ITEMS, *parts.SERVER_RESULTS),
    *("server_tool_use", "redacted_thinking", "container_upload", "compaction"),
)
HOLDERS = ("source", "image_url", "file", "input_audio", "caller")
KEYS = (
    *("type", "id", "call_id", "tool_use_id", "name", "status", "input", "arguments", "content", "output"),
    *("text", "citations", "title", "detail", "file_id", "file_data", "thinking", "signature", "summary"),
    *("functionCall", "functionResponse", "inlineData", "fileData", *HOLDERS),
)
INNER = ("type", "media_type", "data", "url", "file_id", "file_data", "format", "name", "args")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return load_configured(tmp_path_factory.mktemp("folder"))


@st.composite
def odd_parts(draw: st.DrawFn) -> dict[str, Any]:
    part: dict[str, Any] = {"type": draw(st.sampled_from(sorted(set(TYPES)))), "id": "x", "name": "n"}
    key, odd = draw(st.sampled_from(KEYS)), draw(st.sampled_from(ODD))
    if draw(st.booleans()):
        odd = {"type": "base64", "media_type": "image/png", "data": "aGk=", draw(st.sampled_from(INNER)): odd}
    return part | {key: odd}


@given(part=odd_parts(), role=st.sampled_from(["user", "assistant", "tool"]), form=st.sampled_from([*MODELS]))
def test_any_value_in_any_field_of_a_part(
    snapshot: Snapshot, part: dict[str, Any], role: Role, form: str
) -> None:
    chat = ContextManager()
    said = Message(role, [part, {"type": "text", "text": "said"}])
    chat.add([Message("user", "Look."), said, Message("user", "Next.")])
    assemble(snapshot, chat, Request(format=form, options=Options(model=MODELS[form])), now=NOW)
