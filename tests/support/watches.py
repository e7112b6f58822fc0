"""File watches that a test can refuse, look into and end."""

from collections.abc import AsyncGenerator, Callable, Iterable

import pytest

from nexus_daemon.workspace import watcher
from nexus_daemon.workspace.watch_events import Changes, DirectoryWatch, Watches


class ObservedWatches:
    """The system's watches; `before_open` may raise in the place of each.

    `opened` are all that there were.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tries = 0
        self.opened: list[DirectoryWatch] = []
        self.before_open: Callable[[], None] = lambda: None
        self._new_watches = watcher.new_watches
        self._watches: Watches | None = None
        monkeypatch.setattr(watcher, "new_watches", lambda: self)

    def open(self, directories: Iterable[str]) -> DirectoryWatch:
        self.tries += 1
        self.before_open()
        if self._watches is None:
            self._watches = self._new_watches()
        self.opened.append(self._watches.open(directories))
        return self.opened[-1]


class PlayedWatch:
    """A watch that reports what the generator function `play` yields."""

    def __init__(self, play: Callable[["PlayedWatch"], AsyncGenerator[Changes | None, None]]) -> None:
        self.ended = False
        self._play = play

    def events(self) -> AsyncGenerator[Changes | None, None]:
        return self._play(self)

    def end_soon(self) -> None:
        self.ended = True

    def end(self) -> None:
        self.ended = True
