"""Reads files and directories for profiles as another program finds them, links followed.

1. Everything is read at most once for a profile; a path that changes meanwhile stays as it was.
2. At most MOST_BYTES are read in all, and at most MOST_ENTRIES of a directory are listed. A file beyond that
   counts as unreadable and is in `refused`.
3. The disk notes the paths that it was asked for, because the answers can change only with them.
4. If a disk is `within` directories, nothing exists outside of them: what a repository says must not depend
   on the machine around it.
"""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nexus_context.disk.files import (
    Entry,
    exists,
    file_stamp,
    is_dir,
    is_executable,
    list_as_stored,
    read_bytes,
)
from nexus_context.folder.layers.walk import RealPaths

MOST_BYTES = 8 << 20
MOST_ENTRIES = 5_000
SIZE = 2  # of a stamp: the bytes of the file


class _Looks:
    """What was looked at so far, with the answers; several disks may share it."""

    def __init__(self) -> None:
        self.real = RealPaths()
        self.stamps: dict[str, tuple[int, ...] | None] = {}
        self.directories: dict[str, bool] = {}
        self.existing: dict[str, bool] = {}
        self.entries: dict[str, list[tuple[str, Entry]]] = {}
        self.read: set[str] = set()


class Disk:
    """Reads the disk for one profile, or for several profiles of the same moment. Not thread-safe.

    `overlays` maps paths to unsaved texts, which count as saved. If `within` is given, nothing exists outside
    of these directories (rule 4).
    """

    def __init__(
        self,
        overlays: Mapping[str, str] = MappingProxyType({}),
        *,
        within: Sequence[str] | None = None,
        looks: _Looks | None = None,
    ) -> None:
        self._data: dict[str, bytes | None] = {
            path: text.encode("utf-8", "replace") for path, text in overlays.items()
        }
        self.overlays = overlays
        self._within = within
        self._looks = looks or _Looks()
        self._remaining = MOST_BYTES
        self.refused: list[str] = []
        self.texts: dict[str, str] = {}

    def anew(self) -> "Disk":
        """Return a disk that shares what is known of paths, but has read no text yet."""
        return Disk(self.overlays, within=self._within, looks=self._looks)

    @property
    def read(self) -> frozenset[str]:
        """The paths whose text was asked for, whether a file is there or not. Those asked of disks made by
        `anew` are among them.
        """
        return frozenset(self._looks.read)

    @property
    def consulted(self) -> frozenset[str]:
        """All paths on which the answers so far depend, whether something is there or not."""
        looks = self._looks
        return self.read.union(looks.stamps, looks.directories, looks.existing)

    @property
    def listed(self) -> frozenset[str]:
        """The directories that were listed, each with a separator at its end."""
        return frozenset(path + os.sep for path in self._looks.entries)

    def hides(self, path: str) -> bool:
        """Whether a path is outside of `within` (rule 4). What is there is not known, and the other methods
        find nothing.
        """
        if self._within is None:
            return False
        path = os.path.normpath(path)
        return not any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in self._within)

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a regular file, None if there is none that can be read."""
        self._looks.read.add(path)
        if self.hides(path):
            return None
        if path not in self._data:
            stamp = self._stamp(path)
            if stamp is None:
                self._data[path] = None
            elif stamp[SIZE] > self._remaining:
                self.refused.append(path)
                self._data[path] = None
            else:
                data = self._data[path] = read_bytes(path, limit=max(self._remaining, 1)).data
                self._remaining -= len(data or b"")
        return self._data[path]

    def text(self, path: str) -> str | None:
        """Return a file's text, None if there is none that can be read. Each invalid sequence of UTF-8
        becomes U+FFFD; a byte order mark is kept.
        """
        data = self.data(path)
        if data is None:
            return None
        if path not in self.texts:
            self.texts[path] = data.decode("utf-8", "replace")
        return self.texts[path]

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file at a path, links followed."""
        return not self.hides(path) and self._stamp(path) is not None

    def size(self, path: str) -> int | None:
        """Return how many bytes a regular file has, without reading it. Return None if there is no such
        file.
        """
        if self.hides(path):
            return None
        data = self._data.get(path)
        if data is not None:
            return len(data)
        stamp = self._stamp(path)
        return None if stamp is None else stamp[SIZE]

    def has_same_bytes(self, path: str, other_path: str) -> bool:
        """Whether two files exist and have the same bytes. Neither is read if their sizes differ."""
        size = self.size(path)
        return (
            size is not None
            and size == self.size(other_path)
            and self.data(path) == self.data(other_path) is not None
        )

    def is_executable(self, path: str) -> bool:
        """Whether a file may be executed by its owner."""
        return self.is_file(path) and is_executable(path)

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory at a path, links followed."""
        if self.hides(path):
            return False
        if path not in self._looks.directories:
            self._looks.directories[path] = is_dir(path)
        return self._looks.directories[path]

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory at a path, links followed."""
        if self.hides(path):
            return False
        if path not in self._looks.existing:
            self._looks.existing[path] = exists(self.real(path))
        return self._looks.existing[path]

    def real(self, path: str) -> str:
        """Return a path with its links resolved, as far as the path exists."""
        try:
            return self._looks.real[path]
        except ValueError:  # a character that no path can have
            return os.path.normpath(path)

    def entries(self, path: str) -> list[tuple[str, Entry]]:
        """List the names in a directory with the kind of each, in the order of the file system."""
        if self.hides(path):
            return []
        if path not in self._looks.entries:
            self._looks.entries[path] = list_as_stored(path, MOST_ENTRIES)
        return self._looks.entries[path]

    def _stamp(self, path: str) -> tuple[int, ...] | None:
        if path not in self._looks.stamps:
            self._looks.stamps[path] = file_stamp(path)
        return self._looks.stamps[path]
