"""Real examples of the `nexus/*` protocol: asked of a daemon, with what differs between machines evened out.

1. The daemon runs as if on Ana's computer: a copy of `examples/` is her home directory, and what the prompt
   says about the host is invented. Everything else is the real thing.
2. Paths, times, ids, hashes and process figures get stable values; nothing else is touched.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nexus_context
from nexus_context.assistants.claude_code.session_files import directory_name
from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.process.version import PROTOCOL, __version__
from nexus_daemon.workspace.trusted_folders import set_trust
from support.assistant_transcripts import example_session, write
from support.client import Client, ReplyError
from support.loopback_provider import Call, loopback_provider
from support.protected_server import browse, protected
from support.waiting import block_until

Json = Any
Examples = dict[str, Any]

REPOSITORY = Path(__file__).resolve().parents[2]
SERVER = REPOSITORY / "tests" / "support" / "mcp_old_server.py"
BUILT = REPOSITORY / "build" / "docs" / "protocol.examples.json"
SOURCES = ("context", "daemon", "examples", "scripts/protocol_docs", "tests/support")
PACKAGE = str(Path(nexus_context.__file__ or "").resolve().parent)
HOME = "/home/ana"
INSTALLED = "/opt/nexus/nexus_context"
STEADY: dict[str, Any] = {
    "assemblyMs": 1.5,
    "hash": "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
    "memory": 67_108_864,
    "pin": "7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730",
    "prompt_cache_key": "9b1c2d3e4f5061728394a5b6c7d8e9f0",
    "score": 2.5,
    "requestId": "1f0c6a3d5b7e9824af61c0d3",
    "prefixHash": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "pid": 4_242,
    "rssBytes": 67_108_864,
    "trace": {
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "requests"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "connection 1"}},
            {
                "ph": "X",
                "name": "nexus/tokens/count",
                "cat": "request",
                "pid": 1,
                "tid": 1,
                "ts": 812.4,
                "dur": 2210.7,
                "args": {"connection": 1, "bytes": 312, "outcome": "ok"},
            },
        ],
        "displayTimeUnit": "ms",
        "otherData": {"spans": 1, "dropped": 0},
    },
    "uptime": 93.5,
    "uptimeSeconds": 93.5,
}
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
AGO = re.compile(r"(?<=last used here ).+")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
COMPACTION = re.compile(r"[0-9a-f]{12}")
EVENT = re.compile(r"[0-9a-f]{8}-(\d+)")
MESSAGE = re.compile(r"[0-9a-f]{32}")
INDEX = re.compile(r"(?<=/knowledge/)[0-9a-f]{24}(?=\.db\Z)")
LOG = re.compile(r"(?<=/servers/)[0-9a-f]{16}(?=\.log\Z)")
THREAD = re.compile(r"\A[0-9a-f]{16}(?=-\d+\Z|\Z)")
PYTHONS = ((sys.executable, "/usr/bin/python3"), (os.path.realpath(sys.executable), "/usr/bin/python3.12"))
WATCHED = {"state": "watched"}
WATCHED_S = 30.0
GROWTHS = 4
GROWTH_S = 5.0
NOON = "2026-11-20 12:00"

DAEMON = """
from nexus_context.folder.prompt import environment
facts = environment.Environment(
    host="workstation", os="Debian GNU/Linux 12", arch="x86_64", terminal=None,
    mode="Editor (language server)",
)
environment.detect = lambda mode, *, environ: facts
from nexus_daemon.cli import main
raise SystemExit(main(["serve"]))
"""
QUESTION = "May a session token be compared with == in auth/sessions.py?"
TURN = [
    {"role": "user", "content": "Who calls sign() in auth/tokens.py?"},
    {
        "role": "assistant",
        "content": "I look for the callers.",
        "toolCalls": [{"id": "call_1", "name": "search", "arguments": {"pattern": "sign("}}],
    },
    {"role": "tool", "toolCallId": "call_1", "content": "auth/sessions.py:41", "meta": {"ms": 12}},
]
ANSWER = {"role": "assistant", "content": "Only open_session() calls sign()."}
REVIEW = [
    message
    for number, module in enumerate(("tokens", "sessions", "passwords", "cookies", "audit", "limits"))
    for message in (
        {"role": "user", "content": f"Review auth/{module}.py. Never log a secret."},
        {
            "role": "assistant",
            "content": None,
            "toolCalls": [
                {"id": f"call_{number}", "name": "read", "arguments": {"path": f"auth/{module}.py"}}
            ],
        },
        {"role": "tool", "toolCallId": f"call_{number}", "content": f"def check_{module}(): ...\n" * 40},
        {"role": "assistant", "content": f"check_{module} compares in constant time. It is fine as it is."},
    )
]
SUMMARY = """\
## Goal
Review the modules of auth/. Never log a secret.
## State
tokens, sessions, passwords, cookies and audit compare in constant time; limits is next."""
DEPLOY = "# Deploy\n\n## Rollback\n\nRun `make rollback` within an hour.\n"
TOOLS = '{"find_notes": "Finds notes that have all words."}'
SEARCH = {
    "name": "search",
    "description": "Find a text in the workspace.",
    "inputSchema": {"type": "object", "properties": {"pattern": {"type": "string"}}},
}


def record(home: Path) -> Examples:
    """Ask a daemon everything once. `home`, a real path, is made and becomes the user's home directory."""
    shutil.copytree(REPOSITORY / "examples" / "home", home)
    shutil.copytree(REPOSITORY / "examples" / "company", home / "company")
    (home / "company" / "web").mkdir()
    with Client([sys.executable, "-c", DAEMON], cwd=home, env=environ(home)) as client:
        recorder = _Recorder(client, home)
        recorder.introduce()
        recorder.ask_all()
        client.stop()
    return recorder.examples


