"""Check every configuration file that a folder's assistant and its agents read.

So is what other assistants read: those in use here, and without a terminal those that the repository has
files for. Files outside of the repository never fail the check; without a terminal, the result depends on
the repository alone. Of a file that is named, only its problems are reported and count.
Exit code: 0 without errors, 1 with at least one error, 2 for wrong usage. Warnings fail only with --strict.
A terminal gets a line for each problem, with --frames also the lines around it. What may be secret in them is
masked; without a terminal, every value but the reported one.
"""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.assistants.views.problems import AssistantCheck, join_problems
from nexus_context.config.silenced import SETTING, Heard, without_silenced
from nexus_context.disk.files import is_dir
from nexus_context.errors import Problem, RequestError, Severity
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import assistant_option, check_agents, check_assistant, output
from nexus_daemon.cli.folder import (
    absolute,
    current_directory,
    folder_of,
    has_user_files,
    is_read,
    load_inputs,
    read,
    short_path,
    workspace_inputs,
)

if TYPE_CHECKING:
    from nexus_context.assistants.views.set_up import Project
    from nexus_daemon.cli.reports import Checked

FORMATS = ("text", "json", "sarif", "github")
LINES = "lines"
SIZE = "prompt.size"
OF_MACHINE = ("mcp.unset-variable",)
"""Codes of what the machine lacks, beside programs that are not installed."""
LEVELS = {
    "error": Severity.ERROR,
    "warning": Severity.WARNING,
    "information": Severity.INFORMATION,
    "hint": Severity.HINT,
}


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "path", nargs="?", default=".", help="a folder, or one of its configuration files alone (default: .)"
    )
    command.add_argument(
        "--format",
        choices=FORMATS,
        help="output format (default: text; on a terminal a line for each problem)",
    )
    command.add_argument(
        "--frames", action="store_true", help="show the lines around each problem on a terminal, too"
    )
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
    if options.frames and options.format not in (None, "text"):
        return _wrong(f"--frames does not go with --format {options.format}.")
    if options.format is None:
        options.format = "text" if options.frames or not output.is_read_by_person() else LINES
    if folder is None:
        return _wrong(f"{options.path} does not exist.")
    if options.assistant is not None:
        return _check_assistant(folder, path, options)
    if options.budget is not None or options.since is not None:
        return _wrong("--budget and --since go with --for: they are about another assistant.")
    try:
        return _check_folder(folder, path, options)
    except RequestError as error:
        return _wrong(str(error))


def _check_folder(folder: Path, path: Path, options: argparse.Namespace) -> int:
    """Print the problems of what Nexus and other assistants read. RequestError for an unknown agent."""
    alone = options.agent is None and not output.is_read_by_person()
    inputs = load_inputs()
    counted_inputs = workspace_inputs(inputs) if alone else inputs
    checked = check_agents.check_agents(read(folder, counted_inputs), counted_inputs, only=options.agent)
    if alone:
        programs = check_assistant.check_project(folder)
    else:
        _, programs = check_assistant.check_in_use(folder, checked.snapshot, counted=False)
    snapshot, heard = with_programs(checked.snapshot, programs, alone=alone)
    if not is_dir(str(path)) and not is_read(snapshot, path):
        return _wrong(
            f"Nothing was checked: the folder {folder} does not read {options.path}. "
            "Name a folder, or one of the files that `nexus show --for nexus --layers` lists."
        )
    for note in checked.notes:
        output.complain("check", note)
    project = check_assistant.project_at(folder)
    file = None if is_dir(str(path)) else path
    if file is not None:
        snapshot = msgspec.structs.replace(snapshot, problems=_of_file(file, snapshot.problems))
        heard = heard._replace(silenced=_of_file(file, heard.silenced))
    elif alone and has_user_files(inputs):
        _tell_of_user_files(project, read(folder, inputs))
    visible = (problem for problem in snapshot.problems if problem.severity <= LEVELS[options.level])
    problems = sorted(visible, key=_sort_key)
    if options.format in ("text", LINES):
        summary = (
            _summary(snapshot, problems, checked.readers, programs)
            if file is None
            else _summary_of_file(file, folder, snapshot.problems)
        )
        _print_problems(problems, snapshot.layers.texts, programs, options)
        output.page(summary + _note_of_silenced(heard.silenced, options))
    else:
        _print_report(snapshot, problems, options.format)
    return _exit_code(snapshot.problems, project, options)


