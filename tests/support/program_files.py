"""Small files of other programs, in every format that an import reads: from what the programs write.

The files in `transcripts/files` were written with the programs' own packages (pydantic-ai, google-genai,
openai); the others follow the source of the programs.
"""

import json
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent.parent / "context" / "assistants" / "transcripts" / "files"
STAMP = "2026-03-01T08:00:00.000Z"
USAGE = {
    "input_tokens": 940,
    "cached_input_tokens": 600,
    "cache_write_input_tokens": 40,
    "output_tokens": 20,
    "total_tokens": 960,
}


def jsonl(values: list[Any]) -> bytes:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode()


def said(role: str, text: str) -> Any:
    """A message item of the Responses API."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


ITEMS: list[Any] = [
    said("user", "<environment_context>\n  <cwd>/a</cwd>\n</environment_context>"),
    said("user", "List."),
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    said("assistant", "I look."),
    {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c1"},
    {"type": "local_shell_call", "call_id": "c2", "status": "completed", "action": {"command": ["pwd"]}},
    {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    {"type": "local_shell_call_output", "call_id": "c2", "output": {"content": "/a", "success": False}},
    said("assistant", "One file."),
]

FLAT: list[Any] = [
    {"id": "s1", "timestamp": STAMP, "instructions": None, "git": {"branch": "main"}},
    {"record_type": "state"},
    *ITEMS,
    {"record_type": "state"},
]
"""A rollout of Codex from before August 2025."""


def enveloped(kind: str, payload: Any) -> Any:
    return {"timestamp": STAMP, "type": kind, "payload": payload}


def counted(usage: Any) -> Any:
    return enveloped("event_msg", {"type": "token_count", "info": usage and {"last_token_usage": usage}})


ROLLOUT: list[Any] = [
    enveloped("session_meta", {"id": "s2", "cwd": "/a", "base_instructions": {"text": "Be brief."}}),
    enveloped("turn_context", {"model": "gpt-5", "cwd": "/a"}),
    *(enveloped("response_item", item) for item in ITEMS[:2]),
    enveloped("event_msg", {"type": "user_message", "message": "List."}),
    *(enveloped("response_item", item) for item in ITEMS[2:8]),
    counted(USAGE),
    enveloped("response_item", ITEMS[8]),
    enveloped("event_msg", {"type": "agent_message", "message": "One file."}),
    counted(None),
    counted({**USAGE, "output_tokens": 5}),
]

TRAJECTORY: dict[str, Any] = {
    "environment": "swe_main",
    "trajectory": [
        {
            "action": "ls",
            "observation": "a.py",
            "response": "I look.",
            "thought": "I look.",
            "execution_time": 0.1,
            "state": {},
            "query": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Fix it."}],
        },
        {
            "action": "submit",
            "observation": "",
            "response": "Done.",
            "thought": "Done.",
            "execution_time": 0.1,
            "state": {},
            "query": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Fix it."},
                {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "bash", "arguments": '{"command": "ls"}'},
                        }
                    ],
                },
                {"role": "tool", "content": "a.py", "tool_call_id": "c1"},
            ],
        },
    ],
    "history": [
        {
            "role": "system",
            "content": "Be brief.",
            "agent": "main",
            "message_type": "system_prompt",
        },
        {"role": "user", "content": "Fix it.", "agent": "main", "message_type": "observation"},
        {
            "role": "assistant",
            "content": "I look.",
            "thought": "I look.",
            "action": "ls",
            "agent": "main",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "bash", "arguments": '{"command": "ls"}'},
                }
            ],
            "message_type": "action",
        },
        {
            "role": "tool",
            "content": "a.py",
            "agent": "main",
            "tool_call_ids": ["c1"],
            "message_type": "observation",
        },
        {
            "role": "assistant",
            "content": "Done.",
            "thought": "Done.",
            "action": "submit",
            "agent": "main",
            "message_type": "action",
        },
    ],
    "info": {"exit_status": "submitted", "model_stats": {"tokens_sent": 7_141, "tokens_received": 243}},
}


BASH = {"type": "function", "function": {"name": "execute_bash", "parameters": {"type": "object"}}}


def openhands(number: int, source: str, **fields: Any) -> Any:
    return {"id": number, "timestamp": f"2026-03-01T08:00:0{number}", "source": source, **fields}


RESPONSE = {
    "id": "resp1",
    "model": "claude-sonnet-4-5",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": call,
                        "type": "function",
                        "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'},
                    }
                    for call in ("c1", "c2")
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 900,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 600},
        "cache_creation_input_tokens": 100,
    },
}


def metadata(call: str) -> Any:
    return {"function_name": "execute_bash", "tool_call_id": call, "model_response": RESPONSE}


EVENTS: list[Any] = [
    openhands(0, "agent", action="system", args={"content": "Be brief.", "tools": [BASH]}),
    openhands(1, "user", action="message", args={"content": "List.", "image_urls": None}),
    openhands(2, "user", action="recall", args={"query": "List."}),
    openhands(
        3,
        "agent",
        action="run",
        args={"command": "ls", "thought": "I look."},
        tool_call_metadata=metadata("c1"),
    ),
    openhands(
        4,
        "agent",
        observation="run",
        content="a.py",
        extras={},
        cause=3,
        tool_call_metadata={**metadata("c1"), "model_response": None},
    ),
    openhands(5, "agent", action="run", args={"command": "ls"}, tool_call_metadata=metadata("c2")),
    openhands(
        6,
        "agent",
        observation="error",
        content="No such folder.",
        extras={},
        cause=5,
        tool_call_metadata={**metadata("c2"), "model_response": None},
    ),
    openhands(7, "environment", observation="agent_state_changed", content="", extras={"agent_state": "x"}),
    openhands(8, "agent", action="finish", args={"final_thought": "One file.", "thought": ""}),
]

UNNAMED_EVENTS: list[Any] = [
    openhands(0, "user", action="message", args={"content": "List."}),
    openhands(1, "agent", action="run", args={"command": "ls", "thought": "I look.", "hidden": False}),
    openhands(2, "agent", observation="run", content="a.py", extras={"command": "ls"}, cause=1),
    openhands(3, "user", action="run", args={"command": "pwd"}),
    openhands(4, "user", observation="run", content="/a", extras={"command": "pwd"}, cause=3),
]
"""Events of an agent without function calls."""


def sdk(kind: str, source: str, **fields: Any) -> Any:
    return {"kind": kind, "id": f"{kind}-{len(fields)}", "timestamp": STAMP, "source": source, **fields}


def sdk_call(call: str, thought: str = "") -> Any:
    return sdk(
        "ActionEvent",
        "agent",
        thought=[{"type": "text", "text": thought}] if thought else [],
        thinking_blocks=[{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}] if thought else [],
        action={"kind": "TerminalAction", "command": "ls"},
        tool_name="terminal",
        tool_call_id=call,
        tool_call={"id": call, "name": "terminal", "arguments": '{"command": "ls"}'},
        llm_response_id="r1",
    )


SDK_EVENTS: list[Any] = [
    sdk("SystemPromptEvent", "agent", system_prompt={"type": "text", "text": "Be brief."}, tools=[]),
    sdk(
        "MessageEvent",
        "user",
        llm_message={
            "role": "user",
            "content": [
                {"type": "text", "text": "List.", "cache_prompt": False},
                {"type": "image", "image_urls": ["https://x.example/a.png"]},
            ],
        },
        extended_content=[],
    ),
    sdk_call("c1", "I look."),
    sdk_call("c2"),
    sdk(
        "ObservationEvent",
        "environment",
        tool_name="terminal",
        tool_call_id="c1",
        observation={"kind": "TerminalObservation", "content": [{"type": "text", "text": "a.py"}]},
    ),
    sdk("AgentErrorEvent", "agent", tool_name="terminal", tool_call_id="c2", error="No such folder."),
    sdk("ConversationStateUpdateEvent", "environment", key="x", value=1),
    sdk(
        "MessageEvent",
        "agent",
        llm_message={"role": "assistant", "content": [{"type": "text", "text": "One file."}]},
    ),
]


def opencode(message_id: str, role: str, parts: list[Any], **info: Any) -> Any:
    time = {"created": 1_772_352_000_000}
    model = {"modelID": "claude-sonnet-4-5"} if role == "assistant" else {}
    return {"info": {"id": message_id, "role": role, "time": time, **model, **info}, "parts": parts}


def tool(call: str, **state: Any) -> Any:
    return {"type": "tool", "callID": call, "tool": "bash", "state": {"input": {"command": "ls"}, **state}}


def finish(**tokens: Any) -> Any:
    return {"type": "step-finish", "reason": "tool-calls", "cost": 0, "tokens": tokens}


OPENCODE: dict[str, Any] = {
    "info": {"id": "ses_1", "title": "Files", "version": "1.0.0", "time": {"created": 1, "updated": 2}},
    "messages": [
        opencode(
            "msg_1",
            "user",
            [
                {"type": "text", "text": "List."},
                {"type": "text", "text": "Read a.py", "synthetic": True},
                {"type": "file", "mime": "text/plain", "url": "file:///a.py"},
                {"type": "file", "mime": "image/png", "url": "data:image/png;base64,iVBORw0KGgoxMjM0"},
            ],
        ),
        opencode(
            "msg_2",
            "assistant",
            [
                {"type": "step-start"},
                {
                    "type": "reasoning",
                    "text": "Hm.",
                    "metadata": {"anthropic": {"signature": "c2ln"}},
                    "time": {"start": 1},
                },
                {"type": "text", "text": "I look."},
                tool("c1", status="completed", output="a.py", title="ls", metadata={}, time={"start": 1}),
                tool("c2", status="error", error="No such folder.", time={"start": 1}),
                finish(input=300, output=12, reasoning=8, total=920, cache={"read": 600, "write": 0}),
                {"type": "step-start"},
                tool("c3", status="running", time={"start": 1}),
                finish(input=10, output=5, reasoning=2, cache={"read": 900, "write": 100}),
            ],
        ),
        opencode("msg_3", "user", [{"type": "text", "text": "And now?"}]),
        opencode("msg_4", "assistant", [], error={"name": "APIError", "data": {}}),
        opencode("msg_5", "assistant", [{"type": "text", "text": "One file."}], finish="stop"),
    ],
    "todos": [],
}


def web(uuid: str, parent: str, sender: str, *blocks: Any, **fields: Any) -> Any:
    texts = "".join(block.get("text", "") for block in blocks)
    return {
        "uuid": uuid,
        "text": texts,
        "content": [
            {"start_timestamp": STAMP, "stop_timestamp": STAMP, "flags": None, **one} for one in blocks
        ],
        "sender": sender,
        "created_at": STAMP,
        "attachments": [],
        "files": [],
        "parent_message_uuid": parent,
        **fields,
    }


ROOT = "00000000-0000-4000-8000-000000000000"
TEXT = {"type": "text", "citations": []}
EXPORT: list[Any] = [
    {
        "uuid": "chat-1",
        "name": "Files",
        "summary": "",
        "account": {"uuid": "x"},
        "chat_messages": [
            web(
                "m1",
                ROOT,
                "human",
                {**TEXT, "text": "List."},
                attachments=[{"file_name": "a.txt", "extracted_content": "one"}],
                files=[{"file_uuid": "f", "file_name": "b.png"}],
            ),
            web("m2", "m1", "assistant", {**TEXT, "text": "An answer that was made again."}),
            web(
                "m3",
                "m1",
                "assistant",
                {"type": "thinking", "thinking": "Hm.", "summaries": [], "cut_off": False},
                {**TEXT, "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "repl", "input": {"code": "ls()"}, "message": None},
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "name": "repl",
                    "content": [{"type": "text", "text": "a.py", "uuid": "t"}],
                    "is_error": True,
                },
                {"type": "token_budget"},
                {**TEXT, "text": "One file."},
            ),
        ],
    },
    {
        "uuid": "chat-2",
        "name": "",
        "chat_messages": [
            {"uuid": "n1", "text": "Hello", "sender": "human", "created_at": STAMP},
            {"uuid": "n2", "text": "Hi", "sender": "assistant", "created_at": STAMP},
        ],
    },
]

AIDER = b"""
# aider chat started at 2026-03-01 08:00:00

