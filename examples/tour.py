"""What Nexus does, in 80 lines: `make run` on the example, `make run FOLDER=path` on a folder of yours.

The tour begins with commands that you would type in your project: who reads what, why, and what a rule
allows. An editor, played here in LSP to a real daemon, then breaks a file: the problem appears at its place,
and the fix clears it. Last comes what Nexus's own chat and agents would send. Nothing is written in the
folder, and nothing of the tour is kept.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nexus_daemon.cli.output import counted

EXAMPLES = Path(__file__).resolve().parent
SHOP = EXAMPLES / "shop"
COMPANY = EXAMPLES / "company"
WIDTH = 104
MODEL = "gpt-4.1"  # where the settings name none
QUESTION = "May a session token be compared with == in auth/sessions.py?"
AGENTS = ("backend", "auth", "reviewer")  # of company/.nexus3/config.json, each below the one before
SEVERITIES = {1: ("error", "bold red"), 2: ("warning", "yellow"), 3: ("info", "blue"), 4: ("hint", "dim")}

# what the tour breaks in a folder of yours: the first that is there
JSON_FILES = (".mcp.json", ".vscode/mcp.json", ".nexus3/config.json", ".nexus3/mcp.json")
INSTRUCTIONS = ("CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md", "NEXUS.md", ".nexus3/NEXUS.md")

CONVERSATION = [
    {"role": "user", "content": "Where are session tokens compared?"},
    {"role": "assistant", "content": "In auth/sessions.py, line 41."},
]

NEXT = """Nothing was written in this folder.
{hint}

    pipx install {clone}    # the command `nexus`; without it, type {nexus}
    cd {folder}
    nexus                         # which assistants are in use, what each request costs, what is wrong
    nexus show --for all          # who reads what, file by file
    nexus explain 'npm test'      # may it run this? also AGENTS.md:14, permissions.allow, mcp:NAME
    nexus check                   # every problem with file, line and fix; exit code 1 for CI
    nexus watch                   # the session of Claude Code, Codex, … that runs there now"""

IN_YOURS = (
    "[bold]Now try this in your project[/]: `make run FOLDER=~/my/project` gives the same tour there. Or:"
)
MORE = "[bold]What to type here[/]:"

Message = dict[str, Any]


class Tour(NamedTuple):
    """Where the tour goes, what it types there, and the file that it breaks without saving it."""

    folder: Path
    workspace_folders: tuple[Path, ...]
    commands: tuple[tuple[str, ...], ...]  # arguments of `nexus`
    file: Path
    text: str  # of the file; empty where the folder has none that the tour could break
    broken_text: str
    environment: dict[str, str]  # of the daemon and the commands, beside that of this process


def example() -> Tour:
    """The example workspace, whose user has `examples` as a home directory."""
    file = SHOP / "CLAUDE.md"
    text = file.read_text(encoding="utf-8")
    broken_text = text.replace("@docs/style.md", "@docs/stlye.md")
    home = {"HOME": str(EXAMPLES), "USERPROFILE": str(EXAMPLES), "NEXUS_HOME": str(EXAMPLES / "home/.nexus3")}
    commands = (
        ("show", "--for", "all"),
        ("explain", "packages/api/AGENTS.md:3"),
        ("explain", "git push"),
    )
    return Tour(SHOP, (SHOP, COMPANY), commands, file, text, broken_text, home)


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
    instructions = [name for name in INSTRUCTIONS if (folder / name).is_file()][:1]
    commands = (("overview",), ("show", "--for", "all"), *(("explain", name) for name in instructions))
    return Tour(folder, (folder,), commands, file, text, broken_text, {})


class Editor:
    """As much of an LSP client as the tour needs: one request at a time, notifications kept."""

    def __init__(self, environment: dict[str, str]) -> None:
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
        return self.process.wait(timeout=10)


def main() -> None:
    parser = argparse.ArgumentParser(description="The main job, spoken in LSP to a real daemon.")
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of yours [the example workspace]")
    folder: Path | None = parser.parse_args().folder
    if folder is not None and not folder.is_dir():
        parser.error(f"{folder} is not a directory")
    tour = example() if folder is None else tour_of(folder.resolve())
    console = Console(highlight=False, width=min(Console().width, WIDTH) if sys.stdout.isatty() else WIDTH)
    with tempfile.TemporaryDirectory(prefix="nexus-tour-") as state:  # the tour's sessions are not yours
        environment = {**os.environ, "COLUMNS": str(WIDTH), **tour.environment, "NEXUS_STATE": state}
        for command in tour.commands:
            run_command(console, tour.folder, command, environment)
        code = show_editor(console, tour, environment)
    nexus = Path(sys.executable).with_name("nexus")
    place = "~/my/project" if folder is None else escape(shlex.quote(str(tour.folder)))
    hint = IN_YOURS if folder is None else MORE
    next_steps = NEXT.format(hint=hint, folder=place, clone=EXAMPLES.parent, nexus=nexus)
    console.print(next_steps, soft_wrap=True)
    sys.exit(code)


