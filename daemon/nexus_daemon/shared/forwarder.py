"""Copy bytes between an editor and the shared daemon (`nexus serve --remote=auto`), and outlive the daemon.

1. Bytes of the editor are noted, passed on, and parsed afterwards (`tracker`). Of the daemon's frames only
   the first bytes are parsed (`frames`).
2. When the daemon is gone without a goodbye (it crashed), or is replaced, the forwarder connects to the next
   daemon, starts it if none runs, and replays what the editor had sent. The editor notices nothing. After
   `nexus stop` it does so when the editor sends its next message, or when another window has started a
   daemon.
3. One thread reads from the editor and never waits, one sends to the daemon, one reads from the daemon, and
   one checks whether the daemon hangs. `_lock` guards what was read and which daemon gets it: a replay
   contains everything that was noted before it, and all else is sent after it. A thread that fails ends the
   process with a message.
4. If a daemon was sent something and is silent for QUIET_S, the forwarder asks it on another connection. If
   it does not answer there, its requests fail and the user is told. The forwarder then reconnects as if the
   daemon were gone, and tries until the daemon answers or is replaced.
5. If a daemon dies soon after it was connected to, before it answered a request, the next one is started
   after a pause, which doubles. The user is told after the third death.
6. If the new daemon reports nothing for STALE_S about a file that had diagnostics, these are removed.
7. Without a shared daemon the caller runs a server of its own: nothing has been read from the editor yet.
"""

import _socket
import contextlib
import os
import select
import sys
import threading
import time
from functools import partial

from nexus_daemon.shared import client
from nexus_daemon.shared.identity import NoSharedDaemonError, Place, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812
    from collections.abc import Callable

    from nexus_daemon.shared import frames
    from nexus_daemon.shared.tracker import Tracker

READ = 256 * 1024  # bytes
LEAVE_S = 5.0  # that the daemon may take to end the connection after the editor is gone
STALE_S = 5.0
REJOIN_S = 1.0  # between two looks whether another window started a daemon
QUIET_S = 8.0  # that a daemon may say nothing, although it was sent something, before it is asked
ANSWER_S = 4.0  # that it may take to answer then
WATCH_S = 0.5
SOON_S = 10.0  # a daemon that dies earlier has died soon
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 30.0
TOLD_DEATHS = 3
MOST_WAITING = 32 * 1024 * 1024  # bytes from the editor that wait for the daemon; then the editor waits, too
PURPOSE = "editor"
_AT_ONCE: int | None = getattr(_socket, "MSG_DONTWAIT", None)  # None on Windows
_CLOSED, _STOPPED = "closed", "stopped"  # of `goodbye`


def run(run_daemon: "Callable[[], int]") -> str:
    """Forward until the editor leaves, and exit. If there is no shared daemon, return the reason instead.

    If no daemon runs yet, `run_daemon` runs it in a child process.
    """
    try:
        place = find_place(os.environ)
        greeted = _connect(place, run_daemon)
    except NoSharedDaemonError as error:
        return str(error)
    os._exit(Forwarder(place, greeted).run())


