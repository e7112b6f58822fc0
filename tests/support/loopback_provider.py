"""A provider on 127.0.0.1 that streams Anthropic's messages as its documentation says.

A script of answers: each request takes the next one. `Gate`s let a test act in the middle of an answer.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

Events = Sequence[Any]
"""Texts and calls of an answer in their order, and gates between them."""


class Call(msgspec.Struct, frozen=True):
    """A call of a tool in an answer."""

    id: str
    name: str
    arguments: dict[str, Any] = {}


class Thinking(msgspec.Struct, frozen=True):
    """Thinking of an answer, with its signature."""

    text: str
    signature: str = "c2lnbmVk"


class Refusal(msgspec.Struct, frozen=True):
    """An HTTP error instead of an answer."""

    status: int
    kind: str
    message: str
    headers: dict[str, str] = {}


class Gate:
    """Where an answer waits for the test; `reached` is set once everything before it is sent."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()


class Cut:
    """The connection ends here."""


class LoopbackProvider:
    """`requests` are the bodies that came, `headers` theirs."""

    def __init__(self, script: Sequence[Events | Refusal]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""


@contextmanager
def loopback_provider(*script: Events | Refusal) -> Iterator[LoopbackProvider]:
    """Serve the script; what it has no answer for gets an error."""
    provider = LoopbackProvider(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            provider.requests.append(json.loads(body))
            provider.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer: Events | Refusal = (
                provider.script.pop(0)
                if provider.script
                else Refusal(400, "invalid_request_error", "no more")
            )
            if isinstance(answer, Refusal):
                error = {"type": "error", "error": {"type": answer.kind, "message": answer.message}}
                self._send(answer.status, "application/json", answer.headers)
                self._write(json.dumps(error).encode())
            else:
                self._send(200, "text/event-stream", {})
                self._stream(answer)
            self.close_connection = True

        def _send(self, status: int, kind: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"content-type": kind, "connection": "close", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def _write(self, data: bytes) -> None:
            self.wfile.write(data)
            self.wfile.flush()

        def _stream(self, answer: Events) -> None:
            for event in events(answer):
                if isinstance(event, Gate):
                    event.reached.set()
                    event.opened.wait(30)
                elif isinstance(event, Cut):
                    return
                else:
                    try:
                        self._write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                    except OSError:  # the client has gone
                        return

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def events(answer: Events) -> Iterator[Any]:
    """The events of an answer, as Anthropic's "Streaming messages" shows them."""
    usage = {"input_tokens": 100, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6"}
    yield {
        "type": "message_start",
        "message": {**message, "content": [], "usage": usage, "stop_reason": None},
    }
    stop, index = "end_turn", -1
    for piece in answer:
        if isinstance(piece, Gate | Cut):
            yield piece
            continue
        index += 1
        match piece:
            case Call():
                stop = "tool_use"
                block: Any = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
                deltas: list[Any] = [
                    {"type": "input_json_delta", "partial_json": json.dumps(piece.arguments)}
                ]
            case Thinking():
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": piece.text},
                    {"type": "signature_delta", "signature": piece.signature},
                ]
            case _:
                block, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece}]
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "ping"}
    yield {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}
