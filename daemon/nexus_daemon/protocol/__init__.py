"""The `nexus/*` methods: names, parameters and results; a module per method group, `shapes` what they share.

Parameters and results are msgspec structs with camelCase names on the wire, decoded from and encoded to
raw bytes. Ranges are in the negotiated position encoding. Fields are added, never renamed.
docs/protocol.md shows each with a real example.
"""

# ruff: noqa: F403
from nexus_daemon.protocol.agent import *
from nexus_daemon.protocol.agent import AgentDidChange
from nexus_daemon.protocol.assistant import *
from nexus_daemon.protocol.assistant_session import *
from nexus_daemon.protocol.assistant_session import AssistantDidChange
from nexus_daemon.protocol.config import *
from nexus_daemon.protocol.context import *
from nexus_daemon.protocol.context import ContextDidChange
from nexus_daemon.protocol.debug import *
from nexus_daemon.protocol.event import *
from nexus_daemon.protocol.event import EventPublished
from nexus_daemon.protocol.knowledge import *
from nexus_daemon.protocol.memory import *
from nexus_daemon.protocol.model import *
from nexus_daemon.protocol.model import ModelCompleteParams, ModelCompleteResult
from nexus_daemon.protocol.session import *
from nexus_daemon.protocol.session import SessionDidChange
from nexus_daemon.protocol.shapes import *
from nexus_daemon.protocol.shapes import Wire
from nexus_daemon.protocol.skill import *
from nexus_daemon.protocol.tokens import *
from nexus_daemon.protocol.workspace import *

QUESTIONS: dict[str, tuple[type[Wire], type[Wire]]] = {
    "nexus/model/complete": (ModelCompleteParams, ModelCompleteResult),
}
"""Every request of the daemon to its client: its parameters and its result."""

NOTIFICATIONS: dict[str, type[Wire]] = {
    "nexus/context/didChange": ContextDidChange,
    "nexus/session/didChange": SessionDidChange,
    "nexus/agent/didChange": AgentDidChange,
    "nexus/assistant/didChange": AssistantDidChange,
    "nexus/event/published": EventPublished,
}
"""Every notification of the daemon: its parameters."""
