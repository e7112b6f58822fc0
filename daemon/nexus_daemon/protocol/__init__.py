"""The `nexus/*` methods: names, parameters and results; a module per method group, `shapes` what they share.

Parameters and results are msgspec structs with camelCase names on the wire, decoded from and encoded to
raw bytes. Ranges are in the negotiated position encoding. Fields are added, never renamed.
docs/protocol.md shows each with a real example.

A module is imported when one of its names is first used: the reply to `initialize` needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # ruff: noqa: F403
    from nexus_daemon.protocol.agent import *
    from nexus_daemon.protocol.assistant import *
    from nexus_daemon.protocol.assistant_session import *
    from nexus_daemon.protocol.chat import *
    from nexus_daemon.protocol.config import *
    from nexus_daemon.protocol.context import *
    from nexus_daemon.protocol.conversation import *
    from nexus_daemon.protocol.debug import *
    from nexus_daemon.protocol.event import *
    from nexus_daemon.protocol.explain import *
    from nexus_daemon.protocol.knowledge import *
    from nexus_daemon.protocol.mcp import *
    from nexus_daemon.protocol.memory import *
    from nexus_daemon.protocol.model import *
    from nexus_daemon.protocol.outgoing import *
    from nexus_daemon.protocol.session import *
    from nexus_daemon.protocol.shapes import *
    from nexus_daemon.protocol.skill import *
    from nexus_daemon.protocol.tokens import *
    from nexus_daemon.protocol.view import *
    from nexus_daemon.protocol.workspace import *
else:
    _MODULES = (
        "shapes",
        "agent",
        "assistant",
        "assistant_session",
        "chat",
        "config",
        "context",
        "conversation",
        "debug",
        "event",
        "explain",
        "knowledge",
        "mcp",
        "memory",
        "model",
        "outgoing",
        "session",
        "skill",
        "tokens",
        "view",
        "workspace",
    )

    def __getattr__(name: str) -> Any:
        for module in _MODULES:
            exported = vars(import_module(f"{__name__}.{module}"))
            if name in exported:
                globals()[name] = exported[name]
                return exported[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
