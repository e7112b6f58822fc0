"""The files of the log: rotated by size, shared by processes, and nothing but files of this user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_daemon.process.logs.log_file import LogFile, rotated

APPEND = """
import sys
from nexus_daemon.process.logs.log_file import LogFile
log = LogFile(sys.argv[1], size=int(sys.argv[3]), kept=400)
for number in range(int(sys.argv[4])):
    log.append(f"{sys.argv[2]} {number:04} é\\n".encode() * 2)
"""


def check(directory: Path, lines: list[str], *, size: int = 20, kept: int = 2) -> list[str]:
    """Append lines; the texts of the files that are there then, the newest first."""
    log = LogFile(str(directory), size=size, kept=kept)
    for line in lines:
        log.append(f"{line}\n".encode())
    return texts(log.path)


def texts(path: str) -> list[str]:
    names = [path, *(rotated(path, number) for number in range(1, 500))]
    return [Path(name).read_text(encoding="utf-8") for name in names if os.path.exists(name)]


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        (["one"], ["one\n"]),
        (["one", "two"], ["one\ntwo\n"]),
        (["0123456789", "0123456789"], ["0123456789\n", "0123456789\n"]),
        (["a" * 19, "b" * 19, "c" * 19], ["c" * 19 + "\n", "b" * 19 + "\n", "a" * 19 + "\n"]),
        (["a" * 19, "b" * 19, "c" * 19, "d" * 19], ["d" * 19 + "\n", "c" * 19 + "\n", "b" * 19 + "\n"]),
        (["longer than a whole file", "x"], ["x\n", "longer than a whole file\n"]),
    ],
)
def test_rotation(tmp_path: Path, lines: list[str], files: list[str]) -> None:
    assert check(tmp_path / "state" / "logs", lines) == files


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    check(tmp_path / "state" / "logs", ["a" * 19, "b" * 19])
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").rglob("*")}
    assert modes == {"logs": 0o700, "nexus.log": 0o600, "nexus.log.1": 0o600, "nexus.log.lock": 0o600}


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_not_a_file_is_refused(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "nexus.log", tmp_path / "other"
    other.write_text("theirs", encoding="utf-8")
    if kind == "link":
        path.symlink_to(other)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(OSError, match=r"nexus\.log"):
        LogFile(str(tmp_path)).append(b"line\n")
    assert other.read_text(encoding="utf-8") == "theirs"


def test_a_line_that_a_full_disk_cut_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogFile(str(tmp_path))
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
        with pytest.raises(OSError, match="the disk is full"):
            log.append(b"lost line\n")
    log.append(b"next\n")
    assert texts(log.path) == ["los\nnext\n"]


def test_a_deleted_file_is_made_again(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "logs"))
    log.append(b"one\n")
    os.unlink(log.path)
    os.rmdir(tmp_path / "logs")
    log.append(b"two\n")
    assert texts(log.path) == ["two\n"]


def test_processes_lose_and_mix_nothing(tmp_path: Path) -> None:
    names, count = ("a", "b", "c"), 150
    commands = [
        [sys.executable, "-c", APPEND, str(tmp_path), name, str(size), str(count)]
        for name, size in zip(names, (700, 900, 1100), strict=True)
    ]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(50) for process in processes] == [0, 0, 0]
    files = texts(str(tmp_path / "nexus.log"))
    assert len(files) > 1  # how often depends on who has the lock: nobody waits for it
    lines = [line for text in reversed(files) for line in text.splitlines()]
    assert sorted(lines) == sorted([f"{name} {number:04} é" for name in names for number in range(count)] * 2)
    for name in names:  # each process's lines are in its order
        own = [line for line in lines if line.startswith(name)]
        assert own == sorted(own)
