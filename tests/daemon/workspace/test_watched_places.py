"""A network file system whose server is gone: what lies elsewhere is watched as before."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nexus_context.folder.layers.walk import within
from nexus_daemon.workspace import polling, watched_places, watcher
from nexus_daemon.workspace.watch_limits import network_mounts_in
from nexus_daemon.workspace.watcher import Subscriber, Watcher
from support.waiting import wait_until

TIMEOUT_S = 10.0
MOUNTS = r"""
22 1 0:21 / / rw - ext4 /dev/root rw
36 22 0:31 / /mnt/a\040share rw shared:1 - nfs4 host:/ rw
37 22 0:32 / /mnt/b rw - fuse.sshfs host: rw
38 22 0:33 / /tmp rw - tmpfs tmpfs rw
broken
"""


def test_where_network_file_systems_are() -> None:
    assert network_mounts_in(MOUNTS.splitlines()) == ("/mnt/a share", "/mnt/b")
    assert network_mounts_in([]) == ()


class Server:
    """The server of the network file system at a path: nobody gets an answer while it is gone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mount: Path) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.asked = 0
        self._mount = str(mount)
        monkeypatch.setattr(watched_places, "network_mounts", lambda: (self._mount,))
        monkeypatch.setattr(watched_places, "REMOTE_S", 0.02)
        monkeypatch.setattr(watcher, "REMOTE_S", 0.02)
        monkeypatch.setattr(watcher, "CHECK_MS", 20)
        for module, name in ((watched_places, "_identity"), (polling, "read_stamp")):
            monkeypatch.setattr(module, name, self._waiting(getattr(module, name)))

    def _waiting(self, read: Any) -> Any:
        def wait(path: str) -> Any:
            if within(path, self._mount):
                self.asked += not self.answers.is_set()
                assert self.answers.wait(TIMEOUT_S)
            return read(path)

        return wait


def test_a_file_system_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New folders elsewhere are watched, one thread or two wait, and all is well once the server is back."""
    names = ("net/a", "net/b", "one", "two", "three")
    remote, other, one, two, three = (tmp_path / name / "file" for name in names)
    for path in (remote, other, one, two, three):
        path.parent.mkdir(parents=True)
    server = Server(monkeypatch, tmp_path / "net")
    paths, reported = {str(remote), str(one)}, list[set[str] | None]()

    def is_reported(path: Path) -> bool:
        return any(each is None or str(path) in each for each in reported)

    async def write(path: Path, text: str) -> None:
        reported.clear()
        path.write_text(text)
        await wait_until(lambda: is_reported(path))

    async def run() -> None:
        threads = ThreadPoolExecutor(8)
        files = Watcher(Subscriber(lambda: paths, reported.append, lambda _: None), executor=threads)

        async def until(path: Path, *states: str) -> None:
            await wait_until(lambda: files.freshness([str(path)]).state in states)

        files.start()
        try:
            await until(remote, "watched")
            server.answers.clear()
            for path in (two, three):
                paths.update({str(path), str(other)})
                files.refresh()
                await until(path, "watched")
                await write(path, "1")
            await write(one, "1")
            assert 1 <= server.asked <= 2
            await until(other, "unknown", "polled")
            server.answers.set()
            for path in (remote, other):
                await until(path, "watched")
                await write(path, os.urandom(4).hex())
        finally:
            server.answers.set()
            await files.close()

    asyncio.run(run())
