"""A server of MCP that is reached by HTTP, in a process of its own."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator

from support.server_story import SUPPORT, Servers
from support.waiting import answers, block_until, free_port, wait_until

CANARY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@contextlib.contextmanager
def remote(transport: str) -> Iterator[str]:
    """The address of a running server."""
    port = free_port()
    program = [sys.executable, str(SUPPORT / "mcp_http_server.py"), str(port), transport]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            block_until(lambda: answers(port), 20.0)
            yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
        finally:
            process.send_signal(signal.SIGKILL)


async def configure_remote(servers: Servers, transport: str, url: str) -> None:
    """Name the address in the folder's file, and approve it."""
    kind = "sse" if transport == "sse" else "http"
    entry = {"type": kind, "url": url, "headers": {"Authorization": f"Bearer {CANARY}"}}
    (servers.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": entry}}))

    async def is_read() -> bool:
        return bool((await servers.server()).get("url") == url)

    assert await wait_until(is_read)
    await servers.approve()
