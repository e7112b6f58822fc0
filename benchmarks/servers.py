"""The servers that are measured: how each is started, and how it is told about the schema."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from benchmarks.lsp_client import Client, ServerError, notification, request
from benchmarks.promises import ROOT, Run, UnavailableError

HERE = ROOT / "benchmarks"
PEERS = HERE / ".peers"  # not committed; installed from peers/package-lock.json
LOCK_FILES = ("package.json", "package-lock.json")
CONFIG = ".nexus3/config.json"
SCHEMA = ROOT / "context/nexus_context/config/config.schema.json"
NEXUS, SHARED, COLD = "nexus", "nexus, shared", "nexus, shared, cold"
OLD_PEER = "vscode-json-languageserver"
NEW_PEER = "vscode-langservers-extracted"
PROGRAMS = {
    OLD_PEER: "vscode-json-languageserver/bin/vscode-json-languageserver",
    NEW_PEER: "vscode-langservers-extracted/bin/vscode-json-language-server",
}

Way = Literal["push", "pull"]


class Lane(msgspec.Struct, frozen=True):
    """One server used in one way: diagnostics pushed by it, or pulled by the client."""

    server: str
    way: Way = "push"

    @property
    def name(self) -> str:
        return f"{self.server} ({self.way})"

    @property
    def is_peer(self) -> bool:
        """Whether it is a general JSON server, which has to be sent the schema."""
        return self.server in PROGRAMS

    def command(self, run: Run) -> tuple[str, ...]:
        """Its command; UnavailableError if it is a peer that cannot be installed."""
        if self.is_peer:
            return (install_peers(), str(PEERS / "node_modules" / PROGRAMS[self.server]), "--stdio")
        return (*run.nexus, "serve", *(["--remote=auto"] if self.server in (SHARED, COLD) else []))


@cache
def install_peers() -> str:
    """Install the locked peers into .peers, unless that lock is the installed one; the path of node."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise UnavailableError("needs Node.js 20 or later with npm")
    locks = [(HERE / "peers" / name).read_bytes() for name in LOCK_FILES]
    installed = [(PEERS / name).read_bytes() for name in LOCK_FILES if (PEERS / name).is_file()]
    if installed != locks or not (PEERS / "node_modules" / ".package-lock.json").is_file():
        PEERS.mkdir(exist_ok=True)
        (PEERS / "node_modules" / ".package-lock.json").unlink(missing_ok=True)
        for name in LOCK_FILES:
            shutil.copyfile(HERE / "peers" / name, PEERS / name)
        install(npm, "ci", "--ignore-scripts", cwd=PEERS)
    return node


def install(*command: str, cwd: Path) -> None:
    """Run a package manager. UnavailableError with its last words if it fails."""
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"] if command[0].endswith("npm") else []
    process = subprocess.run([*command, *quiet], cwd=cwd, capture_output=True, text=True, check=False)
    if process.returncode:
        raise UnavailableError(f"does not install: {(process.stderr or process.stdout).strip()[-200:]}")


class Echo:
    """A server on stock pygls that echoes: what any reply costs there."""

    def __init__(self, stack: ExitStack, run: Run) -> None:
        command = (sys.executable, "-m", "benchmarks.echo_server")
        self._client = Client(command, cwd=ROOT, env=run.environ)
        stack.callback(self._client.kill)
        self._client.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})

    def milliseconds(self, body: bytes | memoryview) -> float:
        """The time of a reply that is as long as `body`, to a request of the same length."""
        return self._client.request("echo", {"text": bytes(body).decode()}).seconds * 1e3


def config_uri(path: Path) -> str:
    """The URI of a folder's config.json."""
    return (path / CONFIG).as_uri()


@contextmanager
def started(lane: Lane, run: Run, path: Path) -> Iterator[tuple[Client, float]]:
    """A server on folder `path` that knows the schema, and the seconds from spawn to initialize reply."""
    command = lane.command(run)
    if lane.server == COLD:
        run.stop_daemon()
    client = Client(command, cwd=path, env=run.environ)
    try:
        reply = client.request("initialize", initialize_params(path, way=lane.way))
        if lane.way == "pull" and reply.result["capabilities"].get("diagnosticProvider") in (None, False):
            raise ServerError("declares no pull diagnostics")
        client.send(notification("initialized", {}) + settings(lane))
        yield client, reply.at - client.started
        client.close()
    finally:
        client.kill()


def initialize_params(*paths: Path, way: Way = "push") -> dict[str, Any]:
    """The same for all servers. A pull lane declares only pulling, any other only pushing."""
    document: dict[str, Any] = {
        "synchronization": {"didSave": True},
    }
    if way == "pull":
        document["diagnostic"] = {"dynamicRegistration": False, "relatedDocumentSupport": False}
    else:
        document["publishDiagnostics"] = {"versionSupport": True, "relatedInformation": True}
    return {
        "processId": os.getpid(),
        "rootUri": paths[0].as_uri() if paths else None,
        "workspaceFolders": [{"uri": path.as_uri(), "name": path.name} for path in paths],
        "capabilities": {"textDocument": document, "workspace": {"workspaceFolders": True}},
    }


def settings(lane: Lane) -> bytes:
    """The frame that binds the schema to the file, as an editor's `json.schemas` setting; empty for nexus.

    The schema travels inside: the quickest of the ways that both peers honour.
    """
    if not lane.is_peer:
        return b""
    text = msgspec.json.decode(SCHEMA.read_bytes())
    schemas = [{"fileMatch": [f"**/{CONFIG}"], "url": SCHEMA.as_uri(), "schema": text}]
    return notification(
        "workspace/didChangeConfiguration",
        {"settings": {"json": {"schemas": schemas, "validate": {"enable": True}}}},
    )


def opened(uri: str, text: str) -> bytes:
    """The didOpen frame of version 1."""
    item = {"uri": uri, "languageId": "json", "version": 1, "text": text}
    return notification("textDocument/didOpen", {"textDocument": item})


def changed(uri: str, version: int, change: dict[str, Any]) -> bytes:
    """The didChange frame of one incremental edit."""
    document = {"uri": uri, "version": version}
    return notification("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


def pulled(uri: str, number: int) -> bytes:
    """The frame of a textDocument/diagnostic request."""
    return request(number, "textDocument/diagnostic", {"textDocument": {"uri": uri}})
