"""Who is measured: command, environment, installation of the peers, and how each is told about the schema."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from benchmarks.documents import Document
from benchmarks.lsp_client import Client, ServerError, notification, request

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = HERE / ".peers"  # not committed; installed from peers/package-lock.json
LOCK_FILES = ("package.json", "package-lock.json")
CONFIG = ".nexus3/config.json"

Way = Literal["push", "pull"]


class Lane(msgspec.Struct, frozen=True):
    """One server used in one way: diagnostics pushed by it, or pulled by the client."""

    server: str
    way: Way
    command: tuple[str, ...]
    schema: Path | None = None  # sent to a general JSON server; nexus carries its own
    is_cold: bool = False  # whether the daemon that all windows share is ended before each start

    @property
    def name(self) -> str:
        return f"{self.server} ({self.way})"

    @property
    def is_own(self) -> bool:
        """Whether it is nexus, in a process of its own or shared."""
        return self.server.startswith("nexus")

    @property
    def is_shared(self) -> bool:
        return self.server.startswith("nexus,")


class Sandbox(msgspec.Struct, frozen=True):
    """Where a run lives: nothing of the user's own home or configuration reaches the servers."""

    root: Path
    path: str  # PATH of the servers

    @property
    def environment(self) -> dict[str, str]:
        home = self.root / "home"
        places = {
            "HOME": home,
            "NEXUS_HOME": home / ".nexus3",
            "TMPDIR": self.root / "tmp",
            "XDG_RUNTIME_DIR": self.root / "run",
        }
        for name in ("CONFIG", "STATE", "DATA", "CACHE"):
            places[f"XDG_{name}_HOME"] = home / f".{name.lower()}"
        for place in places.values():
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        return {"PATH": self.path, "LANG": "C.UTF-8"} | {name: str(place) for name, place in places.items()}


def lanes(nexus: str | None, schema: Path) -> tuple[Lane, ...]:
    """All lanes, in the order in which a round visits them."""
    node = shutil.which("node")
    if node is None:
        raise ServerError("the peers need node: install Node.js 20 or later")
    old = (
        node,
        str(PEERS / "node_modules/vscode-json-languageserver/bin/vscode-json-languageserver"),
        "--stdio",
    )
    new = (
        node,
        str(PEERS / "node_modules/vscode-langservers-extracted/bin/vscode-json-language-server"),
        "--stdio",
    )
    own = tuple(shlex.split(nexus)) if nexus else ()
    shared = (*own, "--remote=auto")
    return (
        *((Lane("nexus", "push", own), Lane("nexus", "pull", own)) if own else ()),
        *((Lane("nexus, shared", "push", shared),) if own else ()),
        *((Lane("nexus, shared, cold", "push", shared, is_cold=True),) if own else ()),
        Lane("vscode-json-languageserver", "push", old, schema),
        Lane("vscode-langservers-extracted", "push", new, schema),
        Lane("vscode-langservers-extracted", "pull", new, schema),
    )


def install_peers() -> None:
    """Installs the locked peers into .peers, unless that lock is the installed one."""
    wanted = [(HERE / "peers" / name).read_bytes() for name in LOCK_FILES]
    installed = [(PEERS / name).read_bytes() for name in LOCK_FILES if (PEERS / name).is_file()]
    if installed == wanted and (PEERS / "node_modules" / ".package-lock.json").is_file():
        return
    PEERS.mkdir(exist_ok=True)
    for name in LOCK_FILES:
        shutil.copyfile(HERE / "peers" / name, PEERS / name)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=PEERS, check=True)


def peer_versions() -> dict[str, str]:
    """The installed version of each peer, and of the JSON service inside it."""
    modules = PEERS / "node_modules"
    inner = modules / "vscode-langservers-extracted/node_modules/vscode-json-languageservice"
    found = {
        "vscode-json-languageserver": modules / "vscode-json-languageserver",
        "vscode-json-languageserver / json-languageservice": modules / "vscode-json-languageservice",
        "vscode-langservers-extracted": modules / "vscode-langservers-extracted",
        "vscode-langservers-extracted / json-languageservice": inner,
    }
    return {
        name: str(msgspec.json.decode((path / "package.json").read_bytes())["version"])
        for name, path in found.items()
        if (path / "package.json").is_file()
    }


def folder(sandbox: Sandbox, name: str, document: Document | None) -> Path:
    """A workspace folder with `document` as its .nexus3/config.json, on disk as in the editor."""
    path = sandbox.root / "folders" / name
    (path / ".nexus3").mkdir(parents=True, exist_ok=True)
    if document is not None:
        (path / CONFIG).write_text(document.text, encoding="utf-8")
    return path


def config_uri(path: Path) -> str:
    """The URI of a folder's config.json."""
    return (path / CONFIG).as_uri()


@contextmanager
def started(lane: Lane, sandbox: Sandbox, path: Path) -> Iterator[tuple[Client, float]]:
    """A server on folder `path` that knows the schema, and the seconds from spawn to initialize reply."""
    if lane.is_cold:
        end_shared_daemon(lane, sandbox)
    client = Client(lane.command, cwd=path, env=sandbox.environment)
    try:
        number = client.next_id()
        reply = client.exchange(request(number, "initialize", initialize_params(lane, path)), number)
        if lane.way == "pull" and reply.result["capabilities"].get("diagnosticProvider") in (None, False):
            raise ServerError("declares no pull diagnostics")
        client.send(notification("initialized", {}) + settings(lane))
        yield client, reply.at - client.started
        client.close()
    finally:
        client.kill()


def end_shared_daemon(lane: Lane, sandbox: Sandbox) -> None:
    """End the daemon of a sandbox that all windows share, if it runs."""
    stop = [*lane.command[: lane.command.index("serve")], "stop"]
    subprocess.run(stop, env=sandbox.environment, check=True, capture_output=True)


def initialize_params(lane: Lane, path: Path) -> dict[str, Any]:
    """The same for all servers, save that pull is declared only in a pull lane (else a server pushes)."""
    document: dict[str, Any] = {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": True},
    }
    if lane.way == "pull":
        document["diagnostic"] = {"dynamicRegistration": False, "relatedDocumentSupport": False}
    return {
        "processId": os.getpid(),
        "rootUri": path.as_uri(),
        "workspaceFolders": [{"uri": path.as_uri(), "name": path.name}],
        "capabilities": {"textDocument": document, "workspace": {"workspaceFolders": True}},
    }


def settings(lane: Lane) -> bytes:
    """The frame that binds the schema to the file, as an editor's `json.schemas` setting; empty for nexus.

    The schema travels inside: the quickest of the ways that both peers honour.
    """
    if lane.schema is None:
        return b""
    text = msgspec.json.decode(lane.schema.read_bytes())
    schemas = [{"fileMatch": [f"**/{CONFIG}"], "url": lane.schema.as_uri(), "schema": text}]
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
