"""Joins the problems of what assistants read in a folder, each once, with those that Nexus itself finds."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from nexus_context.assistants.reading.profile_types import Assistant, Profile
from nexus_context.config.silenced import Heard, without_silenced
from nexus_context.disk.files import real_path
from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY

SAFETY = ("mcp.secret", "mcp.unpinned", "mcp.plain-http")
"""What Nexus finds in MCP files that their program does not say."""
UNSEEN = ("prompt.hidden-markup", "prompt.hidden-text", "prompt.secret")
"""What nobody sees in an instruction file, or must not send."""


class CheckedTexts(NamedTuple):
    """The texts that the spans of problems are in: each path → text."""

    texts: Mapping[str, str] = MappingProxyType({})


class AssistantCheck(NamedTuple):
    """The problems of assistants in a folder, with what a report needs; its fields are named as those of a
    snapshot.

    `minders` maps each problem to the programs that it concerns. With `covers_nexus`, what Nexus itself reads
    is checked, too. `real_paths` has the paths of warnings and errors that lead over a link.
    """

    folder: str
    layers: CheckedTexts
    problems: tuple[Problem, ...]
    files: int
    readers: str
    profiles: tuple[Profile, ...]
    minders: Mapping[Problem, Sequence[str]]
    covers_nexus: bool = True
    real_paths: Mapping[str, str] = MappingProxyType({})


def counts_without_nexus(problem: Problem) -> bool:
    """Whether a problem that Nexus finds in a file matters where nobody uses Nexus."""
    is_own_file = CONFIG_DIRECTORY in problem.path.split(os.sep)
    return is_own_file or problem.code in (*SAFETY, *UNSEEN)


def gather(
    folder: str | os.PathLike[str], profiles: Iterable[Profile], *, covers_nexus: bool = True
) -> AssistantCheck:
    """Collect the problems in the profiles of a folder, each once."""
    profiles = tuple(profiles)
    texts = {path: text for profile in profiles for path, text in profile.texts.items()}
    files = {part.path for profile in profiles for part in profile.parts if part.path is not None}
    minders: dict[Problem, list[str]] = {}
    for profile in profiles:
        for problem in dict.fromkeys(profile.problems):
            minders.setdefault(problem, []).append(profile.assistant.title)
    readers = ", ".join(_reader(profile.assistant) for profile in profiles)
    # remarks that files are unread are many, and no doubles
    warned_paths = {problem.path for problem in minders if problem.severity <= Severity.WARNING}
    real_paths = {path: real_path(path) for path in warned_paths}
    return AssistantCheck(
        folder=os.path.realpath(folder),
        layers=CheckedTexts(texts),
        problems=tuple(minders),
        files=len(files),
        readers=f"read by {readers}",
        profiles=profiles,
        minders=minders,
        covers_nexus=covers_nexus,
        real_paths={path: real for path, real in real_paths.items() if real != path},
    )


def join_problems(
    nexus_problems: Iterable[Problem],
    checked: AssistantCheck,
    texts: Mapping[str, str],
    ignore: Sequence[str],
) -> Heard:
    """Join all problems of a folder. Those that the setting `ignore` or comments in `texts` silence are kept
    apart.

    `nexus_problems` are those that Nexus finds. If its own view is in use they all count, else those of
    `counts_without_nexus`. A mistake that both find is the problem of the view that is in use.
    """
    if checked.covers_nexus:
        nexus_problems = tuple(nexus_problems)
        joined_problems = (*nexus_problems, *_without_doubles(checked.problems, nexus_problems, checked))
    else:
        counted_problems = filter(counts_without_nexus, nexus_problems)
        own_problems = _without_doubles(counted_problems, checked.problems, checked)
        joined_problems = (*own_problems, *checked.problems)
    return without_silenced(joined_problems, texts, ignore, checked.folder)


def _without_doubles(
    problems: Iterable[Problem], other_problems: Iterable[Problem], checked: AssistantCheck
) -> Iterator[Problem]:
    """Yield the problems of SAFETY, and those that overlap no other problem that is at least as severe."""
    real_paths = checked.real_paths
    by_path: dict[str, list[Problem]] = {}
    for other_problem in other_problems:
        path = real_paths.get(other_problem.path, other_problem.path)
        by_path.setdefault(path, []).append(other_problem)
    for problem in problems:
        span = problem.span
        if problem.code in SAFETY or not any(
            other_problem.severity <= problem.severity
            and (
                other_problem.span.start == span.start
                or max(other_problem.span.start, span.start) < min(other_problem.span.end, span.end)
            )
            for other_problem in by_path.get(real_paths.get(problem.path, problem.path), ())
        ):
            yield problem


def _reader(assistant: Assistant) -> str:
    version = "(by documentation)" if assistant.verified == "documentation" else assistant.version
    return f"{assistant.title} {version}"
