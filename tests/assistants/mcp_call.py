"""An assistant calls a tool of `nexus mcp`, added as docs/assistants.md says, and sends what it answers.

1. The provider's stand-in answers with the call first. Claude Code sends the definition of a tool only after
   a search for it, so that is called before.
2. The server runs without the shared daemon, which would outlive the folder.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from assistants import programs
from assistants.provider_stand_in import ProviderStandIn, ScriptedCall, result_of

CASE = "nexus mcp"
TOOL = "show_context"
FILES = {"CLAUDE.md": "# Rules\nBe brief.\n", "AGENTS.md": "Agents: be brief. 規則 🧪\n"}
SERVER = (sys.executable, "-P", "-m", "nexus_daemon", "mcp", "--local")
Add = Callable[[Path, Path, dict[str, str]], None]


def _add_by_command(command: Path, work: Path, environ: dict[str, str], *options: str) -> None:
    words = [str(command), "mcp", "add", *options, "nexus", "--", *SERVER]
    subprocess.run(words, cwd=work, env=environ, check=True, capture_output=True, timeout=60)


def _add_to_opencode(_: Path, work: Path, __: dict[str, str]) -> None:
    settings = {"mcp": {"nexus": {"type": "local", "command": list(SERVER)}}}
    (work / "opencode.json").write_text(json.dumps(settings))


SETTINGS: dict[str, Add] = {
    "claude-code": lambda command, work, environ: _add_by_command(command, work, environ, "--scope", "user"),
    "codex": _add_by_command,
    "opencode": _add_to_opencode,
}
"""How the server is added to each program."""
_ALLOWED = {"claude-code": ("--allowedTools", f"mcp__nexus__{TOOL}")}


def differences(program: programs.Program) -> list[str]:
    """What is not as it should be, a line each; empty if the answer arrived."""
    command = programs.install(program)
    call = ScriptedCall(TOOL, {})
    with tempfile.TemporaryDirectory(prefix="mcp-") as directory, ProviderStandIn(call) as provider:
        root = Path(directory).resolve()
        home, work = root / "home", root / "work"
        for path in (home, work):
            path.mkdir()
        for name, text in FILES.items():
            (work / name).write_text(text)
        environ = {"PATH": programs.search_path(), "HOME": str(home)}
        SETTINGS[program.name](command, work, {**environ, **program.environ(provider.address)})
        allowed = _ALLOWED.get(program.name, ())
        caller = program._replace(arguments=lambda address: (*program.arguments(address), *allowed))
        run = programs.run(caller, command, work, home=home, address=provider.address, environ={})
        sent = result_of(provider.requests[-1].body) if provider.requests else None
        expected = _answer(program.name, work, environ)
    if sent is None:
        return [f"no request has the answer, and the program ended with {run.code}: {run.output[-400:]}"]
    return [] if sent.endswith(expected) else [f"sent     {sent!r}", f"expected {expected!r}"]


def _answer(name: str, work: Path, environ: dict[str, str]) -> str:
    """What the tool answers this assistant."""
    words = [*SERVER, "--tool", TOOL, "--for", name]
    done = subprocess.run(words, cwd=work, env=environ, check=True, capture_output=True, text=True)
    return done.stdout.removesuffix("\n")
