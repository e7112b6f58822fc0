"""`nexus check --for`: problems of what another assistant reads in a folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from nexus_context.assistants import ASSISTANT_NAMES
from nexus_context.assistants.model import Assistant
from nexus_context.assistants.profile import read_profile
from nexus_context.errors import Problem
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


def check_assistant(folder: Path, name: str) -> AssistantCheck:
    """The problems of what an assistant, or each of them, reads."""
    names = ASSISTANT_NAMES if name == ALL else (name,)
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
    )


def _reader(assistant: Assistant) -> str:
    version = "(by documentation)" if assistant.verified == "documentation" else assistant.version
    return f"{assistant.title} {version}"
