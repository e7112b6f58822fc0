"""Runs a daemon in this process for `nexus doctor --trace`: it loads a folder and answers some requests."""

import asyncio
from pathlib import Path
from typing import Any

from nexus_context.errors import RequestError
from nexus_daemon.cli.doctor.messages import frame_of, take_message
from nexus_daemon.cli.folder import absolute, folder_of, load_inputs
from nexus_daemon.lsp import convert
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.link import Limits, StreamLink
from nexus_daemon.process import tracing
from nexus_daemon.process.logs.log_line import shorten_home
from nexus_daemon.process.tracing.chrome import chrome_trace
from nexus_daemon.server import build
from nexus_daemon.windows.daemon import Daemon

METHODS = ("nexus/context/preview", "nexus/context/layers", "nexus/context/usage", "nexus/status")


def record(folder: str) -> dict[str, Any]:
    """Return the trace of a daemon that opens the folder of a path.

    RequestError if the path does not exist.
    """
    directory = folder_of(absolute(folder))
    if directory is None:
        raise RequestError(f"{folder} does not exist.", code="unknown-folder")
    return asyncio.run(_record(directory))


async def _record(directory: Path) -> dict[str, Any]:
    uri = convert.path_to_uri(str(directory))
    daemon, server, link, replies = Daemon(load_inputs()), NexusServer(), StreamLink(Limits()), _Replies()
    build(lambda: daemon, server)
    link.use_protocol(server.protocol)
    link.use_writer(replies)
    server.protocol.attach(link)
    folders = [{"uri": uri, "name": directory.name}]
    hello: dict[str, Any] = {
        "processId": None,
        "rootUri": uri,
        "workspaceFolders": folders,
        "capabilities": {},
    }
    try:
        with tracing.recording() as recorder:
            link.data_received(frame_of({"id": 0, "method": "initialize", "params": hello}))
            link.data_received(frame_of({"method": "initialized", "params": {}}))
            for number, method in enumerate(METHODS, 1):
                params = {} if method == "nexus/status" else {"workspaceFolder": uri}
                link.data_received(frame_of({"id": number, "method": method, "params": params}))
                await replies.wait(number)
    finally:
        link.end(0, "the trace is recorded")
        await daemon.close()
    return chrome_trace(recorder, shorten_home)


class _Replies:
    """A writer in memory."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._written = asyncio.Event()

    async def wait(self, number: int) -> None:
        """Wait for the reply to a request."""
        while True:
            while (message := take_message(self._data)) is not None:
                if message.get("id") == number and "method" not in message:
                    return
            self._written.clear()
            await self._written.wait()

    def write(self, *parts: Any) -> None:
        for chunk in parts:
            self._data += chunk
        self._written.set()

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""

    def abort(self) -> None:
        """Nothing is open."""
