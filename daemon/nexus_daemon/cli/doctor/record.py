"""Runs `nexus doctor --trace`: records what the shared daemon does, or one in this process if none runs."""

import json
import os
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nexus_context.errors import RequestError
from nexus_daemon.cli import output
from nexus_daemon.cli.doctor.messages import frame_of, take_message
from nexus_daemon.cli.invocation import current
from nexus_daemon.process.logs.log_line import describe_exception
from nexus_daemon.shared import client
from nexus_daemon.shared.identity import NoSharedDaemonError, find_place

if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812

TIMEOUT_S = 30.0  # beyond the time of the recording
_READ = 256 * 1024  # bytes
VIEWER = "https://ui.perfetto.dev"

Request = Callable[[str, dict[str, Any]], Any]
"""Sends a request to a connected daemon and returns its result."""


class _NotRecordedError(Exception):
    """The daemon has answered with an error, or not at all."""


def run(folder: str, file: str, seconds: float) -> int:
    """Record for some seconds and write the trace to a file; return the exit code."""
    try:
        with open(file, "x", encoding="utf-8") as stream:
            trace = _record(folder, seconds)
            stream.write(json.dumps(trace))
    except FileExistsError:
        output.complain("doctor", f"{file} exists already; name another file.")
        return 1
    except OSError as error:
        output.complain("doctor", f"{file} cannot be written: {error.strerror}.")
        return 1
    except (_NotRecordedError, RequestError) as error:
        os.unlink(file)
        output.complain("doctor", str(error))
        return 1
    except KeyboardInterrupt:
        os.unlink(file)
        raise
    output.line(
        f"{output.counted(trace['otherData']['spans'], 'span')} written to {file}: open it at {VIEWER}."
    )
    return 0


def _record(folder: str, seconds: float) -> dict[str, Any]:
    try:
        place = find_place(current().environ)
        greeted = client.connect(place, client.fields_for("editor", place, current().environ))
    except NoSharedDaemonError:
        greeted = None
    if greeted is None:
        output.beside("No shared daemon runs: this records how one loads the folder and answers.\n")
        from nexus_daemon.cli.doctor import record_here

        return record_here.record(folder)
    output.beside(f"Recording for {seconds:g} s; use your editor meanwhile.\n")
    with closing(greeted.socket) as connected:
        return record_from(_requester(connected, seconds + TIMEOUT_S), seconds)


def record_from(request: Request, seconds: float) -> dict[str, Any]:
    """Return the trace of a connected daemon after so many seconds."""
    trace: dict[str, Any] = request("nexus/debug/trace", {"seconds": seconds})["trace"]
    return trace


def _requester(connected: "Socket", timeout_s: float) -> Request:
    """Requests over a socket to a daemon, as an editor without folders."""
    connected.settimeout(timeout_s)
    number = 0
    buffer = bytearray()

    def request(method: str, params: dict[str, Any]) -> Any:
        nonlocal number
        number += 1
        _send(connected, {"id": number, "method": method, "params": params})
        while True:
            message = _receive(connected, buffer)
            if message.get("id") == number and "method" not in message:
                break
        if "error" in message:
            raise _NotRecordedError(message["error"]["message"])
        return message["result"]

    request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    _send(connected, {"method": "initialized", "params": {}})
    return request


def _send(connected: "Socket", message: dict[str, Any]) -> None:
    connected.sendall(frame_of(message))


def _receive(connected: "Socket", buffer: bytearray) -> dict[str, Any]:
    while (message := take_message(buffer)) is None:
        try:
            piece = connected.recv(_READ)
        except OSError as error:
            raise _NotRecordedError(f"The daemon does not answer: {describe_exception(error)}.") from error
        if not piece:
            raise _NotRecordedError("The daemon has ended.")
        buffer += piece
    return message
