"""Tells which files Gemini CLI's tool for reading refuses because an ignore file names them.

1. In a repository, `.git/info/exclude` of the folder and the `.gitignore` of each directory down to the file
   count. Then come `.geminiignore` of the folder, and the files that `customIgnoreFilePaths` of
   `context.fileFiltering` names. The last pattern that fits decides.
2. `respectGitIgnore` and `respectGeminiIgnore` turn them off.
3. Patterns do not heed the case of letters.

Source: runs of Gemini CLI 0.61.0, which writes, edits and runs commands on such files all the same.
"""

import os
from collections.abc import Iterator, Sequence

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.git_ignored import NAME as GIT_IGNORE
from nexus_context.assistants.reading.git_ignored import read_patterns
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.working_tree import find_working_tree, is_within, parents

GEMINI_IGNORE = ".geminiignore"
EXCLUDE = ".git/info/exclude"


def ignore_files(settings: AssistantSettings) -> tuple[str, ...]:
    """Return the names of the ignore files that count by the settings; the last counts most."""

    def counts(key: str) -> bool:
        return settings.value("context", "fileFiltering", key) is not False

    custom_names = texts_of(settings.value("context", "fileFiltering", "customIgnoreFilePaths"))
    git_names = (EXCLUDE, GIT_IGNORE) if counts("respectGitIgnore") else ()
    gemini_names = (GEMINI_IGNORE,) if counts("respectGeminiIgnore") else ()
    return *git_names, *gemini_names, *custom_names


def find_ignoring(disk: Disk, folder: str, path: str, names: Sequence[str]) -> str | None:
    """Return the path of the ignore file that hides a file from the tools that read, else None.

    `folder` and `path` have no links. `names` are those of `ignore_files`.
    """
    if not is_within(path, folder):
        return None
    found = None
    for base, file in _files(disk, folder, path, names):
        patterns = read_patterns((disk.text(file) or "").lower())
        is_ignored = patterns.check_file(os.path.relpath(path, base).lower()).include
        if is_ignored is not None:
            found = file if is_ignored else None
    return found


def _files(disk: Disk, folder: str, path: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The ignore files, each with the directory that its patterns begin at."""
    is_in_repository = find_working_tree(disk, folder) is not None
    directories = [parent for parent in parents(os.path.dirname(path)) if is_within(parent, folder)]
    for name in names:
        if name == GIT_IGNORE and is_in_repository:
            yield from ((base, os.path.join(base, name)) for base in reversed(directories))
        elif name not in (GIT_IGNORE, EXCLUDE) or is_in_repository:
            yield folder, os.path.join(folder, name)