def with_programs(snapshot: Snapshot, programs: AssistantCheck, *, alone: bool) -> tuple[Snapshot, Heard]:
    """Return the snapshot with the problems of other assistants, and without those that are silenced.

    With `alone`, problems that depend on this machine are left out, too.
    """
    problems = [problem for problem in snapshot.problems if not (alone and problem.code in OF_MACHINE)]
    texts = {**programs.layers.texts, **snapshot.layers.texts}
    heard = join_problems(problems, programs, texts, snapshot.effective.get(SETTING) or ())
    layers = msgspec.structs.replace(snapshot.layers, texts=texts)
    return msgspec.structs.replace(snapshot, problems=heard.problems, layers=layers), heard


def _tell_of_user_files(project: "Project", snapshot: Snapshot) -> None:
    """Mention the problems of the user's own files, which are not the repository's."""
    user_problems = [
        problem
        for problem in snapshot.problems
        if problem.severity <= Severity.WARNING and not project.contains(problem.path)
    ]
    if user_problems:
        other_file_count = len({problem.path for problem in user_problems}) - 1
        paths_text = user_problems[0].path + (
            f" and {output.counted(other_file_count, 'other file')}" if other_file_count else ""
        )
        text = f"{describe_counts(user_problems)} in {paths_text} of yours do not count here."
        output.complain("check", f"{text} On a terminal, nexus check shows them.")


