"""The main job on the example workspace, spoken in LSP to a real daemon: what `make run` shows.

The tour breaks a configuration in the editor, its diagnostics appear at their place, the fix clears them, the
context is assembled with every token accounted for, and agents are started to see who reads what. Nothing in
the workspace is written, and nothing of the tour is kept.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from difflib import ndiff
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nexus_daemon import protocol
from nexus_daemon.cli import tables

EXAMPLES = Path(__file__).resolve().parent
COMPANY = EXAMPLES / "company"
FOLDER = COMPANY / "backend" / "auth-service"
CONFIG = FOLDER / ".nexus3" / "config.json"
DEFAULTS = EXAMPLES.parent / "context" / "nexus_context" / "defaults"
WIDTH = 104
QUESTION = "May a session token be compared with == in auth/sessions.py?"
AGENTS = ("backend", "auth", "reviewer")  # of company/.nexus3/config.json, each below the one before
ALONE = "oncall"  # another one of it, unified, below nobody
OWN_WORDS = "task, role, environment, headings"
SEVERITIES = {1: ("error", "bold red"), 2: ("warning", "yellow"), 3: ("info", "blue"), 4: ("hint", "dim")}

CONVERSATION = [
    {"role": "user", "content": "Where are session tokens compared?"},
    {
        "role": "assistant",
        "content": None,
        "toolCalls": [{"id": "call_1", "name": "grep", "arguments": {"pattern": "token ==", "path": "auth"}}],
    },
    {
        "role": "tool",
        "toolCallId": "call_1",
        "name": "grep",
        "content": "auth/sessions.py:41: if token == known:",
    },
    {"role": "assistant", "content": "In auth/sessions.py, line 41."},
]

Message = dict[str, Any]


class Editor:
    """As much of an LSP client as the tour needs: one request at a time, notifications kept."""

    def __init__(self) -> None:
        self.state = tempfile.TemporaryDirectory(prefix="nexus-tour-")  # the tour's sessions are not yours
        environment = {
            **os.environ,
            "NEXUS_HOME": str(EXAMPLES / "home" / ".nexus3"),
            "NEXUS_STATE": self.state.name,
        }
        command = [sys.executable, "-P", "-m", "nexus_daemon", "serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.started = time.perf_counter()
        self.inbox: list[Message] = []
        self.ids = 0

    def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self) -> Message:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise SystemExit("The daemon ended before it answered.")
        message: Message = json.loads(self.process.stdout.read(length))
        return message

    def request(self, method: str, params: object) -> Any:
        self.ids += 1
        self.send({"id": self.ids, "method": method, "params": params})
        answer = self.wait(lambda message: message.get("id") == self.ids and "method" not in message)
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def notify(self, method: str, params: object) -> None:
        self.send({"method": method, "params": params})

    def wait(self, wanted: Callable[[Message], bool]) -> Message:
        while True:
            for index, message in enumerate(self.inbox):
                if wanted(message):
                    return self.inbox.pop(index)
            self.inbox.append(self.receive())

    def diagnostics(self, uri: str, version: int) -> list[Message]:
        def about(message: Message) -> bool:
            params = message.get("params") or {}
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == uri
                and params.get("version") == version
            )

        found: list[Message] = self.wait(about)["params"]["diagnostics"]
        return found

    def close(self) -> int:
        self.request("shutdown", None)
        self.send({"method": "exit"})
        code = self.process.wait(timeout=10)
        self.state.cleanup()
        return code


def main() -> None:
    console = Console(highlight=False, width=min(Console().width, WIDTH) if sys.stdout.isatty() else WIDTH)
    editor = Editor()
    folders = [{"uri": path.as_uri(), "name": path.name} for path in (FOLDER, COMPANY)]
    answer = editor.request(
        "initialize", {"processId": os.getpid(), "capabilities": {}, "workspaceFolders": folders}
    )
    ready = (time.perf_counter() - editor.started) * 1000
    info = answer["serverInfo"]
    console.print(
        Text.assemble(("Nexus ", "bold"), f"{info['version']}: the daemon answered after {ready:.0f} ms\n")
    )
    editor.notify("initialized", {})

    show_layers(console, editor)
    show_typing(console, editor)
    show_context(console, editor)
    show_agents(console, editor)
    code = editor.close()
    console.print(f"[dim]The daemon ended with code {code}. Nothing in the workspace was written.[/]")
    sys.exit(code)


def show_layers(console: Console, editor: Editor) -> None:
    result = editor.request("nexus/context/layers", {"workspaceFolder": FOLDER.as_uri()})
    console.print("[bold]What this folder's assistant reads[/]")
    tables.print_layers(msgspec.convert(result, protocol.LayersResult), display_path=shortened)


def show_typing(console: Console, editor: Editor) -> None:
    good = CONFIG.read_text()
    broken = good.replace('"ancestor_depth": 2,', '"ancestor_dept": 12,').replace(
        "0.2\n  }\n", "0.2,\n  },\n"
    )
    uri = CONFIG.as_uri()
    document = {"uri": uri, "languageId": "json", "version": 1, "text": good}
    editor.notify("textDocument/didOpen", {"textDocument": document})
    editor.diagnostics(uri, 1)

    began = time.perf_counter()
    change(editor, uri, 2, broken)
    found = editor.diagnostics(uri, 2)
    took = (time.perf_counter() - began) * 1000
    title = f"You type: {len(found)} problems after {took:.1f} ms"
    console.print(Panel(frames(broken, found), title=title, **look("red")))
    fix_titles = [action["title"] for action in quick_fixes(editor, uri, found)]
    console.print(Text.assemble(("Quick fixes: ", "bold"), "; ".join(fix_titles), "\n"))

    began = time.perf_counter()
    change(editor, uri, 3, good)
    left = editor.diagnostics(uri, 3)
    took = (time.perf_counter() - began) * 1000
    console.print(
        Panel(f"{len(left)} problems left", title=f"You fix it: cleared after {took:.1f} ms", **look("green"))
    )
    console.print()


def show_context(console: Console, editor: Editor) -> None:
    session = {"workspaceFolder": FOLDER.as_uri(), "session": "tour"}
    editor.request("nexus/session/append", {**session, "messages": CONVERSATION})
    params = {**session, "message": QUESTION, "format": "openai"}
    began = time.perf_counter()
    result = editor.request("nexus/context/assemble", params)
    first = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    editor.request("nexus/context/assemble", params)
    again = (time.perf_counter() - began) * 1000
    console.print(Panel(Text(result["systemPrompt"], style="dim"), title="The system prompt", **look("cyan")))
    tables.print_usage(msgspec.convert(result["usage"], protocol.TokenUsage))
    sent = len(result["request"]["messages"])
    console.print(
        f"Assembled in {first:.1f} ms, in {again:.1f} ms the second time; {sent} messages to send.\n"
    )


def show_agents(console: Console, editor: Editor) -> None:
    company = {"workspaceFolder": COMPANY.as_uri()}
    began = time.perf_counter()
    for name in AGENTS:
        editor.request("nexus/agent/spawn", {**company, "agentId": name})
    took = (time.perf_counter() - began) * 1000
    names = ("main", *AGENTS)
    found = [editor.request("nexus/agent/get", {**company, "agentId": name}) for name in names]
    seen = [editor.request("nexus/context/preview", {**company, "agent": name}) for name in names]
    console.print(
        f"[bold]Who reads what[/]: {len(AGENTS)} agents of {COMPANY.name}, started in {took:.1f} ms"
    )
    console.print(readers(found, [by_file(prompt) for prompt in seen]))
    lead = {"agentId": "auth", "parent": "backend", "role": "manager"}
    viewed = editor.request("nexus/context/preview", {**company, "viewAs": lead})
    changed = difference(seen[names.index("auth")]["text"], viewed["text"])
    title = "What would auth read as a manager? Viewed, not started"
    console.print(Panel(changed, title=title, **look("cyan")))
    show_alone(console, editor, company, {file for prompt in seen for file in by_file(prompt)})
    *below, _ = editor.request("nexus/agent/dispose", {**company, "agentId": "backend"})["disposed"]
    console.print(f"backend has ended, and with it what was below: {', '.join(below)}.\n")


def show_alone(console: Console, editor: Editor, company: Message, others: set[str]) -> None:
    """What a unified agent would read, and which of it nobody else does."""
    read = by_file(editor.request("nexus/context/preview", {**company, "viewAs": {"agentId": ALONE}}))
    own = ", ".join(f"{file} ({tokens})" for file, tokens in read.items() if file not in others)
    total = sum(read.values())
    console.print(f"[bold]{ALONE}[/], a unified agent, would read {total} tokens. Only it reads {own}.")


def readers(agents: list[Message], tokens: list[dict[str, int]]) -> Table:
    """Tokens of each file for each agent, then what the agents are and may do."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("tokens of", min_width=47)
    for agent in agents:
        table.add_column(agent["agentId"], justify="right")
    for file in sorted({file: 0 for files in tokens for file in files}, key=nearness):
        table.add_row(file, *(str(files.get(file, "")) for files in tokens))
    table.add_row("all", *(str(sum(files.values())) for files in tokens), style="bold")
    table.add_section()
    table.add_row("below", *(agent.get("parent", "main") if agent["depth"] else "" for agent in agents))
    table.add_row("role", *(agent["role"] for agent in agents))
    for what, key in (("level", "level"), ("allowed", "allow"), ("denied", "deny")):
        table.add_row(what, *(listed(agent["permissions"][key]) for agent in agents))
    table.add_row("tools", *(listed(agent.get("tools", [])) for agent in agents))
    return table


