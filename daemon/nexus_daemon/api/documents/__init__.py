"""Answer the requests of LSP about an open document, one feature per module."""

from typing import TYPE_CHECKING

from nexus_daemon.process.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.api.documents import handlers as handlers
    from nexus_daemon.api.documents import renames as renames
else:
    __getattr__ = submodules(__name__, "handlers", "renames")
