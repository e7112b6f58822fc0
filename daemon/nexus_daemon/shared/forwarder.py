"""`nexus serve --remote=auto`: copies bytes between an editor and the shared daemon, and outlives it.

1. What the editor sends is noted, passed on, and looked at afterwards (`tracker`). Of the daemon's frames it
   looks at the first bytes only (`frames`).
2. When the daemon is gone without a goodbye (it crashed), or is replaced, the forwarder connects to the next
   one, starting it where none runs, and replays what the editor had said. The editor notices nothing.
   After `nexus stop` it does so when the editor sends its next message, or another window started a daemon.
3. One thread reads from the editor, one from the daemon. `_lock` guards what was read and which daemon gets
   it: a replay contains everything that was noted before it, and all else is sent after it.
4. Files that had diagnostics, and about which the new daemon says nothing for STALE_S, have none any more.
5. Without a shared daemon the caller runs a server of its own: nothing has been read from the editor yet.
"""

import _socket
import contextlib
import os
import select
import sys
import threading
import time

from nexus_daemon.shared import client
from nexus_daemon.shared.identity import NoSharedDaemonError, Place, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812
    from collections.abc import Callable, Iterable

    from nexus_daemon.shared import frames
    from nexus_daemon.shared.tracker import Tracker

READ = 256 * 1024  # bytes
LEAVE_S = 5.0  # that the daemon may take to end the connection after the editor is gone
STALE_S = 5.0
REJOIN_S = 1.0  # between two looks whether another window started a daemon
PURPOSE = "editor"
_CLOSED, _STOPPED = "closed", "stopped"  # of `goodbye`


def run(run_daemon: "Callable[[], int]") -> str:
    """Forward until the editor leaves, and exit. Returns only if there is no shared daemon: the reason.

    Where none runs yet, it is started by `run_daemon` in a child.
    """
    try:
        place = find_place(os.environ)
        greeted = _connect(place, run_daemon)
    except NoSharedDaemonError as error:
        return str(error)
    os._exit(Forwarder(place, greeted).run())


