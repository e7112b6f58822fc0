"""The screen of `nexus` alone: the views in use, the worst problems, the sessions that run, and what next."""

import time
from collections.abc import Sequence
from pathlib import Path

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import Profile, Surroundings
from nexus_context.assistants.tracking.find import find_sessions
from nexus_context.assistants.tracking.followers import is_live
from nexus_context.assistants.tracking.in_use import NEXUS, FolderView, find_views
from nexus_context.assistants.views.instruction_files import find_instruction_files
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Problem, Severity
from nexus_daemon.cli import check, check_assistant, output
from nexus_daemon.cli.folder import load_inputs, read
from nexus_daemon.cli.problem_lines import importance, print_lines
from nexus_daemon.cli.sessions.assistants import describe_session
from nexus_daemon.cli.surroundings import surroundings_of
from nexus_daemon.cli.tables import Column, print_columns

WORST = 3
"""Problems that are shown."""
LEAST_REASON = 20  # characters of a reason that a narrow terminal shows


def print_overview(folder: Path, path: str) -> None:
    """Print the screen of a folder, which the user calls `path`."""
    disk, where = Disk(), surroundings_of(folder)
    surroundings = Surroundings(disk.real(where.folder), where.user_home, where.environ)
    now = time.time()
    sessions = find_sessions(where.user_home, where.environ, surroundings.folder).sessions
    views = [view for view in find_views(surroundings, disk, sessions, now) if view.in_use]
    around = find_instruction_files(disk, surroundings)
    profiles = {
        view.name: read_profile(view.name, surroundings, disk=disk, around=around)
        for view in views
        if view.name != NEXUS
    }
    checked = check_assistant.gather(folder, list(profiles.values()), covers_nexus=NEXUS in _names(views))
    snapshot, _ = check.with_programs(read(folder, load_inputs()), checked, alone=False)
    problems = [each for each in snapshot.problems if each.severity <= Severity.WARNING]
    _print_views(views, profiles)
    _print_problems(problems, checked, check_texts=snapshot.layers.texts)
    live = [session for session in sessions if session.parent is None and is_live(session, now)]
    for session in live:
        output.line(f"Runs now: {describe_session(session)}")
    output.line(f"Next: {_next_command(path, has_problems=bool(problems), runs=bool(live))}")


def _names(views: Sequence[FolderView]) -> list[str]:
    return [view.name for view in views]


def _print_views(views: Sequence[FolderView], profiles: dict[str, Profile]) -> None:
    """A row for each view in use: why, what its files cost, and what each request costs with them."""
    files, requests = [], []
    for view in views:
        profile = profiles.get(view.name)
        mark = "" if profile is None or profile.exact else "≈"
        whole = None if profile is None else profile.request_tokens
        files.append("" if profile is None else f"{mark}{profile.total:,}")
        requests.append("" if profile is None else "?" if whole is None else f"≈{whole:,}")
    print_columns(
        [
            Column("in use here", [view.title for view in views]),
            Column("because", [view.reason for view in views], least=LEAST_REASON),
            Column("tokens of files", files, justify="right"),
            Column("every request", requests, worth=1, justify="right"),
        ]
    )


def _print_problems(
    problems: Sequence[Problem], checked: check_assistant.AssistantCheck, *, check_texts: dict[str, str]
) -> None:
    """The worst problems, and how many there are."""
    worst = sorted(problems, key=importance)[:WORST]
    print_lines(worst, check_texts, checked.minders, folder=checked.folder)
    more = "" if len(problems) <= WORST else f", of which these {WORST} are the worst"
    output.line(f"{check.count_text(problems)}{more}.")


def _next_command(path: str, *, has_problems: bool, runs: bool) -> str:
    """The command that says more."""
    where = "" if path == "." else f" {path}"
    if has_problems:
        return f"nexus check{where}"
    return f"nexus watch{where}" if runs else f"nexus show --for all{where}"
