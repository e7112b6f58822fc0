"""Run the live agents of a folder, and preview agents that are not running."""

from typing import TYPE_CHECKING

from nexus_daemon.process.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.agents import previews as previews
    from nexus_daemon.agents import registry as registry
else:
    __getattr__ = submodules(__name__, "previews", "registry")  # most folders have no agents
