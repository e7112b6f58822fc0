"""`nexus stop`: what it says, and when it has ended the shared daemon."""

import os
import signal
import subprocess
import sys

import pytest

from nexus_daemon.cli import stop
from nexus_daemon.shared import client
from support.commands import run_nexus
from support.shared import SharedHome


def check(home: SharedHome, *arguments: str) -> tuple[int, str]:
    """The exit code and all that `nexus stop` prints."""
    command = [sys.executable, "-m", "nexus_daemon", "stop", *arguments]
    done = subprocess.run(command, env={**os.environ, **home.variables}, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_no_daemon_runs(home: SharedHome) -> None:
    assert check(home) == (0, "No shared daemon runs.\n")


def test_a_daemon_with_a_window(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        pid = home.pid()
        code, text = check(home)
        assert (code, text.splitlines()) == (
            0,
            [
                f"The shared daemon, process {pid}, has ended.",
                "1 open window will start it again with the next message of the editor.",
            ],
        )
        assert not client.is_running(home.place)


def test_a_daemon_that_hangs(home: SharedHome, monkeypatch: pytest.MonkeyPatch) -> None:
    with home.window() as window:
        window.hello()
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        code, text = check(home)
        assert (code, text.splitlines()[-1]) == (
            1,
            f"nexus stop: the daemon did not answer within 5 s. Use --force to kill process {pid}.",
        )
        assert check(home, "--force") == (0, f"The shared daemon, process {pid}, was killed.\n")
        assert window.request("nexus/status", {})["connections"] == 1


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((None, None), (0, "No shared daemon runs.\n")),
        ((None, 0), (0, "")),
        ((0, None), (0, "")),
        ((1, 0), (1, "")),
        ((None, 1), (1, "")),
    ],
)
def test_daemons_of_other_versions_are_stopped_too(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    codes: tuple[int | None, int | None],
    expected: tuple[int, str],
) -> None:
    """The code is the worst one; none runs only if none of any version does."""
    ended = iter(codes)
    monkeypatch.setattr(stop, "_stop", lambda *_, **__: next(ended))
    monkeypatch.setattr(client, "places_of_other_protocols", lambda *_: (None,))
    monkeypatch.setattr(stop, "find_place", lambda _: None)
    code, out, _ = run_nexus(capsys, "stop")
    assert ((code, out), list(ended)) == (expected, [])


def test_the_directory_of_the_socket_is_not_private(home: SharedHome) -> None:
    directory = home.runtime / "nexus"
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    code, text = check(home)
    assert (code, f"other users can enter {directory}: run `chmod 700 {directory}`" in text) == (1, True)
    directory.chmod(0o700)


def test_the_deadline_is_longer_than_a_drain() -> None:
    from nexus_daemon.shared.listener import DRAIN_S

    assert stop.STOP_S > 2 * DRAIN_S
