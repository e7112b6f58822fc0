"""Prints the screen of `nexus` alone: views in use, the worst problems, running sessions, and what next."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from nexus_context.assistants.reading.profile_types import Profile
from nexus_context.assistants.tracking.followers import is_live
from nexus_context.assistants.tracking.in_use import FolderView
from nexus_context.errors import Problem, Severity
from nexus_daemon.cli import check, check_assistant, output
from nexus_daemon.cli.folder import load_inputs, read
from nexus_daemon.cli.problem_lines import importance, print_lines
from nexus_daemon.cli.sessions.assistants import describe_session
from nexus_daemon.cli.tables import Column, print_columns

WORST = 3
"""Problems that are shown."""
LEAST_REASON = 20  # characters of a reason that a narrow terminal shows


def print_overview(folder: Path, path: str) -> None:
    """Print the screen of a folder, which the user calls `path`."""
    snapshot = read(folder, load_inputs())
    views, checked = check_assistant.check_in_use(folder, snapshot, counted=True)
    snapshot, _ = check.with_programs(snapshot, checked, alone=False)
    problems = [problem for problem in snapshot.problems if problem.severity <= Severity.WARNING]
    _print_views(views.in_use, {profile.assistant.name: profile for profile in checked.profiles})
    _print_problems(problems, snapshot.layers.texts, checked.minders)
    now = time.time()
    live = [session for session in views.sessions if session.parent is None and is_live(session, now)]
    for session in live:
        output.line(f"Runs now: {describe_session(session)}")
    if views.notice is not None:
        output.line(views.notice)
    output.line(f"Next: {_next_command(path, has_more_problems=len(problems) > WORST, runs=bool(live))}")


def _print_views(views: Sequence[FolderView], profiles: Mapping[str, Profile]) -> None:
    """A row for each view in use: why, what its files cost, and what each request costs with them."""
    files, requests = [], []
    for view in views:
        profile = profiles.get(view.name)
        mark = "" if profile is None or profile.exact else "≈"
        request_tokens = None if profile is None else profile.request_tokens
        files.append("" if profile is None else f"{mark}{profile.total:,}")
        unknown = "" if profile is None else f"{mark}{profile.total:,} + ?"
        requests.append(unknown if request_tokens is None else f"≈{request_tokens:,}")
    print_columns(
        [
            Column("in use here", [view.title for view in views]),
            Column("because", [view.reason for view in views], least=LEAST_REASON),
            Column("tokens of files", files, justify="right"),
            Column("every request", requests, worth=1, justify="right"),
        ]
    )


def _print_problems(
    problems: Sequence[Problem], texts: Mapping[str, str], minders: Mapping[Problem, Sequence[str]]
) -> None:
    """The worst problems, and how many there are."""
    worst = sorted(problems, key=importance)[:WORST]
    print_lines(worst, texts, minders)
    selection_note = "" if len(problems) <= WORST else f", of which these {WORST} are the worst"
    output.line(f"{check.describe_counts(problems)}{selection_note}.")


def _next_command(path: str, *, has_more_problems: bool, runs: bool) -> str:
    """The command that says more."""
    path_argument = "" if path == "." else f" {path}"
    if has_more_problems:
        return f"nexus check{path_argument}"
    return f"nexus watch{path_argument}" if runs else f"nexus show --for all{path_argument}"
