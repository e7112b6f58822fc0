"""What every kind of file watch reports, and how it begins and ends."""

from collections.abc import AsyncGenerator, Collection, Iterable
from typing import Protocol

ADDED, MODIFIED, DELETED = 1, 2, 3
"""Kinds of changes, numbered as in `watchfiles.Change`."""

Changes = Collection[tuple[int, str]]
"""What happened, and to which path."""


class DirectoryWatch(Protocol):
    """A watch of some directories that is in place. Lives on the event loop."""

    def events(self) -> AsyncGenerator[Changes | None, None]:
        """Yield what happens until the watch ends.

        An empty collection says that the watch works; None that changes were lost, and that the directories
        may not be watched any more. Raises what ends the watch before its time.
        """
        ...

    def end_soon(self) -> None:
        """End the watch once it has reported what has happened until now."""
        ...

    def end(self) -> None:
        """End the watch; what it has not reported is lost."""
        ...


class Watches(Protocol):
    """A way to watch directories."""

    def open(self, directories: Iterable[str]) -> DirectoryWatch:
        """Watch directories; in a thread, one call at a time. Raises OSError if one cannot be watched."""
        ...
