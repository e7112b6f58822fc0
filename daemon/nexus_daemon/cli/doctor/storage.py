"""Checks what is on the disk: directories, the ledger, the folder, the log."""

import contextlib
import os
import stat
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_context.errors import Severity
from nexus_context.folder.layers.walk import global_directory
from nexus_daemon.cli import output
from nexus_daemon.cli.doctor.check import Check, Status
from nexus_daemon.cli.invocation import current
from nexus_daemon.process.logs.location import NAME, log_directory, recorded_level
from nexus_daemon.process.logs.log_file import KEPT, rotated
from nexus_daemon.process.logs.read_log import Follower, last_lines

if TYPE_CHECKING:
    import apsw

LEAST_FREE = 16 * 1024 * 1024
LITTLE_FREE = 200 * 1024 * 1024
LOG_LINES = 20
LOOK_S = 5.0
HELD_MS = 2_000
_STEPS = 10_000  # of SQLite's virtual machine between two looks at the clock
_PAUSE_S = 0.05
BACKUP_AGE_S = 7 * 86_400.0
_FLOCK = "hhqqi4x"  # `struct flock` of Linux
_WRITE_LOCK = 120  # WAL_WRITE_LOCK, as https://sqlite.org/walformat.html describes
_MB = 1024 * 1024


def global_settings() -> Iterator[Check]:
    """Check the directory of the user's own settings."""
    yield from _directory("global directory", global_directory(current().environ), is_private=False)


def state() -> Iterator[Check]:
    """Check the directories of the ledger and the log."""
    yield from _directory("state directory", os.path.dirname(_ledger_path()), is_private=True)
    logs = log_directory(current().environ)
    yield from _directory("log directory", logs, is_private=True)


def _directory(name: str, path: str, *, is_private: bool) -> Iterator[Check]:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        existing_parent = path
        while not os.path.isdir(existing_parent):
            existing_parent = os.path.dirname(existing_parent)
        if os.access(existing_parent, os.W_OK | os.X_OK):
            yield Check("directories", name, "ok", f"{path}, not created yet")
        else:
            advice = f"Give this user permission to write {existing_parent}."
            yield Check("directories", name, "fix", f"{path} cannot be created", advice=advice)
        return
    except OSError as error:
        advice = "Give this user permission to enter the directories above it."
        yield Check("directories", name, "fix", f"{path} cannot be examined: {error.strerror}", advice=advice)
        return
    mode = stat.S_IMODE(info.st_mode)
    text = f"{path} ({mode:04o})"
    if not stat.S_ISDIR(info.st_mode):
        yield Check("directories", name, "fix", f"{text} is not a directory", advice="Remove or rename it.")
    elif hasattr(os, "geteuid") and info.st_uid not in (os.geteuid(), 0):
        yield Check("directories", name, "fix", f"{text} belongs to another user", advice=f"chown it: {path}")
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Check(
            "directories",
            name,
            "fix",
            f"{text} cannot be read and written",
            advice=f"Run `chmod u+rwx {path}`.",
        )
    elif mode & stat.S_IWOTH:
        yield Check(
            "directories", name, "fix", f"{text} is writable for everyone", advice=f"Run `chmod o-w {path}`."
        )
    elif is_private and mode & 0o077 and os.name != "nt":
        advice = f"Other users can look into it: run `chmod 700 {path}`."
        yield Check("directories", name, "warning", text, advice=advice)
    else:
        yield Check("directories", name, "ok", text)
    yield from _free_space(name, path)


def _free_space(name: str, path: str) -> Iterator[Check]:
    if not hasattr(os, "statvfs"):
        return
    volume = os.statvfs(path)
    free = volume.f_bavail * volume.f_frsize
    text = f"{free // _MB:,} MB free"
    if free < LEAST_FREE:
        yield Check("directories", f"space of the {name}", "fix", text, advice="Make room on this disk.")
    elif free < LITTLE_FREE:
        yield Check("directories", f"space of the {name}", "warning", text, advice="Make room on this disk.")


# ---------------------------------------------------------------- the ledger


def _ledger_path() -> str:
    """The ledger without the settings of a folder: `nexus_context.ledger.opening` with less to import."""
    from nexus_context.ledger.location import place

    return place(None, current().environ)


def ledger() -> Iterator[Check]:
    """Check whether the ledger is complete and nobody holds it. It is opened for reading only."""
    path = _ledger_path()
    try:
        info = os.stat(path)
    except FileNotFoundError:
        yield Check("ledger", "file", "ok", f"{path}, not created yet")
        return
    beside = [end for end in ("-wal", "-shm") if os.path.exists(path + end)]
    sizes = f"{info.st_size / _MB:.1f} MB" + (f", beside it {', '.join(beside)}" if beside else "")
    yield Check("ledger", "file", "info", f"{path} ({stat.S_IMODE(info.st_mode):04o}), {sizes}")
    if not stat.S_ISREG(info.st_mode):
        yield Check("ledger", "integrity", "fix", "it is not a regular file", advice="Remove or rename it.")
        return
    yield from _integrity(path)
    yield from _backups(path)


