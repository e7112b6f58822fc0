"""Servers that are reached by HTTP: both transports, a redirect to another host, one that wants a sign-in."""

import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server_story import SUPPORT, Servers, check, processes_of
from support.waiting import block_until, wait_until

CANARY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def remote(transport: str) -> Iterator[str]:
    """The address of a running server."""
    port = free_port()
    program = [sys.executable, str(SUPPORT / "mcp_http_server.py"), str(port), transport]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            block_until(lambda: _answers(port), 20.0)
            yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
        finally:
            process.send_signal(signal.SIGKILL)


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def answering(status: int, headers: dict[str, str]) -> Iterator[tuple[str, list[Any]]]:
    """The address of a server that answers every request so, and the headers that it was sent."""
    sent: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            sent.append(self.headers)
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in {**headers, "content-length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp", sent
    finally:
        server.shutdown()
        server.server_close()


async def configure_remote(servers: Servers, transport: str, url: str) -> None:
    """Name the address in the folder's file, and approve it."""
    kind = "sse" if transport == "sse" else "http"
    entry = {"type": kind, "url": url, "headers": {"Authorization": f"Bearer {CANARY}"}}
    (servers.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": entry}}))

    async def is_read() -> bool:
        return bool((await servers.server()).get("url") == url)

    assert await wait_until(is_read)
    await servers.approve()


@pytest.mark.parametrize("transport", ["sse", "streamable-http"])
def test_a_server_is_called_over_http(tmp_path: Path, transport: str) -> None:
    with remote(transport) as url:

        async def story(servers: Servers) -> None:
            await configure_remote(servers, transport, url)
            answer = await servers.call("alpha", text="hi")
            assert answer["content"][0]["text"] == "hi"
            assert await servers.state() == "ready"

        check(tmp_path, story)


def test_a_redirect_to_another_host_is_not_followed(tmp_path: Path) -> None:
    with answering(200, {}) as (other, sent), answering(307, {"location": other}) as (url, _):

        async def story(servers: Servers) -> None:
            await configure_remote(servers, "http", url)
            server = await servers.ask("mcp/start", name="test")
            assert server["state"] == "failed"
            assert CANARY not in json.dumps(servers.talk.writer.messages())
            assert sent == []

        check(tmp_path, story)


def test_a_server_that_wants_a_sign_in_says_so(tmp_path: Path) -> None:
    with answering(401, {"www-authenticate": "Bearer"}) as (url, sent):

        async def story(servers: Servers) -> None:
            await configure_remote(servers, "http", url)
            server = await servers.ask("mcp/start", name="test")
            assert (server["state"], server["error"]) == (
                "needs-auth",
                "The server wants somebody to sign in.",
            )
            assert any(headers.get("authorization") == f"Bearer {CANARY}" for headers in sent)
            assert CANARY not in json.dumps(servers.talk.writer.messages())

        check(tmp_path, story)


def test_another_header_asks_again(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        await configure_remote(servers, "http", "http://127.0.0.1:9/mcp")
        before = (await servers.server())["hash"]
        entry = {
            "type": "http",
            "url": "http://127.0.0.1:9/mcp",
            "headers": {"Authorization": "Bearer other"},
        }
        (servers.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": entry}}))

        async def is_unapproved() -> bool:
            server = await servers.server()
            return bool(server["state"] == "unapproved" and server["hash"] != before)

        assert await wait_until(is_unapproved)

    check(tmp_path, story)


def test_servers_end_with_a_daemon_that_is_killed(tmp_path: Path) -> None:
    """The guard ends them: nothing else runs when a process gets SIGKILL."""
    script = """
import subprocess, time
from nexus_daemon.servers.process_guard import ProcessGuard
child = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 600 & wait"], start_new_session=True)
guard = ProcessGuard()
guard.add(child.pid)
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        group = int(daemon.stdout.readline())
        os.killpg(group, 0)
        daemon.kill()
    block_until(lambda: not processes_of(group), 10.0)
