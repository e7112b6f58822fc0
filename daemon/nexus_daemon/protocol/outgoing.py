"""What the daemon sends on its own: requests to its client, and notifications."""

from nexus_daemon.protocol.agent import AgentDidChange
from nexus_daemon.protocol.assistant_session import AssistantDidChange
from nexus_daemon.protocol.chat import ToolApproveParams, ToolApproveResult
from nexus_daemon.protocol.context import ContextDidChange
from nexus_daemon.protocol.event import EventPublished
from nexus_daemon.protocol.mcp import McpDidChange
from nexus_daemon.protocol.model import ModelCompleteParams, ModelCompleteResult
from nexus_daemon.protocol.session import SessionDidChange
from nexus_daemon.protocol.shapes import Wire

QUESTIONS: dict[str, tuple[type[Wire], type[Wire]]] = {
    "nexus/model/complete": (ModelCompleteParams, ModelCompleteResult),
    "nexus/tool/approve": (ToolApproveParams, ToolApproveResult),
}
"""Every request of the daemon to its client: its parameters and its result."""

NOTIFICATIONS: dict[str, type[Wire]] = {
    "nexus/context/didChange": ContextDidChange,
    "nexus/session/didChange": SessionDidChange,
    "nexus/agent/didChange": AgentDidChange,
    "nexus/assistant/didChange": AssistantDidChange,
    "nexus/mcp/didChange": McpDidChange,
    "nexus/event/published": EventPublished,
}
"""Every notification of the daemon: its parameters."""
