"""`nexus check --for`: problems of what another assistant reads in a folder."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.model import Assistant, Profile
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Problem
from nexus_daemon.cli import output
from nexus_daemon.cli.assistant_option import ALL
from nexus_daemon.cli.show_assistant import surroundings_of


class CheckedTexts(NamedTuple):
    """Texts by path, as a report needs them."""

    texts: Mapping[str, str] = MappingProxyType({})


class AssistantCheck(NamedTuple):
    """Problems, and what a report needs of the folder: as of a snapshot."""

    folder: str
    layers: CheckedTexts
    problems: tuple[Problem, ...]
    files: int
    readers: str
    profiles: tuple[Profile, ...]


def check_assistant(folder: Path, name: str) -> AssistantCheck:
    """The problems of what an assistant, or each of them, reads."""
    names = tuple(PROGRAMS) if name == ALL else (name,)
    profiles = [read_profile(each, surroundings_of(folder)) for each in names]
    texts = {path: text for profile in profiles for path, text in profile.texts.items()}
    files = {part.path for profile in profiles for part in profile.parts if part.path is not None}
    problems = dict.fromkeys(problem for profile in profiles for problem in profile.problems)
    readers = ", ".join(_reader(profile.assistant) for profile in profiles)
    return AssistantCheck(
        folder=os.path.realpath(folder),
        layers=CheckedTexts(texts),
        problems=tuple(problems),
        files=len(files),
        readers=f"read by {readers}",
        profiles=tuple(profiles),
    )


def check_budget(folder: Path, checked: AssistantCheck, options: argparse.Namespace) -> int:
    """Complain about each assistant that reads more than it may, or grew by more; the exit code."""
    if options.since is not None:
        from nexus_context.assistants.views.changes import RevisionError, compare_with_revision
        from nexus_daemon.cli.diff import report_growth

        names = [profile.assistant.name for profile in checked.profiles]
        try:
            changes = compare_with_revision(surroundings_of(folder), options.since, names)
        except RevisionError as error:
            output.complain("check", str(error))
            return 2
        return report_growth("check", changes.assistants, options.budget)
    over = [profile for profile in checked.profiles if profile.total > options.budget]
    for profile in over:
        total = f"{'' if profile.exact else '≈'}{profile.total:,} tokens of files in every request"
        text = f"{profile.assistant.title} reads {total}: more than the budget of {options.budget:,}."
        output.complain("check", text)
    return 1 if over else 0


def _reader(assistant: Assistant) -> str:
    version = "(by documentation)" if assistant.verified == "documentation" else assistant.version
    return f"{assistant.title} {version}"
