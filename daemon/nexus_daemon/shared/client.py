"""Connect to the shared daemon, and start it if none runs.

1. The daemon holds its lock for as long as it lives, and the system releases the lock when it dies. So if the
   lock is held, wait for the socket; if it is free, start a daemon.
2. Several processes may start a daemon at the same time. The first that gets the lock stays, the others end
   at once.
3. A daemon writes a NUL to its standard error, a pipe, once it listens. Any other text says why it cannot
   listen.
4. Both sides check that the other one is a process of the same user.
5. A command that the daemon runs waits for this module to be imported. So it imports `_socket`, since
   `socket` takes as long as all the rest.
6. On Linux the daemon is a fork of a process that has just started, since another Python would take as long
   again. A process that has served an editor for a while starts another Python, which reads the modules that
   are installed by then, from the same place. An isolated Python starts an isolated one.
"""

import _socket
import os
import sys
import time

from nexus_daemon.process.version import PROTOCOL, __version__
from nexus_daemon.shared import hello
from nexus_daemon.shared.identity import DirectPlace, NoSharedDaemonError, Place, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812 - an attribute below has that name
    from collections.abc import Callable, Mapping

    from nexus_daemon.shared.hello import Fields

REPLY_S = 5.0  # that a daemon may take to answer the first message
START_S = 20.0  # that a daemon may take to start, while one before it may be ending
PAUSE_S = 0.005
LOOPBACK = "127.0.0.1"
LISTENING = b"\0"
_LOCKED_BYTE = 1 << 20  # of the lock on Windows, behind the text: a locked byte cannot be read there


class Greeted:
    """A connection whose first messages were exchanged. `reply` is the daemon's first message."""

    __slots__ = ("reply", "socket")

    def __init__(self, connected: "Socket", reply: "Fields") -> None:
        self.socket = connected
        self.reply = reply


class NotReadyError(Exception):
    """No daemon listens now, or the daemon is about to end."""


def fields_for(
    purpose: str, place: Place, environ: "Mapping[str, str]", *, more: "tuple[tuple[str, str], ...]" = ()
) -> "Fields":
    """Build the first message of this process."""
    umask = os.umask(0o077)
    os.umask(umask)
    process_fields = (("version", __version__), ("protocol", str(PROTOCOL)), ("facts", place.facts))
    pairs = (("purpose", purpose), *process_fields, ("umask", str(umask)), ("pid", str(os.getpid())), *more)
    return hello.with_environ(pairs, environ)


def connect(place: Place, fields: "Fields", *, timeout_s: float = REPLY_S) -> Greeted | None:
    """Connect to the running daemon. None if no daemon runs or it is ending.

    NoSharedDaemonError if the daemon refuses this client, belongs to another user or does not answer.
    """
    try:
        return _greet(place, fields, timeout_s)
    except NotReadyError:
        return None


def connect_or_start(
    place: Place, fields: "Fields", *, run_daemon: "Callable[[], int] | None" = None
) -> Greeted:
    """Connect to the daemon, and start it if none runs. NoSharedDaemonError if it does not start in time.

    If `run_daemon` is given, a fork of this process becomes the daemon. Only a process with a single thread
    may give it.
    """
    deadline = time.monotonic() + START_S
    pause_s = PAUSE_S
    while True:
        greeted = connect(place, fields)
        if greeted is not None:
            return greeted
        if is_running(place):
            time.sleep(PAUSE_S)
        elif failure := _start(run_daemon):
            raise NoSharedDaemonError(failure)
        else:
            time.sleep(pause_s)
            pause_s *= 2  # each of the next ones has died at once
        if time.monotonic() > deadline:
            raise NoSharedDaemonError("it did not start in time")


