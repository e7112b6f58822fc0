"""Editor features, a module for each: pure functions of a snapshot."""

from typing import TYPE_CHECKING

from nexus_daemon.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.features import code_lens as code_lens
else:
    __getattr__ = submodules(__name__, "code_lens")  # the first diagnostics need no token counts
