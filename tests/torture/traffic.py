"""What users do in the windows of a daemon, an action at a time: for `long_traffic`."""

import itertools
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support.editor import Editor, named, uri_of
from support.fixture import write_file
from support.shared import SharedHome

TURNS_MOST = 12  # of one session
COMMANDS = (["check", "."], ["show", "."], ["tokens", "NEXUS.md"], ["sessions", "list"])
COMMAND_S = 60.0
_numbers = itertools.count(1)


class Desk:
    """A window, and the folder and session in it that its user works with."""

    def __init__(self, window: Editor, home: SharedHome, roots: Sequence[Path], dice: random.Random) -> None:
        self.window = window
        self.home = home
        self.roots = roots
        self.dice = dice
        self.root = dice.choice(roots)
        self.session = f"session {next(_numbers)}"
        self.turns = 0
        self.requests = 0

    def ask(self, method: str, **params: object) -> Any:
        self.requests += 1
        return self.window.ask(method, self.root, **params)

    def ask_of_session(self, method: str, **params: object) -> Any:
        return self.ask(method, session=self.session, **params)


def make_folder(root: Path) -> None:
    """A folder with settings, instructions, a skill and a knowledge base."""
    files = {
        "NEXUS.md": "# Rules\n\nBe brief.\n@docs/more.md\n",
        "docs/more.md": "More rules.\n" * 20,
        "docs/deploy.md": "# Deploy\n\nRun `make rollback` within an hour.\n" * 20,
        ".nexus3/skills/rotate/SKILL.md": "---\nname: rotate\ndescription: Rotate a key.\n---\nRotate it.\n",
    }
    for name, text in files.items():
        write_file(root / name, text)
    (root / ".nexus3" / "config.json").write_text(_settings(0))


def _settings(number: int) -> str:
    return (
        f'{{"provider": {{"model": "gpt-4o"}}, "knowledge": {{"paths": ["docs"]}},\n'
        f' "context": {{"reserve_tokens": {4_000 + number % 500}}}}}\n'
    )


# ---------------------------------------------------------------- actions


def edit_settings(desk: Desk) -> None:
    """Type in config.json: it breaks and is whole again."""
    path = desk.root / ".nexus3" / "config.json"
    desk.window.open(path, _settings(0))
    for _ in range(desk.dice.randint(2, 8)):
        text = _settings(next(_numbers))
        desk.window.type(path, text[: desk.dice.randrange(len(text))] if desk.dice.random() < 0.7 else text)
        desk.window.layers(desk.root)
        desk.requests += 1
    desk.window.request("textDocument/codeLens", {"textDocument": {"uri": uri_of(path)}})
    desk.window.close(path)


def edit_instructions(desk: Desk) -> None:
    """Type in NEXUS.md, and look at the prompt."""
    path = desk.root / "NEXUS.md"
    desk.window.open(path, "# Rules\n")
    for _ in range(desk.dice.randint(2, 8)):
        number = next(_numbers)
        desk.window.type(path, f"# Rules\n\nRule {number}.\n@docs/more.md\n")
        assert f"Rule {number}." in desk.ask("context/preview")["text"]
    desk.window.close(path)


def chat(desk: Desk) -> None:
    """A turn: assemble, then append what was said; a long session is left, or deleted."""
    question = f"Why does deploy {next(_numbers)} fail? " + "It did before. " * desk.dice.randint(1, 60)
    desk.ask_of_session("context/assemble", message=question)
    call = {"id": "call_1", "name": "read", "arguments": {"path": f"docs/{next(_numbers)}.md"}}
    messages = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "toolCalls": [call]},
        {"role": "tool", "toolCallId": "call_1", "content": "def check(): ...\n" * desk.dice.randint(1, 80)},
        {"role": "assistant", "content": "The rollback is late."},
    ]
    desk.ask_of_session("session/append", messages=messages, idempotencyKey=str(next(_numbers)))
    desk.turns += 1
    if desk.turns >= TURNS_MOST:
        if desk.dice.random() < 0.5:
            desk.ask_of_session("session/compact")
        if desk.dice.random() < 0.7:
            desk.ask_of_session("session/delete")
        desk.session, desk.turns = f"session {next(_numbers)}", 0


def read_sessions(desk: Desk) -> None:
    """Look at conversations."""
    for method in ("session/messages", "session/transcript", "context/usage"):
        desk.ask_of_session(method)
    desk.ask("session/list")
    desk.requests += 1
    desk.window.request("nexus/session/search", {"query": f"deploy {desk.dice.randrange(100)}*", "limit": 5})


def use_agents(desk: Desk) -> None:
    """Start an agent, write to it, and end it."""
    name = f"worker{next(_numbers)}"
    desk.ask("agent/spawn", agentId=name, task="Review docs/more.md.")
    desk.ask("agent/message", source="main", target=name, content="Be quick.")
    desk.ask("context/assemble", session=f"agent:{name}", agent=name, message="Begin.")
    desk.ask("agent/list")
    desk.ask("agent/dispose", agentId=name)


def publish_events(desk: Desk) -> None:
    for _ in range(desk.dice.randint(1, 5)):
        desk.ask("event/publish", kind="build.failed", data={"number": next(_numbers)})
    desk.ask("event/list", limit=10)


def change_files(desk: Desk) -> None:
    """Another program writes settings, instructions or knowledge."""
    number = next(_numbers)
    name, text = desk.dice.choice(
        (
            (".nexus3/config.json", _settings(number)),
            ("docs/more.md", f"More rules {number}.\n" * 20),
            ("docs/deploy.md", f"# Deploy\n\nRun `make rollback{number}` within an hour.\n" * 20),
            (f"docs/new{number % 5}.md", f"Note {number}.\n"),
        )
    )
    (desk.root / name).write_text(text)
    desk.ask("knowledge/query", query=f"When is rollback{number} possible?")


def change_folders(desk: Desk) -> None:
    """Add folders to the window, look at them, and remove them."""
    others = [root for root in desk.roots if root != desk.root]
    present = {folder["uri"] for folder in desk.window.request("nexus/status", {})["folders"]}
    desk.window.add(*others)
    for root in others:
        desk.window.layers(root)
    desk.requests += 1 + len(others)
    desk.window.remove(
        *(root for root in others if named(root)["uri"] in present or desk.dice.random() < 0.5)
    )
    desk.window.add(*others)


def run_command(desk: Desk) -> None:
    """A command of a terminal, which the daemon runs."""
    command = desk.dice.choice(COMMANDS)
    done = subprocess.run(
        [sys.executable, "-m", "nexus_daemon", *command],
        cwd=desk.root,
        env=desk.home.environ,
        capture_output=True,
        timeout=COMMAND_S,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr


ACTIONS: dict[Callable[[Desk], None], int] = {
    edit_settings: 6,
    edit_instructions: 6,
    chat: 12,
    read_sessions: 3,
    use_agents: 2,
    publish_events: 2,
    change_files: 3,
    change_folders: 1,
    run_command: 1,
}
"""The actions, and how often each is taken in proportion."""
