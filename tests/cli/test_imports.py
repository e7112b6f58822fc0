"""What commands import before they do their work: most of the time that start-up takes."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from nexus_daemon.cli import check, reports
from nexus_daemon.cli.commands import COMMANDS
from nexus_daemon.process.version import __version__
from support.client import Client
from support.json_lines import json_lines
from support.shared import shared_home

CLI = Path(check.__file__).parent

CHECK = """
msgspec nexus_context nexus_context.assistants
nexus_context.config nexus_context.disk nexus_context.errors
nexus_context.folder nexus_context.text nexus_context.tokens nexus_daemon nexus_daemon.agents
nexus_daemon.agents.previews nexus_daemon.cli nexus_daemon.cli.assistant_option nexus_daemon.cli.check
nexus_daemon.cli.check_agents nexus_daemon.cli.check_assistant nexus_daemon.cli.commands
nexus_daemon.cli.folder nexus_daemon.cli.guard nexus_daemon.cli.invocation nexus_daemon.cli.output
nexus_daemon.cli.parser nexus_daemon.cli.surroundings nexus_daemon.process nexus_daemon.process.lazy
nexus_daemon.process.lean_imports
nexus_daemon.process.version nexus_daemon.workspace nexus_daemon.workspace.agent_documents
nexus_daemon.workspace.inputs
"""

SERVE = """
msgspec nexus_context nexus_context.errors nexus_context.text nexus_daemon nexus_daemon.api
nexus_daemon.cli nexus_daemon.cli.guard nexus_daemon.cli.invocation nexus_daemon.cli.output
nexus_daemon.cli.serve nexus_daemon.lsp nexus_daemon.process nexus_daemon.process.lazy
nexus_daemon.process.lean_imports nexus_daemon.process.version nexus_daemon.protocol
"""

SLOW = {"asyncio", "concurrent", "inspect", "json", "logging", "pathlib", "socket", "ssl", "subprocess"}
"""Modules of Python that take milliseconds."""

QUICK = {"argparse", "collections", "contextlib", "datetime", "enum", "functools", "re", "typing"}
"""Others that take a millisecond each: a command that only exchanges a few messages needs none of them."""

PROGRAM = """
import sys
before = set(sys.modules)
from nexus_daemon import cli
def print_modules():
    print("modules:", *set(sys.modules) - before, file=sys.stderr)
"""
COMMAND = """
try:
    cli.main({arguments!r})
finally:
    print_modules()
"""
UNTIL_REPLY = """
import os
write = os.write
def print_first(descriptor, data):
    if b'"capabilities"' in data:
        print_modules()
    return write(descriptor, data)
