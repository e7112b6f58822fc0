"""A stand-in for the providers of assistants, on loopback: it records requests and answers with a sentence.

1. It listens on 127.0.0.1 at a port that the system chooses.
2. It answers Anthropic's messages, OpenAI's Responses and chat completions, and Gemini's contents, streamed
   or not, as far as the assistants need it to end a turn.
3. With a `ScriptedCall` it answers with that call of a tool first, and with the sentence once the result is
   in the request. With `answers` it answers what these say of a path and a body.
4. It ends with its `with` block; its threads never keep a process alive.
"""

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

ANSWER = "The gate is closed."
SUMMARY = "<analysis>All of it.</analysis>\n<summary>The user asked about the gate.</summary>"
"""The answer to Claude Code that asks for one."""
LOOPBACK = "127.0.0.1"
MODELS = b'{"data": [], "models": []}'
CALL_ID, SEARCH_ID = "toolu_call", "toolu_search"
_SEARCH = "ToolSearch"
_CHAT_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


class RecordedRequest(NamedTuple):
    """A request to a provider: its path without the query, and its body."""

    path: str
    body: dict[str, Any]


class ScriptedCall(NamedTuple):
    """A call that a model makes once: of the tool whose name ends like this, if a request offers it."""

    tool: str
    arguments: dict[str, Any]


class OfferedTool(NamedTuple):
    """A tool of a request. Codex has the tools of each MCP server in a namespace.

    One that `takes_text` has no arguments but a text.
    """

    name: str
    namespace: str | None = None
    takes_text: bool = False


