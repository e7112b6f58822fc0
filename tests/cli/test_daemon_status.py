"""What `nexus status` says of the shared daemons that run."""

import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

from support.shared import SharedHome


def status(home: SharedHome, *arguments: str) -> str:
    command = [sys.executable, "-m", "nexus_daemon", "status", str(home.home), *arguments]
    environ = {**os.environ, **home.variables}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


def check(home: SharedHome) -> list[str]:
    """The lines about daemons, without figures of the moment."""
    lines = [line for line in status(home).splitlines() if line.startswith(("daemon", "  window"))]
    return [re.sub(r"\d+ min, \d+ MB", "…", line) for line in lines]


def daemons(home: SharedHome) -> Any:
    return json.loads(status(home, "--json"))["daemons"]


def test_no_daemon_runs(home: SharedHome) -> None:
    assert check(home) == ["daemon       no shared daemon runs"]
    assert daemons(home) == []


def test_a_daemon_with_two_windows(home: SharedHome) -> None:
    root = home.home / "my work"
    root.mkdir()
    with home.window() as one, home.window() as two:
        one.hello(root, clientInfo={"name": "One"})
        one.ask("session/append", root, messages=[{"role": "user", "content": "x"}])
        two.hello(clientInfo={"name": "Two"})
        two.request("nexus/status", {})
        assert check(home) == [
            f"daemon       process {home.pid()}, version 0.1.0, …, 1 folder, 1 session, 0 agents",
            f"  window     One: {root}",
            "  window     Two: no folder",
        ]
        (state,) = daemons(home)
        assert [window["name"] for window in state["clients"]] == ["One", "Two"]
        assert f"NEXUS_HOME={home.home / '.nexus3'}" in state["identity"]


def test_daemons_of_two_identities(home: SharedHome) -> None:
    with home.window() as one, home.window({"NEXUS_TRANSPORT": "tcp"}) as two:
        one.hello()
        two.hello()
        pids = {state["pid"] for state in daemons(home)}
        assert (len(pids), home.pid() in pids) == (2, True)
        for pid in pids - {home.pid()}:
            os.kill(pid, signal.SIGTERM)


def test_a_daemon_that_hangs(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            assert check(home) == [f"daemon       process {pid}: the daemon did not answer within 2 s"]
        finally:
            os.kill(pid, signal.SIGCONT)
