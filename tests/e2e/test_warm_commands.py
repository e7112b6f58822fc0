"""Commands in the shared daemon, in real processes: the same output, and how both sides end."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nexus_daemon.shared import client
from support.fixture import Fixture, write_fixture
from support.shared import SharedHome
from support.waiting import block_until
from support.warm import Printed, run_process

TREE = """
//- /.nexus3/config.json
{"provider": {"model": "gpt-4o",}}
//- /AGENTS.md
Grüße 🧪
"""
ONLY_WARM = """
import sys
from nexus_daemon import cli
from nexus_daemon.shared import command_client
command_client.FIRST_S = command_client.SILENT_S = 30.0  # on a busy machine
cli.run_here = lambda _: 99
sys.exit(cli.main())
"""
WARM = ("-c", ONLY_WARM)
"""A `nexus` that runs nothing itself."""
COLOURS = {"TERM": "xterm-256color", "NO_COLOR": ""}


@pytest.fixture
def tree(tmp_path: Path) -> Fixture:
    return write_fixture(TREE, tmp_path / "work")


def start(home: SharedHome) -> None:
    place = home.place
    environ = {**os.environ, **home.variables}
    command = [sys.executable, "-m", "nexus_daemon", "serve", "--shared"]
    subprocess.run(command, env=environ, stderr=subprocess.DEVNULL, check=True)
    block_until(lambda: Path(place.socket).exists())


def environ(home: SharedHome, **more: str) -> dict[str, str]:
    return {**os.environ, **home.variables, **more}


def check(
    home: SharedHome, tree: Fixture, *arguments: str, size: tuple[int, int] | None = None, **variables: str
) -> Printed:
    """Compare a command in the daemon with one that uses none."""
    variables = environ(home, **variables)
    in_daemon = run_process(tree.root, variables, arguments, size=size, program=WARM)
    alone = run_process(tree.root, {**variables, "NEXUS_DAEMON": "off"}, arguments, size=size)
    assert in_daemon == alone
    return alone


def test_the_same_output(home: SharedHome, tree: Fixture) -> None:
    start(home)
    assert check(home, tree, "check").code == 1
    assert "🧪".encode() in check(home, tree, "show", ".").out
    assert check(home, tree, "show", "nowhere").err == b"nexus show: nowhere does not exist.\n"
    if sys.platform != "win32":
        for size in ((50, 20), (100, 20)):
            assert b"\x1b[" in check(home, tree, "show", "--tokens", size=size, **COLOURS).out
    assert Path(home.place.errors).read_text() == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_both_streams_in_one_file_are_in_the_same_order(
    home: SharedHome, tree: Fixture, unbuffered: str
) -> None:
    start(home)
    names = [name for index in range(400) for name in ("AGENTS.md", f"none-{index}")]
    outputs = []
    for setting in ("on", "off"):
        program = WARM if setting == "on" else ("-m", "nexus_daemon")
        done = subprocess.run(
            [sys.executable, *program, "tokens", *names],
            cwd=tree.root,
            env=environ(home, NEXUS_DAEMON=setting, PYTHONUNBUFFERED=unbuffered),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        outputs.append((done.returncode, done.stdout))
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == 1


def test_help_and_wrong_usage_come_from_the_process(home: SharedHome, tree: Fixture) -> None:
    start(home)
    for arguments in (("check", "--hel"), ("check", "--nope"), ("sessions", "delete", "x")):
        assert run_process(tree.root, environ(home), arguments, program=WARM) == (99, b"", b"")
    printed = run_process(tree.root, environ(home), ("check", "--nope"))
    assert (printed.code, printed.err.splitlines()[-1]) == (
        2,
        b"nexus: error: unrecognized arguments: --nope",
    )


def test_without_a_daemon_the_process_runs_the_command(home: SharedHome, tree: Fixture) -> None:
    assert run_process(tree.root, environ(home), ("check",), program=WARM).code == 99
    assert run_process(tree.root, environ(home), ("check",)).code == 1
    assert not client.is_running(home.place)


def test_a_socket_that_a_dead_daemon_left(home: SharedHome, tree: Fixture) -> None:
    start(home)
    home.end(signal.SIGKILL)
    assert Path(home.place.socket).exists()
    assert run_process(tree.root, environ(home), ("check",)).code == 1


def test_a_daemon_that_hangs(home: SharedHome, tree: Fixture) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(home.place.socket)
        listener.listen()
        started = time.monotonic()
        assert run_process(tree.root, environ(home), ("check",)).code == 1
        assert time.monotonic() - started >= 2


def test_a_reader_that_is_gone(home: SharedHome, tree: Fixture) -> None:
    start(home)
    command = [sys.executable, *WARM, "check", "--format", "json"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        command, cwd=tree.root, env=environ(home), stdout=write_end, stderr=subprocess.PIPE, check=False
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")
    assert check(home, tree, "check").code == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_control_c_ends_the_client_and_leaves_the_daemon(home: SharedHome, tree: Fixture) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(home.place.socket)
        listener.listen()
        with subprocess.Popen(
            [sys.executable, *WARM, "check"],
            cwd=tree.root,
            env=environ(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            connected, _ = listener.accept()
            with connected:
                assert connected.recv(8) == b"NEXUS/1 "
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"\n")


def test_the_end_of_the_daemon_waits_for_a_command(home: SharedHome, tree: Fixture) -> None:
    start(home)
    files = [str(Path(tree.root, f"{index}.md")) for index in range(60)]
    for index, file in enumerate(files):
        Path(file).write_text(f"Word {index} " * 20_000)
    with subprocess.Popen(
        [sys.executable, *WARM, "tokens", *files],
        cwd=tree.root,
        env=environ(home, PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err, first != b"") == (0, b"", True)
    assert out.endswith(b"counted with o200k_base\n")
