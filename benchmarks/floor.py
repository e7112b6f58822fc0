"""The bare pipe: a child that reads frames and writes bytes encoded beforehand. Nothing is decoded.

Started as `python -m benchmarks.floor FILE [json]`: a short frame is answered with the framed bytes of FILE,
a long one (over LONG_BYTES) with a short frame. With `json` it decodes each body and encodes each reply, too:
what the format itself costs before any server does anything.
"""

import os
import sys
from pathlib import Path

import msgspec
from benchmarks.lsp_client import FrameReader, frame

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


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]


def main(path: str, *flags: str) -> None:
    """Serves until standard input ends."""
    try:
        (with_json if "json" in flags else bare)(Path(path).read_bytes())
    except EOFError:
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
