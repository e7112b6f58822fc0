"""Sets up the hooks of a real program, runs it, looks at what they did, and takes them out again.

1. The settings have been written by hand before, and are the same to the byte after the undo.
2. `nexus` is that of this checkout. Each run has a home, a runtime directory and a daemon of its own.
3. Codex runs hooks without review here (`--dangerously-bypass-hook-trust`): nobody is there to trust them.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from assistants.programs import CLAUDE_MODEL, GEMINI_MODEL, LONGEST_S, Program, search_path
from assistants.provider_stand_in import ProviderStandIn
from support.fixture import write_file

PROMPT = (
    "Where is the gate? Look at src/app/gate.py. Never use spaces for indentation. The ticket is ABC-123."
)
RECALLED = "Added by Nexus after the compaction"
SETTLED_S = 20.0  # in which a daemon starts and writes what it was told
SETTINGS = {
    "claude-code": {
        ".claude/settings.json": '\ufeff{"env": {},\r\n\t"hooks": {"Stop": [ {"hooks":[]} ] }  }\r\n',
        ".claude/CLAUDE.md": "Be short.\n",
    },
    "codex": {".codex/config.toml": "# mine\n[tui]\ntheme = 'dark'  # yes"},
    "opencode": {".config/opencode/opencode.json": '// mine\n{\n  "autoupdate": false, /* no */\n}\n'},
    "gemini": {".gemini/settings.json": '// mine\n{\n  "ui": {"hideTips": true}\n}\n'},
}


class Place(NamedTuple):
    """Where a program runs."""

    home: Path
    work: Path
    environ: dict[str, str]

    def nexus(self, *arguments: str) -> str:
        """The output of `nexus`."""
        command = [str(Path(sys.executable).with_name("nexus")), *arguments]
        result = subprocess.run(
            command, cwd=self.work, env=self.environ, capture_output=True, text=True, check=False
        )
        return result.stdout + result.stderr

    def run(self, command: Path, *arguments: str) -> None:
        subprocess.run(
            ["nice", str(command), *arguments],
            cwd=self.work,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=2 * LONGEST_S,
            check=False,
        )


def run(program: Program, command: Path) -> list[str]:
    """What went wrong, a sentence each."""
    with _place(program, command) as (place, provider):
        before = {name: (place.home / name).read_bytes() for name in SETTINGS[program.name]}
        place.nexus("setup", program.name, "--yes")
        failures = CHECKS[program.name](place, command, provider)
        written = place.nexus("setup", program.name)
        if "is set up already" not in written:
            failures.append(f"the program changed what setup wrote: {written}")
        place.nexus("setup", program.name, "--undo", "--yes")
        failures += [
            f"{name} is not as it was before"
            for name in before
            if (place.home / name).read_bytes() != before[name]
        ]
        texts = (path for path in place.home.rglob("*") if path.suffix in (".json", ".toml", ".js"))
        failures += [
            f"{path} has something of Nexus left"
            for path in texts
            if "state" not in path.parts and '"nexus"' in path.read_text(errors="replace")
        ]
        return failures


@contextlib.contextmanager
def _place(program: Program, command: Path) -> Iterator[tuple[Place, ProviderStandIn]]:
    directory, runtime = (Path(tempfile.mkdtemp(prefix=prefix)).resolve() for prefix in ("hooks-", "nx-"))
    with ProviderStandIn() as provider:
        for name, text in SETTINGS[program.name].items():
            path = directory / "home" / name
            write_file(path, text)
        work = directory / "work"
        work.mkdir()
        (work / "CLAUDE.md").write_text("Use tabs.\n")
        subprocess.run(["git", "init", "-q", str(work)], check=True)
        environ = {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), search_path())),
            "HOME": str(directory / "home"),
            "NEXUS_STATE": str(directory / "state"),
            "XDG_RUNTIME_DIR": str(runtime),
            **program.environ(provider.address),
        }
        if program.settings is not None:
            name, text = program.settings
            settings = command.parents[2] / "system-settings.json"  # Gemini CLI refuses one below /tmp
            settings.write_text(text)
            environ[name] = str(settings)
        place = Place(directory / "home", work, environ)
        try:
            yield place, provider
        finally:
            place.nexus("stop")
            shutil.rmtree(directory, ignore_errors=True)
            shutil.rmtree(runtime, ignore_errors=True)


def _until(holds: Callable[[], bool]) -> bool:
    """Whether a condition comes to hold."""
    end = time.monotonic() + SETTLED_S
    while not (result := holds()) and time.monotonic() < end:
        time.sleep(0.1)
    return result


def _state(place: Place) -> dict[str, Any]:
    """What the daemon of this place says of itself; empty without one."""
    daemons: list[dict[str, Any]] = json.loads(place.nexus("status", "--json"))["daemons"]
    return daemons[0] if daemons else {}


def _sent(provider: ProviderStandIn) -> str:
    return json.dumps(provider.requests[-1].body)


def _claude_code(place: Place, command: Path, provider: ProviderStandIn) -> list[str]:
    failures = []
    place.run(command, "-p", PROMPT, "--model", CLAUDE_MODEL)
    if not _until(lambda: bool(_state(place))):
        return ["the start of a session starts no daemon"]
    loaded = Path(place.environ["NEXUS_STATE"]) / "loaded.json"
    place.run(command, "-p", "-c", "And the lock?", "--model", CLAUDE_MODEL)
    if not _until(lambda: loaded.exists() and "CLAUDE.md" in loaded.read_text()):
        failures.append("no file that was loaded is known")
    shown = place.nexus("show", "--for", "claude-code", "--layers")
    if "Confirmed by a session of Claude Code" not in shown:
        failures.append(f"the profile is not confirmed: {shown}")
    place.run(command, "-p", "-c", "/compact", "--model", CLAUDE_MODEL)
    place.run(command, "-p", "-c", "And now?", "--model", CLAUDE_MODEL)
    text = _sent(provider)
    if not all(part in text for part in (RECALLED, "Never use spaces for indentation.", "ABC-123")):
        failures.append("the session does not get back what the summary dropped")
    if not _until(lambda: '"messages"' in place.nexus("sessions", "list", "--json")):
        failures.append("the session is not kept in the ledger")
    if _state(place).get("assistants") != []:
        failures.append("a session that has ended still runs")
    return failures


def _codex(place: Place, command: Path, provider: ProviderStandIn) -> list[str]:
    failures = []
    provider_options = {"name": "stand_in", "base_url": f"{provider.address}/v1", "wire_api": "responses"}
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in provider_options.items())
    settings = (
        'model="gpt-5"',
        'model_provider="stand_in"',
        f"model_providers.stand_in={{ {table} }}",
        "analytics.enabled=false",
        "model_auto_compact_token_limit=2000",
    )
    options = ["--skip-git-repo-check", *(word for setting in settings for word in ("-c", setting))]
    place.run(command, "exec", *options, PROMPT)
    if _state(place):
        failures.append("a hook ran that nobody trusts")
    options.append("--dangerously-bypass-hook-trust")
    place.run(command, "exec", *options, f"{PROMPT} I will read a paste of {'x ' * 100}")
    if not _until(lambda: bool(_state(place))):
        return ["the start of a session starts no daemon"]
    place.run(command, "exec", "resume", "--last", *options, "And now?")
    if not _until(lambda: '"messages"' in place.nexus("sessions", "list", "--json")):
        failures.append("the session is not kept in the ledger")
    if _state(place).get("assistants") != []:
        failures.append("a session that has ended still runs")
    return failures


def _runs_and_ends(*prompt: str, is_long: bool) -> Callable[[Place, Path, ProviderStandIn], list[str]]:
    """A check that the daemon is told of a session, and knows that it has ended.

    One that `is_long` runs for longer than it takes to ask the daemon.
    """

    def check(place: Place, command: Path, _: ProviderStandIn) -> list[str]:
        place.run(command, *prompt)
        if not _until(lambda: bool(_state(place))):
            return ["the start of a session starts no daemon"]
        folders: set[str] = set()
        with subprocess.Popen(
            [str(command), *prompt],
            cwd=place.work,
            env=place.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while process.poll() is None:
                folders |= {one["folder"] for one in _state(place).get("assistants", ())}
        if folders != {str(place.work)} and (folders or is_long):
            return [f"while it ran, the folders of sessions were {folders}"]
        is_gone = _until(lambda: _state(place).get("assistants") == [])
        return [] if is_gone else ["a session that has ended still runs"]

    return check


CHECKS: dict[str, Callable[[Place, Path, ProviderStandIn], list[str]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "opencode": _runs_and_ends("run", PROMPT, is_long=True),
    "gemini": _runs_and_ends("-p", PROMPT, "-m", GEMINI_MODEL, is_long=False),
}