def environ(home: Path) -> dict[str, str]:
    """The variables that a daemon may look at."""
    return {
        "HOME": str(home),
        "NEXUS_HOME": str(home / ".nexus3"),
        "NEXUS_STATE": str(home / ".local" / "state" / "nexus"),
        "TZ": "UTC",
        "TICKETS_TOKEN": "",
        "KEY": "example-key",
    }


class _Recorder:
    def __init__(self, client: Client, home: Path) -> None:
        self.client = client
        self.home = home
        self.steady = steadier(home)
        self.service = path_to_uri(str(home / "company" / "backend" / "auth-service"))
        self.web = path_to_uri(str(home / "company" / "web"))
        self.config = home / "company" / "backend" / "auth-service" / ".nexus3" / "config.json"
        self.claude = example_session(str(home / "company" / "backend" / "auth-service"))
        write(self.claude[0].path(home), self.claude[1], minute=14)
        self.examples: Examples = {"requests": {}, "notifications": {}, "questions": {}, "errors": {}}

    def introduce(self) -> None:
        params = {
            "processId": None,
            "capabilities": {
                "general": {"positionEncodings": ["utf-8", "utf-16"]},
                "experimental": {
                    "nexus": {"protocol": PROTOCOL, "modelComplete": True, "assistantSessions": True}
                },
            },
            "workspaceFolders": [
                {"uri": self.service, "name": "auth-service"},
                {"uri": self.web, "name": "web"},
            ],
        }
        result = self.client.request("initialize", params)
        self.examples["initialize"] = self.steady({"params": params, "result": result})
        self.client.notify("initialized", {})
        for uri in (self.service, self.web):
            self.told(uri, "folder")

    def ask_all(self) -> None:
        folder, main = {"workspaceFolder": self.service}, {"workspaceFolder": self.service, "session": "main"}
        self.ask("nexus/context/preview", folder)
        self.ask("nexus/config/effective", folder)
        self.ask("nexus/view/list", folder)  # before a chat makes Nexus the first one
        self.ask("nexus/session/append", {**main, "messages": TURN, "idempotencyKey": "turn-1"})
        changed = self.told(self.service, "appended", "nexus/session/didChange")
        self.examples["notifications"]["nexus/context/didChange"] = self.told(self.service, "session")
        self.examples["notifications"]["nexus/session/didChange"] = changed
        self.ask("nexus/session/messages", main)
        self.ask("nexus/context/usage", main)
        options = {"additionalTools": [SEARCH], "parameters": {"temperature": 0}}
        turn = {"message": QUESTION, "event": {"platform": "editor"}, "format": "openai", "options": options}
        self.ask("nexus/context/assemble", {**main, **turn})
        readme = path_to_uri(str(self.config.with_name("NEXUS.md")))
        self.ask_agents(folder)
        self.ask_assistant_sessions(folder)
        self.ask("nexus/tokens/count", {"texts": [QUESTION, ""], "uris": [readme], "model": "gpt-4.1"})
        self.wait_until_watched()
        self.ask("nexus/debug/trace", {"seconds": 0.05})
        self.ask("nexus/status", {})
        self.command("nexus.tokens.count", {"texts": [QUESTION], "encoding": "cl100k_base"})
        self.fail(
            "a folder that nobody opened", "nexus/context/usage", {"workspaceFolder": f"file://{HOME}/mail"}
        )
        self.fail("a field is missing", "nexus/session/append", {"workspaceFolder": self.service})
        self.mistype('"ancestor_depth"', '"ancestor_dept"')
        self.wait_until_watched()
        self.ask("nexus/context/layers", folder)
        self.ask("nexus/session/clear", main)
        self.ask_of_sessions(folder)
        review = {"workspaceFolder": self.service, "session": "review"}
        self.client.request("nexus/session/append", {**review, "messages": REVIEW})
        self.choose_editor()
        self.ask_with_model("nexus/session/compact", {**review, "pins": ["The release is on Friday."]})
        compaction = self.examples["requests"]["nexus/session/compact"]["result"]["compaction"]
        self.ask("nexus/session/transcript", {**review, "limit": 3})
        for method in ("nexus/session/receipt", "nexus/session/undoCompaction"):
            self.ask(method, review)
            self.examples["requests"][method]["params"]["compaction"] = compaction
        self.ask("nexus/session/rebase", review)
        pick = {"model": "claude-sonnet-4.5", "maxContextTokens": 128_000, "memoryTools": True}
        self.ask("nexus/model/pick", {**review, **pick})
        self.ask("nexus/session/focus", review)
        self.ask("nexus/workspace/init", {"workspaceFolder": self.web, "adopt": True})
        self.ask_of_servers({"workspaceFolder": self.web})
        self.ask_knowledge({"workspaceFolder": self.web})

    def ask_agents(self, folder: Json) -> None:
        planner = {"agentId": "planner", "cwd": self.service, "role": "manager"}
        self.client.request("nexus/agent/spawn", {**folder, **planner})
        review = {"agentId": "reviewer", "cwd": ".", "parent": "planner", "task": "Review auth/sessions.py."}
        may = {"tools": ["fs.*"], "permissions": {"allow": ["fs.read"]}, "parameters": {"temperature": 0}}
        self.ask("nexus/agent/spawn", {**folder, **review, **may})
        self.ask("nexus/agent/list", folder)
        self.ask("nexus/agent/get", {**folder, "agentId": "reviewer"})
        said = {"source": "planner", "target": "reviewer", "content": "sign() is frozen until Friday."}
        self.ask("nexus/agent/message", {**folder, **said, "priority": 0.9, "ttlSeconds": 3600})
        told = self.told(self.service, "message", "nexus/agent/didChange")
        self.examples["notifications"]["nexus/agent/didChange"] = told
        self.ask("nexus/agent/messages", {**folder, "agent": "reviewer"})
        red = {"content": "auth/test_tokens.py fails."}
        event = {"session": "agent:reviewer", "kind": "tests.failed", "data": red}
        self.ask("nexus/event/publish", {**folder, **event})
        self.ask("nexus/event/list", {**folder, "agent": "planner", "limit": 2})
        self.examples["notifications"]["nexus/event/published"] = self.published()
        call = {
            "tool": "message_agent",
            "arguments": {"target": "planner", "content": "sign() has two callers."},
        }
        self.ask("nexus/agent/call", {**folder, "agent": "reviewer", **call})
        self.ask("nexus/agent/dispose", {**folder, "agentId": "planner"})
        call = {"tool": "query_l4_memory", "arguments": {"query": "callers of sign"}}
        self.ask("nexus/memory/query", {**folder, "session": "review", **call})
        self.ask("nexus/memory/list", {**folder, "limit": 2})
        self.ask("nexus/skill/read", {**folder, "arguments": {"name": "rotate-key"}})
        self.ask("nexus/assistant/list", {})
        self.ask("nexus/assistant/context", {**folder, "assistant": "codex"})
        self.ask("nexus/assistant/readers", folder)
        self.ask("nexus/explain", {**folder, "what": "Bash(git push)"})

    def ask_assistant_sessions(self, folder: Json) -> None:
        """Ask about a session of Claude Code, which then goes on."""
        claude, records = self.claude
        self.wait_until_watched()
        self.ask("nexus/assistant/sessions", folder)
        self.ask("nexus/assistant/session", {**folder, "assistant": "claude-code", "id": claude.session})
        self.ask("nexus/conversation/list", {**folder, "program": "claude-code"})
        self.ask("nexus/conversation/search", {**folder, "query": "published price"})
        page = {"program": "claude-code", "id": claude.session, "first": 0, "limit": 1}
        self.ask("nexus/conversation/transcript", {**folder, **page})
        thanks = claude.asks("Thank you.")
        for count in range(1, GROWTHS + 1):  # what is written before the watch of its file begins is not told
            write(claude.path(self.home), [*records, *[thanks] * count], minute=14 + count)
            with contextlib.suppress(TimeoutError):
                told = self.told(self.service, "changed", "nexus/assistant/didChange", GROWTH_S)
                self.examples["notifications"]["nexus/assistant/didChange"] = told
                return
        raise AssertionError("nobody was told that the session went on")

    def ask_knowledge(self, folder: Json) -> None:
        """Search a file that is indexed meanwhile; the settings that name it are unsaved text."""
        (self.home / "company" / "web" / "docs").mkdir()
        (self.home / "company" / "web" / "docs" / "deploy.md").write_text(DEPLOY, encoding="utf-8")
        uri = path_to_uri(str(self.home / "company" / "web" / ".nexus3" / "config.json"))
        document = {"uri": uri, "languageId": "json", "version": 1}
        text = '{"memory": {"knowledge": {"paths": ["docs"]}}}'
        self.client.notify("textDocument/didOpen", {"textDocument": {**document, "text": text}})
        search = {**folder, "query": "When is a rollback possible?"}
        block_until(lambda: self.client.request("nexus/knowledge/query", search)["passages"], WATCHED_S)
        self.wait_until_watched()
        block_until(
            lambda: "updating" not in self.client.request("nexus/knowledge/status", folder), WATCHED_S
        )
        self.ask("nexus/knowledge/query", search)
        self.ask("nexus/knowledge/status", folder)

    def ask_of_servers(self, folder: Json) -> None:
        """Approve a server, start it and call it, in a folder that is trusted from now on."""
        web = self.home / "company" / "web"
        program = web / "notes.py"
        program.write_bytes(SERVER.read_bytes())
        (web / "tools.json").write_text(TOOLS, encoding="utf-8")
        entry = {"command": sys.executable, "args": [str(program), str(web)], "env": {"NOTES": "team"}}
        text = json.dumps({"mcpServers": {"notes": entry}}, indent=2)  # no range depends on a path's length
        (web / ".mcp.json").write_text(text, encoding="utf-8")
        set_trust(environ(self.home), str(web), trusted=True)

        server = block_until(lambda: self.server("notes", "unapproved", folder), WATCHED_S)
        self.ask("nexus/mcp/servers", folder)
        one = {**folder, "name": "notes"}
        self.ask("nexus/mcp/approve", {**one, "hash": server["hash"]})
        self.ask("nexus/mcp/start", one)
        told = self.client.wait_for(lambda message: message.get("method") == "nexus/mcp/didChange")
        self.examples["notifications"]["nexus/mcp/didChange"] = self.steady(told["params"])
        arguments = {"text": "gate"}
        self.ask(
            "nexus/mcp/call", {**folder, "server": "notes", "tool": "find_notes", "arguments": arguments}
        )
        self.ask("nexus/mcp/search", {**folder, "query": "find a note"})
        self.ask("nexus/mcp/prompt", {**folder, "server": "notes", "prompt": "review", "words": "gate.py"})
        self.ask("nexus/mcp/resource", {**folder, "server": "notes", "uri": "memo://gate"})
        self.ask("nexus/mcp/refresh", one)
        self.chat(folder)
        for method in ("nexus/mcp/stop", "nexus/mcp/revoke"):
            self.ask(method, one)
        self.sign_in(folder)

    def chat(self, folder: Json) -> None:
        """Take a turn with a provider whose model calls a tool."""
        call = Call("toolu_1", "mcp__notes__find_notes", {"text": "gate"})
        with loopback_provider(["I look for the note.", call], ["It is about the gate."]) as provider:
            named = {"name": "anthropic", "model": "claude-sonnet-4-6", "base_url": provider.url}
            path = self.home / ".nexus3" / "config.json"
            settings = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(json.dumps({**settings, "provider": {**named, "api_key_env": "KEY"}}), "utf-8")
            self.client.notify(
                "workspace/didChangeWatchedFiles", {"changes": [{"uri": path_to_uri(str(path)), "type": 2}]}
            )
            self.wait_until_watched()
            send = {**folder, "session": "notes", "message": "What do the notes say about the gate?"}
            sent = self.client.send_request("nexus/chat/send", send)
            question = self.client.wait_method("nexus/tool/approve")
            answer = {"approved": True, "remember": False}
            self.client.respond(question["id"], answer)
            result = self.client.wait_reply(sent)["result"]
            self.examples["requests"]["nexus/chat/send"] = self.steady({"params": send, "result": result})
            asked = {"params": question["params"], "result": answer}
            self.examples["questions"]["nexus/tool/approve"] = self.steady(asked)

    def sign_in(self, folder: Json) -> None:
        """Sign in to a server with a browser, and out again."""
        one = {**folder, "name": "issues"}
        with protected(self.home) as url:
            text = json.dumps({"mcpServers": {"issues": {"type": "http", "url": url}}})
            (self.home / "company" / "web" / ".mcp.json").write_text(text, encoding="utf-8")
            server = block_until(lambda: self.server("issues", "unapproved", folder), WATCHED_S)
            self.client.request("nexus/mcp/approve", {**one, "hash": server["hash"]})
            sent = self.client.send_request("nexus/mcp/login", one)
            shown = self.client.wait_for(lambda message: "Open this address" in str(message.get("params")))
            browse(shown["params"]["message"].rpartition(" ")[2])
            results = {
                "nexus/mcp/login": self.client.wait_reply(sent)["result"],
                "nexus/mcp/logout": self.client.request("nexus/mcp/logout", one),
            }
            for method, result in results.items():
                result = {**result, "url": "https://issues.example.com/mcp"}
                self.examples["requests"][method] = self.steady({"params": one, "result": result})

    def server(self, name: str, state: str, folder: Json) -> Json:
        """The server of a name, once it has a state."""
        servers = self.client.request("nexus/mcp/servers", folder)["servers"]
        return next((each for each in servers if (each["name"], each["state"]) == (name, state)), None)

    def ask_of_sessions(self, folder: Json) -> None:
        plan = {**folder, "session": "plan"}
        self.ask("nexus/session/create", {**plan, "parameters": {"temperature": 0.2}})
        self.ask("nexus/session/setParameters", {**plan, "parameters": {"max_tokens": 8_000}})
        made = self.client.request("nexus/session/append", {**plan, "messages": TURN})
        self.client.request("nexus/session/append", {**plan, "messages": [ANSWER]})
        self.ask("nexus/session/fork", {**plan, "turn": made["turn"], "to": "another plan"})
        self.ask("nexus/session/rename", {**folder, "session": "another plan", "to": "plan B"})
        self.ask("nexus/session/list", folder)
        self.ask("nexus/session/find", {**folder, "session": "plan B"})
        self.ask("nexus/session/turns", {**plan, "first": 2})
        self.ask("nexus/session/export", {**plan, "format": "markdown"})
        self.ask("nexus/session/search", {**folder, "query": "callers -nobody"})
        self.ask("nexus/session/delete", {**folder, "session": "plan B"})

    def wait_until_watched(self) -> None:
        """A moment after a folder has changed, its files are watched again."""

        def is_watched() -> bool:
            folders = self.client.request("nexus/status", {})["folders"]
            return all(each["freshness"] == WATCHED for each in folders)

        block_until(is_watched, WATCHED_S)

    def ask(self, method: str, params: Json) -> None:
        result = self.client.request(method, params)
        self.examples["requests"][method] = self.steady({"params": params, "result": result})

    def ask_with_model(self, method: str, params: Json) -> None:
        """A request that the daemon answers after it has asked the client's model."""
        sent = self.client.send_request(method, params)
        question = self.client.wait_method("nexus/model/complete")
        answer = {"content": SUMMARY, "model": "gpt-4.1"}
        self.client.respond(question["id"], answer)
        result = self.client.wait_reply(sent)["result"]
        self.examples["requests"][method] = self.steady({"params": params, "result": result})
        asked = {"params": question["params"], "result": answer}
        self.examples["questions"]["nexus/model/complete"] = self.steady(asked)

    def command(self, command: str, argument: Json) -> None:
        params = {"command": command, "arguments": [argument]}
        result = self.client.request("workspace/executeCommand", params)
        self.examples["command"] = self.steady({"params": params, "result": result})

    def fail(self, name: str, method: str, params: Json) -> None:
        try:
            self.client.request(method, params)
        except ReplyError as reply:
            example = {"method": method, "params": params, "error": reply.error}
            self.examples["errors"][name] = self.steady(example)
        else:
            raise AssertionError(f"{method} should have failed")

    def mistype(self, right: str, wrong: str) -> None:
        """Edit the service's configuration in the editor only: unsaved text counts."""
        text = self.config.read_text(encoding="utf-8")
        document = {"uri": path_to_uri(str(self.config)), "languageId": "json", "version": 1}
        opened = {"textDocument": {**document, "text": text.replace(right, wrong)}}
        self.client.notify("textDocument/didOpen", opened)

    def choose_editor(self) -> None:
        """Let the editor's own model be the service's, in the same unsaved text."""
        text = self.config.read_text(encoding="utf-8")
        changed = text.replace('"model": "gpt-4.1"', '"name": "editor", "model": "gpt-4.1"')
        document = {"uri": path_to_uri(str(self.config)), "version": 2}
        edit = {"textDocument": document, "contentChanges": [{"text": changed}]}
        self.client.notify("textDocument/didChange", edit)

    def published(self) -> Json:
        """The parameters of the last notification of an event, once it is that of the last example."""
        newest = self.client.request("nexus/event/list", {"workspaceFolder": self.service})["events"][-1][
            "id"
        ]
        message = self.client.wait_for(
            lambda message: (
                message.get("method") == "nexus/event/published" and message["params"]["id"] == newest
            )
        )
        return self.steady(message["params"])

    def told(
        self, uri: str, reason: str, method: str = "nexus/context/didChange", timeout: float = WATCHED_S
    ) -> Json:
        """The parameters of the next didChange about a folder for a reason."""
        seen = self.client.wait_for(
            lambda message: (
                message.get("method") == method
                and (message["params"]["workspaceFolder"], message["params"]["reason"]) == (uri, reason)
            ),
            timeout,
        )
        return self.steady(seen["params"])


