"""Tells which paths of a repository git ignores, by the `.gitignore` files from its root down."""

import os
import re
from collections.abc import Iterator

from pathspec import GitIgnoreSpec

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.working_tree import find_working_tree, is_within, parents

NAME = ".gitignore"
MOST_LINES = 2_000
"""Of one file."""
_MANY_STARS = re.compile(r"(?:\*[^/*]*){4}")


class GitIgnore:
    """The `.gitignore` rules that hold in a directory. Outside of a repository there are none."""

    def __init__(self, disk: Disk, directory: str) -> None:
        tree = find_working_tree(disk, directory)
        root = None if tree is None else tree.root
        self._rules = [] if root is None else list(_rules(disk, directory, root))

    def ignores(self, path: str, *, is_directory: bool = False) -> bool:
        """Whether git ignores an entry of the directory."""
        is_ignored = False
        for base, spec in self._rules:
            name = os.path.relpath(path, base).replace(os.sep, "/")
            is_included = spec.check_file(f"{name}/" if is_directory else name).include
            is_ignored = is_ignored if is_included is None else is_included
        return is_ignored


def _rules(disk: Disk, directory: str, root: str) -> Iterator[tuple[str, GitIgnoreSpec]]:
    for base in reversed([parent for parent in parents(directory) if is_within(parent, root)]):
        text = disk.text(os.path.join(base, NAME))
        if text:
            yield base, read_patterns(text)


def read_patterns(text: str) -> GitIgnoreSpec:
    """Read the patterns of an ignore file. As in git, a line that is no valid pattern does not count. Neither
    does a line with more than three stars in a name, which could take for ever.
    """
    lines = [line for line in text.splitlines()[:MOST_LINES] if not _MANY_STARS.search(line)]
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(filter(_is_valid, lines))


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
