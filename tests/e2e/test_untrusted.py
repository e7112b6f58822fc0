"""What a folder that nobody trusts can make happen, by the system calls of the real programs: nothing.

Skipped where there is no strace, or where it may not trace.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.workspace.trusted_folders import set_trust
from support.client import Client, ReplyError

SERVER = Path(__file__).resolve().parents[1] / "support" / "mcp_old_server.py"
TRACED = "execve,connect,openat"
CONNECTED = re.compile(r"connect\(\d+, \{sa_family=AF_INET6?")
COMMANDS = (
    ("mcp", "list"),
    ("mcp", "tools", "local"),
    ("mcp", "call", "local", "alpha"),
    ("mcp", "diff", "remote"),
    ("mcp", "approve", "local", "--yes"),
    ("check", "."),
    ("show", "."),
)


def can_trace() -> bool:
    strace = shutil.which("strace")
    return (
        strace is not None and subprocess.run([strace, "-o", os.devnull, "true"], check=False).returncode == 0
    )


pytestmark = pytest.mark.skipif(not can_trace(), reason="strace cannot be used here")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a server to start, one to reach, and a .env file."""
    folder = tmp_path / "home" / "work"
    (folder / ".nexus3").mkdir(parents=True)
    local = {"command": sys.executable, "args": [str(SERVER), str(folder)], "env": {"KEY": "${KEY:-none}"}}
    servers = {"local": local, "remote": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (folder / "tools.json").write_text('{"alpha": "Adds."}')
    (folder / ".env").write_text("KEY=secret\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NEXUS_ISOLATED", "1")
    return folder


def traced(log: Path) -> list[str]:
    return ["strace", "-f", "-qq", "-s", "300", "-e", f"trace={TRACED}", "-o", str(log)]


def happened(log: Path) -> list[str]:
    """What a trace shows of the server: its start, a connection, or a look into .env."""
    found = []
    for line in log.read_text(errors="replace").splitlines():
        is_start = "execve(" in line and SERVER.name in line
        if is_start or CONNECTED.search(line) or '/.env"' in line:
            found.append(line)
    return found


@pytest.mark.parametrize("trusted", [False, True], ids=["untrusted", "unapproved"])
def test_no_command_starts_or_reaches_a_server(tmp_path: Path, folder: Path, trusted: bool) -> None:
    if trusted:
        set_trust(os.environ, str(folder), trusted=True)
    log = tmp_path / "trace"
    for command in COMMANDS:
        if trusted and "approve" in command:
            continue
        program = [sys.executable, "-m", "nexus_daemon", *command]
        subprocess.run(
            [*traced(log), *program], cwd=folder, check=False, capture_output=True, timeout=50, text=True
        )
        assert happened(log) == [], command


def test_an_approved_server_of_a_trusted_folder_does_start(tmp_path: Path, folder: Path) -> None:
    """Else the test above could not fail."""
    set_trust(os.environ, str(folder), trusted=True)
    log = tmp_path / "trace"
    for command in (("mcp", "approve", "local", "--yes"), ("mcp", "call", "local", "alpha")):
        program = [sys.executable, "-m", "nexus_daemon", *command]
        ran = subprocess.run(
            [*traced(log), *program], cwd=folder, check=False, capture_output=True, timeout=50, text=True
        )
        assert ran.returncode == 0, ran.stderr
    assert len(happened(log)) >= 1
    assert all("execve(" in line for line in happened(log))


@pytest.mark.parametrize("trusted", [False, True], ids=["untrusted", "unapproved"])
def test_no_editor_starts_or_reaches_a_server(tmp_path: Path, folder: Path, trusted: bool) -> None:
    """Nor does an agent of the folder, whoever asks for it."""
    if trusted:
        set_trust(os.environ, str(folder), trusted=True)
    log, uri = tmp_path / "trace", path_to_uri(str(folder))
    program = [sys.executable, "-m", "nexus_daemon", "serve"]
    with Client([*traced(log), *program], cwd=folder, env=dict(os.environ)) as client:
        params: Any = {
            "processId": None,
            "capabilities": {},
            "workspaceFolders": [{"uri": uri, "name": "work"}],
        }
        client.request("initialize", params)
        client.notify("initialized", {})
        about = {"workspaceFolder": uri}
        path = folder / ".mcp.json"
        document = {
            "uri": path_to_uri(str(path)),
            "languageId": "json",
            "version": 1,
            "text": path.read_text(),
        }
        client.notify("textDocument/didOpen", {"textDocument": document})
        client.request("textDocument/codeLens", {"textDocument": {"uri": document["uri"]}})
        client.request("nexus/agent/spawn", {**about, "agentId": "scout", "cwd": uri})
        servers = client.request("nexus/mcp/servers", about)["servers"]
        assert {server["state"] for server in servers} == {"unapproved" if trusted else "untrusted"}
        refusal = f"not {'approved' if trusted else 'trusted'}|no MCP server"  # an agent may have none
        for name in [server["name"] for server in servers]:
            tool = {"server": name, "tool": "alpha"}
            for method, more in (
                ("start", {"name": name}),
                ("refresh", {"name": name}),
                ("call", tool),
                ("call", {**tool, "agent": "scout"}),
            ):
                with pytest.raises(ReplyError, match=refusal):
                    client.request(f"nexus/mcp/{method}", {**about, **more})
        for who in ({}, {"agent": "scout"}):
            turn = {**about, **who, "message": "Go.", "options": {"mcpTools": True}}
            assert client.request("nexus/context/assemble", turn)["tools"] == []
        client.stop()
    assert happened(log) == []