def _of_file(file: Path, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The problems of a file, by whatever link it is named."""
    real = os.path.realpath(file)
    return tuple(problem for problem in problems if os.path.realpath(problem.path) == real)


def _summary_of_file(file: Path, folder: Path, problems: Sequence[Problem]) -> str:
    current = current_directory()
    counts = f"{describe_counts(problems)} in {short_path(str(file), current)} alone."
    path_argument = "" if str(folder) == current else f" {shlex.quote(str(folder))}"
    return f"{counts} The whole folder: nexus check{path_argument}\n"


def _check_assistant(folder: Path, path: Path, options: argparse.Namespace) -> int:
    """Print the problems of what another assistant reads."""
    if options.agent is not None:
        return _wrong("--for does not go with --agent, which is about agents of Nexus.")
    if options.since is not None and options.budget is None:
        return _wrong("--since goes with --budget.")
    if options.budget is not None and not is_dir(str(path)):
        return _wrong("--budget goes with a folder: it is about all files of a request.")
    checked = check_assistant.check_assistant(folder, options.assistant, counted=options.budget is not None)
    inputs = load_inputs()
    settings = read(folder, inputs if output.is_read_by_person() else workspace_inputs(inputs)).effective
    heard = without_silenced(
        checked.problems, checked.layers.texts, settings.get(SETTING) or (), checked.folder
    )
    checked = checked._replace(problems=heard.problems)
    file = None if is_dir(str(path)) else path
    if file is not None:
        own_problems = _of_file(file, checked.problems)
        if not own_problems and os.path.realpath(file) not in checked.layers.texts:
            return _wrong(
                f"Nothing was checked: {checked.readers.removeprefix('read by ')} does not read {file}."
            )
        checked = checked._replace(problems=own_problems)
        heard = heard._replace(silenced=_of_file(file, heard.silenced))
    project = check_assistant.project_at(folder)
    budget = None
    if options.budget is not None:
        from nexus_context.assistants.views.changes import RevisionError

        try:
            budget = check_assistant.check_budget(folder, checked, options.budget, options.since)
        except RevisionError as error:
            return _wrong(str(error))
    problems = sorted(
        (problem for problem in checked.problems if problem.severity <= LEVELS[options.level]), key=_sort_key
    )
    if options.format in ("text", LINES):
        _print_problems(problems, checked.layers.texts, checked, options)
        scope_text = f"{output.counted(checked.files, 'file')} {checked.readers}"
        counts = f"{describe_counts(checked.problems, problems)} in {scope_text}.\n"
        if file is not None:
            counts = _summary_of_file(file, folder, checked.problems)
        notes = _note_of_user_files(checked.problems, project) + _note_of_silenced(heard.silenced, options)
        output.page(counts + notes)
        for sentence in () if budget is None else budget.sentences:
            output.complain("check", sentence)
    elif budget is None:
        _print_report(checked, _reported(problems, project, options), options.format)
    else:
        problems = _reported(problems, project, options)
        _print_report(checked, [*problems, *budget.problems], options.format, budget=budget.figures)
    over = 1 if budget is not None and budget.problems else 0
    return over or _exit_code(checked.problems, project, options)


def _note_of_silenced(problems: Sequence[Problem], options: argparse.Namespace) -> str:
    count = sum(problem.severity <= LEVELS[options.level] for problem in problems)
    return f"{output.counted(count, 'problem')} silenced by `check.ignore` or a comment.\n" if count else ""


def _reported(problems: list[Problem], project: "Project", options: argparse.Namespace) -> list[Problem]:
    """Select the problems to report. Formats for a repository's page leave out the user's own files."""
    is_public = options.format in ("github", "sarif")
    return [problem for problem in problems if not is_public or project.contains(problem.path)]


def _note_of_user_files(problems: Sequence[Problem], project: "Project") -> str:
    user_problems = [
        problem
        for problem in problems
        if not project.contains(problem.path) and problem.severity <= Severity.WARNING
    ]
    return (
        f"{describe_counts(user_problems)} of them in files of yours, which do not count for the exit code.\n"
        if user_problems
        else ""
    )


def _print_report(checked: "Checked", problems: Sequence[Problem], form: str, **more: Any) -> None:
    from nexus_daemon.cli import reports  # the shapes of the protocol, which people do not need

    if form == "json":
        output.json_text(reports.as_json(checked, problems, **more))
    else:
        (output.commands if form == "github" else output.json_text)(reports.FORMATS[form](checked, problems))


def _exit_code(problems: Sequence[Problem], project: "Project", options: argparse.Namespace) -> int:
    """Problems of the user's own files never fail the check of a project."""
    worst = Severity.WARNING if options.strict else Severity.ERROR
    return (
        1 if any(problem.severity <= worst and project.contains(problem.path) for problem in problems) else 0
    )


def _wrong(message: str) -> int:
    output.complain("check", message)
    return 2


def _sort_key(problem: Problem) -> tuple[str, bool, tuple[int, int], str]:
    """By file; JSON errors, which prevent reading the file, come first; then by place."""
    return problem.path, not problem.code.startswith("json."), problem.span, problem.code


def _print_problems(
    problems: Sequence[Problem],
    texts: Mapping[str, str],
    programs: AssistantCheck,
    options: argparse.Namespace,
) -> None:
    """Print each problem as a line or a frame, and which to solve first."""
    if not problems:
        return
    from nexus_daemon.cli import problem_lines  # nothing wrong is shown without it

    if options.format == LINES:
        problem_lines.print_lines(problems, texts, programs.minders)
        output.page(problem_lines.first_step(problems))
    else:
        problem_lines.print_frames(problems, texts, programs.minders)


def _summary(snapshot: Snapshot, problems: Sequence[Problem], readers: str, programs: AssistantCheck) -> str:
    files = [file for layer in snapshot.layers.layers for file in layer.files if file.status != "missing"]
    layers = [
        layer for layer in snapshot.layers.layers if any(file.status != "missing" for file in layer.files)
    ]
    counts = f"{output.counted(len(files), 'file')} of {output.counted(len(layers), 'layer')}"
    counts += f", {readers}" if readers else ""
    if programs.profiles:
        titles = [profile.assistant.title for profile in programs.profiles]
        last_title = f" and {titles[-1]}" if titles[1:] else titles[-1]
        programs_text = f"what is read by {', '.join(titles[:-1])}{last_title}"
        counts = f"{counts}, and in {programs_text}" if programs.covers_nexus else programs_text
    described_counts = describe_counts(snapshot.problems, problems)
    return f"{described_counts} in {counts}.\n{_window_note(snapshot, problems)}"


def _window_note(snapshot: Snapshot, problems: Sequence[Problem]) -> str:
    """The window that reported sizes are shares of: the check ignores the model picked in an editor."""
    if not any(problem.code == SIZE for problem in problems):
        return ""
    model = snapshot.effective.get("/provider/model")
    window = (
        f"that of {visible_line(model)}, the model of the settings" if model else "a guess: no model is set"
    )
    return f"The window is {window}. An editor counts for the model that is picked there.\n"


def describe_counts(problems: Sequence[Problem], shown: Sequence[Problem] = ()) -> str:
    """Say how many errors and warnings there are, and how many of the `shown` problems are less than that."""
    remarks = sum(problem.severity > Severity.WARNING for problem in shown)
    errors = sum(problem.severity == Severity.ERROR for problem in problems)
    warnings = sum(problem.severity == Severity.WARNING for problem in problems)
    if not errors and not warnings and not remarks:
        return "No problems"
    counts = [output.counted(errors, "error"), output.counted(warnings, "warning")]
    counts += [output.counted(remarks, "remark")] if remarks else []
    return f"{', '.join(counts[:-1])} and {counts[-1]}"
