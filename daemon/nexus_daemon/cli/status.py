"""Show the shared daemons that run, with their windows; then the state of a folder and of the ledger.

The state of the folder is that of the disk, whether a daemon runs or not.
"""

import argparse
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nexus_context.disk.files import exists
from nexus_context.errors import RequestError, Severity
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger import open_ledger
from nexus_context.ledger.location import place, workspace_of
from nexus_context.tokens.vocabulary import ENCODINGS
from nexus_context.turn.assembly import usage_of
from nexus_context.turn.endpoint import endpoint_of
from nexus_context.turn.manager import ContextManager
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.folder import absolute, folder_of, read
from nexus_daemon.process.version import PROTOCOL, __version__
from nexus_daemon.sessions.ledger_writer import refuse_url
from nexus_daemon.shared import client
from nexus_daemon.shared.identity import NoSharedDaemonError, Place

ANSWER_S = 2.0  # that a daemon may take
_ERROR, _WARNING = Severity.ERROR, Severity.WARNING


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", nargs="?", default=".", help="a folder (default: .)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument(
        "--brief", action="store_true", help="print one line; with --json what the folder offers a model"
    )


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.path))
    if folder is None:
        output.complain("status", f"{options.path} does not exist.")
        return 2
    snapshot = read(folder)
    state = _state(snapshot)
    if options.json and options.brief:
        output.json_value(_capabilities(snapshot, state))
        return 1 if state["ledger"]["error"] else 0
    environ = invocation.current().environ
    state["daemons"] = [_ask(running, environ) for running in client.running_places(environ)]
    if options.json:
        output.json_value(state)
    elif options.brief:
        output.line(_brief(state))
    else:
        for name, text in _rows(state):
            output.line(f"{name:<13}{text}")
    return 1 if state["ledger"]["error"] else 0


def _ask(running: Place, environ: Mapping[str, str]) -> dict[str, Any]:
    process_info = {"pid": client.lock_owner(running)}
    try:
        greeted = client.connect(running, client.fields_for("status", running, environ), timeout_s=ANSWER_S)
    except NoSharedDaemonError as error:
        return {**process_info, "error": str(error)}
    if greeted is None:
        return {**process_info, "error": "it is starting or ending"}
    greeted.socket.close()
    state: dict[str, Any] = msgspec.json.decode(greeted.reply.get("state"))
    return state