def shortened(path: str) -> str:
    """A path of the example as its user would say it."""
    for root, said in ((EXAMPLES / "home", "~/"), (EXAMPLES, ""), (DEFAULTS, "(shipped) ")):
        if Path(path).is_relative_to(root):
            return said + str(Path(path).relative_to(root))
    return path


def by_file(prompt: Message) -> dict[str, int]:
    """Tokens of a prompt by the file that they come from, in the order of the prompt."""
    places = {COMPANY.as_uri() + "/": "", (EXAMPLES / "home").as_uri(): "~"}
    found: dict[str, int] = {}
    for fragment in prompt["fragments"]:
        uri = (fragment["source"] or {"uri": ""})["uri"]
        known = (place + uri.removeprefix(root) for root, place in places.items() if uri.startswith(root))
        name = next(known, OWN_WORDS).removesuffix("/SKILL.md")
        found[name] = found.get(name, 0) + fragment["tokens"]
    return found


def nearness(file: str) -> tuple[bool, int]:
    """The user's files first, then directory by directory; last, what no file says."""
    way = FOLDER.relative_to(COMPANY).parts
    depth = next((depth for depth, step in enumerate(file.split("/")) if step not in way), 0)
    return file == OWN_WORDS, -1 if file.startswith("~") else depth


