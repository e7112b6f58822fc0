"""Two daemons at once, again and again: exactly one is elected, and it serves both windows that started them.

1. Every other time two windows start them, which are forwarders; else two processes that are daemons at once.
2. Every third time a stale socket and lock are in the way, and every fourth or fifth time one of the two is
   killed.
3. In the end no process of a daemon is left.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nexus_daemon.shared import client
from nexus_daemon.shared.identity import NoSharedDaemonError
from support.shared import SharedHome, shared_home
from support.waiting import block_until
from torture.daemon_kills import daemons
from torture.figures import Figure, Outcome, Watch, nothing_wrong

NAME = "two daemons started at once"
LEFT_S = 5.0
COMMAND = (sys.executable, "-P", "-m", "nexus_daemon", "serve", "--shared")


def run(elections: int, seed: int = 1) -> Outcome:
    """So many elections."""
    watch, wrong, silent = Watch(), list[str](), 0
    with tempfile.TemporaryDirectory() as directory, shared_home(Path(directory, "home")) as home:
        for number in range(elections):
            if number % 3 == 0:
                _leave_stale_files(home)
            if number % 2:
                failure, elected = _elect_by_windows(home, is_one_killed=number % 5 == 0)
            else:
                failure, elected = _elect(home, is_loser_killed=number % 4 == 0)
            if failure:
                wrong.append(f"election {number}: {failure}")
            silent += elected is None
            if elected is not None:
                os.kill(elected, signal.SIGKILL)
                block_until(lambda: not client.is_running(home.place))
        left = _count_left(home)
    figures = (
        Figure("elections", elections),
        Figure("without a daemon afterwards", silent, at_most=0),
        Figure("processes left over", left, at_most=0),
        Figure("time of one", watch.seconds / max(elections, 1) * 1000, "ms"),
        nothing_wrong(wrong),
    )
    return Outcome(NAME, figures, tuple(wrong), seconds=watch.seconds)


def _elect(home: SharedHome, *, is_loser_killed: bool) -> tuple[str, int | None]:
    """Start two; what is wrong with the result, and the process that was elected."""
    environ = {**os.environ, **home.variables}
    started = [
        subprocess.Popen(COMMAND, env=environ, stderr=subprocess.PIPE, start_new_session=True)
        for _ in range(2)
    ]
    said = []
    for number, process in enumerate(started):
        if is_loser_killed and number == 1:
            process.kill()
        assert process.stderr is not None
        said.append(process.stderr.read())
        process.stderr.close()
        process.wait()
    listening = [text for text in said if text == client.LISTENING]
    errors = [text for text in said if text not in (b"", client.LISTENING)]
    if errors:
        return f"one said {errors[0]!r}", client.lock_owner(home.place)
    if len(listening) != 1 and not is_loser_killed:
        return f"{len(listening)} listen", client.lock_owner(home.place)
    try:
        pid = block_until(home.pid) if listening or client.is_running(home.place) else None
    except (NoSharedDaemonError, TimeoutError) as error:
        return f"it does not answer: {error}", client.lock_owner(home.place)
    if pid is None and is_loser_killed:
        greeted = client.connect_or_start(home.place, client.fields_for("editor", home.place, home.variables))
        greeted.socket.close()
        pid = int(greeted.reply.get("pid"))
    return ("" if pid is not None else "nobody serves"), pid


def _elect_by_windows(home: SharedHome, *, is_one_killed: bool) -> tuple[str, int | None]:
    """Start two windows; as `_elect`."""
    with home.window() as one, home.window() as two:
        windows = [one] if is_one_killed else [one, two]
        if is_one_killed:
            two.kill()
        try:
            for window in windows:
                window.hello()
            block_until(lambda: one.request("nexus/status", {})["connections"] == len(windows))
        except (TimeoutError, EOFError) as error:
            return f"a daemon does not serve both: {str(error)[-300:]}", client.lock_owner(home.place)
        pid = home.pid()
    return ("" if pid is not None else "nobody serves"), pid


def _count_left(home: SharedHome) -> int:
    """The processes of daemons that live although none is elected, after a while."""
    deadline = time.monotonic() + LEFT_S
    while (count := len(daemons(home))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return count


def _leave_stale_files(home: SharedHome) -> None:
    """A socket that nobody listens at, and a lock that nobody holds."""
    Path(home.place.socket).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(home.place.socket)
    Path(home.place.lock).write_text("1\n")
