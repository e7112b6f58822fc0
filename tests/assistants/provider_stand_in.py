"""A stand-in for the providers of assistants, on loopback: it records requests and answers with a sentence.

1. It listens on 127.0.0.1 at a port that the system chooses.
2. It answers Anthropic's messages, OpenAI's Responses and chat completions, and Gemini's contents, streamed
   or not, as far as the assistants need it to end a turn.
3. It ends with its `with` block; its threads never keep a process alive.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

ANSWER = "The gate is closed."
SUMMARY = "<analysis>All of it.</analysis>\n<summary>The user asked about the gate.</summary>"
"""The answer to Claude Code that asks for one."""
LOOPBACK = "127.0.0.1"
MODELS = b'{"data": [], "models": []}'


class RecordedRequest(NamedTuple):
    """A request to a provider: its path without the query, and its body."""

    path: str
    body: dict[str, Any]


class ProviderStandIn:
    """The server. `requests` are the bodies of all requests so far that were JSON, in order."""

    def __init__(self) -> None:
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
        requests = self.requests

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
                self._reply(answer(path, body), kind)

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


def answer(path: str, body: dict[str, Any]) -> bytes:
    """The answer of the provider whose API has this path."""
    if path.endswith("/count_tokens"):
        return _json({"input_tokens": 1})
    if path.endswith("/messages"):
        return _messages(body)
    if path.endswith("/responses"):
        return _responses(body)
    if path.endswith("/chat/completions"):
        return _chat_completions(body)
    if path.endswith((":streamGenerateContent", ":generateContent")):
        return _contents(path)
    return b"{}"


def _contents(path: str) -> bytes:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    response = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
    }
    return b"data: " + _json(response) + b"\n\n" if is_streamed(path, {}) else _json(response)


def _messages(body: dict[str, Any]) -> bytes:
    text = SUMMARY if "<summary>" in json.dumps(body.get("messages", [None])[-1]) else ANSWER
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if not body.get("stream"):
        return _json({**message, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})
    return _events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    )


def _responses(body: dict[str, Any]) -> bytes:
    sent = len(json.dumps(body)) // 4  # of which Codex compacts, if it was told to at so many
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    response = {
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
    if not body.get("stream"):
        return _json(response)
    begun = {**response, "status": "in_progress", "output": []}
    return _events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    )


def _chat_completions(body: dict[str, Any]) -> bytes:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {"id": "chat_1", "created": 1, "model": body.get("model")}
    message = {"role": "assistant", "content": ANSWER}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return _json({**whole, "object": "chat.completion", "choices": [choice], "usage": usage})
    chunk = {**whole, "object": "chat.completion.chunk"}
    first = {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    lines = [f"data: {json.dumps(each)}\n\n" for each in (first, last)]
    return ("".join(lines) + "data: [DONE]\n\n").encode()


def _events(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