def steadier(home: Path) -> Callable[[Json], Json]:
    """A function that gives a value with everything in it that differs from run to run replaced."""
    threads: dict[str, str] = {}

    def thread(found: re.Match[str]) -> str:
        return threads.setdefault(found[0], f"5b3c9f20a1d4e6{0x87 + 9 * len(threads):x}")

    def steady(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: _figure(key, item, steady) for key, item in value.items()}
        if isinstance(value, list):
            return [steady(item) for item in value]
        return text_of(value) if isinstance(value, str) else value

    def text_of(text: str) -> str:
        if COMPACTION.fullmatch(text):
            return "3f2a9c81d7e4"
        if EVENT.fullmatch(text):
            return EVENT.sub(r"7f3a9c21-\1", text)
        if MESSAGE.fullmatch(text):
            return "8c1d5e0f3a7b4926b0c4d8e2f6a1937c"
        text = THREAD.sub(thread, text)
        text = INDEX.sub("5b0cf7a1d94e2683c7f01a5e", text)
        text = LOG.sub("b5bb9d8014a0f9b1", text)
        text = MOMENT.sub("2026-11-20T12:00:00+00:00", text)
        text = INSTANT.sub("2026-11-20T12:00:00.000Z", text)
        text = text.replace(directory_name(str(home)), directory_name(HOME))
        for here, there in ((str(home), HOME), (PACKAGE, INSTALLED), *PYTHONS):
            text = text.replace(here, there)
        return AGO.sub("yesterday", TIME.sub(NOON, text))

    return steady