def difference(before: str, after: str) -> Text:
    shown = Text(no_wrap=True, overflow="ellipsis")
    for line in ndiff(before.splitlines(), after.splitlines()):
        if line[0] in "+-" and line[2:]:
            shown.append(line + "\n", style="green" if line[0] == "+" else "red")
    shown.rstrip()
    return shown


def listed(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "\n".join(value)


def frames(text: str, found: list[Message]) -> Text:
    lines = text.splitlines()
    shown = Text()
    for problem in found:
        start, end = problem["range"]["start"], problem["range"]["end"]
        width = end["character"] - start["character"] if end["line"] == start["line"] else 1
        name, style = SEVERITIES[problem["severity"]]
        shown.append(f"{CONFIG.name}:{start['line'] + 1}:{start['character'] + 1} ")
        shown.append(f"{name} ", style=style)
        shown.append(f"{problem['message']} ")
        shown.append(f"[{problem['code']}]\n", style="dim")
        shown.append(f"{start['line'] + 1:4} | {lines[start['line']]}\n")
        shown.append("     | " + " " * start["character"])
        shown.append("^" * max(1, width) + "\n", style=style)
    shown.rstrip()
    return shown


def quick_fixes(editor: Editor, uri: str, found: list[Message]) -> list[Message]:
    whole = {"start": found[0]["range"]["start"], "end": found[-1]["range"]["end"]}
    params = {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": found}}
    actions: list[Message] = editor.request("textDocument/codeAction", params)
    return actions


def change(editor: Editor, uri: str, version: int, text: str) -> None:
    editor.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
    )


def look(colour: str) -> dict[str, Any]:
    return {"title_align": "left", "border_style": colour, "box": box.ROUNDED}


if __name__ == "__main__":
    main()
