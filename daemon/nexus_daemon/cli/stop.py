"""End the shared daemon: it answers what runs, writes what waits, and ends.

Open windows keep their unsaved texts and start it again with their next message. With --force, a daemon that
does not end in time is killed: nothing that it confirmed is lost.
"""

import argparse
import os
import signal
import time

from nexus_daemon.cli import output
from nexus_daemon.cli.invocation import current
from nexus_daemon.shared import client
from nexus_daemon.shared.identity import NoSharedDaemonError, Place, find_place

STOP_S = 15.0
_PAUSE_S = 0.02


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--force", action="store_true", help=f"kill a daemon that does not end within {STOP_S:g} seconds"
    )


def run(options: argparse.Namespace) -> int:
    environ = current().environ
    try:
        place = find_place(environ)
    except NoSharedDaemonError as error:
        output.complain("stop", f"{error}.")
        return 1
    other_places = client.places_of_other_protocols(place, environ)
    codes = [_stop(daemon_place, place, is_forced=options.force) for daemon_place in (place, *other_places)]
    if all(code is None for code in codes):
        output.line("No shared daemon runs.")
    return max(code or 0 for code in codes)


def _stop(place: Place, identity: Place, *, is_forced: bool) -> int | None:
    """End the daemon of a place, with the facts of `identity`. None if no daemon runs there."""
    try:
        greeted = client.connect(place, client.fields_for("stop", identity, current().environ))
    except NoSharedDaemonError as error:
        return _kill_hanging(place, str(error), is_forced=is_forced)
    if greeted is None:
        return None
    greeted.socket.close()
    pid, windows = int(greeted.reply.get("pid")), int(greeted.reply.get("windows") or 0)
    if not _wait_until_ended(place) and not (is_forced and _kill(place, pid)):
        output.complain("stop", f"process {pid} has not ended within {STOP_S:g} s. Use --force to kill it.")
        return 1
    output.line(f"The shared daemon, process {pid}, has ended.")
    if windows:
        count = output.counted(windows, "open window")
        output.line(f"{count} will start it again with the next message of the editor.")
    return 0


def _kill_hanging(place: Place, reason: str, *, is_forced: bool) -> int:
    """Kill a daemon that does not answer, whose process the lock names."""
    pid = client.lock_owner(place)
    if pid is None or not is_forced:
        advice = f" Use --force to kill process {pid}." if pid is not None else ""
        output.complain("stop", f"{reason}.{advice}")
        return 1
    if not _kill(place, pid):
        output.complain("stop", f"process {pid} was killed, and has not ended: it may hang in the system.")
        return 1
    output.line(f"The shared daemon, process {pid}, was killed.")
    return 0


def _kill(place: Place, pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
    except ProcessLookupError:
        return True
    return _wait_until_ended(place)


def _wait_until_ended(place: Place) -> bool:
    deadline = time.monotonic() + STOP_S
    while client.is_running(place):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True