class ProviderStandIn:
    """The server. `requests` are the bodies of all requests so far that were JSON, in order."""

    def __init__(
        self,
        call: ScriptedCall | None = None,
        *,
        answers: Callable[[str, dict[str, Any]], dict[str, Any] | bytes] | None = None,
    ) -> None:
        self._call = call
        self._answers = answers
        self.requests: list[RecordedRequest] = []
        self._server = ThreadingHTTPServer((LOOPBACK, 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """The address of the server, without a path."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def __enter__(self) -> "ProviderStandIn":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        requests, call, answers = self.requests, self._call, self._answers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base
                """Print nothing."""

            def do_HEAD(self) -> None:
                self._reply(b"", "application/json")

            def do_GET(self) -> None:
                self._reply(MODELS, "application/json")

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0]
                try:
                    body = json.loads(data or b"{}")
                except ValueError:
                    self.send_error(415, "the stand-in reads JSON only")
                    return
                requests.append(RecordedRequest(path, body))
                kind = "text/event-stream" if is_streamed(path, body) else "application/json"
                said = answer(path, body, call) if answers is None else answers(path, body)
                self._reply(said if isinstance(said, bytes) else _json(said), kind)

            def _reply(self, data: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler


def is_streamed(path: str, body: dict[str, Any]) -> bool:
    """Whether the answer to a request is a stream of events."""
    if path.endswith(":streamGenerateContent"):
        return True
    return bool(body.get("stream")) and not path.endswith("/count_tokens")


def answer(path: str, body: dict[str, Any], call: ScriptedCall | None = None) -> bytes:
    """The answer of the provider whose API has this path."""
    if path.endswith("/count_tokens"):
        return _json({"input_tokens": 1})
    if call is not None and result_of(body) is None:
        tool = offered_tool(body, call.tool)
        if tool is not None:
            return answer_call(path, body, tool, json.dumps(call.arguments))
        deferred = _deferred_name(body, call.tool)
        if deferred is not None:
            search = {"query": f"select:{deferred}", "max_results": 1}
            return answer_call(path, body, OfferedTool(_SEARCH), json.dumps(search))
    if path.endswith("/messages"):
        return _messages(body)
    if path.endswith("/responses"):
        return _responses(body)
    if path.endswith("/chat/completions"):
        return _chat_completions(body)
    if path.endswith((":streamGenerateContent", ":generateContent")):
        return _contents(path)
    return b"{}"


def offered_tool(body: dict[str, Any], name: str) -> OfferedTool | None:
    """The tool of a request with this name, or whose name ends like it."""
    for tool in sorted(body.get("tools") or [], key=lambda tool: _name(tool) != name):
        if tool.get("type") == "namespace":
            if any(each["name"] == name for each in tool["tools"]):
                return OfferedTool(name, tool["name"])
        elif "functionDeclarations" in tool:
            if any(each["name"] == name for each in tool["functionDeclarations"]):
                return OfferedTool(name)
        elif _name(tool).endswith(name):
            return OfferedTool(_name(tool), takes_text=tool.get("type") == "custom")
    return None


def result_of(body: dict[str, Any]) -> str | None:
    """The text of the result of the scripted call in a request; None if it has none."""
    items = [*(body.get("messages") or []), *(body.get("input") or [])]
    contents = (item["content"] for item in items if isinstance(item.get("content"), list))
    parts = [part for content in contents for part in content if part.get("type") == "tool_result"]
    for item in (*items, *parts):
        if CALL_ID in (item.get("call_id"), item.get("tool_call_id"), item.get("tool_use_id")):
            result = item.get("output", item.get("content"))
            if result is not None:
                return result if isinstance(result, str) else "".join(each.get("text", "") for each in result)
    return None


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("function", tool).get("name"))


def _deferred_name(body: dict[str, Any], name: str) -> str | None:
    """The whole name of a tool whose definition Claude Code sends only when it is searched for."""
    if not any(tool.get("name") == _SEARCH for tool in body.get("tools") or []):
        return None
    match = re.search(rf"mcp__\w+?__{name}\b", json.dumps(body["messages"]))
    return None if match is None else match[0]


def answer_call(
    path: str, body: dict[str, Any], tool: OfferedTool, arguments: str, *, call_id: str = CALL_ID
) -> bytes:
    """An answer that calls a tool, streamed: all assistants ask for that. `arguments` are JSON, or a text."""
    if path.endswith(":streamGenerateContent"):
        part = {"functionCall": {"id": call_id, "name": tool.name, "args": json.loads(arguments)}}
        return _content_events(path, part)
    if path.endswith("/messages"):
        call_id = SEARCH_ID if tool.name == _SEARCH else call_id
        block = {"type": "tool_use", "id": call_id, "name": tool.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        return _message_events(body, block, delta, "tool_use")
    if path.endswith("/responses"):
        kind, key = ("custom_tool_call", "input") if tool.takes_text else ("function_call", "arguments")
        item = {
            "type": kind,
            "id": "fc_1",
            "call_id": call_id,
            "name": tool.name,
            key: arguments,
            **({} if tool.namespace is None else {"namespace": tool.namespace}),
        }
        return _response_events(body, item, {**item, key: ""})
    function = {"name": tool.name, "arguments": arguments}
    calls = [{"index": 0, "id": call_id, "type": "function", "function": function}]
    return _chat_events(body, {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")


def answer_text(body: dict[str, Any]) -> bytes:
    """The answer of Anthropic's API with a sentence."""
    return _messages(body)


def answer_tool_use(body: dict[str, Any], call_id: str, name: str, arguments: dict[str, Any]) -> bytes:
    """The answer of Anthropic's API with one call of a tool."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    return _message_events(body, block, delta, "tool_use")


def _contents(path: str) -> bytes:
    return _content_events(path, {"text": ANSWER})


def _content_events(path: str, part: dict[str, Any]) -> bytes:
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    response = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
    }
    return b"data: " + _json(response) + b"\n\n" if is_streamed(path, {}) else _json(response)


def _messages(body: dict[str, Any]) -> bytes:
    text = SUMMARY if "<summary>" in json.dumps(body.get("messages", [None])[-1]) else ANSWER
    if not body.get("stream"):
        content = [{"type": "text", "text": text}]
        return _json({**_message(body), "content": content, "stop_reason": "end_turn"})
    block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
    return _message_events(body, block, delta, "end_turn")


def _message(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _message_events(body: dict[str, Any], block: dict[str, Any], delta: dict[str, Any], reason: str) -> bytes:
    return _events(
        {"type": "message_start", "message": _message(body)},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    )


def _responses(body: dict[str, Any]) -> bytes:
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    if not body.get("stream"):
        return _json(_response(body, item))
    return _response_events(body, item, {**item, "content": []})


def _response(body: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    sent = len(json.dumps(body)) // 4  # of which Codex compacts, if it was told to at so many
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": body.get("model"),
        "output": [item],
        "usage": {
            "input_tokens": sent,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + 1,
        },
    }


def _response_events(body: dict[str, Any], item: dict[str, Any], begun_item: dict[str, Any]) -> bytes:
    response = _response(body, item)
    begun = {**response, "status": "in_progress", "output": []}
    return _events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": begun_item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    )


def _chat_completions(body: dict[str, Any]) -> bytes:
    message = {"role": "assistant", "content": ANSWER}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "chat_1", "created": 1, "model": body.get("model")}
        return _json({**whole, "object": "chat.completion", "choices": [choice], "usage": _CHAT_USAGE})
    return _chat_events(body, message, "stop")


def _chat_events(body: dict[str, Any], delta: dict[str, Any], reason: str) -> bytes:
    chunk = {"id": "chat_1", "created": 1, "model": body.get("model"), "object": "chat.completion.chunk"}
    first = {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": _CHAT_USAGE}
    lines = [f"data: {json.dumps(each)}\n\n" for each in (first, last)]
    return ("".join(lines) + "data: [DONE]\n\n").encode()


def _events(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
