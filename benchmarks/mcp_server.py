"""`nexus mcp` beside a server of the `mcp` SDK with one tool that returns a text: starts, memory, calls."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.processes import proportional_mb
from benchmarks.promises import Measured, Promise, Run, promises, take_turns

PEER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("peer")
@server.tool()
def show_context() -> str:
    return "text"
server.run("stdio")
"""
SDK = (sys.executable, "-P", "-c", PEER)
BESIDE = "a server of the mcp SDK"
CALLS: dict[str, dict[str, Any]] = {
    "show_context": {"assistant": "claude-code"},
    "check_configuration": {"assistant": "codex"},
    "search_conversations": {"query": "gate north"},
    "query_memory": {},
    "search_knowledge": {"query": "When does the gate close?"},
}
TOPICS = "gate wall bridge tower road river north south east west open close".split()  # noqa: SIM905


LIMITS = dict(zip(CALLS, (6.0, 6.0, 16.0, 8.0, 12.0), strict=True))


@promises(
    Promise("start → reply to initialize", 0.06, BESIDE),
    Promise("memory of a server", 0.12, BESIDE, unit="MB"),
)
def start(run: Run) -> Iterator[Measured]:
    """From the start of the process to the last byte of its first reply, and its memory then."""
    folder = run.folder("folder", {"CLAUDE.md": "# Rules\n"})
    steps = {
        "nexus": partial(_start, run, (*run.nexus, "mcp"), folder),
        BESIDE: partial(_start, run, SDK, folder),
    }
    turns = take_turns(steps, run.pick(full=20, quick=4))
    yield "start → reply to initialize", turns["nexus", "start"], turns[BESIDE, "start"]
    yield "memory of a server", turns["nexus", "memory"], turns[BESIDE, "memory"]


def _start(run: Run, command: Sequence[str], folder: Path) -> dict[str, float]:
    began = time.perf_counter()
    server = Server(command, folder, run.environ)
    server.initialize()
    elapsed = 1e3 * (time.perf_counter() - began)
    memory = proportional_mb(server.process.pid)
    server.end()
    return {"start": elapsed, "memory": memory}


@promises(*(Promise(tool, limit, "a call of the mcp SDK's server") for tool, limit in LIMITS.items()))
def calls(run: Run) -> Iterator[Measured]:
    """From `tools/call` to its reply, by the shared daemon, beside a tool of the SDK that returns a text.

    The folder has files for two assistants, a conversation of 2,000 messages and 100 documents.
    """
    folder = write_folder(run)
    peer = Server(SDK, folder, run.environ)
    lanes = {"nexus": (*run.nexus, "mcp"), "--local": (*run.nexus, "mcp", "--local")}
    servers = {name: Server(command, folder, run.environ) for name, command in lanes.items()}
    for server in (peer, *servers.values()):
        server.initialize()
    for tool, arguments in CALLS.items():
        params = {"name": tool, "arguments": arguments}
        steps = {name: partial(server.request, "tools/call", params) for name, server in servers.items()}
        steps[BESIDE] = partial(peer.request, "tools/call", {"name": "show_context", "arguments": {}})
        turns = take_turns(steps, run.pick(full=40, quick=8), warm=2)
        yield tool, turns["nexus"], turns[BESIDE]
        run.note_turns(f"MCP: {tool}, ms", turns)
    for server in (peer, *servers.values()):
        server.end()


class Server:
    """A server process in a folder."""

    def __init__(self, command: Sequence[str], folder: Path, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def request(self, method: str, params: dict[str, Any]) -> float:
        """Send a request and read its reply; the milliseconds that it took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        began = time.perf_counter()
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        elapsed = 1e3 * (time.perf_counter() - began)
        if "error" in reply or reply["result"].get("isError"):
            raise RuntimeError(f"{method} {params}: {reply}")
        return elapsed

    def initialize(self) -> None:
        about = {"clientInfo": {"name": "bench", "version": "1"}, "capabilities": {}}
        self.request("initialize", {"protocolVersion": "2025-11-25", **about})
        assert self.process.stdin is not None
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.communicate(timeout=20)


def write_folder(run: Run) -> Path:
    """Write the folder that is measured."""
    folder = run.folder("folder", {})
    docs = folder / "docs"
    docs.mkdir()
    (folder / "CLAUDE.md").write_text("# Rules\n" + "- Keep the gate closed at night.\n" * 300)
    (folder / "AGENTS.md").write_text("# Agents\n" + "- Ask at the gate.\n" * 300)
    for number in range(100):
        topic = TOPICS[number % len(TOPICS)]
        (docs / f"{number}.md").write_text(f"# The {topic}\n" + f"Rule {number} of the {topic}.\n\n" * 40)
    (folder / ".nexus3").mkdir()
    settings = {"memory": {"knowledge": {"paths": ["docs"]}}}
    (folder / ".nexus3/config.json").write_text(json.dumps(settings))
    talk = folder / "talk.jsonl"
    roles = ("user", "assistant")
    with talk.open("w") as file:
        for number in range(2_000):
            text = " ".join(TOPICS[(number * step) % len(TOPICS)] for step in range(1, 40))
            file.write(json.dumps({"role": roles[number % 2], "content": f"{number}: {text}"}) + "\n")
    run.execute([*run.nexus, "sessions", "import", str(talk)], cwd=folder)
    return folder