def _backups(path: str) -> Iterator[Check]:
    """The newest daily backup; a warning if it is old and the ledger has changed since."""
    from nexus_context.ledger import daily_backups

    backups = daily_backups.list_backups(path)
    if not backups:
        yield Check("ledger", "backups", "info", "none yet: a daemon makes one while an editor is open")
        return
    text = f"{output.counted(len(backups), 'backup')}, the newest of {backups[0].day}"
    with contextlib.suppress(FileNotFoundError):
        backup_time, ledger_time = (os.stat(file_path).st_mtime for file_path in (backups[0].path, path))
        if ledger_time - backup_time > BACKUP_AGE_S:
            advice = "`nexus logs` may say why none was made; `nexus sessions backup FILE` makes one."
            yield Check("ledger", "backups", "warning", text, advice=advice)
            return
    yield Check("ledger", "backups", "ok", text)


def _integrity(path: str) -> Iterator[Check]:
    import apsw

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = None
    try:
        connection = apsw.Connection(f"{Path(path).absolute().as_uri()}?mode=ro", flags=flags)
        connection.set_busy_timeout(HELD_MS)
        version = connection.pragma("user_version")
        yield _quick_check(connection)
        yield Check("ledger", "version", "info", str(version))
    except apsw.BusyError:
        advice = "Another program holds it. End it: `nexus stop`, or close the program that has it open."
        yield Check("ledger", "lock", "fix", f"locked for more than {HELD_MS / 1000:g} s", advice=advice)
    except apsw.Error as error:
        advice = "Nexus sets a damaged ledger aside when it opens it; `nexus sessions restore` has a backup."
        if isinstance(error, apsw.CantOpenError | apsw.PermissionsError):
            advice = "Give this user permission to read and write it."
        yield Check("ledger", "integrity", "fix", f"it cannot be read: {type(error).__name__}", advice=advice)
    finally:
        if connection is not None:
            connection.close()
    yield from _write_lock(f"{path}-shm")


def _write_lock(path: str) -> Iterator[Check]:
    """Whether one process keeps others from writing. The lock is a byte of the file beside the ledger."""
    until = time.monotonic() + HELD_MS / 1000
    while (holder := _holder(path)) is not None:
        if time.monotonic() > until:
            text = f"process {holder} has kept others from writing for {HELD_MS / 1000:g} s"
            yield Check(
                "ledger", "write lock", "fix", text, advice="End that process; no confirmed turn is lost."
            )
            return
        time.sleep(_PAUSE_S)
    yield Check("ledger", "write lock", "ok", "free")


def _holder(path: str) -> int | None:
    """Return the process that holds the write lock. None if the lock is free or the system does not tell."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        question = struct.pack(_FLOCK, *(fcntl.F_WRLCK, os.SEEK_SET, _WRITE_LOCK, 1, 0))
        answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if answer[0] == fcntl.F_UNLCK else int(answer[4])


def _quick_check(connection: "apsw.Connection") -> Check:
    import apsw

    until = time.monotonic() + LOOK_S
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        outcome = connection.execute("PRAGMA quick_check(1)").get
    except apsw.InterruptError:
        text = f"no damage found within {LOOK_S:g} s; `nexus sessions verify` reads all of it"
        return Check("ledger", "integrity", "ok", text)
    finally:
        connection.set_progress_handler(None)
    if outcome == "ok":
        return Check("ledger", "integrity", "ok", "quick check passed")
    advice = "Run `nexus sessions verify`; `nexus sessions restore` puts a backup in its place."
    return Check("ledger", "integrity", "fix", "it is damaged", advice=advice)


# ---------------------------------------------------------------- the folder and the log


def folder(path: str) -> Iterator[Check]:
    """Count the problems in the files of a folder, for the assistants in use. Quotes no text of them."""
    from nexus_daemon.cli.check import with_programs
    from nexus_daemon.cli.check_assistant import check_in_use
    from nexus_daemon.cli.folder import absolute, folder_of, read

    directory = folder_of(absolute(path))
    if directory is None:
        yield Check("folder", "folder", "warning", f"{path} does not exist")
        return
    snapshot = read(directory)
    _, programs = check_in_use(directory, snapshot, counted=False)
    problems = with_programs(snapshot, programs, alone=False)[0].problems
    errors = sum(problem.severity == Severity.ERROR for problem in problems)
    warnings = sum(problem.severity == Severity.WARNING for problem in problems)
    yield Check("folder", "folder", "info", snapshot.folder)
    layers = [layer for layer in snapshot.layers.layers if any(f.status != "missing" for f in layer.files)]
    yield Check(
        "folder", "layers", "info", f"{len(layers)}, {output.counted(len(snapshot.layers.skills), 'skill')}"
    )
    advice = "`nexus check` shows them." if errors or warnings else ""
    status: Status = "warning" if errors else "ok"
    text = f"{output.counted(errors, 'error')}, {output.counted(warnings, 'warning')}"
    yield Check("folder", "problems", status, text, advice=advice)


def log() -> Iterator[Check]:
    """Show where the log is, its size, and its last warnings."""
    directory = log_directory(current().environ)
    path = os.path.join(directory, NAME)
    size = 0
    for number in range(KEPT + 1):
        with contextlib.suppress(OSError):
            size += os.path.getsize(rotated(path, number))
    recorded = recorded_level(directory)
    level = "" if recorded is None else f", records from {recorded.level} on"
    yield Check("log", "file", "info", f"{path}, {size / _MB:.1f} MB with earlier files{level}")
    follower = Follower(directory)
    try:
        lines = last_lines(follower, LOG_LINES, lambda line: line["level"] not in ("DEBUG", "INFO"))
    finally:
        follower.close()
    for line in lines:
        head = line["message"].partition("\n")[0]
        yield Check("log", line["time"], "info", f"{line['level']} {line['logger']}: {head}")