os.write = print_first
cli.main(["serve"])
"""


BY_MODULE = ("cli", "agents", "workspace", "features", "process", "shared")
"""Rooms whose modules are listed one by one."""


def check_modules(stderr: str, expected: str, slow: str = "") -> None:
    """The modules of others and of Nexus, by package, and those of Python that are slow."""
    names = next(line for line in stderr.splitlines() if line.startswith("modules: ")).split()[1:]
    others = {_package(name) for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
    assert (others, SLOW.intersection(names)) == (set(expected.split()), set(slow.split()))


def _package(name: str) -> str:
    """The distribution of a module; of Nexus its package, and the module of packages that import lazily."""
    parts = name.split(".")
    if not parts[0].startswith("nexus_"):
        return parts[0]
    return ".".join(parts[: 3 if parts[1:2] in ([room] for room in BY_MODULE) else 2])


def run(*arguments: str) -> str:
    source = PROGRAM + COMMAND.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def imported(
    *arguments: str, stdin: str = "", environ: Mapping[str, str] | None = None
) -> tuple[str, set[str]]:
    """What a command prints, and what its process imports, with what every interpreter does."""
    source = "import sys; from nexus_daemon.__main__ import main; sys.exit(main())"  # as the command `nexus`
    command = [sys.executable, "-P", "-X", "importtime", "-c", source, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, env=environ)
    return done.stdout, {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def of_nexus(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith("nexus_")} - {"nexus_daemon.__main__"}


def test_the_version() -> None:
    printed, names = imported("--version")
    assert printed == f"nexus {__version__}\n"
    assert of_nexus(names) == {"nexus_daemon", "nexus_daemon.process", "nexus_daemon.process.version"}
    assert not names & (SLOW | QUICK)


def test_a_command_that_the_shared_daemon_runs(tmp_path: Path) -> None:
    (tmp_path / "NEXUS.md").write_text("Be brief.\n")
    with shared_home(tmp_path / "home") as home:
        start = [sys.executable, "-P", "-m", "nexus_daemon", "serve", "--shared"]
        subprocess.run(start, env=home.environ, check=True)  # ends once the daemon listens
        printed, names = imported("check", str(tmp_path), environ=home.environ)
    assert printed.startswith("No problems in ")
    shared = ("client", "command_client", "hello", "identity")
    assert of_nexus(names) == {
        *("nexus_daemon", "nexus_daemon.cli", "nexus_daemon.cli.commands"),
        *("nexus_daemon.process", "nexus_daemon.process.version"),
        *("nexus_daemon.shared", *(f"nexus_daemon.shared.{name}" for name in shared)),
    }
    assert not names & (SLOW | QUICK)


def test_the_status_line_of_claude_code() -> None:
    _, names = imported("statusline", stdin="{}")
    assert of_nexus(names) == {"nexus_daemon", "nexus_daemon.cli", "nexus_daemon.cli.statusline"}
    assert not names & (SLOW - {"json"} | {"msgspec", "argparse", "typing"})


def test_the_mcp_server_until_its_list_of_tools() -> None:
    methods = ({"id": 1, "method": "initialize"}, {"id": 2, "method": "tools/list"})
    printed, names = imported("mcp", stdin=json_lines(methods))
    assert len(printed.splitlines()) == 2
    assert of_nexus(names) == {
        *(
            "nexus_context",
            "nexus_daemon",
            "nexus_daemon.cli",
            "nexus_daemon.cli.mcp",
            "nexus_daemon.process",
            "nexus_daemon.process.version",
            "nexus_daemon.shared",
        ),
        *(
            "nexus_daemon.shared.mcp_server",
            "nexus_daemon.shared.mcp_server.call_runner",
            "nexus_daemon.shared.mcp_server.clients",
        ),
        *("nexus_daemon.shared.mcp_server.definitions", "nexus_daemon.shared.mcp_server.line_reader"),
        *("nexus_daemon.shared.mcp_server.process", "nexus_daemon.shared.mcp_server.stdio_server"),
        "nexus_daemon.shared.mcp_server.workspace_folders",
    }
    assert not names & (SLOW - {"json"} | {"msgspec", "argparse", "typing", "traceback"})


def test_a_check_of_agents_builds_no_request(tmp_path: Path) -> None:
    (tmp_path / ".nexus3").mkdir()
    (tmp_path / ".nexus3/config.json").write_text('{"agents": {"helper": {"task": "Help."}}}')
    names = run("check", str(tmp_path)).split()
    assert "nexus_context.agents.agent" in names
    assert "nexus_context.turn" not in names


def test_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_HOME", str(tmp_path / "home"))
    (tmp_path / "NEXUS.md").write_text("Be brief.\n")
    check_modules(run("check", str(tmp_path)), CHECK, slow="json pathlib")


def test_the_server_until_its_reply_to_initialize() -> None:
    with Client([sys.executable, "-c", PROGRAM + UNTIL_REPLY]) as client:
        client.initialize()
        client.stop()
    check_modules(client.stderr, SERVE)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_of_a_command_need_no_other_command(name: str) -> None:
    source = f"{PROGRAM}from nexus_daemon.cli.parser import parser\n"
    source += f"parser().parse_known_args(['--init-global', {name!r}, '--help'])"
    source = source.replace("parser()", "import atexit; atexit.register(print_modules); parser()")
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    imported = {word.split(".")[2] for word in done.stderr.split() if word.startswith("nexus_daemon.cli.")}
    assert imported & COMMANDS.keys() == {name}


def test_every_module_of_a_command_is_listed() -> None:
    modules = {
        path.parent.name if path.name == "__init__.py" else path.stem: path.read_text(encoding="utf-8")
        for path in (*CLI.glob("*.py"), *CLI.glob("*/__init__.py"))
    }
    commands = [name for name, text in modules.items() if "\ndef arguments(" in text and "\ndef run(" in text]
    assert sorted(commands) == sorted(COMMANDS)


def test_the_formats_of_a_check_are_those_of_its_reports() -> None:
    assert ("text", *reports.FORMATS) == check.FORMATS


def test_what_msgspec_and_asyncio_do_without_is_there_for_others() -> None:
    source = """
from nexus_daemon.process.lean_imports import WITHOUT, import_lean
import sys
for package, absent in WITHOUT.items():
    import_lean(package)
    assert package in sys.modules and absent not in sys.modules, package
    __import__(absent)
    import_lean(package)
    assert sys.modules[absent] is not None
"""
    subprocess.run([sys.executable, "-c", source], check=True)
