"""File systems of our own, for as long as a test needs them: a small one in memory, one in an image file."""

import contextlib
import gc
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

MKFS = shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def why_not(*, loop: bool = False) -> str | None:
    """Why nothing can be mounted here; None if it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if loop and MKFS is None:
        return "there is no mkfs.ext4"
    if loop and not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    return None


@contextlib.contextmanager
def memory(folder: Path, size: str, *, most_files: int = 10_000) -> Iterator[Path]:
    """A file system of a size (`"8m"`) in memory, mounted at a new folder."""
    folder.mkdir()
    options = (
        f"size={size},nr_inodes={most_files},mode=0700"  # else an empty file takes no room: millions fit
    )
    with _mounted("-t", "tmpfs", "-o", options, "torture", str(folder)):
        yield folder


@contextlib.contextmanager
def image(file: Path, folder: Path) -> Iterator[Path]:
    """The file system in an image file, mounted at a folder; its journal is replayed first."""
    folder.mkdir(exist_ok=True)
    with _mounted("-o", "loop", str(file), str(folder)):
        yield folder


def format_image(file: Path, size: int) -> None:
    """A new ext4 of `size` bytes in a file, which nobody writes to of its own accord."""
    assert MKFS is not None
    with file.open("wb") as stream:
        stream.truncate(size)
    quiet = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    _run(MKFS, "-q", "-E", quiet, str(file))


def read_only(folder: Path) -> None:
    """From now on nothing can be written below a mounted folder."""
    _run("mount", "-o", "remount,ro", str(folder))


@contextlib.contextmanager
def _mounted(*arguments: str) -> Iterator[None]:
    _run("mount", *arguments)
    try:
        yield
    finally:
        gc.collect()  # whoever left a file open is found out elsewhere
        _run("umount", arguments[-1])


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
