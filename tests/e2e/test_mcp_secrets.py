"""Secrets in every place of an MCP set-up, servers that tell all they know, and all that Nexus writes.

A server is told its secrets: it may print them, and put them into errors and last words. None of them may be
in a log, the state directory, a message to an editor, a trace, or the output of a command. The result of a
tool is not looked at: it goes to whoever called the tool.
"""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from nexus_context.text.json import parse
from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.workspace.trusted_folders import set_trust
from support.client import Client, ReplyError
from support.editor import Editor, environ
from support.waiting import block_until

pytestmark = pytest.mark.timeout(180)  # for fifteen processes on a busy machine

SERVER = Path(__file__).resolve().parents[1] / "support" / "mcp_leaking_server.py"
WORD, TOKEN, PATH = "moonlit§harbour", "ghp_§23456789abcdefghijABCDEFGHIJ01", "wort/§+mit=zeichen"
"""What a secret looks like: a plain word, which only its place tells, a known shape, special characters."""

ENV = {
    "API_TOKEN": WORD,
    "PGPASSWORD": WORD,
    "ACCESS_KEY": WORD,
    "accessToken": WORD,
    "CLIENT_SECRET": PATH,
    "SESSION_COOKIE": f"sid={WORD}",
    "GH": TOKEN,
    "AUTH": f"Bearer {TOKEN}",
    "AUTHORIZATION": f"Bearer {WORD}",
    "DATABASE": f"postgres://ana:{WORD}1@h.test/x",
    "DSN": f"{WORD};x=1",
    "SETTINGS": '{"token": "' + WORD + '1"}',
    "WITH_DEFAULT_TOKEN": "${NO_SUCH_VARIABLE:-" + WORD + "}",
    "OF_USER": "${USER_VALUE_A}",
    "OF_USER_TOO": "Bearer ${USER_VALUE_B}",
    "OF_EDITOR": "${env:USER_VALUE_C}",
    "SIGNING_KEY": f"-----BEGIN PRIVATE KEY-----\n{WORD}\nxx{WORD}yy\n-----END PRIVATE KEY-----",
}
ARGUMENTS = (
    *("--token", WORD, "--api-key", PATH, "-p", TOKEN, "--auth", WORD),
    *(f"--password={WORD}", f"--api-token={TOKEN}", f"TOKEN={WORD}", f"access_key={WORD}", TOKEN),
    *(f"https://ana:{WORD}@h.test/x", f"https://h.test/x?token={WORD}x", f"redis://:{WORD}@h.test"),
    *("--header", f"Authorization: Bearer {TOKEN}", "--header", f"X-Api-Key: {WORD}"),
    *("-H", f"Cookie: sid={WORD}", f"--header=Authorization: Bearer {TOKEN}"),
    *("${USER_VALUE_D}", "--x=${USER_VALUE_E}", "${NO_SUCH_VARIABLE:-" + TOKEN + "}"),
    *('{"apiKey": "' + WORD + '1"}', f"TOKEN={TOKEN} server --port 1"),
)
HEADERS = {
    "Authorization": f"Bearer {WORD}",
    "X-Api-Key": WORD,
    "Cookie": f"sid={WORD}",
    "X-Other": TOKEN,
    "X-Of-User": "${USER_VALUE_F}",
    "X-Auth-Token": PATH,
}
ADDRESS = f"http://ana:{WORD}@127.0.0.1:PORT/mcp/{TOKEN}?tenant={WORD}&key={WORD}&of=${{USER_VALUE_G}}#{WORD}"
USER_VALUES = {f"USER_VALUE_{letter}": f"sunlit{letter}meadow" for letter in "ABCDEFG"}


class Canaries:
    """Numbers the secrets, so that each is known by its place."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {value: name for name, value in USER_VALUES.items()}

    def mark(self, text: str, place: str) -> str:
        """The text with each `§` in it replaced by a number; what is around it is a secret."""
        while "§" in text:
            number = f"{len(self.places):02d}q"
            shape = next(each for each in (WORD, TOKEN, PATH) if each in text)
            secret = shape.replace("§", number)
            text = text.replace(shape, secret, 1)
            self.places[secret] = place
        return text

    def leaks(self, sink: str, text: str) -> list[str]:
        return [
            f"{place} ({secret}) in {sink}"
            for secret, place in self.places.items()
            if secret in text or quote(secret, safe="") in text
        ]


@contextmanager
def telling(status: int) -> Iterator[int]:
    """The port of a server that answers every request with its headers and its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            text = f"cannot use {self.path} with {self.headers}"
            error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": text}}
            body = json.dumps(error).encode()
            self.send_response(status, self.path)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def write_servers(folder: Path, canaries: Canaries, ports: Mapping[str, int]) -> None:
    """A server that runs, one that dies at once, and addresses that fail in different ways."""

    def process(name: str, **more: str) -> dict[str, Any]:
        env = {key: canaries.mark(value, f"{name}: env {key}") for key, value in ENV.items()}
        arguments = [canaries.mark(each, f"{name}: argument {each}") for each in ARGUMENTS]
        return {"command": sys.executable, "args": [str(SERVER), *arguments], "env": {**env, **more}}

    def remote(name: str, kind: str, port: int) -> dict[str, Any]:
        headers = {key: canaries.mark(value, f"{name}: header {key}") for key, value in HEADERS.items()}
        url = canaries.mark(ADDRESS.replace("PORT", str(port)), f"{name}: address")
        return {"type": kind, "url": url, "headers": headers}

    servers = {
        "runs": process("runs"),
        "dies": process("dies", DIE="1"),
        **{f"http{name}": remote(name, "http", port) for name, port in ports.items()},
        "sse500": remote("sse", "sse", ports["500"]),
    }
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}, indent=1))
    assert parse(".mcp.json", (folder / ".mcp.json").read_text()).ok
    assert len(canaries.places) >= 50


