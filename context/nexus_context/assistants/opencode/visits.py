"""Looks below directories for the files that globs match. One limit counts for all globs of a profile
together.
"""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk

MOST_VISITS = 20_000  # directory entries that all patterns look at
SKIPPED = (".git", "node_modules")
DEEPEST = 8  # directories that `**` stands for


class Visits:
    """Counts the directory entries that the globs of one profile look at. Once there are too many, walks stop
    and `ended` is true.
    """

    def __init__(self) -> None:
        self.remaining = MOST_VISITS
        self.ended = False

    def below(
        self, disk: Disk, directory: str, levels: int = DEEPEST, *, skipped: tuple[str, ...] = SKIPPED
    ) -> Iterator[str]:
        """Yield the paths of files and links below a directory, in the order of their names.

        Directories whose names begin with one of `skipped` are left out.
        """
        for name, entry in sorted(disk.entries(directory)):
            if self.remaining == 0:
                self.ended = True
                return
            self.remaining -= 1
            path = os.path.join(directory, name)
            if entry in ("file", "link"):
                yield path
            elif entry == "directory" and levels > 1 and not name.startswith(skipped):
                yield from self.below(disk, path, levels - 1, skipped=skipped)
