"""Makes and reads frames of the protocol, as a client sends and receives them."""

from typing import Any

import msgspec

_HEAD = 200  # bytes of a header


def frame_of(message: dict[str, Any]) -> bytes:
    """Return a message as the bytes that are sent."""
    body = msgspec.json.encode({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def take_message(buffer: bytearray) -> dict[str, Any] | None:
    """Remove the first message from a buffer and return it. None if it is not complete."""
    head, separator, _ = bytes(buffer[:_HEAD]).partition(b"\r\n\r\n")
    if not separator:
        return None
    begin = len(head) + len(separator)
    end = begin + int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    if len(buffer) < end:
        return None
    message: dict[str, Any] = msgspec.json.decode(buffer[begin:end])
    del buffer[:end]
    return message