def is_running(place: Place) -> bool:
    """Whether a daemon holds the lock of this place."""
    try:
        descriptor = os.open(place.lock, os.O_RDWR)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, is_exclusive=False)
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, *, is_exclusive: bool) -> bool:
    """Lock an open file until it is closed. Return False if another process has locked it."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(descriptor, (fcntl.LOCK_EX if is_exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def lock_owner(place: Place) -> int | None:
    """Return the id of the process that holds the lock. None if the lock is free."""
    if not is_running(place):
        return None
    try:
        with open(place.lock, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def running_places(environ: "Mapping[str, str]") -> list[Place]:
    """Return the places of all running daemons of the user, whatever their identity."""
    try:
        own_place = find_place(environ)
        names = sorted(os.listdir(own_place.directory))
    except (NoSharedDaemonError, OSError):
        return []
    kinds = {".sock": True, ".tcp": False}
    paths = [os.path.splitext(os.path.join(own_place.directory, name)) for name in names]
    places = [DirectPlace(stem + kind, has_socket=kinds[kind]) for stem, kind in paths if kind in kinds]
    return [place for place in places if is_running(place)]


def places_of_other_protocols(place: Place, environ: "Mapping[str, str]") -> list[Place]:
    """Return the places of running daemons that have the same identity as `place` and another protocol."""
    identity = place.name.partition("-")[0]
    names = (
        (os.path.basename(os.path.splitext(running_place.address)[0]), running_place)
        for running_place in running_places(environ)
    )
    return [
        running_place
        for name, running_place in names
        if name.partition("-")[0] == identity and name != place.name
    ]


def peer_user(connected: "Socket") -> int | None:
    """Return the user id of the process at the other end of a Unix socket. None if the system cannot tell."""
    platform: str = sys.platform
    if platform == "linux":
        credentials = connected.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # pid, user, group
        return int.from_bytes(credentials[4:8], sys.byteorder)
    if platform == "darwin":
        credentials = connected.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: version, user, groups
        return int.from_bytes(credentials[4:8], sys.byteorder)
    return None


def receive_exactly(connected: "Socket", count: int) -> bytes:
    """Receive exactly `count` bytes. EOFError if the other side ends before."""
    data = bytearray()
    while len(data) < count:
        piece = connected.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _greet(place: Place, fields: "Fields", timeout_s: float) -> Greeted:
    connected = _open(place, timeout_s)
    try:
        connected.sendall(hello.encode(fields))
        reply = _receive(connected)
        status = reply.get("status")
        if status in ("replaced", "ending"):
            raise NotReadyError
        if status != "ok":
            raise NoSharedDaemonError(reply.get("message") or "the daemon refused this client")
        connected.settimeout(None)
    except (EOFError, ConnectionError) as error:  # it ended meanwhile
        connected.close()
        raise NotReadyError from error
    except TimeoutError as error:
        connected.close()
        raise _does_not_answer(timeout_s) from error
    except (hello.HelloError, OSError) as error:
        connected.close()
        raise NoSharedDaemonError(f"the daemon did not answer as one: {error}") from error
    except BaseException:
        connected.close()
        raise
    return Greeted(connected, reply)


def _does_not_answer(timeout_s: float) -> NoSharedDaemonError:
    return NoSharedDaemonError(f"the daemon did not answer within {timeout_s:g} s")


def read_token(place: Place) -> tuple[int, str]:
    """Read the port and token of the daemon of this place. OSError or ValueError if there are none."""
    with open(place.token, encoding="ascii") as file:
        port, token = file.read().split()
    return int(port), token


def _receive(connected: "Socket") -> "Fields":
    line = b""
    while not line.endswith(b"\n"):
        if len(line) > hello.LONGEST_LINE:
            raise hello.HelloError("the first line has no end")
        line += receive_exactly(connected, 1)
    return hello.decode(receive_exactly(connected, hello.body_length(line[:-1])))


def _open(place: Place, timeout_s: float) -> "Socket":
    """A connection to a process that is the user's daemon."""
    if not place.has_socket:
        return open_loopback(place, timeout_s)
    connected = _socket.socket(_socket.AF_UNIX)
    try:
        connected.settimeout(timeout_s)
        connected.connect(place.socket)
    except OSError as error:  # absent, stale, or so busy that its queue is full
        connected.close()
        raise NotReadyError from error
    user = peer_user(connected)
    if user not in (None, os.getuid()):
        connected.close()
        raise NoSharedDaemonError(f"{place.socket} belongs to a process of user {user}")
    return connected


