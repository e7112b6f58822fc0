"""Conversations for tests: short ways to write messages, and strategies for broken ones."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from nexus_context.conversation.message import Message, ToolCall

PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjcK"
DEEP = 300  # levels of JSON, more than are sent

# one part of each kind that a client may send, in whoever's form
PARTS: dict[str, Any] = {
    "text": {"type": "text", "text": "said"},
    "blank": {"type": "text", "text": " \n"},
    "input_text": {"type": "input_text", "text": "said", "annotations": []},
    "cached text": {"type": "text", "text": "said", "cache_control": {"type": "ephemeral"}},
    "bare text": "said",
    "refusal": {"type": "refusal", "refusal": "I will not."},
    "image": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    "image link": {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
    "plain link": {"type": "image_url", "image_url": {"url": "http://x.example/a.png", "detail": "low"}},
    "data link": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    "misnamed": {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PNG}"}},
    "input_image": {"type": "input_image", "image_url": "https://x.example/a.png"},
    "MCP image": {"type": "image", "data": PNG, "mimeType": "image/png"},
    "bitmap": {"type": "image", "data": "Qk0=", "mimeType": "image/bmp"},
    "local image": {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
    "no image": {"type": "image"},
    "pdf": {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
    "text file": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "said"}},
    "titled text": {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "said"},
        "title": "Notes",
        "context": "Of Monday.",
        "citations": {"enabled": True},
    },
    "described pdf": {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
        "context": "Of Monday.",
    },
    "tool reference": {"type": "tool_reference", "tool_name": "search"},
    "called mark": {
        "type": "tool_call",
        "id": "c1",
        "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"},
    },
    "clear reasoning": {"type": "reasoning_content", "text": "I look."},
    "file": {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
    },
    "uploaded": {"type": "file", "file": {"file_id": "file-1"}},
    "no file": {"type": "file", "id": 1},
    "audio": {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    "resource": {"type": "resource", "resource": {"uri": "file:///a", "text": "said"}},
    "resource_link": {"type": "resource_link", "uri": "file:///a", "name": "a"},
    "thinking": {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    "unsigned": {"type": "thinking", "thinking": "hm"},
    "redacted": {"type": "redacted_thinking", "data": "cmVk"},
    "thought": {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
    "signed text": {"type": "text", "text": "said", "thought_signature": "c2ln"},
    "signature": {"type": "text", "text": "", "thoughtSignature": "c2lnbg=="},
    "reasoning": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "ZW5j",
    },
    "bare reasoning": {"type": "reasoning", "id": "rs_2", "summary": []},
    "compaction": {"type": "compaction", "content": "They greeted.", "signature": "c2ln"},
    "compaction item": {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"},
    "failed compaction": {"type": "compaction", "content": None},
    "place of 1": {"type": "tool_call", "id": "1"},
    "signed place": {"type": "tool_call", "id": "2", "thoughtSignature": "c2ln"},
    "search_result": {
        "type": "search_result",
        "source": "https://x.example",
        "title": "X",
        "content": [{"type": "text", "text": "said"}],
    },
    "cited": {
        "type": "text",
        "text": "said",
        "citations": [
            {
                "type": "web_search_result_location",
                "cited_text": "said",
                "encrypted_index": "ZW5j",
                "title": "X",
                "url": "https://x.example",
            }
        ],
    },
    "MCP call": {
        "type": "mcp_tool_use",
        "id": "mcp_1",
        "name": "find",
        "server_name": "files",
        "input": {},
    },
    "MCP result": {"type": "mcp_tool_result", "tool_use_id": "mcp_1", "is_error": False, "content": []},
    "fallback": {"type": "fallback", "from": {"model": "claude-opus-5"}, "to": {"model": "claude-opus-4-8"}},
    "message item": {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "said", "annotations": []}],
    },
    "search item": {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    },
    "code": {"executableCode": {"language": "PYTHON", "code": "1 + 1"}},
    "server call": {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
    "server result": {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
    "call": {"type": "tool_use", "id": "1", "name": "search", "input": {}},
    "result": {"type": "tool_result", "tool_use_id": "1", "content": "found"},
    "failed": {"type": "tool_result", "tool_use_id": "2", "is_error": True},
    "call item": {"type": "function_call", "call_id": "2", "name": "search", "arguments": "{}"},
    "result item": {"type": "function_call_output", "call_id": "2", "output": "found"},
    "Gemini call": {"functionCall": {"name": "search", "args": {}}, "thoughtSignature": "c2ln"},
    "Gemini result": {"functionResponse": {"name": "search", "response": {"output": "found"}}},
    "video": {"type": "video", "url": "https://x.example/a.mp4"},
    "number": 7,
    "nothing": None,
}


def user(content: Any) -> Message:
    return Message("user", content)


def assistant(content: Any, *calls: str) -> Message:
    return Message("assistant", content, tuple(ToolCall(call, "search", {"q": 1}) for call in calls))


def result(call: str | None, content: Any = "found", name: str | None = None) -> Message:
    return Message("tool", content, tool_call_id=call, name=name)


def nested(levels: int) -> Any:
    """Arguments of that many levels."""
    made: Any = 1
    for _ in range(levels):
        made = {"a": made}
    return made


def shown(message: Message) -> str:
    """A message in a line: role, what it says, and its calls or the call that it answers."""
    said = "" if message.content in (None, msgspec.UNSET) else message.content
    calls = "".join(f" [{call.id}]" for call in message.tool_calls)
    answered = f" {message.tool_call_id}" if message.role == "tool" else ""
    return f"{message.role}{answered}: {said}{calls}"


IDS = st.sampled_from(["1", "2", "3", "", "a.b", "call_" + "x" * 60, "é", "1-2"])
NAMES = st.sampled_from(["search", "fs.read", "fs_read", "", "n" * 140, "läs"])
ARGUMENTS = st.sampled_from(
    [
        {},
        {"q": {"deep": [1, None, "é"]}, "type": "text"},
        '{"a": 1}',
        "",
        "no JSON",
        [1],
        None,
        3,
        {"x": "\ud800"},
    ]
) | st.integers(190, DEEP).map(nested)
CONTENTS = st.sampled_from(["", " ", "said", "said \n", "é", "\ud800", None, msgspec.UNSET]) | st.lists(
    st.sampled_from(list(PARTS.values())), max_size=4
)
CALLS = st.lists(st.builds(ToolCall, IDS, NAMES, ARGUMENTS), max_size=3).map(tuple)
ERRORS = st.sampled_from([msgspec.UNSET, {"is_error": True}])
SPOKEN = st.builds(Message, st.sampled_from(["system", "user", "assistant"]), CONTENTS)
CALLING = st.builds(Message, st.just("assistant"), CONTENTS, CALLS)
RESULTS = st.builds(
    Message, st.just("tool"), CONTENTS, tool_call_id=st.none() | IDS, name=st.none() | NAMES, meta=ERRORS
)
ODD = st.builds(Message, st.sampled_from(["system", "user", "tool", "nobody"]), CONTENTS, CALLS)
MESSAGES = st.lists(st.one_of(SPOKEN, CALLING, CALLING, RESULTS, RESULTS, ODD), max_size=12)
"""Histories with anything that may be broken about them."""

TOOLS = st.lists(
    st.sampled_from(
        [
            {"name": "search", "description": "Finds.", "inputSchema": {"type": "object"}},
            {
                "name": "fs.read",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            },
            {"name": "fs_read", "description": " ", "parameters": {"anyOf": [{"type": "object"}]}},
            {
                "type": "function",
                "function": {"name": "n" * 140, "parameters": {"type": "array"}, "strict": True},
            },
            {"type": "web_search_20250305", "name": "web_search"},
            {"name": ""},
            {"description": "nameless \ud800"},
        ]
    ),
    max_size=5,
)
