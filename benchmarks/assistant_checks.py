"""How soon a monorepo's files for all assistants are checked, beside agnix, a linter of such files.

40 packages have instructions of their own; the root has the files of Claude Code, Codex, opencode, Gemini
CLI, GitHub Copilot, Cursor and Nexus. Before each check a file changes.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.documents import instructions
from benchmarks.language_servers import Typist
from benchmarks.lsp_client import Client, ServerError, request
from benchmarks.promises import ROOT, Measured, Promise, Run, Step, milliseconds, promises, take_turns
from benchmarks.servers import NEXUS, SHARED, Lane, changed, install, opened, started

sys.path.insert(0, str(ROOT / "tests"))

from assistants.programs import cache_directory
from nexus_context.assistants.permissions.decision import PermissionReader
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.permissions import read_call

VERSION = "0.59.3"
AGNIX = f"agnix {VERSION}"
BARE = "python -c pass"
PACKAGES = 40
RULES = "# Package {n}\n\n- Run `make test` in this directory.\n- Names are nouns for types.\n"
RULE = "---\npaths: packages/p{n}/**\n---\nUse the logger of package {n}.\n"
SKILL = (
    "---\nname: release-{n}\ndescription: Use when package {n} is released\n---\nTag it, then publish it.\n"
)


CALLS = (
    "npm test",
    "git status",
    "cat .env",
    "git push && rm -rf dist",
    "ls -la | grep x",
    "Read(src/a.py)",
    "WebFetch(https://example.com)",
    "mcp__docs__search",
)
RULES_OF_EACH = 30
DECISIONS = 4 * len(CALLS)
ALONE = "Nexus alone"
THREE = (
    ".git/HEAD",
    ".git/objects/x",
    ".git/refs/x",
    "CLAUDE.md",
    ".claude/settings.json",
    ".codex/config.toml",
    ".mcp.json",
    ".github/copilot-instructions.md",
)
READING = "reading those settings, once a program"


@promises(
    Promise("check of 40 packages as a request, a daemon runs", 1.0, AGNIX),
    Promise("nexus check --for all of 40 packages, in the daemon", 4.0, AGNIX),
    Promise("nexus check --for all of 40 packages, no daemon", 8.0, BARE),
)
def checks(run: Run) -> Iterator[Measured]:
    """The request of an editor for the problems of the whole workspace, and the processes of both programs.

    All seven are in use in the folder. Each request must report what was just typed.
    """
    folder = run.folder("monorepo", _files())
    rounds = run.pick(full=20, quick=5)
    command = [*run.nexus, "check", "--for", "all", str(folder)]
    peer = [install_agnix(), str(folder)]
    bare = [sys.executable, "-c", "pass"]
    cold: dict[str, Step] = {
        "nexus": _step(folder, partial(_run, run, command)),
        BARE: _step(folder, partial(_run, run, bare)),
    }
    alone = take_turns(cold, rounds)
    with started(Lane(SHARED, "pull"), run, folder) as (client, _):
        steps: dict[str, Step] = {
            "request": _Editor(client, folder / "AGENTS.md").check,
            "command": _step(folder, partial(_run, run, command)),
            AGNIX: _step(folder, partial(_run, run, peer)),
        }
        warm = take_turns(steps, rounds)
    yield "check of 40 packages as a request, a daemon runs", warm["request"], warm[AGNIX]
    yield "nexus check --for all of 40 packages, in the daemon", warm["command"], warm[AGNIX]
    yield "nexus check --for all of 40 packages, no daemon", alone["nexus"], alone[BARE]


@promises(Promise("edit of AGENTS.md, three assistants in use", 1.5, ALONE, "p95"))
def edits(run: Run) -> Iterator[Measured]:
    """One typed character → the diagnostics of all readers, beside those of NEXUS.md, read by Nexus alone."""
    document = instructions(60)
    in_use = {name: text for name, text in _files().items() if name in THREE}
    places = {
        "in use": (run.folder("three", in_use | {"AGENTS.md": document.text}), "AGENTS.md"),
        ALONE: (run.folder("alone", {".git/HEAD": "", "NEXUS.md": document.text}), "NEXUS.md"),
    }
    with ExitStack() as stack:
        steps: dict[str, Callable[[], float]] = {
            name: Typist(stack, run, Lane(NEXUS), folder, document, file=file).type
            for name, (folder, file) in places.items()
        }
        turns = take_turns(steps, run.pick(full=200, quick=25), warm=5)
    yield "edit of AGENTS.md, three assistants in use", turns["in use"], turns[ALONE]
    run.note_turns("Edit of AGENTS.md, ms", turns)


@promises(Promise(f"{DECISIONS} decisions on calls, their settings are read", 1.0, READING))
def decisions(run: Run) -> Iterator[Measured]:
    """What Claude Code, Codex, opencode and Gemini CLI may do, beside reading the settings that say so."""
    folder = run.folder("permissions", _permission_files())
    surroundings = Surroundings(str(folder), str(run.root), {}, trusted=True)
    calls = [read_call(text) for text in CALLS]
    readers = [(each, each.permissions) for each in PROGRAMS.values() if each.has_permissions]

    def read() -> list[tuple[PermissionReader, Any]]:
        disk = Disk()
        return [(reader, reader.read(each.settings(disk, surroundings), disk)) for each, reader in readers]

    known = read()

    def decide() -> None:
        for reader, permissions in known:
            for call in calls:
                reader.decide(permissions, call)

    steps: dict[str, Step] = {"decide": partial(milliseconds, decide), READING: partial(milliseconds, read)}
    turns = take_turns(steps, run.pick(full=50, quick=10), warm=3)
    yield f"{DECISIONS} decisions on calls, their settings are read", turns["decide"], turns[READING]


def _step(folder: Path, check: Callable[[], object]) -> Callable[[], float]:
    """Change a file, then measure a check."""

    def step() -> float:
        (folder / "AGENTS.md").write_text(f"# Rules\n\n{time.perf_counter()}: use tabs.\n")
        return milliseconds(check)

    return step


class _Editor:
    """Types a text that imports a file that is not there, and asks for the problems of the workspace."""

    def __init__(self, client: Client, file: Path) -> None:
        self._client = client
        self._uri = file.as_uri()
        self._version = 1
        client.send(opened(self._uri, file.read_text()))

    def check(self) -> float:
        """The milliseconds of one request; ServerError if its answer lacks the problem."""
        self._version += 1
        import_text = f"docs/missing-{self._version}.md"
        change = {"text": f"# Rules\n\nUse tabs. See @{import_text}\n"}
        number = self._client.next_id()
        edit = changed(self._uri, self._version, change)
        pull = request(number, "workspace/diagnostic", {"previousResultIds": []})
        reply = self._client.exchange(edit + pull, number)
        messages = [item["message"] for report in reply.result["items"] for item in report["items"]]
        if not any(import_text in message for message in messages):
            raise ServerError(f"the problem of {import_text} is not reported: {messages}")
        return (reply.at - reply.sent) * 1e3


def _run(run: Run, command: Sequence[str]) -> None:
    """Run a check; what it finds does not matter."""
    subprocess.run(command, cwd=run.root, env=run.environ, capture_output=True, check=False)


def _permission_files() -> dict[str, str]:
    commands = [f"tool{n} run" for n in range(RULES_OF_EACH)]
    claude = {"allow": [f"Bash({each}:*)" for each in commands], "deny": ["Read(./.env)", "Bash(rm -rf:*)"]}
    opencode = {"bash": {f"{each} *": "allow" for each in commands} | {"rm *": "deny"}}
    codex = "".join(f'prefix_rule(pattern=["{each.split()[0]}", "run"])\n' for each in commands)
    gemini = {"allowed": [f"run_shell_command({each})" for each in commands]}
    return {
        ".claude/settings.json": json.dumps({"permissions": claude}),
        ".codex/rules/default.rules": codex,
        ".gemini/settings.json": json.dumps({"tools": gemini}),
        "opencode.json": json.dumps({"permission": opencode}),
    }


def _files() -> dict[str, str]:
    servers = {"mcpServers": {"docs": {"command": "docs-server", "args": ["--stdio"]}}}
    files = {
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/objects/x": "",
        ".git/refs/x": "",
        "CLAUDE.md": "# Rules\n\nSee @AGENTS.md\n",
        "AGENTS.md": "# Rules\n\nUse tabs.\n",
        "GEMINI.md": "# Rules\n\nUse tabs.\n",
        ".github/copilot-instructions.md": "Use tabs.\n",
        ".cursor/rules/style.mdc": "---\nalwaysApply: true\n---\nUse tabs.\n",
        ".mcp.json": json.dumps(servers),
        ".cursor/mcp.json": json.dumps(servers),
        ".claude/settings.json": json.dumps({"permissions": {"deny": ["Read(./.env)"]}}),
        ".codex/config.toml": 'model = "gpt-5"\n',
        ".gemini/settings.json": json.dumps({"context": {"fileName": ["GEMINI.md"]}}),
        "opencode.json": json.dumps({"instructions": ["docs/*.md"]}),
        "docs/style.md": "Use tabs.\n",
        ".nexus3/config.json": json.dumps({"provider": {"model": "gpt-4o"}}),
        "NEXUS.md": "Use tabs.\n",
    }
    for n in range(PACKAGES):
        package = f"packages/p{n}"
        files |= {f"{package}/{name}": RULES.format(n=n) for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md")}
        files |= {f"{package}/src/m{m}.py": f"VALUE = {m}\n" for m in range(20)}
        files[f".claude/rules/p{n}.md"] = RULE.format(n=n)
        files[f".claude/skills/release-{n}/SKILL.md"] = SKILL.format(n=n)
        files[f".github/instructions/p{n}.instructions.md"] = (
            f"---\napplyTo: '{package}/**'\n---\nUse tabs.\n"
        )
    return files


@cache
def install_agnix() -> str:
    """The path of agnix, installed if it is not yet. UnavailableError if it cannot be."""
    target = cache_directory() / f"agnix-{VERSION}"
    command = target / "bin" / "agnix"
    if not command.exists():
        target.mkdir(parents=True, exist_ok=True)
        pip = (sys.executable, "-m", "pip", "install", "-qq", "--target", str(target))
        install(*pip, f"agnix=={VERSION}", cwd=target)
    return str(command)
