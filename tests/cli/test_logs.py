"""`nexus logs`: what it shows, follows and records."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import main
from nexus_daemon.process.logs.location import recorded_level
from nexus_daemon.process.logs.log_file import LogFile
from support.commands import run_nexus
from support.waiting import block_until

LINES = [
    "2026-11-23T13:48:10.123Z INFO stdio-1 [2] nexus_daemon.lsp.dispatch: connection 2: Neovim",
    "2026-11-23T13:48:11.000Z DEBUG stdio-1 nexus_daemon.server: detail",
    "2026-11-23T13:48:12.000Z ERROR shared-7 nexus_daemon.server: failed␊ValueError␊  nexus_daemon/a.py:1 f",
]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXUS_LOG", str(tmp_path / "logs"))
    return tmp_path / "logs"


def write(directory: Path, *lines: str) -> None:
    LogFile(str(directory)).append("".join(f"{line}\n" for line in lines).encode())


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    code, out, err = run_nexus(capsys, "logs", *arguments)
    return code, out, err.replace(os.environ["NEXUS_LOG"], "LOGS")


def test_everything(capsys: pytest.CaptureFixture[str], directory: Path) -> None:
    write(directory, *LINES)
    assert check(capsys) == snapshot(
        (
            0,
            """\
2026-11-23T13:48:10.123Z INFO stdio-1 [2] nexus_daemon.lsp.dispatch: connection 2: Neovim
2026-11-23T13:48:11.000Z DEBUG stdio-1 nexus_daemon.server: detail
2026-11-23T13:48:12.000Z ERROR shared-7 nexus_daemon.server: failed
    ValueError
      nexus_daemon/a.py:1 f
""",
            "The log is LOGS/nexus.log.\n",
        )
    )


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ([], [0, 1, 2]),
        (["--level", "debug"], [0, 1, 2]),
        (["--level", "info"], [0, 2]),
        (["--level", "warning"], [2]),
        (["--lines", "1"], [2]),
        (["-n", "1", "--level", "error"], [2]),
        (["--lines", "0"], []),
    ],
)
def test_which_lines(
    capsys: pytest.CaptureFixture[str], directory: Path, arguments: list[str], numbers: list[int]
) -> None:
    write(directory, *LINES)
    code, out, _ = check(capsys, "--json", *arguments)
    times = [LINES[number].split(" ")[0] for number in numbers]
    assert (code, [json.loads(line)["time"] for line in out.splitlines()]) == (0, times)


def test_json_has_all_parts(capsys: pytest.CaptureFixture[str], directory: Path) -> None:
    write(directory, LINES[0])
    code, out, err = check(capsys, "--json")
    parts: dict[str, Any] = json.loads(out)
    assert (code, err) == (0, "")
    assert parts == {
        "time": "2026-11-23T13:48:10.123Z",
        "level": "INFO",
        "process": "stdio-1",
        "connection": 2,
        "logger": "nexus_daemon.lsp.dispatch",
        "message": "connection 2: Neovim",
    }


def test_no_log_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys) == (0, "", "The log is LOGS/nexus.log.\n")


def test_a_log_that_cannot_be_read(capsys: pytest.CaptureFixture[str], directory: Path) -> None:
    (directory / "nexus.log").mkdir(parents=True)
    assert check(capsys) == (1, "", "nexus logs: IsADirectoryError: Is a directory: LOGS/nexus.log.\n")


def test_the_level_that_is_recorded(capsys: pytest.CaptureFixture[str], directory: Path) -> None:
    said = "Records from debug on are logged for 5 minutes.\n"
    assert check(capsys, "--record", "debug", "--for", "5") == (0, said, "")
    level = recorded_level(str(directory))
    assert level is not None
    assert level.level == "debug"
    assert check(capsys) == (0, "", "The log is LOGS/nexus.log, with records from debug on.\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--lines", "many"], "'many' is not a number of lines"),
        (["--for", "0"], "'0' is not a number of minutes up to a day"),
        (["--for", "soon"], "'soon' is not a number of minutes up to a day"),
        (["--level", "loud"], "invalid choice: 'loud'"),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], text: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["logs", *arguments])
    assert (ended.value.code, text in capsys.readouterr().err) == (2, True)


def test_it_follows_and_ctrl_c_ends_it(directory: Path, tmp_path: Path) -> None:
    write(directory, LINES[0])
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        command = [sys.executable, "-m", "nexus_daemon", "logs", "--follow"]
        process = subprocess.Popen(command, stdout=out, stderr=err)
        try:
            block_until(lambda: "The log is" in (tmp_path / "err").read_text("utf-8"))
            write(directory, LINES[1])
            block_until(lambda: "detail" in (tmp_path / "out").read_text("utf-8"))
            os.rename(directory / "nexus.log", directory / "nexus.log.1")
            write(directory, LINES[2])
            block_until(lambda: "a.py:1 f" in (tmp_path / "out").read_text("utf-8"))
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130
        finally:
            process.kill()
            process.wait()
    assert len((tmp_path / "out").read_text("utf-8").splitlines()) == 5
    assert "Traceback" not in (tmp_path / "err").read_text("utf-8")


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell")
def test_it_ends_when_its_reader_goes(directory: Path) -> None:
    write(directory, LINES[0])
    command = [sys.executable, "-m", "nexus_daemon", "logs", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read().startswith("The log is ")
            assert process.wait(10) == 0
        finally:
            process.kill()