class Forwarder:
    """Forwards between the editor at standard input and output and the daemon at a socket."""

    def __init__(self, place: Place, greeted: client.Greeted) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._sending = threading.Lock()  # held while bytes are sent to the daemon
        self._writing = threading.Lock()  # held while a frame is written to the editor
        self._waiting: list[bytes] = []  # for the daemon at `_socket`
        self._is_sending = False  # whether what waited is being sent
        self._quiet_since: float | None = None  # when it was first sent something that it said nothing after
        self._deaths = 0  # of daemons in a row that died soon
        self._has_answered = False  # whether the present daemon answered a request
        self._socket: Socket | None = greeted.socket  # None: between two daemons
        self._pid = greeted.reply.get("pid")  # of the daemon, also after its end
        self._unread: list[bytes] = []  # what the editor sent and the tracker has not looked at
        self._is_wanted = False  # whether the editor sent something between two daemons
        self._has_left = False
        self._is_inside_frame = False  # whether a part of a frame was written to the editor
        self._tracker: Tracker | None = None
        self._published: set[str] = set()  # URIs of files that the editor shows diagnostics of
        self._stale: set[str] = set()  # those about which the present daemon has said nothing
        self._stdin, self._stdout = os.dup(0), os.dup(1)
        os.dup2(2, 1)  # nothing else may write between the frames

    def run(self) -> int:
        """Forward until one side ends the connection for good. Return the exit code."""
        connected = self._socket
        for target in (self._read_editor, self._send_waiting, self._watch_daemon):
            threading.Thread(target=_ending, args=(target,), name=target.__name__, daemon=True).start()
        while connected is not None:
            began = time.monotonic()
            reason, running = self._read_daemon(connected)
            with self._lock:
                if reason == _CLOSED or self._is_over():
                    break
                self._drop_socket(connected)
                if reason == _STOPPED:
                    while not (self._is_wanted or self._is_over() or self._has_successor()):
                        self._changed.wait(REJOIN_S)
                is_soon = reason is None and time.monotonic() - began < SOON_S and not self._has_answered
                self._deaths, self._has_answered = self._deaths + 1 if is_soon else 0, False
                self._pause()
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
                if self._socket is None:
                    self._is_wanted = True
                    self._quiet_since = self._quiet_since or time.monotonic()
                elif unsent := self._send_now(self._socket, data):
                    self._waiting.append(unsent)
                self._changed.notify_all()
            with self._lock:
                self._look()
                while sum(map(len, self._waiting)) > MOST_WAITING:
                    self._changed.wait()
        self._leave()

    def _send_now(self, connected: "Socket", data: bytes) -> bytes:
        """Send what the daemon takes without a wait, and return the rest. Called with the lock held."""
        self._quiet_since = self._quiet_since or time.monotonic()
        if self._waiting or self._is_sending or _AT_ONCE is None or not self._sending.acquire(blocking=False):
            return data
        try:
            return data[connected.send(data, _AT_ONCE) :]
        except BlockingIOError:
            return data
        except OSError:  # who reads from it connects to the next one
            return b""
        finally:
            self._sending.release()

    def _send_waiting(self) -> None:
        while True:
            with self._lock:
                self._is_sending = False
                while not self._waiting or self._socket is None:
                    self._changed.wait()
                waiting_data, self._waiting, self._is_sending = self._waiting, [], True
                connected = self._socket
                self._changed.notify_all()
            with self._sending, contextlib.suppress(OSError):
                connected.sendall(b"".join(waiting_data))

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
        if connected is not None and self._sending.acquire(timeout=LEAVE_S / 2):  # after what is being sent
            with contextlib.suppress(OSError):
                with self._lock:
                    unsent, self._waiting = b"".join(self._waiting), []
                connected.settimeout(LEAVE_S / 2)
                connected.sendall(unsent)
                connected.shutdown(_socket.SHUT_WR)
        time.sleep(LEAVE_S)
        os._exit(0 if self._look().is_shut_down else 1)

    def _is_over(self) -> bool:
        return self._has_left or self._look().has_exited or self._look().is_lost

    # ------------------------------------------------------------ from the daemon

    def _read_daemon(self, connected: "Socket") -> "tuple[str | None, list[str] | None]":
        """Pass on what the daemon sends until it ends; why it ended, and which requests it had begun."""
        data = _receive(connected)
        if not data:
            return None, None
        from nexus_daemon.shared.frames import FrameFilter

        frame_filter = FrameFilter()
        while data:
            self._quiet_since = None
            with self._writing:
                for piece in frame_filter.feed(data):
                    if not _write(self._stdout, piece):
                        return _CLOSED, None
                self._is_inside_frame = frame_filter.is_inside_frame
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
                    self._has_answered |= tracker.replied(message_id)
            frame_filter.replied.clear()

    def _clear_stale(self, frame_filter: "frames.FrameFilter") -> None:
        if frame_filter.is_inside_frame:
            return
        from nexus_daemon.shared.frames import without_diagnostics

        for uri in self._stale:
            _write(self._stdout, without_diagnostics(uri))
            self._published.discard(uri)
        self._stale = set()

    def _watch_daemon(self) -> None:
        """Look whether the daemon hangs."""
        while True:
            time.sleep(WATCH_S)
            since, connected = self._quiet_since, self._socket
            if since is None or time.monotonic() - since < QUIET_S:
                continue
            if connected is None:
                self._fail_pending("no daemon could be started yet; `nexus doctor` says more.")
                continue
            try:
                greeted = client.connect(
                    self._place, client.fields_for("status", self._place, {}), timeout_s=ANSWER_S
                )
            except NoSharedDaemonError:
                self._give_up(connected)
                continue
            if greeted is not None:  # it works: as long as a model may take
                greeted.socket.close()
                with self._lock:
                    if self._quiet_since == since:
                        self._quiet_since = time.monotonic() if self._look().pending else None

    def _give_up(self, connected: "Socket") -> None:
        """Fail what a daemon that hangs was asked, tell the user, and leave it."""
        with self._lock:
            if connected is not self._socket:
                return
            self._waiting = []
            self._changed.notify_all()
        self._fail_pending(
            f"the daemon, process {self._pid}, does not answer. `nexus stop --force` ends it; windows go on "
            "with another one. Nothing that it confirmed is lost."
        )
        with contextlib.suppress(OSError):
            connected.shutdown(_socket.SHUT_RDWR)  # wakes the threads that read from it and send to it

    def _fail_pending(self, reason: str) -> None:
        """Fail all requests without a reply, and tell the user why."""
        with self._lock:
            failures = self._look().take_all_failures()
            self._quiet_since = None
        self._tell(*failures, _message(f"Nexus: {reason}"))

    def _tell(self, *frames: bytes) -> None:
        """Write frames of the forwarder's own, unless the editor has a part of another one."""
        with self._writing:
            if not self._is_inside_frame:
                for frame in frames:
                    _write(self._stdout, frame)

    # ------------------------------------------------------------ between two daemons

    def _pause(self) -> None:
        """Wait before the next daemon, with the lock held, if the last ones died soon."""
        if not self._deaths:
            return
        seconds = min(FIRST_PAUSE_S * 2.0 ** (self._deaths - 1), LONGEST_PAUSE_S)
        if self._deaths == TOLD_DEATHS:
            text = (
                f"Nexus: the daemon has ended {self._deaths} times in a row and is started again, ever later."
            )
            self._tell(
                _message(f"{text} `nexus doctor` says more; what it said last is in {self._place.errors}.")
            )
        until = time.monotonic() + seconds
        while (remaining_s := until - time.monotonic()) > 0 and not self._is_over():
            self._changed.wait(remaining_s)

    def _drop_socket(self, connected: "Socket") -> None:
        self._socket = None
        self._is_wanted = bool(self._look().pending)
        self._quiet_since = time.monotonic() if self._is_wanted else None
        with contextlib.suppress(OSError):
            connected.shutdown(_socket.SHUT_RDWR)  # wakes a thread that sends

    def _has_successor(self) -> bool:
        pid = client.lock_owner(self._place)
        return pid is not None and str(pid) != self._pid

    def _reconnect(self, running: "list[str] | None") -> "Socket | None":
        """Connect to the next daemon and begin the replay, with the lock held; None if there is none."""
        greeted = None
        while greeted is None:
            try:
                greeted = self._connect_unlocked()
            except NoSharedDaemonError as error:
                if not client.is_running(self._place):
                    print(f"nexus: the shared daemon is gone: {error}", file=sys.stderr)  # noqa: T201 - no command
                    return None
                self._changed.wait(REJOIN_S)  # it hangs, still
            if self._is_over():
                return None
        connected, self._pid = greeted.socket, greeted.reply.get("pid")
        tracker = self._look()
        self._tell(*tracker.take_failures(running))
        pieces = [*tracker.replay(), *tracker.pending_again()]
        pieces.append(tracker.incomplete)
        self._stale = set(self._published)
        self._socket, self._is_wanted = connected, False
        self._waiting, self._quiet_since = [], time.monotonic()
        # in a thread: the daemon may stop reading until its own messages are read, which is done here
        self._sending.acquire()  # the editor's next bytes come after the replay
        replay = partial(self._replay, connected, pieces)
        threading.Thread(target=_ending, args=(replay,), name="replay", daemon=True).start()
        return connected

    def _connect_unlocked(self) -> client.Greeted:
        """Connect while the other threads may go on."""
        self._lock.release()
        try:
            return _connect(self._place)
        finally:
            self._lock.acquire()

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


def _ending(target: "Callable[[], None]") -> None:
    """Run a thread; if it fails, the process ends: without it the window would be deaf."""
    try:
        target()
    except BaseException as error:  # noqa: BLE001 - said below
        name = getattr(target, "__name__", "replay")
        print(f"nexus: the forwarder failed in {name}: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - no command
        os._exit(1)


def _message(text: str) -> bytes:
    """A warning for the user, as a frame."""
    from nexus_daemon.shared.tracker import frame

    params = {"type": 2, "message": text}
    return frame({"jsonrpc": "2.0", "method": "window/showMessage", "params": params})


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
