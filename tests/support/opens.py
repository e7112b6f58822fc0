"""Which files and directories this process opens, as Python's audit events and SQLite tell."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

SESSIONS = (".claude/projects", ".codex/sessions", ".gemini/tmp", ".local/share/opencode")
"""Where programs have their sessions, in a home."""

_recorders: list[list[str]] = []
_EVENTS = {"open", "os.listdir", "os.scandir"}


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if not _recorders or event not in _EVENTS:
        return
    path = arguments[0]
    if isinstance(path, int) and path >= 0:
        path = os.readlink(f"/proc/self/fd/{path}") if sys.platform == "linux" else ""
    for recorder in _recorders if isinstance(path, str | bytes | os.PathLike) else ():
        recorder.append(os.fsdecode(path))


def _record_database(connection: apsw.Connection) -> None:
    for recorder in _recorders:
        recorder.append(connection.db_filename("main"))


sys.addaudithook(_record)
apsw.connection_hooks.append(_record_database)


@contextmanager
def session_opens(home: Path) -> Iterator[list[str]]:
    """What is opened or listed, until the end of the block, of the sessions of programs in a home."""
    with file_opens(*(home / name for name in SESSIONS)) as opened:
        yield opened


@contextmanager
def file_opens(*roots: Path) -> Iterator[list[str]]:
    """What is opened or listed, until the end of the block, of files and of all in directories.

    What is opened below an open directory is known by its name alone, so no other file may have that name.
    """
    files = [path for root in roots for path in (root, *root.rglob("*")) if path.is_file()]
    assert files
    names, paths = {path.name for path in files}, [str(root) for root in roots]
    opened: list[str] = []
    chosen: list[str] = []
    _recorders.append(opened)
    try:
        yield chosen
    finally:
        _recorders.remove(opened)
        chosen += [
            path
            for path in opened
            if path in names or any(path == root or path.startswith(root + os.sep) for root in paths)
        ]
