"""Keep conversations in memory and in the ledger, and assemble their next request."""

from typing import TYPE_CHECKING

from nexus_daemon.process.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.sessions import usage as usage
else:
    __getattr__ = submodules(__name__, "usage")  # 100 ms: it needs `assembly`
