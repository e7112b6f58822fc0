"""Explain why the system does not report every change in a directory, and what the user can do about it."""

import errno
import os
import re
import shlex
from collections.abc import Iterable

import msgspec

_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # as watchfiles writes the number of an error
_OCTAL = re.compile(r"\\([0-7]{3})")  # a space in a path of mountinfo, for example
_WATCHES = ("fs.inotify.max_user_watches", "user.max_inotify_watches", 524_288)
_INSTANCES = ("fs.inotify.max_user_instances", "user.max_inotify_instances", 1_024)
_NETWORK = re.compile(
    "9p|afs|ceph|cifs|coda|davfs|drvfs|fuse[.].*|gfs2|glusterfs|gpfs|lustre|nfs|nfs4|ocfs2|prl_fs|smb3|smbfs"
    "|vboxsf|virtiofs|vmhgfs"
)


class Failure(msgspec.Struct, frozen=True):
    """Why directories are not watched. `reason` is a clause, `advice` a sentence on what to do, or empty.

    `limit` names the system limit that is reached, if that is the reason.
    """

    reason: str
    advice: str = ""
    limit: str | None = None


def explain(error: BaseException) -> Failure:
    """Explain why a watch failed, and name the system limit if one is reached."""
    number = getattr(error, "errno", None)
    if number is None and (match := _OS_ERROR.search(str(error))):
        number = int(match[1])
    if number == errno.ENOSPC or "watch limit" in str(error):
        return _limit("no file watches are left for this user", *_WATCHES)
    if number == errno.EMFILE and _can_open():
        return _limit("no inotify instances are left for this user", *_INSTANCES)
    if number == errno.EMFILE:
        return Failure(
            "this process may not open more files (ulimit -n)",
            "Raise the limit, for example with `ulimit -n 65536`, and start the editor again.",
            "ulimit -n",
        )
    return Failure(f"watching failed: {str(error) or repr(error)}")


def unlisted(directories: Iterable[str]) -> dict[str, Failure]:
    """Return the directories that this user may not list, with the reason. The system does not watch them."""
    return {
        directory: Failure(
            f"you may not list the directory {directory}", f"Allow it: `chmod u+r {shlex.quote(directory)}`."
        )
        for directory in directories
        if not os.access(directory, os.R_OK)
    }


def network_devices() -> dict[int, Failure]:
    """Return the devices (`st_dev`) of file systems on which the system does not report every change.

    On these, another machine or program can change files. Empty on other systems than Linux.
    """
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            return network_devices_in(mounts)
    except OSError:
        return {}


def network_devices_in(mounts: Iterable[str]) -> dict[int, Failure]:
    """Find the devices of `network_devices` in the lines `mounts`.

    A line is like `36 35 0:31 / /mnt rw shared:1 - nfs4 host:/ rw`.
    """
    devices: dict[int, Failure] = {}
    for line in mounts:
        mount_text, separator, filesystem_text = line.partition(" - ")
        fields, kind = mount_text.split(" "), filesystem_text.split(" ", 1)[0]
        if separator and len(fields) > 4 and _NETWORK.fullmatch(kind):
            major, _, minor = fields[2].partition(":")
            reason = f"file systems of type {kind} do not report changes by other machines"
            devices[os.makedev(int(major), int(minor))] = Failure(reason)
    return devices


def network_mounts() -> tuple[str, ...]:
    """Return the paths at which network file systems are mounted, since reading a directory there may hang.

    Empty on other systems than Linux.
    """
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            return network_mounts_in(mounts)
    except OSError:
        return ()


def network_mounts_in(mounts: Iterable[str]) -> tuple[str, ...]:
    """Find the mounts of `network_mounts` in lines as in `network_devices_in`."""
    points = []
    for line in mounts:
        mount_text, separator, filesystem_text = line.partition(" - ")
        fields, kind = mount_text.split(" "), filesystem_text.split(" ", 1)[0]
        if separator and len(fields) > 4 and _NETWORK.fullmatch(kind):
            points.append(_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4]))
    return tuple(points)


def _limit(description: str, setting: str, namespaced: str, enough: int) -> Failure:
    """Describe a system limit; in a container the limit of its namespace may be the smaller one."""
    values = {name: value for name in (setting, namespaced) if (value := read_sysctl(name)) is not None}
    if not values:
        return Failure(description)
    name = min(values, key=lambda sysctl_name: values[sysctl_name])
    value = values[name]
    return Failure(
        f"{description} ({name} is {value})",
        f"Raise the limit: `sudo sysctl {name}={max(enough, 2 * value)}`.",
        name,
    )


def read_sysctl(name: str) -> int | None:
    """Read a setting of the Linux kernel. None if it does not exist or is not a number."""
    try:
        with open(f"/proc/sys/{name.replace('.', '/')}", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _can_open() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True
