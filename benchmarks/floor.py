"""The bare pipe: a child that reads frames and writes bytes encoded beforehand. Nothing is decoded.

Started as `python -m benchmarks.floor FILE [json | asyncio]`: a short frame is answered with the framed bytes
of FILE, a long one (over LONG_BYTES) with a short frame. With `json` it decodes each body and encodes each
reply, too: what the format itself costs before any server does anything. With `asyncio` it does what `bare`
does by way of asyncio's streams instead of blocking calls: what a server costs that does more than one thing.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec
from benchmarks.lsp_client import HEADER_END, FrameReader, frame

LONG_BYTES = 1_000_000
SHORT_REPLY = b'{"jsonrpc":"2.0","id":1,"result":{"session":"bench","turn":"1","count":0}}'


def bare(reply: bytes) -> None:
    """Answers frames until standard input ends."""
    long, short = frame(reply), frame(SHORT_REPLY)
    reader = FrameReader(sys.stdin.fileno())
    while True:
        body = reader.read().body
        _write(short if len(body) > LONG_BYTES else long)


def with_json(reply: bytes) -> None:
    """The same, by way of Python values."""
    long, short = msgspec.json.decode(reply), msgspec.json.decode(SHORT_REPLY)
    reader = FrameReader(sys.stdin.fileno())
    while True:
        body = reader.read().body
        msgspec.json.decode(body)
        _write(frame(msgspec.json.encode(short if len(body) > LONG_BYTES else long)))


async def with_asyncio(reply: bytes) -> None:
    """Nothing is decoded, and nothing blocks."""
    long, short = frame(reply), frame(SHORT_REPLY)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    while True:
        header = await reader.readuntil(HEADER_END)
        body = await reader.readexactly(int(header.split(b":")[1]))
        writer.write(short if len(body) > LONG_BYTES else long)
        await writer.drain()


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]


def main(path: str, *flags: str) -> None:
    """Serves until standard input ends."""
    reply = Path(path).read_bytes()
    try:
        if "asyncio" in flags:
            asyncio.run(with_asyncio(reply))
        (with_json if "json" in flags else bare)(reply)
    except EOFError:
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