def run_command(
    console: Console, folder: Path, command: tuple[str, ...], environment: dict[str, str]
) -> None:
    """Run `nexus` in the folder, as a user would type it."""
    typed = [word for word in command if word != "overview"]
    console.print(Text("$ " + shlex.join(["nexus", *typed]), style="bold"), soft_wrap=True)
    sys.stdout.flush()
    subprocess.run(
        [sys.executable, "-P", "-m", "nexus_daemon", *command], cwd=folder, env=environment, check=False
    )
    console.print()


def show_editor(console: Console, tour: Tour, environment: dict[str, str]) -> int:
    """Play an editor with the folder open; returns the daemon's exit code."""
    editor = Editor(environment)
    folders = [{"uri": path.as_uri(), "name": path.name} for path in tour.workspace_folders]
    answer = editor.request(
        "initialize", {"processId": os.getpid(), "capabilities": {}, "workspaceFolders": folders}
    )
    took = (time.perf_counter() - editor.started) * 1000
    version = answer["serverInfo"]["version"]
    console.print(
        f"[bold]In your editor[/]: the language server of Nexus {version} answered after {took:.0f} ms."
    )
    editor.notify("initialized", {})
    show_typing(console, editor, tour)
    show_own_chat(console, editor, tour.workspace_folders[-1])
    if COMPANY in tour.workspace_folders:
        show_agents(console, editor)
    return editor.close()


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
    title = f"You type in {tour.file.name}: {counted(len(diagnostics), 'problem')} after {took:.1f} ms"
    console.print(Panel(frames(tour.file.name, tour.broken_text, diagnostics), title=title, **look("red")))
    fix_titles = [action["title"] for action in quick_fixes(editor, uri, diagnostics)]
    console.print(Text.assemble(("Quick fixes: ", "bold"), "; ".join(fix_titles) or "none"))

    began = time.perf_counter()
    change(editor, uri, 3, tour.text)
    left = counted(len(editor.diagnostics(uri, 3)), "problem")
    took = (time.perf_counter() - began) * 1000
    console.print(f"[bold green]You fix it[/]: {left} left after {took:.1f} ms.\n")


def show_own_chat(console: Console, editor: Editor, folder: Path) -> None:
    """What Nexus's own chat would send in a folder, summed by category."""
    session = {"workspaceFolder": folder.as_uri(), "session": "tour"}
    editor.request("nexus/session/append", {**session, "messages": CONVERSATION})
    settings = editor.request("nexus/config/effective", {"workspaceFolder": folder.as_uri()})["config"]
    model = settings.get("provider", {}).get("model") or MODEL
    params = {**session, "message": QUESTION, "format": "openai", "options": {"model": model}}
    began = time.perf_counter()
    result = editor.request("nexus/context/assemble", params)
    took = (time.perf_counter() - began) * 1000
    usage = result["usage"]
    sums = {row["category"]: 0 for row in usage["rows"]}
    for row in usage["rows"]:
        sums[row["category"]] += row["tokens"]
    shares = ", ".join(f"{category} {tokens:,}" for category, tokens in sums.items())
    sent = counted(len(result["request"]["messages"]), "message")
    console.print(
        f"[bold]Nexus's own chat[/] in {folder.name} would send {sent} to {model}:\n"
        f"{usage['total']:,} tokens ({shares}). Assembled in {took:.1f} ms.\n"
    )


def show_agents(console: Console, editor: Editor) -> None:
    """The agents of the example: what each reads, and what it may do."""
    company = {"workspaceFolder": COMPANY.as_uri()}
    began = time.perf_counter()
    for name in AGENTS:
        editor.request("nexus/agent/spawn", {**company, "agentId": name})
    took = (time.perf_counter() - began) * 1000
    names = ("main", *AGENTS)
    agents = [editor.request("nexus/agent/get", {**company, "agentId": name}) for name in names]
    prompts = [editor.request("nexus/context/preview", {**company, "agent": name}) for name in names]
    console.print(
        f"[bold]Its agents[/]: {len(AGENTS)} of {COMPANY.name}, started in {took:.1f} ms; "
        "none may do more than the one above it."
    )
    console.print(agent_table(agents, prompts))
    editor.request("nexus/agent/dispose", {**company, "agentId": "backend"})


def agent_table(agents: list[Message], prompts: list[Message]) -> Table:
    """What each agent is below, reads, and may do."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("agent")
    for agent in agents:
        table.add_column(agent["agentId"], justify="right")
    table.add_row("below", *(agent.get("parent", "main") if agent["depth"] else "" for agent in agents))
    table.add_row("files that it reads", *(str(count_files(prompt)) for prompt in prompts))
    tokens = (sum(fragment["tokens"] for fragment in prompt["fragments"]) for prompt in prompts)
    table.add_row("tokens of its prompt", *(f"{each:,}" for each in tokens))
    table.add_row("level", *(agent["permissions"]["level"] for agent in agents))
    for what, key in (("allowed", "allow"), ("denied", "deny")):
        table.add_row(what, *(listed(agent["permissions"][key]) for agent in agents))
    return table


def count_files(prompt: Message) -> int:
    return len({fragment["source"]["uri"] for fragment in prompt["fragments"] if fragment["source"]})


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
