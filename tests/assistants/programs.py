"""Installs the real assistants from npm at pinned versions, and runs one turn of each in a folder.

1. They are installed into a cache outside of the checkout, once a version. They are the users' programs,
   under
   their own licences: tests install them, the product does not ship them.
2. A program runs with the environment of its case only: a home of its own, the stand-in as its provider, no
   telemetry, no updates.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

LONGEST_S = 60.0
QUESTION = "Where is the gate?"
CLAUDE_MODEL = "claude-sonnet-5"
CODEX_MODEL = "gpt-5"
GEMINI_MODEL = "gemini-2.5-pro"
GEMINI_SETTINGS = """{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"disableAutoUpdate": true},
  "privacy": {"usageStatisticsEnabled": false}
}"""

CLAUDE_STATE = """{
  "hasCompletedOnboarding": true,
  "customApiKeyResponses": {"approved": ["test"], "rejected": []},
  "projects": {"{folder}": {"hasTrustDialogAccepted": true}}
}"""


class MissingToolError(Exception):
    """What installing needs is missing; the message says what to do."""


class TerminalRun(NamedTuple):
    """How a program starts at a terminal: its arguments, and the files of the home that answer its questions.

    `{folder}` in a file is the folder that the program starts in.
    """

    arguments: Callable[[str], tuple[str, ...]]
    files: Mapping[str, str] = {}


class Program(NamedTuple):
    """An assistant: its package and version in npm, its command.

    `arguments` and `environ` make what a run needs from the address of the provider. `settings` are a
    variable and the text of the file that it names. `terminal` is the run at a terminal.
    """

    name: str
    package: str
    version: str
    command: str
    arguments: Callable[[str], tuple[str, ...]]
    environ: Callable[[str], dict[str, str]]
    terminal: TerminalRun
    settings: tuple[str, str] | None = None


class Run(NamedTuple):
    """The end of a program: its exit code and what it printed."""

    code: int
    output: str


def _claude_environ(address: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "test",
        "ANTHROPIC_MODEL": CLAUDE_MODEL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


def _codex_arguments(address: str) -> tuple[str, ...]:
    provider = {"name": "stand_in", "base_url": f"{address}/v1", "wire_api": "responses"}
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in provider.items())
    settings = (
        f'model="{CODEX_MODEL}"',
        'model_provider="stand_in"',
        f"model_providers.stand_in={{ {table} }}",
        "analytics.enabled=false",
    )
    options = [word for setting in settings for word in ("-c", setting)]
    return (*options, QUESTION)


def _opencode_environ(address: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stand_in",
        "options": {"baseURL": f"{address}/v1", "apiKey": "test"},
        "models": {"m1": {"name": "m1", "limit": {"context": 128_000, "output": 4_096}}},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "stand_in/m1",
        "small_model": "stand_in/m1",
        "provider": {"stand_in": provider},
    }
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _gemini_environ(address: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "test",
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_TELEMETRY_ENABLED": "false",
    }


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "claude-code",
            "@anthropic-ai/claude-code",
            "2.1.330",
            "claude",
            lambda _: ("-p", QUESTION),
            _claude_environ,
            TerminalRun(lambda _: (QUESTION,), {".claude.json": CLAUDE_STATE}),
        ),
        Program(
            "codex",
            "@openai/codex",
            "0.169.0",
            "codex",
            lambda address: ("exec", "--skip-git-repo-check", *_codex_arguments(address)),
            lambda _: {},
            TerminalRun(
                _codex_arguments,
                {".codex/config.toml": '[projects."{folder}"]\ntrust_level = "trusted"\n'},
            ),
        ),
        Program(
            "opencode",
            "opencode-ai",
            "1.18.33",
            "opencode",
            lambda _: ("run", QUESTION),
            _opencode_environ,
            TerminalRun(lambda _: ("--prompt", QUESTION)),
        ),
        Program(
            "gemini",
            "@google/gemini-cli",
            "0.61.0",
            "gemini",
            lambda _: ("-p", QUESTION, "-m", GEMINI_MODEL),
            _gemini_environ,
            TerminalRun(lambda _: ("-i", QUESTION, "-m", GEMINI_MODEL)),
            ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", GEMINI_SETTINGS),
        ),
    )
}


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the programs are installed."""
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "nexus-assistants"


def install(program: Program, *, cache: Path | None = None, search: str | None = None) -> Path:
    """The path of the program's command, installed if it is not yet; MissingToolError if it cannot be."""
    target = (cache or cache_directory()) / f"{program.command}-{program.version}"
    command = target / "node_modules" / ".bin" / program.command
    if command.exists():
        return command
    npm = shutil.which("npm", path=search)
    if npm is None:
        raise MissingToolError(
            f"{program.name} {program.version} is not installed, and npm is missing. Install Node.js 20 or "
            "later with npm, then run this again."
        )
    target.mkdir(parents=True, exist_ok=True)
    (target / "package.json").write_text("{}\n")
    specification = f"{program.package}@{program.version}"
    result = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", specification],
        cwd=target,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode or not command.exists():
        shutil.rmtree(target, ignore_errors=True)
        raise MissingToolError(f"npm could not install {specification}:\n{result.stderr.strip()}")
    return command


def run(
    program: Program,
    command: Path,
    directory: Path,
    *,
    home: Path,
    address: str,
    environ: Mapping[str, str],
) -> Run:
    """Run one turn of a program in a directory, at low priority."""
    variables = {**environment(program, command, home=home, address=address), **environ}
    process = subprocess.Popen(
        [str(command), *program.arguments(address)],
        cwd=directory,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: os.nice(15),
    )
    try:
        output, _ = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return Run(process.returncode, output.decode(errors="replace"))


def environment(program: Program, command: Path, *, home: Path, address: str) -> dict[str, str]:
    """The environment of a run; the file that a variable of it names is written."""
    variables = {"PATH": search_path(), "HOME": str(home), **program.environ(address)}
    if program.settings is not None:
        settings = command.parents[2] / "system-settings.json"  # Gemini CLI refuses one below /tmp
        settings.write_text(program.settings[1])
        variables[program.settings[0]] = str(settings)
    return variables


def search_path() -> str:
    """Where the programs find Node.js and git."""
    return os.environ.get("PATH", os.defpath)
