"""Check every configuration file that a folder's assistant and its agents read. For people, scripts and CI.

Exit code 0 without errors, 1 with at least one, 2 for wrong usage. Warnings do not fail unless --strict. The
lines around a problem show the reported value only; other values, and all that may be secret, are covered.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from nexus_context.errors import Problem, RequestError, Severity
from nexus_context.files import exists, is_dir
from nexus_context.frames import format_frame
from nexus_context.layers.instructions import TOOL_DIRECTORIES
from nexus_context.layers.walk import CONFIG_DIRECTORY
from nexus_context.snapshot import Snapshot, load
from nexus_context.visible import visible_line
from nexus_daemon.cli import check_agents, output, reports
from nexus_daemon.cli.process_environment import load_inputs

HELP = "check a folder's configuration; exit 1 with errors"

DOT_DIRECTORIES = (CONFIG_DIRECTORY, ".vscode", *TOOL_DIRECTORIES.values())
SIZE = "prompt.size"
LEVELS = {
    "error": Severity.ERROR,
    "warning": Severity.WARNING,
    "information": Severity.INFORMATION,
    "hint": Severity.HINT,
}


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "path", nargs="?", default=".", help="a folder, or a file of its configuration (default: .)"
    )
    command.add_argument("--format", choices=("text", *reports.FORMATS), default="text", help="default: text")
    command.add_argument(
        "--level", choices=tuple(LEVELS), default="warning", help="least severity shown (default: warning)"
    )
    command.add_argument(
        "--agent", metavar="NAME", help="only what this agent sees; main: the folder itself (default: all)"
    )
    command.add_argument("--strict", action="store_true", help="warnings fail, too")


def run(options: argparse.Namespace) -> int:
    path = absolute(options.path)
    folder = folder_of(path)
    if folder is None:
        return _wrong(f"{options.path} does not exist.")
    try:
        looked = check_agents.look(read(folder), load_inputs(), only=options.agent)
    except RequestError as error:
        return _wrong(str(error))
    snapshot = looked.snapshot
    if not is_dir(str(path)) and not is_read(snapshot, path):
        return _wrong(
            f"{options.path} is not a file that the folder {folder} reads, so nothing was checked. "
            "Name a folder, or one of the files that `nexus show --layers` lists."
        )
    for note in looked.notes:
        output.complain("check", note)
    visible = (problem for problem in snapshot.problems if problem.severity <= LEVELS[options.level])
    shown = sorted(visible, key=_place)
    if options.format == "text":
        output.page(_text(snapshot, shown, looked.readers))
    else:
        report = reports.FORMATS[options.format](snapshot, shown)
        (output.commands if options.format == "github" else output.json_text)(report)
    worst = Severity.WARNING if options.strict else Severity.ERROR
    return 1 if any(problem.severity <= worst for problem in snapshot.problems) else 0


def _wrong(said: str) -> int:
    output.complain("check", said)
    return 2


def absolute(path: str) -> Path:
    """The path from the current directory, without `..`: what stands above it are its ancestors."""
    return Path(os.path.abspath(path))


def folder_of(path: Path) -> Path | None:
    """The folder that a path speaks of: itself, or the one whose configuration file or directory it is.

    What lies deeper in a directory of configuration (`.claude/skills/tests`) is the folder's around it where
    that reads something there, and else a folder of its own: people have whole projects in such directories.
    """
    if not exists(str(path)):
        return None
    folder = path if is_dir(str(path)) else path.parent
    if folder.name in DOT_DIRECTORIES:
        return folder.parent
    around = [above.parent for above in reversed(folder.parents) if above.name in DOT_DIRECTORIES]
    return next((above for above in around if _reads_in(above, folder)), folder)


def _reads_in(folder: Path, directory: Path) -> bool:
    """Whether some file beneath a directory is one of a folder's."""
    found = files_of(read(folder))
    return any(Path(path).is_relative_to(directory) for path in found)


def is_read(snapshot: Snapshot, path: Path) -> bool:
    """Whether a file is one of those that the folder's context is made of, or should be."""
    return str(path) in files_of(snapshot)


def files_of(snapshot: Snapshot) -> set[str]:
    """The files that the folder's context is made of, or should be."""
    layers = snapshot.layers
    paths = {file.path for layer in layers.layers for file in layer.files}
    return paths.union(layers.texts, (problem.path for problem in snapshot.problems))


def read(folder: Path) -> Snapshot:
    """The folder as the daemon would see it, without open editors."""
    return load(str(folder), load_inputs())


def _place(problem: Problem) -> tuple[str, bool, tuple[int, int], str]:
    """By file and place; what hinders reading a file comes before what it says."""
    return problem.path, not problem.code.startswith("json."), problem.span, problem.code


def _text(snapshot: Snapshot, shown: Sequence[Problem], readers: str) -> str:
    parts = [format_frame(problem, snapshot.layers.texts.get(problem.path)) + "\n\n" for problem in shown]
    files = [file for layer in snapshot.layers.layers for file in layer.files if file.status != "missing"]
    layers = [
        layer for layer in snapshot.layers.layers if any(file.status != "missing" for file in layer.files)
    ]
    read = f"{_counted(snapshot)} in {_n(files, 'file')} of {_n(layers, 'layer')}"
    read += f", {readers}.\n" if readers else ".\n"
    return "".join(parts) + read + _measure(snapshot, shown)


def _measure(snapshot: Snapshot, shown: Sequence[Problem]) -> str:
    """What sizes are shares of, where some are told: checks are by the files alone."""
    if not any(problem.code == SIZE for problem in shown):
        return ""
    model = snapshot.effective.get("/provider/model")
    window = (
        f"that of {visible_line(model)}, the model of the settings" if model else "a guess: no model is set"
    )
    return f"The window is {window}. An editor counts for the model that is picked there.\n"


def _counted(snapshot: Snapshot) -> str:
    errors = [problem for problem in snapshot.problems if problem.severity == Severity.ERROR]
    warnings = [problem for problem in snapshot.problems if problem.severity == Severity.WARNING]
    if not errors and not warnings:
        return "No problems"
    return f"{_n(errors, 'error')} and {_n(warnings, 'warning')}"


def _n(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")
