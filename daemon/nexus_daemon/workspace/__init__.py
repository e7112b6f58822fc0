"""Keep the files of folders as fresh snapshots, and publish the problems in them."""

from typing import TYPE_CHECKING

from nexus_daemon.process.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.workspace import inotify as inotify
    from nexus_daemon.workspace import portable_watches as portable_watches
else:
    # one of them is imported, in a thread, after the first diagnostics
    __getattr__ = submodules(__name__, "inotify", "portable_watches")
