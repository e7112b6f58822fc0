"""`nexus check` of what other assistants read: one that is named, or those that a project is set up for."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import Assistant, Profile, Surroundings
from nexus_context.assistants.views.instruction_files import find_instruction_files
from nexus_context.assistants.views.set_up import Project, find_mark, is_set_up, project_of
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.folder.snapshot import Snapshot
from nexus_daemon.cli.assistant_option import ALL
from nexus_daemon.cli.surroundings import surroundings_of

if TYPE_CHECKING:
    from nexus_context.assistants.tracking.in_use import FolderViews

MCP_FILES = (".mcp.json", os.path.join(".vscode", "mcp.json"))
"""Files of other programs that Nexus reads, too."""
SAFETY = ("mcp.secret", "mcp.unpinned", "mcp.plain-http")
"""What Nexus finds in them that their program does not say."""
UNSEEN = ("prompt.hidden-markup", "prompt.hidden-text", "prompt.secret")
"""What nobody sees in an instruction file, or must not send."""
_PUNCTUATION = ".,;:!?)'\""  # which a program may take for a part of the path


OVER = "assistant.budget"
STOPS = "assistant.stops"


class CheckedTexts(NamedTuple):
    """Texts by path, as a report needs them."""

    texts: Mapping[str, str] = MappingProxyType({})


class AssistantCheck(NamedTuple):
    """Problems, and what a report needs of the folder: as of a snapshot.

    `minders` are the programs that mind each. With `covers_nexus` what Nexus itself reads counts, too.
    """

    folder: str
    layers: CheckedTexts
    problems: tuple[Problem, ...]
    files: int
    readers: str
    profiles: tuple[Profile, ...]
    minders: Mapping[Problem, Sequence[str]]
    covers_nexus: bool = True


def check_assistant(folder: Path, name: str, *, counted: bool) -> AssistantCheck:
    """The problems of what an assistant, or each of them, reads; the tokens only if they are `counted`."""
    from nexus_context.assistants.views.profile import read_profile

    surroundings, disk = surroundings_of(folder), Disk()
    names = tuple(PROGRAMS) if name == ALL else (name,)
    around = find_instruction_files(disk, surroundings)
    profiles = [read_profile(each, surroundings, disk=disk, around=around, counted=counted) for each in names]
    checked = gather(folder, profiles)
    project = project_at(folder)
    if not any(each.code == STOPS and not project.contains(each.path) for each in checked.problems):
        return checked
    alone = _of_project(folder, names)  # what a file of the user's hides
    problems = dict.fromkeys((*checked.problems, *alone.problems))
    texts = CheckedTexts({**alone.layers.texts, **checked.layers.texts})
    return checked._replace(problems=tuple(problems), layers=texts)


def check_project(folder: Path) -> AssistantCheck:
    """The problems of those assistants that the project is set up for.

    Nothing else on the machine counts, and the user trusts the folder.
    """
    return _of_project(folder, tuple(PROGRAMS))


def check_in_use(folder: Path, snapshot: Snapshot, *, counted: bool) -> tuple["FolderViews", AssistantCheck]:
    """The views of a folder, and the problems of those assistants that are in use there.

    `snapshot` is that of the folder; the tokens of files are `counted` or not.
    """
    from nexus_context.assistants.tracking.in_use import NEXUS, VIEW_SETTING, read_views
    from nexus_context.assistants.views.profile import read_profile

    disk, where = Disk(), surroundings_of(folder)
    surroundings = Surroundings(disk.real(where.folder), where.user_home, where.environ)
    found = read_views(surroundings, disk, snapshot.effective.get(VIEW_SETTING))
    names = [view.name for view in found.in_use]
    around = find_instruction_files(disk, surroundings)
    profiles = [
        read_profile(name, surroundings, disk=disk, around=around, counted=counted)
        for name in names
        if name != NEXUS
    ]
    return found, gather(folder, profiles, covers_nexus=NEXUS in names)


def _of_project(folder: Path, names: Sequence[str]) -> AssistantCheck:
    where, disk = surroundings_of(folder), Disk()
    surroundings = Surroundings(disk.real(where.folder), where.user_home, {}, trusted=True)
    names = [name for name in names if is_set_up(name, surroundings, disk)]
    if not names:
        return gather(folder, ())
    from nexus_context.assistants.views.profile import read_profile

    is_own = find_mark((CONFIG_DIRECTORY,), surroundings, disk) is not None
    disk = Disk(within=project_of(surroundings, disk).roots)
    profiles = [read_profile(each, surroundings, disk=disk, counted=False) for each in names]
    return gather(folder, profiles, covers_nexus=is_own)


def project_at(folder: Path) -> Project:
    """The project that a folder belongs to."""
    surroundings, disk = surroundings_of(folder), Disk()
    home = surroundings.user_home
    return project_of(Surroundings(disk.real(surroundings.folder), home, surroundings.environ), disk)


def counts_without_nexus(problem: Problem) -> bool:
    """Whether what Nexus finds in a file matters where nobody uses Nexus."""
    is_own_file = CONFIG_DIRECTORY in problem.path.split(os.sep)
    return is_own_file or problem.code in (*SAFETY, *UNSEEN)


def without_doubles(problems: Iterable[Problem], checked: AssistantCheck) -> list[Problem]:
    """The problems that Nexus finds beside those of other programs, which judge their own files.

    An import that leads nowhere is reported once for each word, as the program does that reads the file.
    """
    places = {(problem.path, problem.span.start) for problem in checked.problems}
    files = {os.path.join(checked.folder, name) for name in MCP_FILES}

    def word(problem: Problem) -> tuple[str, str]:
        text = checked.layers.texts.get(problem.path, "")
        return problem.path, text[problem.span.start : problem.span.end].rstrip(_PUNCTUATION)

    imports = {word(problem) for problem in checked.problems if problem.code == "assistant.import"}
    return [
        problem
        for problem in problems
        if problem.code in SAFETY
        or (
            (problem.path, problem.span.start) not in places
            and problem.path not in files
            and not (problem.code == "prompt.import-missing" and word(problem) in imports)
        )
        or problem.severity > Severity.WARNING
    ]


def gather(folder: Path, profiles: Iterable[Profile], *, covers_nexus: bool = True) -> AssistantCheck:
    """The problems of profiles of a folder, each once."""
    profiles = tuple(profiles)
    texts = {path: text for profile in profiles for path, text in profile.texts.items()}
    files = {part.path for profile in profiles for part in profile.parts if part.path is not None}
    minders: dict[Problem, list[str]] = {}
    for profile in profiles:
        for problem in dict.fromkeys(profile.problems):
            minders.setdefault(problem, []).append(profile.assistant.title)
    readers = ", ".join(_reader(profile.assistant) for profile in profiles)
    return AssistantCheck(
        folder=os.path.realpath(folder),
        layers=CheckedTexts(texts),
        problems=tuple(minders),
        files=len(files),
        readers=f"read by {readers}",
        profiles=profiles,
        minders=minders,
        covers_nexus=covers_nexus,
    )


class BudgetCheck(NamedTuple):
    """The figures for machines, and for each assistant that reads too much a sentence and a problem."""

    figures: dict[str, Any]
    sentences: tuple[str, ...]
    problems: tuple[Problem, ...]


def check_budget(folder: Path, checked: AssistantCheck, budget: int, since: str | None) -> BudgetCheck:
    """Compare what assistants read, or how much it grew since a revision, with a budget. RevisionError."""
    tokens = {profile.assistant.name: profile.total for profile in checked.profiles}
    if since is not None:
        from nexus_context.assistants.views.changes import compare_with_revision

        changes = compare_with_revision(surroundings_of(folder), since, list(tokens))
        tokens = {each.after.assistant.name: each.growth for each in changes.assistants}
    rows, sentences, problems = [], [], []
    for profile in checked.profiles:
        assistant, count = profile.assistant, tokens[profile.assistant.name]
        is_over = count > budget
        rows.append({"name": assistant.name, "tokens": count, "exact": profile.exact, "over": is_over})
        if is_over:
            what = "more in every request" if since is not None else "of files in every request"
            total = f"{'' if profile.exact else '≈'}{count:,} tokens {what}"
            sentences.append(f"{assistant.title} reads {total}: more than the budget of {budget:,}.")
            parts = [part for part in profile.parts if part.path is not None]
            path = max(parts, key=lambda part: part.tokens).path if parts else None
            problems.append(
                Problem(path or checked.folder, Span(0, 0), OVER, Severity.ERROR, message=sentences[-1])
            )
    figures = {"limit": budget, "since": since, "assistants": rows}
    return BudgetCheck(figures, tuple(sentences), tuple(problems))


def _reader(assistant: Assistant) -> str:
    version = "(by documentation)" if assistant.verified == "documentation" else assistant.version
    return f"{assistant.title} {version}"
