"""Measures `nexus mcp` beside a server of the `mcp` SDK with one tool: `python -m benchmarks.mcp_server`.

1. Start: from the start of the process to the last byte of its reply to `initialize`, and its memory then.
2. Calls: from the first byte of `tools/call` to the last one of its reply, in a folder with files for two
   assistants, a conversation of 2,000 messages and a knowledge base of 100 files. In the shared daemon, which
   runs already, and with `--local`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figures
from benchmarks.processes import proportional_mb
from benchmarks.servers import Sandbox

NEXUS = (sys.executable, "-P", "-m", "nexus_daemon", "mcp")
PEER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("peer")
@server.tool()
def show_context() -> str:
    return "text"
server.run("stdio")
"""
SDK = (sys.executable, "-P", "-c", PEER)
START_MOST_RATIO = 0.2
CALL_MOST_MS = 100.0
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("show_context", {"assistant": "claude-code"}),
    ("check_configuration", {"assistant": "codex"}),
    ("search_conversations", {"query": "gate north"}),
    ("query_memory", {}),
    ("search_knowledge", {"query": "When does the gate close?"}),
)
TOPICS = "gate wall bridge tower road river north south east west open close".split()  # noqa: SIM905


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
        begun = time.perf_counter()
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        elapsed = 1000 * (time.perf_counter() - begun)
        if "error" in reply or reply["result"].get("isError"):
            raise SystemExit(f"{method} {params}: {reply}")
        return elapsed

    def initialize(self) -> None:
        about = {"clientInfo": {"name": "bench", "version": "1"}, "capabilities": {}}
        self.request("initialize", {"protocolVersion": "2025-11-25", **about})
        assert self.process.stdin is not None
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.communicate(timeout=20)


def main() -> int:
    """Print a table; with --strict 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="starts of each server")
    parser.add_argument("--calls", type=int, default=40, help="calls of each tool")
    parser.add_argument("--strict", action="store_true")
    chosen = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="nexus-bench-") as root:
        sandbox = Sandbox(Path(root), os.environ["PATH"])
        folder = write_folder(Path(root) / "folder", sandbox.environment)
        try:
            for _ in range(chosen.runs):  # side by side: what loads the machine loads both
                _start(figures, "nexus", NEXUS, folder, sandbox.environment)
                _start(figures, "mcp SDK", SDK, folder, sandbox.environment)
            _call(figures, "shared daemon", NEXUS, folder, sandbox.environment, chosen.calls)
            _call(figures, "--local", (*NEXUS, "--local"), folder, sandbox.environment, chosen.calls)
        finally:
            subprocess.run((*NEXUS[:-1], "stop"), env=sandbox.environment, check=True, capture_output=True)
    return _report(figures, strict=chosen.strict)


def write_folder(folder: Path, environ: dict[str, str]) -> Path:
    """Write the folder that is measured."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
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
    importing = (sys.executable, "-P", "-m", "nexus_daemon", "sessions", "import", str(talk))
    subprocess.run(importing, cwd=folder, env=environ, check=True, capture_output=True)
    return folder


def _start(
    figures: Figures, lane: str, command: Sequence[str], folder: Path, environ: dict[str, str]
) -> None:
    begun = time.perf_counter()
    server = Server(command, folder, environ)
    server.initialize()
    figures.add("start → initialize", lane, 1000 * (time.perf_counter() - begun))
    figures.add("memory", lane, proportional_mb(server.process.pid), unit="MB")
    server.end()


def _call(
    figures: Figures, lane: str, command: Sequence[str], folder: Path, environ: dict[str, str], calls: int
) -> None:
    server = Server(command, folder, environ)
    server.initialize()
    for tool, arguments in CALLS:
        params = {"name": tool, "arguments": arguments}
        figures.add(f"first {tool}", lane, server.request("tools/call", params))
        for _ in range(calls):
            figures.add(tool, lane, server.request("tools/call", params))
    figures.add("memory after calls", lane, proportional_mb(server.process.pid), unit="MB")
    server.end()


def _report(figures: Figures, *, strict: bool) -> int:
    series = figures.series()
    print(f"load {os.getloadavg()[0]:.1f}")
    print(f"{'figure':28} {'lane':14} {'p50':>8} {'p95':>8}")
    for each in series:
        print(f"{each.measure:28} {each.lane:14} {each.p50:8.1f} {each.p95:8.1f} {each.unit}")
    starts = {each.lane: each.p50 for each in series if each.measure == "start → initialize"}
    ratio = starts["nexus"] / starts["mcp SDK"]
    print(f"starts in {ratio:.2f} of the time of the SDK's server; target {START_MOST_RATIO}")
    tools = {tool for tool, _ in CALLS}
    slowest = max(each.p95 for each in series if each.lane == "shared daemon" and each.measure in tools)
    print(f"slowest p95 of a tool in the shared daemon: {slowest:.0f} ms; target {CALL_MOST_MS:.0f} ms")
    return 1 if strict and (ratio > START_MOST_RATIO or slowest > CALL_MOST_MS) else 0


if __name__ == "__main__":
    sys.exit(main())
