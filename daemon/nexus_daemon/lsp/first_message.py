"""Answer the first message on standard input, `initialize`, before the slow imports.

1. Importing asyncio and everything else takes longer than all before it. So the client gets its reply first,
   and reads it during the import.
2. Any other first message, and the bytes that have arrived after the first message, go to the real protocol.
"""

import os
import sys
from typing import Any, Literal, NamedTuple

import msgspec

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.initialize import Offer, initialize_result
from nexus_daemon.lsp.lsp_types import InitializeParams, initialize_params

_READ = 64 * 1024  # bytes


class Opening(NamedTuple):
    """What was read before the real protocol starts.

    `client` has the parameters of an `initialize` that was already answered, else None. `unhandled` are the
    bytes that the protocol still has to handle.
    """

    client: InitializeParams | None
    unhandled: bytes


NOTHING = Opening(None, b"")


class _Reply(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    id: framing.Id
    result: dict[str, Any]


def answer_first_message(offer: Offer, stdin: int, stdout: int) -> Opening:
    """Wait for the first message on the descriptor `stdin`, and reply to it if it is a valid `initialize`."""
    frames = framing.FrameReader()
    received = bytearray()
    try:
        while (body := frames.next()) is None:
            data = os.read(stdin, _READ)
            if not data:
                return Opening(None, bytes(received))
            received += data
            frames.feed(data)
        initialize = _read_initialize(body)
        if initialize is not None:
            message_id, client = initialize
            reply = framing.encode(_Reply("2.0", message_id, initialize_result(offer, client)))
            _write(stdout, framing.header(len(reply)) + reply)
            return Opening(client, bytes(received[len(received) - frames.pending :]))
    except (OSError, framing.FrameError):  # the real protocol sees it, too
        pass
    return Opening(None, bytes(received))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _read_initialize(body: framing.Body) -> tuple[framing.Id, InitializeParams] | None:
    """Return id and parameters of a valid `initialize` request; None for anything else."""
    try:
        message: framing.Envelope = framing.decode(body, framing.Envelope)
        if (
            message.jsonrpc != "2.0"
            or message.method != "initialize"
            or isinstance(message.params, msgspec.UnsetType)
        ):
            return None
        if message.id is None or isinstance(message.id, msgspec.UnsetType):
            return None
        return message.id, initialize_params(message.params)
    except msgspec.DecodeError:
        return None


def take_stdio() -> tuple[int, int]:
    sys.stdout.flush()
    stdin, stdout = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return stdin, stdout
