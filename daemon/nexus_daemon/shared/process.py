"""Run the process of the shared daemon: elected, detached, and ended when it was not used for a while.

1. It takes the lock, listens, and says so, before anything slow is imported. Clients wait in the queue of the
   socket meanwhile.
2. On Linux the process is named `nexusd`, since its command line may be that of the forwarder that it is a
   fork of.
3. It ends after `daemon.idle_minutes` without a connection, on SIGTERM, for a newer client, or for `nexus
   stop`. Then it stops listening, lets open requests end, writes what waits, and releases its lock.
"""

import contextlib
import errno
import os
import signal
import socket
import stat
import sys

from nexus_daemon.shared import client, election
from nexus_daemon.shared.identity import DirectPlace, NoSharedDaemonError, Place, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_daemon.shared.command_runner import RunCommand

NAME = "nexusd"


def run(run_command: "RunCommand") -> int:
    """Be the shared daemon until it ends. Return the exit code."""
    if os.name != "nt":
        if os.fork():
            os._exit(0)
        with contextlib.suppress(OSError):
            os.setsid()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # what the process that started this one had open
        with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as name:
            name.write(NAME)
    os.chdir(os.path.abspath(os.sep))
    os.umask(0o077)
    try:
        place = find_place(os.environ)
        lock = election.take_lock(place)
    except (NoSharedDaemonError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the process that started this one reads it
        return 1
    if lock is None:  # another one was elected
        return 0
    try:
        listener = election.listen(place)
    except OSError as error:
        print(f"{place.directory}: {error.strerror or error}", file=sys.stderr)  # noqa: T201 - as above
        return 1
    # from here on signals end it in order; the loop replaces these handlers
    for number in (signal.SIGINT, signal.SIGHUP) if os.name != "nt" else (signal.SIGINT,):
        signal.signal(number, signal.SIG_IGN)
    _report_listening(place)
    from nexus_daemon.shared.listener import serve

    code = serve(place, listener, lock, run_command)
    # every reply is written and the ledger is closed: no thread that hangs on a file system keeps the process
    os._exit(code)


def run_at(path: str) -> int:
    """Serve at a Unix socket until SIGTERM or Ctrl-C, and return the exit code.

    OSError if it cannot listen there.
    """
    from nexus_daemon.shared.listener import serve

    place = DirectPlace(os.path.abspath(path), has_socket=True)
    if os.path.lexists(place.socket) and not _is_stale(place.socket):
        raise FileExistsError(errno.EEXIST, f"{path} exists, and is not the socket of a server that is gone")
    return serve(place, election.listen_at(place.socket), None)


def run_on_loopback(port: int, report: "Callable[[int, str], None]") -> int:
    """Serve on a loopback port (0: any free one) until SIGTERM or Ctrl-C. Return the exit code.

    `report` gets the port and the path of the file with the token.
    """
    from nexus_daemon.shared.listener import serve

    directory = find_place(os.environ).directory
    place = DirectPlace(os.path.join(directory, f"direct-{os.getpid()}.tcp"), has_socket=False)
    listener = election.listen_on_loopback(place.token, port)
    report(listener.getsockname()[1], place.token)
    return serve(place, listener, None)


def _is_stale(path: str) -> bool:
    """Whether a path is a socket that nobody listens at."""
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
    return False


def _report_listening(place: Place) -> None:
    """Tell the process that started this one, and write no more to it: what the interpreter says is kept."""
    with contextlib.suppress(OSError):
        os.write(2, client.LISTENING)
    try:
        errors = os.open(place.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    except OSError:  # the disk is full
        errors = os.open(os.devnull, os.O_WRONLY)
    os.dup2(errors, 2)
    os.close(errors)
