"""Write Nexus into the settings of another assistant: its hooks, status line and MCP server.

It shows the changes and asks before it writes them. --undo takes them out again to the byte, whatever you
changed elsewhere in the files meanwhile.
"""

import argparse
import difflib
import os
import shutil
import sys
from collections.abc import Sequence

import msgspec

from nexus_context.assistants.programs import WITH_SETUP
from nexus_context.assistants.setup.plan import PresentFile, SettingsChange, plan_setup, plan_undo
from nexus_context.assistants.setup.setup_types import FileRecord, SettingsError, SetupChoices, SetupPlace
from nexus_context.folder.layers.walk import user_home, within
from nexus_context.text.redact import redact
from nexus_daemon.assistants.settings_writer import (
    SetupRecords,
    missing_directories,
    read_settings,
    write_change,
)
from nexus_daemon.cli import invocation, output

EPILOG = """\
Files, with --scope user and --scope project:

  claude-code  ~/.claude/settings.json, ~/.claude.json         .claude/settings.json, .mcp.json
  codex        ~/.codex/config.toml                            .codex/config.toml
  opencode     ~/.config/opencode/opencode.json, plugins/      opencode.json, .opencode/plugins/
  gemini       ~/.gemini/settings.json                         .gemini/settings.json

Only --scope project writes files that a project shares. What is there already stays: comments, your own
hooks, your status line. Codex runs a hook only after you have reviewed it with /hooks.
"""

ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables with the directory of an active environment, which other shells do not have on their PATH."""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("assistant", choices=tuple(WITH_SETUP), help="the program")
    command.add_argument("--undo", action="store_true", help="take out what setup wrote")
    command.add_argument("--dry-run", action="store_true", help="only show the changes")
    command.add_argument(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="the settings of the user (default), or those that the project in the current directory shares",
    )
    command.add_argument(
        "--memory",
        action="store_true",
        help="add a hook that gives each prompt matching memory and knowledge",
    )
    command.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(options: argparse.Namespace) -> int:
    program = WITH_SETUP[options.assistant]
    if options.memory and program.setup.prompt_event is None:
        output.complain("setup", f"{program.title} has no hook for prompts: --memory has no effect.")
        return 2
    current = invocation.current()
    records = SetupRecords(current.environ)
    try:
        changes = _plan(options, records.read())
    except SettingsError as error:
        output.complain("setup", str(error))
        return 1
    return _apply(options, changes, records)


def _plan(options: argparse.Namespace, records: dict[str, FileRecord]) -> list[SettingsChange]:
    """The changes of all files of the program."""
    current = invocation.current()
    place = SetupPlace(user_home(current.environ), current.cwd, current.environ)
    # undo looks for everything that a setup may have written
    setup = WITH_SETUP[options.assistant].setup
    memory = options.memory or (options.undo and setup.prompt_event is not None)
    choices = SetupChoices(_nexus_command(options), options.scope, memory=memory)
    comment = (
        f"Written by `nexus setup {options.assistant}`; `nexus setup {options.assistant} --undo` removes it."
    )
    changes = []
    for file in setup.list_files(choices, place):
        real, data = read_settings(file.path)
        record = records.get(real)
        present_file = PresentFile(file, real, data, record)
        if options.undo:
            changes.append(plan_undo(present_file))
            continue
        change = plan_setup(present_file, comment=comment)
        if change.record is not None and record is None:
            directories = missing_directories(real)
            change = msgspec.structs.replace(
                change, record=msgspec.structs.replace(change.record, directories=directories)
            )
        changes.append(change)
    return changes


def _apply(options: argparse.Namespace, changes: list[SettingsChange], records: SetupRecords) -> int:
    real_changes = _preview(options, changes)
    if options.dry_run:
        return 0
    if real_changes and not (options.yes or output.is_confirmed("setup", "write")):
        return 1
    try:
        if not options.undo:
            records.put([(change.real, change.record) for change in changes if change.record is not None])
        for change in real_changes:
            write_change(change)
        if options.undo:
            records.put([(change.real, None) for change in changes])
    except SettingsError as error:
        output.complain("setup", str(error))
        return 1
    for change in real_changes:
        output.line(f"{'removed ' if change.after is None else 'wrote   '}  {change.path}")
    if real_changes and not options.undo:
        program = WITH_SETUP[options.assistant]
        output.line(program.setup.advice or f"Sessions of {program.title} that start from now on use it.")
    return 0


def _preview(options: argparse.Namespace, changes: Sequence[SettingsChange]) -> list[SettingsChange]:
    """Print the changes and what they do. Return those that change a file."""
    program = WITH_SETUP[options.assistant]
    for change in changes:
        _show(change)
        for note in change.notes:
            output.complain("setup", note)
    real_changes = [change for change in changes if change.changes_file]
    if not real_changes:
        state = "has nothing of Nexus in its settings" if options.undo else "is set up already"
        output.line(f"{program.title} {state}.")
    elif not options.undo:
        memory = " A hook adds matching memory and knowledge to each prompt." if options.memory else ""
        output.line("")
        output.line(
            f"{program.setup.effect}{memory} The MCP server gives the model the tools of Nexus. Nothing is "
            f"blocked, and nexus setup {options.assistant} --undo takes all of it out again."
        )
    return real_changes


def _show(change: SettingsChange) -> None:
    """Print a change as a unified diff, with secrets around it covered."""
    old_lines, new_lines = (redact(_text(data)).splitlines() for data in (change.before, change.after))
    old_path = change.path if change.before is not None else os.devnull
    new_path = change.path if change.after is not None else os.devnull
    for line in difflib.unified_diff(old_lines, new_lines, old_path, new_path, lineterm=""):
        output.line(line)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace").removeprefix("\ufeff")


def _nexus_command(options: argparse.Namespace) -> tuple[str, ...]:
    """The words that start Nexus: its name if every shell finds it, else its path, or the interpreter's.

    In what a project shares always its name: a path of this machine means nothing to others.
    """
    environ = invocation.current().environ
    path = shutil.which("nexus", path=environ.get("PATH"))
    if options.scope == "project":
        if path is None and not options.undo:
            output.complain(
                "setup", "nexus is not on your PATH. The project's settings call it by name: put it there."
            )
        return ("nexus",)
    active_environments = filter(None, map(environ.get, ENVIRONMENTS))
    if path is not None:
        return (path,) if any(within(path, directory) for directory in active_environments) else ("nexus",)
    script = os.path.join(os.path.dirname(sys.executable), "nexus")
    if os.access(script, os.X_OK):
        return (script,)
    return (sys.executable, "-P", "-m", "nexus_daemon")
