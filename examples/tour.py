"""The main job, spoken in LSP to a real daemon: `make run` on the example, `make run FOLDER=path` on yours.

The tour breaks a configuration in the editor, its diagnostics appear at their place, the fix clears them, the
context is assembled with every token accounted for, and the last table shows who reads what: the agents of
the example, or the assistants in your folder. Nothing is written there, and nothing of the tour is kept.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from difflib import ndiff
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nexus_daemon import protocol
from nexus_daemon.cli import tables
from nexus_daemon.cli.output import counted

EXAMPLES = Path(__file__).resolve().parent
COMPANY = EXAMPLES / "company"
FOLDER = COMPANY / "backend" / "auth-service"
DEFAULTS = EXAMPLES.parent / "context" / "nexus_context" / "defaults"
WIDTH = 104
MODEL = "gpt-4.1"  # where the settings name none
QUESTION = "May a session token be compared with == in auth/sessions.py?"
AGENTS = ("backend", "auth", "reviewer")  # of company/.nexus3/config.json, each below the one before
ALONE = "oncall"  # another one of it, unified, below nobody
OWN_WORDS = "task, role, environment, headings"
SEVERITIES = {1: ("error", "bold red"), 2: ("warning", "yellow"), 3: ("info", "blue"), 4: ("hint", "dim")}

# what the tour breaks in a folder of yours: the first that is there
JSON_FILES = (".nexus3/config.json", ".nexus3/mcp.json", ".mcp.json", ".vscode/mcp.json")
INSTRUCTIONS = (".nexus3/NEXUS.md", "NEXUS.md", "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")

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


class Tour(NamedTuple):
    """Where the tour goes, and the file that it breaks there without saving it."""

    folder: Path
    workspace_folders: tuple[Path, ...]
    file: Path
    text: str  # of the file; empty where the folder has none that the tour could break
    broken_text: str
    environment: dict[str, str]  # of the daemon, beside that of this process


def example() -> Tour:
    """The example workspace, with the home directory of its user."""
    file = FOLDER / ".nexus3" / "config.json"
    text = file.read_text()
    broken_text = text.replace('"ancestor_depth": 2,', '"ancestor_dept": 12,').replace(
        "0.2\n  }\n", "0.2,\n  },\n"
    )
    home = {"NEXUS_HOME": str(EXAMPLES / "home" / ".nexus3")}
    return Tour(FOLDER, (FOLDER, COMPANY), file, text, broken_text, home)


def tour_of(folder: Path) -> Tour:
    """A folder of yours: its JSON file gets a trailing comma, else its instructions a broken import."""
    files = [folder / name for name in (*JSON_FILES, *INSTRUCTIONS)]
    file = next((file for file in files if file.is_file()), folder / "AGENTS.md")
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    if file.suffix == ".json":
        last_brace = text.rfind("}")
        broken_text = text[:last_brace].rstrip() + ",\n" + text[last_brace:]
    else:
        broken_text = text + "\nSee @docs/a-page-that-is-not-there.md.\n"
    return Tour(folder, (folder,), file, text, broken_text, {})


class Editor:
    """As much of an LSP client as the tour needs: one request at a time, notifications kept."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.state = tempfile.TemporaryDirectory(prefix="nexus-tour-")  # the tour's sessions are not yours
        environment = {**os.environ, **environment, "NEXUS_STATE": self.state.name}
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
    parser = argparse.ArgumentParser(description="The main job, spoken in LSP to a real daemon.")
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of yours [the example workspace]")
    folder: Path | None = parser.parse_args().folder
    if folder is not None and not folder.is_dir():
        parser.error(f"{folder} is not a directory")
    tour = example() if folder is None else tour_of(folder.resolve())
    console = Console(highlight=False, width=min(Console().width, WIDTH) if sys.stdout.isatty() else WIDTH)
    editor = Editor(tour.environment)
    folders = [{"uri": path.as_uri(), "name": path.name} for path in tour.workspace_folders]
    answer = editor.request(
        "initialize", {"processId": os.getpid(), "capabilities": {}, "workspaceFolders": folders}
    )
    ready = (time.perf_counter() - editor.started) * 1000
    info = answer["serverInfo"]
    console.print(
        Text.assemble(("Nexus ", "bold"), f"{info['version']}: the daemon answered after {ready:.0f} ms\n")
    )
    editor.notify("initialized", {})

    show_layers(console, editor, tour)
    show_typing(console, editor, tour)
    show_context(console, editor, tour)
    if folder is None:
        show_agents(console, editor)
    else:
        show_assistants(console, editor, tour)
    code = editor.close()
    console.print(f"[dim]The daemon ended with code {code}. Nothing in the workspace was written.[/]")
    sys.exit(code)