> Aider v0.86.0  \n> Main model: claude-sonnet-4-5 with diff edit format, infinite output  \n
#### /add a.py  \n
> Added a.py to the chat  \n
#### Fix it.  \n####   \n#### In a.py.  \n
#### Heading of an answer
> a quotation in it

Fixed.

> Tokens: 2.3k sent, 20 received. Cost: $0.01 message, $0.01 session.  \n> Applied edit to a.py  \n
#### /ask why?  \n
Because.


# aider chat started at 2026-03-02 08:00:00

#### Hello  \n
Hi.
"""


def claude(kind: str, uuid: str, parent: str | None, **fields: Any) -> Any:
    envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": "s", "version": "2.1.280"}
    return {**envelope, "type": kind, "uuid": uuid, "timestamp": STAMP, **fields}


def queued(operation: str, content: str | None = None, **fields: Any) -> Any:
    said_text = {} if content is None else {"content": content}
    operation_fields = {"type": "queue-operation", "operation": operation, "timestamp": STAMP}
    return {**operation_fields, "sessionId": "s", **said_text, **fields}


def claude_user(uuid: str, parent: str | None, content: Any, **fields: Any) -> Any:
    return claude("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def claude_answer(uuid: str, parent: str, *blocks: Any, **fields: Any) -> Any:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 40,
        "output_tokens": 20,
    }
    message = {"id": f"msg-{uuid}", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    return claude("assistant", uuid, parent, message={**message, "content": list(blocks)}, **fields)


CLAUDE: list[Any] = [
    claude_user("u1", None, "List."),
    claude_answer("a1", "u1", {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}),
    claude_user("x1", None, "Search.", isSidechain=True, agentId="a7"),
    queued("enqueue", "Only in /a."),
    queued("remove", "Only in /a.", reason="absorbed_mid_turn"),
    claude_answer("x2", "x1", {"type": "text", "text": "Nothing."}, isSidechain=True, agentId="a7"),
    claude_user("u2", "a1", [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}]),
    claude_answer("a2", "u2", {"type": "text", "text": "One file."}),
]


def without_branch(chat: Any) -> Any:
    messages = chat["chat_messages"]
    return {**chat, "chat_messages": [message for message in messages if message["uuid"] != "m2"]}


PROGRAMS: dict[str, bytes] = {
    "aider": AIDER,
    "claude-code": jsonl(CLAUDE),
    "claude-web": json.dumps([without_branch(chat) for chat in EXPORT]).encode(),
    "codex": jsonl(ROLLOUT),
    "codex flat": jsonl(FLAT),
    "codex oldest": json.dumps({"session": {"id": "s0", "timestamp": STAMP}, "items": ITEMS}).encode(),
    "gemini": (FILES / "gemini.json").read_bytes(),
    "opencode": json.dumps(OPENCODE, indent=2).encode(),
    "openhands": json.dumps(EVENTS).encode(),
    "openhands sdk": jsonl(SDK_EVENTS),
    "pydantic-ai": (FILES / "pydantic_ai.json").read_bytes(),
    "responses": json.dumps({"model": "gpt-5", "instructions": "Be brief.", "input": ITEMS}).encode(),
    "responses items": jsonl(ITEMS),
    "swe-agent": json.dumps(TRAJECTORY).encode(),
}
"""A whole file of each program."""
