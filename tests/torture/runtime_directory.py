"""A runtime directory that is full, cannot be written, was planted by another user, or disappears.

1. Wherever a shared daemon is impossible a window has one of its own, at once, and says why.
2. A socket or a directory of another user is never connected to, and nothing is written beside it.
3. A daemon whose socket or directory is removed serves its windows on, and new windows are served.
4. Some of it needs root: to mount a small file system, and to give files to another user.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from support.editor import Editor
from support.shared import SharedHome, shared_home
from torture.figures import Figure, Outcome, Watch, nothing_wrong
from torture.mounts import memory, why_not

NAME = "a hostile runtime directory"
SERVED_S = 12.0  # a window that waits for a daemon that does not answer gives up after five
NOBODY = 65_534


def run(rounds: int, seed: int = 1) -> Outcome:
    """Each obstacle so many times."""
    watch, wrong, waits = Watch(), list[str](), list[float]()
    obstacles = [
        removed_socket,
        removed_directory,
        *((full, planted, planted_socket) if not why_not() else ()),
    ]
    for obstacle in obstacles:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as directory, shared_home(Path(directory, "home")) as home:
                try:
                    obstacle(home, Path(directory), waits)
                except (AssertionError, OSError, TimeoutError) as error:
                    wrong.append(f"{obstacle.__name__}: {error!r}")
    figures = (
        Figure("obstacles", len(obstacles) * rounds),
        Figure("slowest window to be served", max(waits), "s", at_most=SERVED_S),
        nothing_wrong(wrong),
    )
    return Outcome(NAME, figures, tuple(wrong), seconds=watch.seconds)


Obstacle = Callable[[SharedHome, Path, list[float]], None]


def _served(window: Editor, root: Path, waits: list[float], reason: str = "") -> None:
    """The window is served; `reason` is why it has a daemon of its own, if it has."""
    watch = Watch()
    window.hello(root)
    assert window.ask("context/usage", root)["total"] > 0
    waits.append(watch.seconds)
    window.stop()
    window.wait_exit()
    said = "this window has a daemon of its own: "
    assert (reason in window.stderr) if reason else (said not in window.stderr), window.stderr


def full(home: SharedHome, directory: Path, waits: list[float]) -> None:
    """No byte and no name is left: neither a lock nor a socket can be made."""
    with memory(directory / "small", "64k", most_files=100) as small:
        (small / "nexus").mkdir(mode=0o700)
        number = 0
        try:
            while True:
                (small / f"fill{number}").write_bytes(b"x" * 4096)
                number += 1
        except OSError:
            pass
        try:
            while True:
                (small / "nexus" / f"name{number}").touch()
                number += 1
        except OSError:
            pass
        with home.window({"XDG_RUNTIME_DIR": str(small)}) as window:
            _served(window, directory, waits, "No space left on device")


def planted(home: SharedHome, directory: Path, waits: list[float]) -> None:
    """The directory belongs to another user."""
    place = home.runtime / "nexus"
    place.mkdir(mode=0o777)
    os.chown(place, NOBODY, NOBODY)
    with home.window() as window:
        _served(window, directory, waits, f"{place} belongs to another user")
    assert list(place.iterdir()) == []
    place.rmdir()


def planted_socket(home: SharedHome, directory: Path, waits: list[float]) -> None:
    """Somebody else listens at the socket of the daemon: only root could put it there."""
    address = home.place.socket
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        os.setuid(NOBODY)
        listener.listen()
        os.write(told, b"1")
        listener.accept()[0].recv(1)
        os._exit(0)
    try:
        os.read(ready, 1)
        with home.window() as window:
            _served(window, directory, waits, f"belongs to a process of user {NOBODY}")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(ready)
        os.close(told)
        os.unlink(address)


def removed_socket(home: SharedHome, directory: Path, waits: list[float]) -> None:
    """Something cleaned up: the daemon goes on, and a new window is served."""
    with home.window() as window:
        window.hello(directory)
        os.unlink(home.place.socket)
        assert window.ask("context/usage", directory)["total"] > 0
        os.unlink(home.place.lock)
        with home.window() as other:
            _served(other, directory, waits)
        assert window.ask("context/usage", directory)["total"] > 0


def removed_directory(home: SharedHome, directory: Path, waits: list[float]) -> None:
    """The whole directory is gone."""
    with home.window() as window:
        window.hello(directory)
        shutil.rmtree(home.runtime / "nexus")
        assert window.ask("context/usage", directory)["total"] > 0
        with home.window() as other:
            _served(other, directory, waits)
