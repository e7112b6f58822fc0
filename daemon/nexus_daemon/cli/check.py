"""Check every configuration file that a folder's assistant and its agents read.

Exit code: 0 without errors, 1 with at least one error, 2 for wrong usage. Warnings fail only with --strict.
The lines around a problem show the reported value; all other values, and possible secrets, are masked.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_context.config.frames import format_frame
from nexus_context.disk.files import is_dir
from nexus_context.errors import Problem, RequestError, Severity
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import assistant_option, check_agents, output
from nexus_daemon.cli.folder import absolute, folder_of, is_read, load_inputs, read

if TYPE_CHECKING:
    from nexus_daemon.cli.reports import Checked

FORMATS = ("text", "json", "sarif", "github")
SIZE = "prompt.size"
LEVELS = {
    "error": Severity.ERROR,
    "warning": Severity.WARNING,
    "information": Severity.INFORMATION,
    "hint": Severity.HINT,
}


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "path", nargs="?", default=".", help="a folder, or one of its configuration files (default: .)"
    )
    command.add_argument("--format", choices=FORMATS, default="text", help="output format (default: text)")
    command.add_argument(
        "--level", choices=tuple(LEVELS), default="warning", help="lowest severity to show (default: warning)"
    )
    command.add_argument(
        "--agent",
        metavar="NAME",
        help="check only what this agent reads; main is the folder itself (default: all agents)",
    )
    assistant_option.add_option(
        command, "check what this assistant reads in the folder, not Nexus (all: each of them)"
    )
    command.add_argument(
        "--budget",
        type=assistant_option.tokens,
        metavar="TOKENS",
        help="with --for: fail if every request has more tokens of files; with --since: if it grew by more",
    )
    command.add_argument("--since", metavar="BASE", help="the git revision that --budget compares with")
    command.add_argument("--strict", action="store_true", help="exit with 1 for warnings, too")


def run(options: argparse.Namespace) -> int:
    path = absolute(options.path)
    folder = folder_of(path)
    if folder is None:
        return _wrong(f"{options.path} does not exist.")
    if options.assistant is not None:
        return _check_assistant(folder, options)
    if options.budget is not None or options.since is not None:
        return _wrong("--budget and --since go with --for: they are about another assistant.")
    try:
        checked = check_agents.check_agents(read(folder), load_inputs(), only=options.agent)
    except RequestError as error:
        return _wrong(str(error))
    snapshot = checked.snapshot
    if not is_dir(str(path)) and not is_read(snapshot, path):
        return _wrong(
            f"Nothing was checked: the folder {folder} does not read {options.path}. "
            "Name a folder, or one of the files that `nexus show --layers` lists."
        )
    for note in checked.notes:
        output.complain("check", note)
    visible = (problem for problem in snapshot.problems if problem.severity <= LEVELS[options.level])
    problems = sorted(visible, key=_place)
    if options.format == "text":
        output.page(_text(snapshot, problems, checked.readers))
    else:
        _print_report(snapshot, problems, options.format)
    return _exit_code(snapshot.problems, options)


def _check_assistant(folder: Path, options: argparse.Namespace) -> int:
    """Print the problems of what another assistant reads."""
    if options.agent is not None:
        return _wrong("--for does not go with --agent, which is about agents of Nexus.")
    if options.since is not None and options.budget is None:
        return _wrong("--since goes with --budget.")
    from nexus_daemon.cli.check_assistant import check_assistant, check_budget

    checked = check_assistant(folder, options.assistant)
    problems = sorted(
        (each for each in checked.problems if each.severity <= LEVELS[options.level]), key=_place
    )
    if options.format == "text":
        frames = [format_frame(each, checked.layers.texts.get(each.path)) + "\n\n" for each in problems]
        counts = (
            f"{_counted(checked.problems)} in {output.counted(checked.files, 'file')} {checked.readers}.\n"
        )
        output.page("".join(frames) + counts)
    else:
        _print_report(checked, problems, options.format)
    over = 0 if options.budget is None else check_budget(folder, checked, options)
    return over or _exit_code(checked.problems, options)


def _print_report(checked: "Checked", problems: Sequence[Problem], form: str) -> None:
    from nexus_daemon.cli import reports  # the shapes of the protocol, which people do not need

    report = reports.FORMATS[form](checked, problems)
    (output.commands if form == "github" else output.json_text)(report)


def _exit_code(problems: Sequence[Problem], options: argparse.Namespace) -> int:
    worst = Severity.WARNING if options.strict else Severity.ERROR
    return 1 if any(problem.severity <= worst for problem in problems) else 0


def _wrong(message: str) -> int:
    output.complain("check", message)
    return 2


def _place(problem: Problem) -> tuple[str, bool, tuple[int, int], str]:
    """By file; JSON errors, which prevent reading the file, come first; then by place."""
    return problem.path, not problem.code.startswith("json."), problem.span, problem.code


def _text(snapshot: Snapshot, problems: Sequence[Problem], readers: str) -> str:
    parts = [format_frame(problem, snapshot.layers.texts.get(problem.path)) + "\n\n" for problem in problems]
    files = [file for layer in snapshot.layers.layers for file in layer.files if file.status != "missing"]
    layers = [
        layer for layer in snapshot.layers.layers if any(file.status != "missing" for file in layer.files)
    ]
    counts = f"{output.counted(len(files), 'file')} of {output.counted(len(layers), 'layer')}"
    counts += f", {readers}.\n" if readers else ".\n"
    return "".join(parts) + f"{_counted(snapshot.problems)} in {counts}" + _window_note(snapshot, problems)


def _window_note(snapshot: Snapshot, problems: Sequence[Problem]) -> str:
    """The window that reported sizes are shares of: the check ignores the model picked in an editor."""
    if not any(problem.code == SIZE for problem in problems):
        return ""
    model = snapshot.effective.get("/provider/model")
    window = (
        f"that of {visible_line(model)}, the model of the settings" if model else "a guess: no model is set"
    )
    return f"The window is {window}. An editor counts for the model that is picked there.\n"


def _counted(problems: Sequence[Problem]) -> str:
    errors = sum(problem.severity == Severity.ERROR for problem in problems)
    warnings = sum(problem.severity == Severity.WARNING for problem in problems)
    if not errors and not warnings:
        return "No problems"
    return f"{output.counted(errors, 'error')} and {output.counted(warnings, 'warning')}"