def show_layers(console: Console, editor: Editor, tour: Tour) -> None:
    result = editor.request("nexus/context/layers", {"workspaceFolder": tour.folder.as_uri()})
    console.print("[bold]What this folder's assistant reads[/]")
    tables.print_layers(msgspec.convert(result, protocol.LayersResult), display_path=path_display(tour))


def show_typing(console: Console, editor: Editor, tour: Tour) -> None:
    uri = tour.file.as_uri()
    language = "json" if tour.file.suffix == ".json" else "markdown"
    document = {"uri": uri, "languageId": language, "version": 1, "text": tour.text}
    editor.notify("textDocument/didOpen", {"textDocument": document})
    before = editor.diagnostics(uri, 1)

    began = time.perf_counter()
    change(editor, uri, 2, tour.broken_text)
    diagnostics = [item for item in editor.diagnostics(uri, 2) if item not in before]
    took = (time.perf_counter() - began) * 1000
    title = f"You type: {counted(len(diagnostics), 'problem')} after {took:.1f} ms"
    console.print(Panel(frames(tour.file.name, tour.broken_text, diagnostics), title=title, **look("red")))
    fix_titles = [action["title"] for action in quick_fixes(editor, uri, diagnostics)]
    console.print(Text.assemble(("Quick fixes: ", "bold"), "; ".join(fix_titles) or "none", "\n"))

    began = time.perf_counter()
    change(editor, uri, 3, tour.text)
    left = counted(len(editor.diagnostics(uri, 3)), "problem")
    took = (time.perf_counter() - began) * 1000
    console.print(Panel(f"{left} left", title=f"You fix it: cleared after {took:.1f} ms", **look("green")))
    console.print()


def show_context(console: Console, editor: Editor, tour: Tour) -> None:
    session = {"workspaceFolder": tour.folder.as_uri(), "session": "tour"}
    editor.request("nexus/session/append", {**session, "messages": CONVERSATION})
    settings = editor.request("nexus/config/effective", {"workspaceFolder": tour.folder.as_uri()})["config"]
    model = settings.get("provider", {}).get("model") or MODEL
    params = {**session, "message": QUESTION, "format": "openai", "options": {"model": model}}
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


def show_assistants(console: Console, editor: Editor, tour: Tour) -> None:
    """The tokens that each assistant reads of the folder's files, file by file."""
    began = time.perf_counter()
    where = {"workspaceFolder": tour.folder.as_uri()}
    result = msgspec.convert(
        editor.request("nexus/assistant/readers", where), protocol.AssistantReadersResult
    )
    took = (time.perf_counter() - began) * 1000
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("tokens of", footer="in every request", overflow="fold", min_width=30)
    for assistant in result.assistants:
        mark = "" if assistant.exact else "≈"
        table.add_column(assistant.title, footer=f"{mark}{assistant.tokens:,}", justify="right")
    display = path_display(tour)
    for file in result.files:
        uses = (describe_use(reader) for reader in file.readers)
        table.add_row(display(unquote(urlsplit(file.uri).path)), *uses)
    console.print(f"[bold]Who reads what[/]: {len(result.files)} files, after {took:.1f} ms")
    console.print(table)


def describe_use(reader: protocol.FileReader) -> str:
    tokens = f"{reader.tokens:,}"
    return {"sent": tokens, "cut": f"cut {tokens}", "later": "later", "unread": "–"}[reader.use]


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


def path_display(tour: Tour) -> Callable[[str], str]:
    """How a path is printed: as the user of the tour's workspace would say it."""
    roots = {tour.folder: "", Path.home(): "~/"}
    if tour.environment:
        roots = {EXAMPLES / "home": "~/", EXAMPLES: ""}
    roots[DEFAULTS] = "(shipped) "

    def display(path: str) -> str:
        for root, prefix in roots.items():
            if Path(path).is_relative_to(root):
                return prefix + str(Path(path).relative_to(root))
        return path

    return display


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


def frames(name: str, text: str, diagnostics: list[Message]) -> Text:
    lines = text.splitlines()
    shown = Text()
    for diagnostic in diagnostics:
        start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
        width = end["character"] - start["character"] if end["line"] == start["line"] else 1
        severity, style = SEVERITIES[diagnostic["severity"]]
        shown.append(f"{name}:{start['line'] + 1}:{start['character'] + 1} ")
        shown.append(f"{severity} ", style=style)
        shown.append(f"{diagnostic['message']} ")
        shown.append(f"[{diagnostic['code']}]\n", style="dim")
        shown.append(f"{start['line'] + 1:4} | {lines[start['line']]}\n")
        shown.append("     | " + " " * start["character"])
        shown.append("^" * max(1, width) + "\n", style=style)
    shown.rstrip()
    return shown


def quick_fixes(editor: Editor, uri: str, diagnostics: list[Message]) -> list[Message]:
    if not diagnostics:
        return []
    whole = {"start": diagnostics[0]["range"]["start"], "end": diagnostics[-1]["range"]["end"]}
    params = {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": diagnostics}}
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
