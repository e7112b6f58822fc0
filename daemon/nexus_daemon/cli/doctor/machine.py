"""Checks the system: platform, file watches, and the shared daemon with its files."""

import os
import platform
import sys
from collections.abc import Iterator

from nexus_daemon.cli import output
from nexus_daemon.cli.doctor.check import Check
from nexus_daemon.cli.invocation import current
from nexus_daemon.process.version import __version__
from nexus_daemon.shared import client
from nexus_daemon.shared.identity import NoSharedDaemonError, find_place
from nexus_daemon.workspace.watch_limits import read_sysctl

WATCHES = "fs.inotify.max_user_watches"
INSTANCES = "fs.inotify.max_user_instances"
FEW_WATCHES = 65_536
FEW_INSTANCES = 128
_MOST_DESCRIPTORS = 100_000  # that are looked at


def system() -> Iterator[Check]:
    """Show the operating system, and whether it is a container or WSL."""
    release = platform.release()
    yield Check("system", "system", "info", f"{platform.system()} {release} {platform.machine()}")
    kinds = []
    if "microsoft" in release.lower():
        kinds.append("WSL")
    if any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))):
        kinds.append("container")
    if current().environ.get("SSH_CONNECTION"):
        kinds.append("SSH session")
    yield Check("system", "kind", "info", ", ".join(kinds) or "no container, no WSL")
    yield Check("system", "encoding", "info", f"file names in {sys.getfilesystemencoding()}")


def watches() -> Iterator[Check]:
    """Show the limits of file watches, and how many are in use. Only on Linux."""
    if sys.platform != "linux":
        return
    watches, instances = _watches_in_use()
    for setting, least_limit, count, noun in (
        (WATCHES, FEW_WATCHES, watches, "watches"),
        (INSTANCES, FEW_INSTANCES, instances, "instances"),
    ):
        limit = read_sysctl(setting)
        if limit is None:
            yield Check("system", setting, "info", "this kernel does not say")
            continue
        text = f"{limit:,}; this user's processes have {count:,} {noun}"
        if count >= limit * 0.9:
            advice = f"Raise the limit: `sudo sysctl {setting}={max(524_288, 2 * limit)}`."
            yield Check("system", setting, "fix", text, advice=advice)
        elif limit < least_limit:
            advice = f"`sudo sysctl {setting}={least_limit * 8}` helps with large folders."
            yield Check("system", setting, "warning", text, advice=advice)
        else:
            yield Check("system", setting, "ok", text)


def _watches_in_use() -> tuple[int, int]:
    """Watches and inotify instances of the processes that this user may look at."""
    watches = instances = count = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            descriptors = os.listdir(f"/proc/{process}/fd")
        except OSError:  # of another user, or ended
            continue
        for descriptor in descriptors:
            count += 1
            if count > _MOST_DESCRIPTORS:
                return watches, instances
            try:
                if os.readlink(f"/proc/{process}/fd/{descriptor}") != "anon_inode:inotify":
                    continue
                with open(f"/proc/{process}/fdinfo/{descriptor}", encoding="ascii") as file:
                    watches += sum(line.startswith("inotify ") for line in file)
            except OSError:
                continue
            instances += 1
    return watches, instances


def runtime_directory() -> Iterator[Check]:
    """Check the directory of the shared daemon's socket."""
    try:
        place = find_place(current().environ)
    except NoSharedDaemonError as error:
        is_off = str(error).startswith("NEXUS_DAEMON")
        advice = "" if is_off else "Each window has a daemon of its own until this is fixed."
        yield Check(
            "directories", "runtime directory", "info" if is_off else "fix", str(error), advice=advice
        )
        return
    yield Check("directories", "runtime directory", "ok", place.directory)


def shared_daemon() -> Iterator[Check]:
    """Check whether the shared daemon lives and answers."""
    try:
        place = find_place(current().environ)
    except NoSharedDaemonError:
        return
    for other_place in client.places_of_other_protocols(place, current().environ):
        text = f"process {client.lock_owner(other_place)} serves windows of a version with another protocol"
        advice = "It ends when they are closed, or with `nexus stop`."
        yield Check("shared daemon", "other daemon", "warning", text, advice=advice)
    process = client.lock_owner(place)
    has_socket = os.path.exists(place.socket) or os.path.exists(place.token)
    if process is None and not client.is_running(place):
        text = "not running" + (", its last socket is left and does no harm" if has_socket else "")
        yield Check("shared daemon", "daemon", "ok", f"{text}; windows start it")
        yield from _last_errors(place.errors)
        return
    version, status = None, "does not answer"
    try:
        greeted = client.connect(place, client.fields_for("status", place, {}))
    except NoSharedDaemonError as error:
        status = str(error)
    else:
        if greeted is not None:
            greeted.socket.close()
            windows = int(greeted.reply.get("windows") or 0)
            version, status = greeted.reply.get("version"), f"answers, {output.counted(windows, 'window')}"
    text = f"process {process}, {status}"
    if version is None:
        advice = "Run `nexus stop --force`; windows start another one."
        yield Check("shared daemon", "daemon", "fix", text, advice=advice)
    elif version != __version__:
        advice = "Run `nexus stop`; windows start the other version."
        yield Check("shared daemon", "daemon", "warning", f"{text}, version {version}", advice=advice)
    else:
        yield Check("shared daemon", "daemon", "ok", text)
    yield from _last_errors(place.errors)


def _last_errors(path: str) -> Iterator[Check]:
    """Report the standard error of the last daemon. Only there a crash of the interpreter can be seen."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(65_536).splitlines()
    except OSError:
        return
    crash = [line for line in lines if line.startswith(("Fatal", "Traceback", "MemoryError", "Segmentation"))]
    if crash:
        text = f"{crash[0]} … {lines[-1]}" if len(lines) > 1 else crash[0]
        yield Check("shared daemon", "last crash", "warning", text, advice=f"Add {path} to a bug report.")
