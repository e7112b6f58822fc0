"""Define what every kind of file watch reports, and how it begins and ends."""

from collections.abc import AsyncGenerator, Collection, Iterable
from typing import Protocol

ADDED, MODIFIED, DELETED = 1, 2, 3
"""Kinds of changes, numbered as in `watchfiles.Change`."""

Changes = Collection[tuple[int, str]]
"""What happened (a kind) and to which path, for each change."""


class DirectoryWatch(Protocol):
    """A watch of some directories that has begun. Use it on the event loop."""

    def events(self) -> AsyncGenerator[Changes | None, None]:
        """Yield what happens until the watch ends.

        An empty collection says that the watch works. None says that changes were lost, and that the
        directories may not be watched any more. Raises the error that ends the watch before its time.
        """
        ...

    def end_soon(self) -> None:
        """End the watch once it has reported what has happened until now."""
        ...

    def end(self) -> None:
        """End the watch. Changes that it has not reported are lost."""
        ...


class Watches(Protocol):
    """The system's way to watch directories."""

    def open(self, directories: Iterable[str]) -> DirectoryWatch:
        """Watch directories. Raise OSError if one of them cannot be watched.

        Call it in a thread, one call at a time.
        """
        ...
