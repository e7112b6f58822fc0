"""Why directories are not watched: the limit, its value and what to do; file systems that say too little."""

import errno
import os
from pathlib import Path

import pytest

from nexus_daemon.workspace import watch_limits
from nexus_daemon.workspace.watch_limits import Failure, explain, network_devices_in, unlisted

WATCHES = 'OS file watch limit reached. about ["/a"] (Error { kind: MaxFilesWatch, paths: ["/a"] })'
INSTANCES = "Error creating recommended watcher: Too many open files (os error 24)"


FS_WATCHES, USER_WATCHES = "fs.inotify.max_user_watches", "user.max_inotify_watches"
EXPLAINED: dict[str, tuple[BaseException, dict[str, int], Failure]] = {
    "the limit of watches": (
        OSError(WATCHES),
        {FS_WATCHES: 8192, USER_WATCHES: 8192},
        Failure(
            "no file watches are left for this user (fs.inotify.max_user_watches is 8192)",
            "Raise the limit: `sudo sysctl fs.inotify.max_user_watches=524288`.",
            FS_WATCHES,
        ),
    ),
    "the limit of watches by its number": (
        OSError(errno.ENOSPC, "No space left on device"),
        {FS_WATCHES: 1_000_000},
        Failure(
            "no file watches are left for this user (fs.inotify.max_user_watches is 1000000)",
            "Raise the limit: `sudo sysctl fs.inotify.max_user_watches=2000000`.",
            FS_WATCHES,
        ),
    ),
    "the smaller limit of a container": (
        OSError(WATCHES),
        {FS_WATCHES: 8192, USER_WATCHES: 7},
        Failure(
            "no file watches are left for this user (user.max_inotify_watches is 7)",
            "Raise the limit: `sudo sysctl user.max_inotify_watches=524288`.",
            USER_WATCHES,
        ),
    ),
    "the limit of instances": (
        RuntimeError(INSTANCES),
        {"fs.inotify.max_user_instances": 128},
        Failure(
            "no inotify instances are left for this user (fs.inotify.max_user_instances is 128)",
            "Raise the limit: `sudo sysctl fs.inotify.max_user_instances=1024`.",
            "fs.inotify.max_user_instances",
        ),
    ),
    "a system without such limits": (
        OSError(WATCHES),
        {},
        Failure("no file watches are left for this user"),
    ),
    "anything else": (RuntimeError("gone"), {}, Failure("watching failed: gone")),
    "an error without a text": (RuntimeError(), {}, Failure("watching failed: RuntimeError()")),
}


@pytest.mark.parametrize(("error", "sysctl", "expected"), EXPLAINED.values(), ids=EXPLAINED)
def test_a_failure_names_the_limit_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, sysctl: dict[str, int], expected: Failure
) -> None:
    """What an error is explained with, on a system with these limits."""
    monkeypatch.setattr(watch_limits, "read_sysctl", sysctl.get)
    assert explain(error) == expected


def test_the_limit_of_open_files_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    assert explain(RuntimeError(INSTANCES)).limit == "ulimit -n"


@pytest.mark.skipif(not hasattr(os, "makedev"), reason="device numbers are POSIX's")
def test_file_systems_that_other_machines_write_to() -> None:
    mounts = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:31 / /mnt/team\\040files rw,relatime shared:2 master:1 - nfs4 server:/export rw,vers=4.2
31 22 0:32 / /home/ana/remote rw - fuse.sshfs ana@host: rw
32 22 0:33 / /tmp rw shared:3 - tmpfs tmpfs rw
33 22 8:1 / /mnt/stick rw - fuseblk /dev/sdb1 rw
a line that is not one
"""
    devices = network_devices_in(mounts.splitlines(keepends=True))
    assert devices.keys() == {os.makedev(0, 31), os.makedev(0, 32)}
    assert "type nfs4" in devices[os.makedev(0, 31)].reason


def test_directories_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shut = tmp_path / "it's shut"
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(shut))  # root may list everything
    assert unlisted([str(tmp_path)]) == {}
    failure = unlisted([str(tmp_path), str(shut)])[str(shut)]
    assert failure.limit is None
    assert """chmod u+r '""" in failure.advice
