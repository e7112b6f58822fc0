"""The shared daemon of a test: windows that use it, its process, and its end."""

import contextlib
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nexus_daemon.process.logs.location import NAME, log_directory
from nexus_daemon.process.logs.log_line import LINE
from nexus_daemon.shared import client
from nexus_daemon.shared.identity import Place, find_place
from support.editor import Editor, environ
from support.waiting import block_until


class SharedHome:
    """A user's home directory with a runtime directory of its own, hence with a shared daemon of its own."""

    def __init__(self, home: Path, transport: str = "", *, has_own_log: bool = False) -> None:
        self.home = home
        self._has_own_log = has_own_log
        home.mkdir(parents=True)
        self.runtime = Path(tempfile.mkdtemp(prefix="nexus-"))  # short: the address of a socket has to be
        own = {"XDG_RUNTIME_DIR": str(self.runtime), "NEXUS_TRANSPORT": transport}
        if has_own_log:
            own["NEXUS_LOG"] = str(self.runtime / "logs")
        self.variables = {**environ(home), **own}

    @property
    def place(self) -> Place:
        return find_place(self.environ)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a process of this home."""
        return {**os.environ, **self.variables}

    def window(self, variables: Mapping[str, str] | None = None) -> Editor:
        """An editor whose server is the forwarder."""
        more = {**self.variables, **(variables or {})}
        return Editor(self.home, arguments=["--remote=auto"], variables=more)

    def connect(self) -> socket.socket:
        """A connection to the daemon without a first message."""
        if self.place.has_socket:
            connected = socket.socket(socket.AF_UNIX)
            connected.settimeout(10)
            connected.connect(self.place.socket)
            return connected
        return socket.create_connection((client.LOOPBACK, client.read_token(self.place)[0]), timeout=10)

    def pid(self) -> int | None:
        """The process of the daemon; None where none runs."""
        fields = client.fields_for("status", self.place, self.variables)  # an editor would be a window
        greeted = client.connect(self.place, fields)
        if greeted is None:
            return None
        greeted.socket.close()
        return int(greeted.reply.get("pid"))

    def logged_errors(self) -> list[str]:
        """The records of level ERROR of all processes of this home, which has a log of its own."""
        assert self._has_own_log
        logs = Path(log_directory(self.environ))
        entries = (
            (line, match)
            for path in sorted(logs.glob(f"{NAME}*"))
            for line in path.read_text(encoding="utf-8").splitlines()
            if (match := LINE.fullmatch(line)) is not None
        )
        return [line for line, match in entries if match["level"] == "ERROR"]

    def stop(self, place: Place | None = None) -> None:
        """End the daemon as `nexus stop` does."""
        place = place or self.place
        greeted = client.connect(place, client.fields_for("stop", place, self.variables))
        assert greeted is not None
        greeted.socket.close()
        block_until(lambda: not client.is_running(place))

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the daemon if one runs, and wait until its lock is free."""
        pid = self.pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            block_until(lambda: not client.is_running(self.place))


@contextmanager
def shared_home(home: Path, transport: str = "", *, has_own_log: bool = False) -> Iterator[SharedHome]:
    """A home whose daemon ends with the block. `transport` is that of `NEXUS_TRANSPORT`.

    With a log of its own, `logged_errors` knows of no other tests. Then nobody looks there for stalls.
    """
    shared = SharedHome(home, transport, has_own_log=has_own_log)
    try:
        yield shared
    finally:
        if client.is_running(shared.place):
            shared.end()
        shutil.rmtree(shared.runtime)


@contextmanager
def own_runtime_directory(variables: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """These variables with a runtime directory of their own, whose shared daemon ends with the block."""
    directory = tempfile.mkdtemp(prefix="nexus-")
    variables = {**variables, "XDG_RUNTIME_DIR": directory}
    try:
        yield variables
    finally:
        place = find_place(variables)
        pid = client.lock_owner(place)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            block_until(lambda: not client.is_running(place))
        shutil.rmtree(directory)


def wait_diagnosed(window: Editor, path: str | Path, version: int) -> list[str]:
    """The codes of the diagnostics of a version of a file."""
    block_until(lambda: any(one.get("version") == version for one in window.published(path)))
    return window.codes(path)