VERBOSE = """
import logging
logging.getLogger().setLevel(logging.DEBUG)
logging.Logger.setLevel = lambda *_: None
from nexus_daemon.process.logs import process_log
process_log.DEFAULT_LEVEL = process_log.STDERR_LEVEL = logging.DEBUG
from nexus_daemon.servers import running_server
running_server.START_S, running_server.RESTART_S = 2.0, 0.1
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Canaries, dict[str, str]]]:
    """The canaries, and all that Nexus wrote while their servers were used, by where it wrote it."""
    root = tmp_path_factory.mktemp("mcp-secrets").resolve()
    home, folder, canaries = root / "home", root / "home" / "work", Canaries()
    folder.mkdir(parents=True)
    variables = {**USER_VALUES, "NEXUS_LOG": str(home / "log"), "NEXUS_ISOLATED": "1"}
    set_trust({**os.environ, **environ(home)}, str(folder), trusted=True)
    with telling(500) as broken, telling(401) as closed, telling(200) as odd:
        write_servers(folder, canaries, {"500": broken, "401": closed, "200": odd, "refused": 9})
        sinks = dict(_use(home, folder, variables))
        sinks |= dict(_run_commands(home, folder, variables))
    for path in (*(home / "log").rglob("*"), *(home / "state").rglob("*")):
        if path.is_file():
            sinks[str(path.relative_to(home))] = path.read_bytes().decode("utf-8", "replace")
    yield canaries, sinks


def _use(home: Path, folder: Path, variables: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Approve, start and call every server from an editor that records all; what came."""
    with Editor(home, before=VERBOSE, variables=variables) as editor:
        editor.hello(folder, trace="verbose")
        about = {"workspaceFolder": path_to_uri(str(folder))}
        path = folder / ".mcp.json"
        editor.open(path, path.read_text())
        number = editor.send_request("nexus/debug/trace", {"seconds": 10})
        names = [
            (each["name"], each["hash"]) for each in editor.request("nexus/mcp/servers", about)["servers"]
        ]
        for name, launch_hash in names:
            editor.request("nexus/mcp/approve", {**about, "name": name, "hash": launch_hash})
            editor.request("nexus/mcp/start", {**about, "name": name}, 60)
        for tool in ("fail", "crash", "none"):
            with pytest.raises(ReplyError):
                editor.request("nexus/mcp/call", {**about, "server": "runs", "tool": tool}, 60)
        block_until(lambda: _state(editor, about, "runs") == "ready", 20)  # it was started again
        turn = {**about, "message": "Go.", "options": {"mcpTools": True}}
        assert len(editor.request("nexus/context/assemble", turn, 60)["tools"]) == 3
        text = {"role": "user", "content": "Go."}
        editor.request("nexus/session/append", {**about, "messages": [text]})
        editor.request("nexus/status", {})
        with suppress(ReplyError):
            editor.request("nexus/mcp/refresh", {**about, "name": "http500"}, 60)
        trace = editor.wait_reply(number, 60)
        editor.stop()
        yield "messages to the editor", json.dumps(editor.received, ensure_ascii=False)
        yield "trace", json.dumps(trace, ensure_ascii=False)
        yield "standard error of the daemon", editor.stderr
        assert any(message.get("method") == "$/logTrace" for message in editor.received)


def _state(client: Client, about: dict[str, Any], name: str) -> str:
    servers = client.request("nexus/mcp/servers", about)["servers"]
    state: str = next(each["state"] for each in servers if each["name"] == name)
    return state


def _run_commands(home: Path, folder: Path, variables: dict[str, str]) -> Iterator[tuple[str, str]]:
    env = {**os.environ, **environ(home), **variables}
    for command in (
        ("mcp", "list"),
        *(("mcp", action, "runs") for action in ("tools", "logs", "diff")),
        ("mcp", "call", "runs", "fail"),
        ("mcp", "revoke", "runs"),
        ("mcp", "approve", "runs"),
        ("mcp", "list", "--json"),
        ("mcp", "diff", "http500"),
        ("check", ".", "--level", "hint"),
        ("status",),
        ("doctor", "."),
        ("logs", "--level", "debug"),
    ):
        program = [sys.executable, "-m", "nexus_daemon", *command]
        ran = subprocess.run(
            program, cwd=folder, env=env, capture_output=True, timeout=50, check=False, text=True
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        yield f"nexus {' '.join(command)}", ran.stdout + ran.stderr


def test_no_secret_is_anywhere(told: tuple[Canaries, dict[str, str]]) -> None:
    canaries, sinks = told
    leaks = [leak for sink, text in sinks.items() for leak in canaries.leaks(sink, text)]
    assert leaks == [], "\n".join(leaks)


def test_the_sinks_are_those_of_the_servers(told: tuple[Canaries, dict[str, str]]) -> None:
    """Else the test above could not fail."""
    _, sinks = told
    log = "".join(text for sink, text in sinks.items() if sink.startswith("state/servers/"))
    assert log.count("API_TOKEN=[covered]") >= 2
    assert "nexus_daemon.process.logs.place_log: httpcore2.http11: " in sinks["log/nexus.log"]
    assert "approve" in sinks["nexus mcp approve runs"].lower()
    assert any(sink.startswith("state/ledger") for sink in sinks)
