"""A connection in memory: a server, its link, and a transport that keeps what is written."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.link import Limits, StreamLink
from support.client import frame
from support.server import build
from support.waiting import wait_until, yield_to_loop

Message = dict[str, Any]
SILENT = Limits(poll_seconds=1000)


class Writer:
    """A transport that keeps what is written; `stuck` makes it look unread."""

    def __init__(self) -> None:
        self.stuck = False
        self.closed = ""
        self.lost: Callable[[], None] = lambda: None
        self.forget()

    def write(self, *parts: framing.Part) -> None:
        assert not self.closed
        for part in parts:
            self.data += part

    def get_write_buffer_size(self) -> int:
        return len(self.data) if self.stuck else 0

    def close(self) -> None:
        self.closed = "closed"
        asyncio.get_running_loop().call_soon(self.lost)

    def abort(self) -> None:
        self.closed = "aborted"
        asyncio.get_running_loop().call_soon(self.lost)

    def forget(self) -> None:
        """What is written so far was read."""
        self.data = bytearray()
        self._reader = framing.FrameReader()
        self._fed = 0  # bytes of `data`
        self._messages: list[Message] = []

    def messages(self) -> list[Message]:
        """All that was written since `forget`; tests poll this, so each message is decoded once."""
        self._reader.feed(bytes(memoryview(self.data)[self._fed :]))
        self._fed = len(self.data)
        while (body := self._reader.next()) is not None:
            self._messages.append(json.loads(body))
        return list(self._messages)


class Talk:
    """A server, its link and a writer; use inside a running loop."""

    def __init__(self, register: Callable[[NexusServer], None] = build, limits: Limits = SILENT) -> None:
        self.server = NexusServer("test", "1")
        register(self.server)
        self.writer = Writer()
        self.link = StreamLink(limits)
        self.link.use_protocol(self.server.protocol)
        self.link.use_writer(self.writer)
        self.writer.lost = self.link.writer_lost
        self.server.protocol.attach(self.link)

    def send(self, *messages: object) -> None:
        """All messages arrive in one chunk; bytes are sent as they are."""
        self.link.data_received(b"".join(m if isinstance(m, bytes) else frame(m) for m in messages))

    def read(self) -> list[Message]:
        """The client takes all that waits for it."""
        messages = self.writer.messages()
        self.writer.forget()
        self.link.wrote()
        return messages

    async def settle(self) -> list[Message]:
        await yield_to_loop(10)
        await wait_until(lambda: not self.server.protocol.in_flight)
        return self.writer.messages()


def call(message_id: object, method: str, *params: object) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": message_id, "method": method}
    return {**message, "params": params[0]} if params else message


def tell(method: str, *params: object) -> Message:
    return {key: value for key, value in call(0, method, *params).items() if key != "id"}


HELLO = call(0, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})


def result(message_id: object, value: object) -> Message:
    return {"jsonrpc": "2.0", "id": message_id, "result": value}


def user(content: object) -> Message:
    """A message of the user in a conversation."""
    return {"role": "user", "content": content}