class Forwarder:
    """Between the editor at standard input and output and the daemon at a socket."""

    def __init__(self, place: Place, greeted: client.Greeted) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._sending = threading.Lock()  # held while bytes are sent to the daemon
        self._socket: Socket | None = greeted.socket  # None: between two daemons
        self._pid = greeted.reply.get("pid")  # of the daemon, also after its end
        self._unread: list[bytes] = []  # what the editor sent and the tracker has not looked at
        self._is_wanted = False  # whether the editor sent something between two daemons
        self._has_left = False
        self._tracker: Tracker | None = None
        self._published: set[str] = set()  # URIs of files that the editor shows diagnostics of
        self._stale: set[str] = set()  # those about which the present daemon has said nothing
        self._stdin, self._stdout = os.dup(0), os.dup(1)
        os.dup2(2, 1)  # nothing else may write between the frames

    def run(self) -> int:
        """Forward until one side ends the connection for good; the exit code."""
        connected = self._socket
        threading.Thread(target=self._read_editor, name="editor", daemon=True).start()
        while connected is not None:
            reason, running = self._read_daemon(connected)
            with self._lock:
                if reason == _CLOSED or self._is_over():
                    break
                self._drop_socket(connected)
                if reason == _STOPPED:
                    while not (self._is_wanted or self._is_over() or self._has_successor()):
                        self._changed.wait(REJOIN_S)
                if self._is_over():
                    break
                connected = self._reconnect(running)
        tracker = self._look()
        return 0 if tracker.is_shut_down else 1

    # ------------------------------------------------------------ from the editor

    def _read_editor(self) -> None:
        while True:
            try:
                data = os.read(self._stdin, READ)
            except OSError:
                data = b""
            if not data:
                break
            with self._lock:
                self._unread.append(data)
                connected = self._socket
                if connected is None:
                    self._is_wanted = True
                    self._changed.notify_all()
            if connected is not None:
                self._send(connected, (data,))
            with self._lock:
                self._look()
        self._leave()

    def _look(self) -> "Tracker":
        """Look at everything that the editor sent so far."""
        if self._tracker is None:
            from nexus_daemon.shared.tracker import Tracker

            self._tracker = Tracker()
        unread, self._unread = self._unread, []
        for data in unread:
            self._tracker.feed(data)
        return self._tracker

    def _leave(self) -> None:
        """Let the daemon end the connection, since the editor closed its side; give up after LEAVE_S."""
        with self._lock:
            self._has_left = True
            self._changed.notify_all()
            connected = self._socket
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(_socket.SHUT_WR)
        time.sleep(LEAVE_S)
        os._exit(0 if self._look().is_shut_down else 1)

    def _is_over(self) -> bool:
        return self._has_left or self._look().has_exited or self._look().is_lost

    def _send(self, connected: "Socket", pieces: "Iterable[bytes]") -> None:
        """Send bytes; if the daemon is gone, the thread that reads from it connects to the next one."""
        with self._sending, contextlib.suppress(OSError):
            for piece in pieces:
                connected.sendall(piece)

    # ------------------------------------------------------------ from the daemon

    def _read_daemon(self, connected: "Socket") -> "tuple[str | None, list[str] | None]":
        """Pass on what the daemon sends until it ends; why it ended, and which requests it had begun."""
        data = _receive(connected)
        if not data:
            return None, None
        from nexus_daemon.shared.frames import FrameFilter

        frame_filter = FrameFilter()
        while data:
            for piece in frame_filter.feed(data):
                if not _write(self._stdout, piece):
                    return _CLOSED, None
            self._note(frame_filter)
            if self._stale and not select.select((connected,), (), (), STALE_S)[0]:
                self._clear_stale(frame_filter)
            data = _receive(connected)
        if frame_filter.is_inside_frame:
            return _CLOSED, None  # the editor cannot be given the rest of it
        return frame_filter.goodbye, frame_filter.running

    def _note(self, frame_filter: "frames.FrameFilter") -> None:
        """Take in what the frames that passed say."""
        for uri, has_diagnostics in frame_filter.published.items():
            self._stale.discard(uri)
            (self._published.add if has_diagnostics else self._published.discard)(uri)
        frame_filter.published.clear()
        if frame_filter.replied:
            with self._lock:
                tracker = self._look()
                for message_id in frame_filter.replied:
                    tracker.replied(message_id)
            frame_filter.replied.clear()

    def _clear_stale(self, frame_filter: "frames.FrameFilter") -> None:
        if frame_filter.is_inside_frame:
            return
        from nexus_daemon.shared.frames import without_diagnostics

        for uri in self._stale:
            _write(self._stdout, without_diagnostics(uri))
            self._published.discard(uri)
        self._stale = set()

    # ------------------------------------------------------------ between two daemons

    def _drop_socket(self, connected: "Socket") -> None:
        self._socket = None
        self._is_wanted = bool(self._look().pending)
        with contextlib.suppress(OSError):
            connected.shutdown(_socket.SHUT_RDWR)  # wakes a thread that sends

    def _has_successor(self) -> bool:
        pid = client.lock_owner(self._place)
        return pid is not None and str(pid) != self._pid

    def _reconnect(self, running: "list[str] | None") -> "Socket | None":
        """Connect to the next daemon and begin the replay, with the lock held; None if there is none."""
        try:
            greeted = _connect(self._place)
        except NoSharedDaemonError as error:
            print(f"nexus: the shared daemon is gone: {error}", file=sys.stderr)  # noqa: T201 - no command
            return None
        connected, self._pid = greeted.socket, greeted.reply.get("pid")
        tracker = self._look()
        for failure in tracker.take_failures(running):
            _write(self._stdout, failure)
        pieces = [*tracker.replay(), *tracker.pending_again()]
        pieces.append(tracker.incomplete)
        self._stale = set(self._published)
        self._socket, self._is_wanted = connected, False
        # in a thread: the daemon may stop reading until its own messages are read, which is done here
        self._sending.acquire()  # the editor's next bytes come after the replay
        threading.Thread(target=self._replay, args=(connected, pieces), name="replay", daemon=True).start()
        return connected

    def _replay(self, connected: "Socket", pieces: "list[bytes]") -> None:
        try:
            with contextlib.suppress(OSError):
                connected.sendall(b"".join(pieces))
        finally:
            self._sending.release()


def _connect(place: Place, run_daemon: "Callable[[], int] | None" = None) -> client.Greeted:
    """Connect to the daemon; NoSharedDaemonError if there is none."""
    return client.connect_or_start(
        place, client.fields_for(PURPOSE, place, os.environ), run_daemon=run_daemon
    )


def _receive(connected: "Socket") -> bytes:
    """The next bytes; none at the end of the connection, however it came."""
    try:
        return connected.recv(READ)
    except OSError:
        return b""


def _write(descriptor: int, data: "bytes | memoryview") -> bool:
    """Write everything; False if the editor reads no more."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        return False
    return True
