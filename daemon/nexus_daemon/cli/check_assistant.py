"""Checks what other assistants read for `nexus check`: one that is named, or those of a project."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.instruction_files import find_instruction_files
from nexus_context.assistants.views.problems import AssistantCheck, CheckedTexts, gather
from nexus_context.assistants.views.set_up import Project, find_mark, is_set_up, project_of
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.folder.snapshot import Snapshot
from nexus_daemon.cli.assistant_option import ALL
from nexus_daemon.cli.surroundings import surroundings_of

if TYPE_CHECKING:
    from nexus_context.assistants.tracking.in_use import FolderViews

OVER = "assistant.budget"
STOPS = "assistant.stops"


def check_assistant(folder: Path, name: str, *, counted: bool) -> AssistantCheck:
    """Return the problems of what one assistant reads, or every assistant for the name ALL.

    The tokens of files are only known if they are `counted`.
    """
    from nexus_context.assistants.views.profile import read_profile

    surroundings, disk = surroundings_of(folder), Disk()
    names = tuple(PROGRAMS) if name == ALL else (name,)
    around = find_instruction_files(disk, surroundings)
    profiles = [
        read_profile(program_name, surroundings, disk=disk, around=around, counted=counted)
        for program_name in names
    ]
    checked = gather(folder, profiles)
    project = project_at(folder)
    if not any(problem.code == STOPS and not project.contains(problem.path) for problem in checked.problems):
        return checked
    alone = _of_project(folder, names)  # what a file of the user's hides
    problems = dict.fromkeys((*checked.problems, *alone.problems))
    texts = CheckedTexts({**alone.layers.texts, **checked.layers.texts})
    return checked._replace(problems=tuple(problems), layers=texts)


def check_project(folder: Path) -> AssistantCheck:
    """Return the problems of those assistants that the project is set up for.

    Nothing else on the machine counts, and the user trusts the folder.
    """
    return _of_project(folder, tuple(PROGRAMS))


def check_in_use(folder: Path, snapshot: Snapshot, *, counted: bool) -> tuple["FolderViews", AssistantCheck]:
    """Return the views of a folder, and the problems of those assistants that are in use there.

    `snapshot` is that of the folder. The tokens of files are only known if they are `counted`.
    """
    from nexus_context.assistants.tracking import problems_in_use

    disk, given_surroundings = Disk(), surroundings_of(folder)
    surroundings = Surroundings(
        disk.real(given_surroundings.folder), given_surroundings.user_home, given_surroundings.environ
    )
    return problems_in_use.check_in_use(surroundings, disk, snapshot.effective, counted=counted)


def _of_project(folder: Path, names: Sequence[str]) -> AssistantCheck:
    given_surroundings, disk = surroundings_of(folder), Disk()
    surroundings = Surroundings(
        disk.real(given_surroundings.folder), given_surroundings.user_home, {}, trusted=True
    )
    project = project_of(surroundings, disk)
    names = [name for name in names if is_set_up(name, surroundings.folder, disk, project)]
    if not names:
        return gather(folder, ())
    from nexus_context.assistants.views.profile import read_profile

    is_own = find_mark((CONFIG_DIRECTORY,), surroundings.folder, disk, project) is not None
    disk = Disk(within=project.roots)
    profiles = [read_profile(program_name, surroundings, disk=disk, counted=False) for program_name in names]
    return gather(folder, profiles, covers_nexus=is_own)


def project_at(folder: Path) -> Project:
    """Return the project that a folder belongs to."""
    surroundings, disk = surroundings_of(folder), Disk()
    home = surroundings.user_home
    return project_of(Surroundings(disk.real(surroundings.folder), home, surroundings.environ), disk)


class BudgetCheck(NamedTuple):
    """What exceeds a budget of tokens. `figures` are for machines.

    `sentences` and `problems` have one each for every assistant that reads too much.
    """

    figures: dict[str, Any]
    sentences: tuple[str, ...]
    problems: tuple[Problem, ...]


def check_budget(folder: Path, checked: AssistantCheck, budget: int, since: str | None) -> BudgetCheck:
    """Compare what assistants read with a budget, or how much it grew since the revision `since`.

    RevisionError if the revision cannot be read.
    """
    tokens = {profile.assistant.name: profile.total for profile in checked.profiles}
    if since is not None:
        from nexus_context.assistants.views.changes import compare_with_revision

        changes = compare_with_revision(surroundings_of(folder), since, list(tokens))
        tokens = {change.after.assistant.name: change.growth for change in changes.assistants}
    rows, sentences, problems = [], [], []
    for profile in checked.profiles:
        assistant, count = profile.assistant, tokens[profile.assistant.name]
        is_over = count > budget
        rows.append({"name": assistant.name, "tokens": count, "exact": profile.exact, "over": is_over})
        if is_over:
            scope_text = "more in every request" if since is not None else "of files in every request"
            total = f"{'' if profile.exact else '≈'}{count:,} tokens {scope_text}"
            sentences.append(f"{assistant.title} reads {total}: more than the budget of {budget:,}.")
            parts = [part for part in profile.parts if part.path is not None]
            path = max(parts, key=lambda part: part.tokens).path if parts else None
            problems.append(
                Problem(path or checked.folder, Span(0, 0), OVER, Severity.ERROR, message=sentences[-1])
            )
    figures = {"limit": budget, "since": since, "assistants": rows}
    return BudgetCheck(figures, tuple(sentences), tuple(problems))
