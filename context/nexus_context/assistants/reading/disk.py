"""What profiles read of the disk: files and directories as another program finds them, links followed.

1. Everything is read at most once for a profile; a path that changes meanwhile stays as it was.
2. No more than MOST_BYTES are read in all, and MOST_ENTRIES of a directory are listed. A file beyond that
   counts as unreadable and is in `refused`.
3. Of a disk that is `within` directories, nothing else is there: what a repository says must not depend on
   the machine around it.
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
    real_path,
)

MOST_BYTES = 8 << 20
MOST_ENTRIES = 5_000
SIZE = 2  # of a stamp: the bytes of the file


class Disk:
    """Reads for one profile, or for several of the same moment. Not thread-safe.

    `overlays` are unsaved texts by path: they count as saved. For `within` see rule 3.
    """

    def __init__(
        self, overlays: Mapping[str, str] = MappingProxyType({}), *, within: Sequence[str] | None = None
    ) -> None:
        self._data: dict[str, bytes | None] = {
            path: text.encode("utf-8", "replace") for path, text in overlays.items()
        }
        self.overlays = overlays
        self._within = within
        self._remaining = MOST_BYTES
        self.refused: list[str] = []
        self._entries: dict[str, list[tuple[str, Entry]]] = {}
        self._real: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def anew(self) -> "Disk":
        """The same disk, of which nothing has been read."""
        return Disk(self.overlays, within=self._within)

    def hides(self, path: str) -> bool:
        """Whether it is not known what is at a path (rule 3)."""
        if self._within is None:
            return False
        path = os.path.normpath(path)
        return not any(path == each or path.startswith(each.rstrip(os.sep) + os.sep) for each in self._within)

    def data(self, path: str) -> bytes | None:
        """The bytes of a regular file; None if there is none that can be read."""
        if self.hides(path):
            return None
        if path not in self._data:
            stamp = file_stamp(path)
            if stamp is not None and stamp[SIZE] > self._remaining:
                self.refused.append(path)
                self._data[path] = None
                return None
            data = self._data[path] = read_bytes(path, limit=max(self._remaining, 1)).data
            self._remaining -= len(data or b"")
        return self._data[path]

    def text(self, path: str) -> str | None:
        """A file's text: UTF-8, each invalid sequence as U+FFFD, a byte order mark kept."""
        data = self.data(path)
        if data is None:
            return None
        if path not in self.texts:
            self.texts[path] = data.decode("utf-8", "replace")
        return self.texts[path]

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file, links followed."""
        return not self.hides(path) and file_stamp(path) is not None

    def size(self, path: str) -> int | None:
        """The bytes of a regular file, which is not read; None if there is none."""
        if self.hides(path):
            return None
        data = self._data.get(path)
        if data is not None:
            return len(data)
        stamp = file_stamp(path)
        return None if stamp is None else stamp[SIZE]

    def has_same_bytes(self, path: str, other: str) -> bool:
        """Whether two files have the same bytes; none is read if their sizes differ."""
        size = self.size(path)
        return (
            size is not None and size == self.size(other) and self.data(path) == self.data(other) is not None
        )

    def is_executable(self, path: str) -> bool:
        """Whether a file may be executed by its owner."""
        return not self.hides(path) and is_executable(path)

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory, links followed."""
        return not self.hides(path) and is_dir(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory, links followed."""
        return not self.hides(path) and exists(self.real(path))

    def real(self, path: str) -> str:
        """The path with links resolved as far as it exists."""
        if path not in self._real:
            try:
                self._real[path] = real_path(path)
            except ValueError:  # a character that no path can have
                self._real[path] = os.path.normpath(path)
        return self._real[path]

    def entries(self, path: str) -> list[tuple[str, Entry]]:
        """The names in a directory in the order of the file system, with the kind of each."""
        if path not in self._entries:
            self._entries[path] = [] if self.hides(path) else list_as_stored(path, MOST_ENTRIES)
        return self._entries[path]
