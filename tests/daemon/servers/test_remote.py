"""Servers that are reached by HTTP: both transports, and what a server can do that it should not."""

import contextlib
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.servers import running_server
from support.remote_servers import CANARY, configure_remote
from support.server_story import Servers, check, processes_of
from support.waiting import block_until, wait_until

Answer = Callable[[http.server.BaseHTTPRequestHandler, bytes], None]


@contextlib.contextmanager
def serving(answer: Answer, certificate: Path | None = None) -> Iterator[str]:
    """The address of a server that answers every request so."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            answer(self, self.rfile.read(int(self.headers.get("content-length", 0))))

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http{'' if certificate is None else 's'}://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()


def send(handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    handler.send_response(status)
    for name, value in {**headers, "content-length": str(len(body))}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    with contextlib.suppress(OSError):  # the client has seen enough
        handler.wfile.write(body)


@contextlib.contextmanager
def answering(status: int, headers: dict[str, str]) -> Iterator[tuple[str, list[Any]]]:
    """The address of a server that answers every request so, and the headers that it was sent."""
    sent: list[Any] = []

    def answer(handler: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
        sent.append(handler.headers)
        send(handler, status, b"", **headers)

    with serving(answer) as url:
        yield url, sent


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
                "The server refuses the Authorization header that its file gives.",
            )
            assert any(headers.get("authorization") == f"Bearer {CANARY}" for headers in sent)
            assert CANARY not in json.dumps(servers.talk.writer.messages())

        check(tmp_path, story)


def test_a_server_that_gives_a_bad_certificate_gets_no_header(tmp_path: Path) -> None:
    sent: list[Any] = []
    certificate = write_certificate(tmp_path)
    with serving(lambda handler, _: sent.append(handler.headers), certificate) as url:

        async def story(servers: Servers) -> None:
            await configure_remote(servers, "http", url)
            server = await servers.ask("mcp/start", name="test")
            assert (server["state"], "certificate" in server["error"], sent) == ("failed", True, [])

        check(tmp_path, story)


def write_certificate(directory: Path) -> Path:
    """A key with a certificate that nobody has signed but itself."""
    path = directory / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext"
    subprocess.run(
        [*command.split(), "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", f"{path}.crt"],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def old_server(list_tools: Answer) -> Answer:
    """A server of an older era that lists its tools so."""

    def answer(handler: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        request = json.loads(body or b"{}")
        if request.get("method") == "tools/list":
            list_tools(handler, body)
        elif request.get("method") == "initialize":
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
            message = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
            send(handler, 200, message.encode(), content_type="application/json")
        else:
            send(handler, 202 if handler.command == "POST" and "id" not in request else 405)

    return answer


def send_large_event(handler: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
    send(handler, 200, b"data: " + b"x" * (2 << 20) + b"\n\n", content_type="text/event-stream")


def send_large_answer(handler: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
    send(handler, 200, b'"' + b"x" * (2 << 20) + b'"', content_type="application/json")


def send_nothing(handler: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
    time.sleep(5)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (old_server(send_large_event), "could not be reached"),
        (old_server(send_large_answer), "could not be reached"),
        (old_server(send_nothing), "did not list its tools"),
        (send_nothing, "did not list its tools"),
    ],
    ids=["a large event", "a large answer", "no list", "no answer"],
)
def test_a_server_that_answers_too_much_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, words: str
) -> None:
    monkeypatch.setattr(running_server, "START_S", 3.0)
    monkeypatch.setattr("nexus_daemon.servers.http_client.LARGEST_ANSWER", 1 << 20)
    with serving(answer) as url:

        async def story(servers: Servers) -> None:
            await configure_remote(servers, "http", url)
            server = await servers.ask("mcp/start", name="test")
            assert (server["state"], words in server["error"]) == ("failed", True), server["error"]

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
