"""A provider on loopback whose answers are scripted byte by byte, in the loop of the test.

1. Each request takes the next reply of the script; the last one answers all others.
2. The chunks of a reply are written one by one, each as a chunk of HTTP; between them the loop has its turn.
3. After its chunks a reply ends, breaks off (`is_broken`), or hangs until the client leaves (`hangs`). Its
   connection takes another request if the reply `keeps_alive`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

SSE = "text/event-stream"


class Reply(NamedTuple):
    """What the provider answers to one request."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = {}
    kind: str = SSE
    is_broken: bool = False
    hangs: bool = False
    keeps_alive: bool = False
    delay_s: float = 0.0


class ProviderRequest(NamedTuple):
    """A request as it arrived; the names of headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


class StreamingProvider:
    """`requests` are all so far; `connections` counts those that clients opened; `left` is set
    when a client closed its connection before the end.
    """

    def __init__(self, replies: Sequence[Reply], port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[ProviderRequest] = []
        self.connections = 0
        self.left = asyncio.Event()
        self._replies = replies

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request; whether the connection takes another one."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        reply = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append(ProviderRequest(head[0].split()[1], headers, json.loads(body or b"null")))
        lines = [
            f"HTTP/1.1 {reply.status} Scripted",
            f"content-type: {reply.kind}",
            "transfer-encoding: chunked",
        ]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        await asyncio.sleep(reply.delay_s)
        connection = "keep-alive" if reply.keeps_alive else "close"
        writer.write("\r\n".join([*lines, f"connection: {connection}", "", ""]).encode())
        for chunk in filter(None, reply.chunks):  # an empty chunk would be the end
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
            await asyncio.sleep(0)
        if reply.hangs:
            await reader.read()  # until the client closes its side
            self.left.set()
        elif not reply.is_broken:
            writer.write(b"0\r\n\r\n")
        return reply.keeps_alive and not reply.is_broken


@asynccontextmanager
async def streaming_provider(*replies: Reply) -> AsyncIterator[StreamingProvider]:
    """The provider; at the end its connections are closed."""
    writers: list[asyncio.StreamWriter] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        provider.connections += 1
        try:
            while await provider.answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            provider.left.set()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    provider = StreamingProvider(replies, server.sockets[0].getsockname()[1])
    try:
        yield provider
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()
        if tasks:
            await asyncio.wait(tasks, timeout=2)


def events(*values: Mapping[str, Any]) -> bytes:
    """Values with a `type` as a stream of events, as Anthropic and OpenAI's responses name them."""
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in values).encode()


def data_lines(*values: Any) -> bytes:
    """Values as a stream without names, as chat completions and Gemini have it."""
    return "".join(f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in values).encode()
