"""When a session is announced that is live no more: a timer tells it, and no file is read for that."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.tracking import followers
from nexus_daemon.workspace.assistant_watch import AssistantWatch, SessionChange, WatchedFolder
from support.assistant_transcripts import BEGUN, Claude, write
from support.waiting import wait_until

SHORT_S = 2.0
"""Long enough for a look on a busy machine."""


class Watch:
    """A watch of one folder, with what it announces, and how often it listed the sessions."""

    def __init__(self, home: Path) -> None:
        self.changes: list[SessionChange] = []
        self.looks = 0
        self.after_look: Callable[[], object] = lambda: None
        folder = WatchedFolder("file:///shop", "/shop", str(home), ())
        self.watch = AssistantWatch(lambda: (folder,), self._read, self.changes.append, lambda: None)

    async def _read(self, job: Callable[..., Any], *args: Any) -> Any:
        listing = await asyncio.to_thread(job, *args)
        self.looks += 1
        self.after_look()
        return listing

    async def look(self) -> None:
        looks = self.looks
        self.watch.look()
        await wait_until(lambda: self.looks > looks)

    @property
    def told(self) -> list[tuple[str, str, bool]]:
        return [(change.id, change.reason, change.changes_views) for change in self.changes]


def live_from_now(monkeypatch: pytest.MonkeyPatch, claude: Claude, seconds: float) -> None:
    """Let the last record of a session, of the time at which it begins, count as live for so long."""
    changed = (BEGUN + timedelta(minutes=claude.minute)).timestamp()
    monkeypatch.setattr(followers, "LIVE_S", time.time() - changed + seconds)


def test_a_session_that_goes_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        watch, claude = Watch(tmp_path), Claude("/shop", session="c1")
        await watch.look()
        live_from_now(monkeypatch, claude, SHORT_S)
        path = write(claude.path(tmp_path), [claude.asks("Hi")])
        await watch.look()
        await wait_until(lambda: watch.told[1:])
        assert watch.told == [("c1", "appeared", True), ("c1", "idle", True)]
        assert watch.looks <= 4  # those for new paths, and none for the end
        live_from_now(monkeypatch, claude, SHORT_S)
        path.write_bytes(path.read_bytes() + b"\n")
        await watch.look()
        await wait_until(lambda: watch.told[3:])
        assert watch.told[2:] == [("c1", "changed", True), ("c1", "idle", True)]
        await watch.watch.close()

    asyncio.run(story())


def test_what_changes_while_its_watch_is_set_up_is_announced(tmp_path: Path) -> None:
    async def story() -> None:
        watch, claude = Watch(tmp_path), Claude("/shop", session="c1")
        path = write(claude.path(tmp_path), [claude.asks("Hi")])

        def grow() -> None:
            if watch.looks == 1:
                path.write_bytes(path.read_bytes() + b"\n")

        watch.after_look = grow
        await watch.look()
        await wait_until(lambda: watch.told)
        assert watch.told == [("c1", "changed", True)]
        await watch.watch.close()

    asyncio.run(story())


def test_a_session_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        watch, claude = Watch(tmp_path), Claude("/shop", session="c1")
        live_from_now(monkeypatch, claude, 1e6)
        path = write(claude.path(tmp_path), [claude.asks("Hi")])
        await watch.look()
        await wait_until(lambda: list(watch.watch.paths()))
        path.write_bytes(path.read_bytes() + b"\n")
        await watch.look()
        assert await wait_until(lambda: watch.told) == [("c1", "changed", False)]
        path.unlink()
        await watch.look()
        await wait_until(lambda: watch.told[1:])
        assert watch.told[1:] == [("c1", "idle", True)]
        await watch.watch.close()

    asyncio.run(story())
