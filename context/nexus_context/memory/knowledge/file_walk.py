"""The files that the settings select, from a walk of the disk.

1. Files come in the order of the settings, then by name, so that a limit always cuts at the same file.
2. At most MOST_FILES files are returned and MOST_DIRECTORIES directories listed; a problem reports the limit.
3. A missing path, and an entry without a single file, are reported, too.
"""

import os
from collections.abc import Callable, Iterator

import msgspec

from nexus_context.errors import Problem
from nexus_context.files import RealFiles, exists, is_dir, real_path
from nexus_context.memory.knowledge.file_selection import KnowledgePath, Settings, problem

MOST_FILES = 20_000
MOST_DIRECTORIES = 20_000


class WalkedFiles(msgspec.Struct):
    """The files by path, each with the entry that selects it, and the directories that were listed."""

    files: dict[str, KnowledgePath]
    directories: dict[str, None]
    problems: list[Problem]


def walk(settings: Settings, stopped: Callable[[], bool]) -> WalkedFiles:
    """Every readable file that the settings select; fewer when it is `stopped`."""
    walked = WalkedFiles({}, {}, [])
    for place in settings.places:
        empty = True
        for path in _files(place, walked, stopped):
            empty = False
            if path in walked.files:
                continue
            if len(walked.files) >= MOST_FILES:
                walked.problems.append(_too_many(place, f"{MOST_FILES:,} files are indexed"))
                return walked
            walked.files[path] = place
        if len(walked.directories) >= MOST_DIRECTORIES:
            walked.problems.append(_too_many(place, f"{MOST_DIRECTORIES:,} directories are looked through"))
            return walked
        if empty and not stopped():
            walked.problems.append(_nothing(place))
    return walked


def _files(place: KnowledgePath, walked: WalkedFiles, stopped: Callable[[], bool]) -> Iterator[str]:
    real = real_path(place.base)
    if not place.reaches(real):
        return
    if not is_dir(place.base):
        walked.directories[os.path.dirname(place.base)] = None
        if exists(place.base) and place.covers(place.base):
            yield place.base
        return
    files = RealFiles()
    waiting = [(place.base, real)]
    while waiting and not stopped() and len(walked.directories) < MOST_DIRECTORIES:
        directory, real = waiting.pop()
        walked.directories[directory] = None
        below = []
        for name, kind in files.list_directory(real) or ():
            path = os.path.join(directory, name)
            if kind == "directory":
                if place.enters(path):
                    below.append((path, os.path.join(real, name)))
            elif place.covers(path) and (kind == "file" or (kind == "link" and _linked(place, path))):
                yield path
        waiting += reversed(below)


def _linked(place: KnowledgePath, path: str) -> bool:
    """Whether a link's target may be read: rule 4 of `file_selection`, even without a limit."""
    limited = place if place.root is not None else msgspec.structs.replace(place, root=place.base)
    return not is_dir(path) and limited.permits(path)


def _too_many(place: KnowledgePath, limit: str) -> Problem:
    message = f"There are too many files: only the first {limit}. Name fewer directories, or use patterns."
    return problem(place, "config.knowledge", message)


def _nothing(place: KnowledgePath) -> Problem:
    location = os.path.join(place.base, *place.pattern)
    if not exists(place.base):
        return problem(
            place, "config.knowledge", f"{location} does not exist. Create it or correct the path."
        )
    return problem(place, "config.knowledge", f"There are no text files at {location}. Correct the path.")