def _describe_daemon(state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "error" in state:
        yield "daemon", f"process {state['pid']}: {state['error']}"
        return
    clients = state.get("clients", [])
    facts = [f"process {state['pid']}, version {state['version']}"]
    if "rssBytes" in state:
        minutes = state["uptimeSeconds"] / 60
        facts += [f"{minutes:,.0f} min", f"{state['rssBytes'] / 1e6:,.0f} MB"]
        facts += [output.counted(len({folder["uri"] for folder in state["folders"]}), "folder")]
        facts += [output.counted(state["sessions"], "session"), output.counted(state["agents"], "agent")]
    yield "daemon", ", ".join(facts)
    for window in clients:
        waits = [output.counted(window["running"], "request") + " running"] if window["running"] else []
        waits += [f"{window['unreadBytes']:,} bytes unread"] if window["unreadBytes"] else []
        folders = ", ".join(urllib.parse.unquote(uri.removeprefix("file://")) for uri in window["folders"])
        yield "  window", ": ".join(filter(None, (window["name"], folders or "no folder", *waits)))
    for session in state.get("assistants", ()):
        yield "  session", f"{session['assistant']}, {session['state']}: {session['folder']}"


def _state(snapshot: Snapshot) -> dict[str, Any]:
    layers = [
        layer for layer in snapshot.layers.layers if any(file.status != "missing" for file in layer.files)
    ]
    token_usage = usage_of(snapshot, ContextManager())
    counts = [sum(problem.severity == level for problem in snapshot.problems) for level in (_ERROR, _WARNING)]
    return {
        "version": __version__,
        "protocol": PROTOCOL,
        "folder": snapshot.folder,
        "layers": [layer.name for layer in layers],
        "files": sum(file.status == "loaded" for layer in layers for file in layer.files),
        "skills": len(snapshot.layers.skills),
        "errors": counts[0],
        "warnings": counts[1],
        "tokens": {
            "total": token_usage.total,
            "available": token_usage.available,
            "model": token_usage.model,
            "counter": token_usage.counter,
            "exact": token_usage.exact,
        },
        "provider": _provider(snapshot),
        "ledger": _ledger(snapshot),
        "vocabularies": list(ENCODINGS),
    }


def _capabilities(snapshot: Snapshot, state: dict[str, Any]) -> dict[str, Any]:
    """List what the folder offers a model: skills by category, servers, and credentials by name."""
    lacks, skills = snapshot.contents.lacks, dict[str, dict[str, str]]()
    for layer_skill in snapshot.layers.skills:
        category = skills.setdefault(layer_skill.skill.metadata.get("category", ""), {})
        category[layer_skill.skill.name] = lacks(layer_skill.skill) or "ready"
    servers = [server for server in snapshot.layers.servers if server.shadowed_by is None]
    credentials = snapshot.contents.credentials
    return {
        **{name: state[name] for name in ("version", "folder", "tokens", "errors", "warnings")},
        "skills": skills,
        "servers": {
            server.name: lacks(server) or "ready" if server.enabled else "disabled" for server in servers
        },
        "credentials": {
            "configured": [credential.variable for credential in credentials if credential.configured],
            "broken": [credential.variable for credential in credentials if not credential.configured],
        },
        "sessions": state["ledger"]["sessions"],
    }


def _provider(snapshot: Snapshot) -> dict[str, Any]:
    """The provider of the settings, and where requests go: names only, no value of a header or key."""
    state: dict[str, Any] = {"name": snapshot.effective.get("/provider/name")}
    endpoint = endpoint_of(snapshot)
    if endpoint is None:
        return state
    return {
        **state,
        "url": endpoint.url,
        "headers": list(endpoint.headers),
        "keyVariable": endpoint.key_variable,
        "hasKey": endpoint.has_key,
    }


def _ledger(snapshot: Snapshot) -> dict[str, Any]:
    """Where the ledger is, its bytes, sessions and agents; `error` if it cannot be read. None is created."""
    ledger_path = snapshot.effective.get("/ledger/path")
    path = place(ledger_path, invocation.current().environ)
    state: dict[str, Any] = {"path": path, "bytes": None, "sessions": 0, "allSessions": 0, "agents": 0}
    state["error"] = None
    try:
        refuse_url(snapshot.effective.get("/ledger/url"))
        if not exists(path):
            return state
        ledger = open_ledger(ledger_path, environ=invocation.current().environ)
        try:
            workspace = workspace_of(snapshot.folder)
            return {
                "path": ledger.location,
                "bytes": Path(path).stat().st_size if exists(path) else None,
                "sessions": len(ledger.sessions(workspace)),
                "allSessions": len(ledger.sessions()),
                "agents": len(ledger.agents.running(workspace)),
                "error": ledger.notice,
            }
        finally:
            ledger.close()
    except RequestError as error:
        return {**state, "error": str(error)}


def _brief(state: dict[str, Any]) -> str:
    problems = _problems(state)
    sessions = output.counted(state["ledger"]["sessions"], "session")
    return f"nexus {state['version']}: {_tokens(state)}, {problems}, {sessions}"


def _rows(state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    ledger = state["ledger"]
    yield "nexus", f"{state['version']} (protocol {state['protocol']})"
    for daemon in state["daemons"]:
        yield from _describe_daemon(daemon)
    if not state["daemons"]:
        yield "daemon", "no shared daemon runs"
    yield "folder", state["folder"]
    files = output.counted(state["files"], "file")
    yield (
        "layers",
        f"{', '.join(state['layers']) or 'none'}: {files}, {output.counted(state['skills'], 'skill')}",
    )
    yield "problems", _problems(state)
    yield "tokens", f"{_tokens(state)} for {state['tokens']['model'] or 'no model'}"
    yield "provider", _endpoint(state["provider"])
    size = "not created yet" if ledger["bytes"] is None else output.counted(ledger["bytes"], "byte")
    yield "ledger", f"{ledger['path']}, {size}"
    if ledger["error"]:
        yield "", ledger["error"]
    yield "sessions", f"{ledger['sessions']:,} of this folder, {ledger['allSessions']:,} in all"
    yield "agents", f"{ledger['agents']:,} running"
    yield "vocabularies", ", ".join(state["vocabularies"])


def _endpoint(provider: dict[str, Any]) -> str:
    if "url" not in provider:
        return str(provider["name"])
    key = f"key in {provider['keyVariable']}" if provider["keyVariable"] else "no key named"
    parts = [key if provider["hasKey"] or not provider["keyVariable"] else f"{key}, which is not set"]
    parts += [f"headers {', '.join(provider['headers'])}"] if provider["headers"] else []
    return f"{provider['name']} at {provider['url'] or 'no address'}: {'; '.join(parts)}"


def _problems(state: dict[str, Any]) -> str:
    return f"{output.counted(state['errors'], 'error')}, {output.counted(state['warnings'], 'warning')}"


def _tokens(state: dict[str, Any]) -> str:
    tokens = state["tokens"]
    mark = "" if tokens["exact"] else "≈"
    return f"{mark}{tokens['total']:,} of {tokens['available']:,} tokens"