def _figure(key: str, value: Json, steady: Callable[[Json], Json]) -> Json:
    if key == "version" and value == __version__:
        return "0.1.0"
    if key in STEADY and isinstance(value, dict if key == "trace" else (int, float, str)):
        return STEADY[key]
    return steady(value)


def load() -> Examples:
    """The examples as `make docs` builds them. They are built anew if a source has changed since."""
    if not _is_built():
        save(record_in_temporary_home())
    examples: Examples = json.loads(BUILT.read_text(encoding="utf-8"))
    return examples


def record_in_temporary_home() -> Examples:
    """What a daemon answers now, with the figures of the committed page."""
    directory = Path(tempfile.gettempdir()).resolve()
    home = directory / "anas"  # as long as the home that it is renamed to, and as many tokens
    if home.exists():  # another process records
        home = directory / f"an{secrets.token_hex(1)}"
    try:
        return record(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def save(examples: Examples) -> None:
    BUILT.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(examples, indent=1, ensure_ascii=False, sort_keys=False) + "\n"
    unfinished = BUILT.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8", newline="\n")
    unfinished.replace(BUILT)


def _is_built() -> bool:
    """Whether the file is newer than everything that its content depends on."""
    if not BUILT.exists():
        return False
    files = (path for source in SOURCES for path in (REPOSITORY / source).rglob("*") if path.suffix != ".pyc")
    return max(path.stat().st_mtime for path in files if path.is_file()) < BUILT.stat().st_mtime