def open_loopback(place: Place, timeout_s: float) -> "Socket":
    """Connect to the port of the daemon of this place. Each side proves that it knows the token.

    NotReadyError if the daemon does not run, or if another program listens there, as any may once it is dead.
    NoSharedDaemonError if it does not answer.
    """
    import socket

    if place.is_elected and not is_running(place):  # the file was left by a dead daemon
        raise NotReadyError
    deadline = time.monotonic() + timeout_s
    try:
        port, token = read_token(place)
        connected = socket.create_connection((LOOPBACK, port), timeout=timeout_s)
    except TimeoutError as error:
        raise _does_not_answer(timeout_s) from error
    except (OSError, ValueError) as error:
        raise NotReadyError from error
    try:
        _prove(connected, token, deadline)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(timeout_s)
    except TimeoutError as error:  # it runs, and hangs
        connected.close()
        raise _does_not_answer(timeout_s) from error
    except (EOFError, OSError) as error:
        connected.close()
        raise NotReadyError from error
    except BaseException:
        connected.close()
        raise
    return connected


def _prove(connected: "Socket", token: str, deadline: float) -> None:
    """Prove to the daemon who this is, after it has. OSError or EOFError if it is not the daemon."""
    number = hello.random_number()
    connected.sendall(hello.PROOF_MAGIC + number + b"\n")
    data = b""
    while len(data) < 2 * hello.NUMBER + 2:  # two numbers, each with its end
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        connected.settimeout(remaining_s)
        piece = connected.recv(2 * hello.NUMBER + 2 - len(data))
        if not piece:
            raise EOFError
        data += piece
    daemon_number, _, daemon_proof = data.partition(b" ")
    numbers = number + b" " + daemon_number
    if not hello.is_proof(daemon_proof.rstrip(b"\n"), token, "daemon", numbers):
        raise ConnectionError("another process listens at the daemon's port")
    connected.sendall(hello.proof(token, "client", numbers) + b"\n")


# ---------------------------------------------------------------- starting


def _start(run_daemon: "Callable[[], int] | None") -> str:
    """Start a daemon and wait until it listens or ends; why it cannot run, as text, or an empty text."""
    read_end, write_end = os.pipe()
    try:
        # elsewhere libraries of the system may not work in a fork
        if run_daemon is not None and sys.platform == "linux":
            _fork(run_daemon, write_end)
        else:
            isolation = "-I" if sys.flags.isolated else "-P"
            _spawn((sys.executable, isolation, "-m", "nexus_daemon", "serve", "--shared"), write_end)
    except OSError as error:
        os.close(write_end)
        os.close(read_end)
        return f"it could not be started: {error}"
    os.close(write_end)
    text = b""
    with open(read_end, "rb", buffering=0) as pipe:
        while not text.endswith(LISTENING) and (piece := pipe.read(4096)):
            text += piece
    lines = text.strip(LISTENING).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _fork(run_daemon: "Callable[[], int]", errors: int) -> None:
    """Run the daemon in a child, as `_spawn` would."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)  # it forks, so that it is nobody's child
        return
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor, source in ((0, null), (1, null), (2, errors)):
            os.dup2(source, descriptor)
        code = run_daemon()
    except BaseException as error:  # noqa: BLE001 - nothing may return into the forwarder
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _spawn(command: tuple[str, ...], errors: int) -> None:
    """Run a command in a session of its own, without our input, output and working directory."""
    if os.name == "nt":
        import subprocess

        flags = 0x00000008 | 0x00000200 | 0x08000000  # DETACHED_PROCESS, NEW_PROCESS_GROUP, NO_WINDOW
        null = subprocess.DEVNULL
        subprocess.Popen(command, stdin=null, stdout=null, stderr=errors, creationflags=flags, close_fds=True)
        return
    null_file = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    redirected = [null_file, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, errors, 2)]
    try:
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=redirected, setsid=True)
    except NotImplementedError:  # the daemon leaves the session itself
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=redirected)
    try:  # noqa: SIM105 - commands do not wait for contextlib
        os.waitpid(pid, 0)  # it forks, so that it is nobody's child
    except ChildProcessError:
        pass
