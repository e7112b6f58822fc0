"""Compute editor features, one per module: pure functions of a snapshot."""

from typing import TYPE_CHECKING

from nexus_daemon.process.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.features import code_actions as code_actions
    from nexus_daemon.features import code_lens as code_lens
    from nexus_daemon.features import edits as edits
    from nexus_daemon.features import server_lens as server_lens
else:
    # the reply to `initialize` needs no layers (30 ms), the first diagnostics need no token counts
    __getattr__ = submodules(__name__, *("code_actions", "code_lens", "edits", "server_lens"))
