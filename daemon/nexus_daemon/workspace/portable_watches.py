"""Watch files on systems other than Linux, with watchfiles; each `PortableWatch` is a watch of the system.

A watch cannot change its directories, and its thread looks for events in steps. A watch that is about to end
gets enough steps to report what it has seen, however long other threads delay it.
"""

from collections.abc import AsyncGenerator, Iterable

import watchfiles

from nexus_daemon.workspace.watch_events import Changes

STEP_MS = 20
DEBOUNCE_MS = 80
IDLE_MS = 5_000
LAST_STEPS = 9  # of a watch that is about to end: enough to report what it has seen


class PortableWatches:
    """The implementation of `watch_events.Watches` by watchfiles."""

    def open(self, directories: Iterable[str]) -> "PortableWatch":
        return PortableWatch(directories)


class PortableWatch:
    """One watch of a set of directories. It begins when `events` is called."""

    def __init__(self, directories: Iterable[str]) -> None:
        self.stop = _Stop()
        self._directories = tuple(directories)

    async def events(self) -> AsyncGenerator[Changes | None, None]:
        """Yield sets of changes until the watch ends, as `watch_events.DirectoryWatch.events` describes."""
        async for changes in watchfiles.awatch(
            *self._directories,
            watch_filter=None,
            step=STEP_MS,
            debounce=DEBOUNCE_MS,
            rust_timeout=IDLE_MS,
            yield_on_timeout=True,
            stop_event=self.stop,
            recursive=False,
            ignore_permission_denied=False,  # True would also hide that the system's limit is reached
        ):
            yield changes

    def end_soon(self) -> None:
        self.stop.soon()

    def end(self) -> None:
        self.stop.set()


class _Stop:
    """The end of a watch; its thread checks `is_set` once per step."""

    def __init__(self) -> None:
        self._left: int | None = None

    def set(self) -> None:
        """End the watch now; events that it has not reported are lost."""
        self._left = 0

    def soon(self) -> None:
        """End the watch once it has reported what it has seen."""
        self._left = LAST_STEPS if self._left is None else self._left

    def is_set(self) -> bool:
        if self._left:
            self._left -= 1
            return False
        return self._left == 0
