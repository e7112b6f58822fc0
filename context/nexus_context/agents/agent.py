"""Defines an agent: its options, its snapshot, its conversation and what it was granted."""

import threading
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.agents.permissions import AgentPermissions
from nexus_context.folder.prompt.blocks import MANAGER, UNIFIED, WORKER
from nexus_context.folder.prompt.render import Prompt
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import MinimalCounter, TokenCounter

if TYPE_CHECKING:
    from nexus_context.agents.conversation import AgentConversation
    from nexus_context.conversation.budget import TokenUsage
    from nexus_context.ledger.store import Ledger

ROLES = (MANAGER, WORKER, UNIFIED)
_beginning = threading.Lock()


class AgentSpec(msgspec.Struct, frozen=True):
    """The options of an agent. An option that is None comes from `agents` of config.json, or else from the
    parent.

    `folder` is absolute, or relative to the workspace folder. `tools` are names or patterns. `permissions`
    has level, allow and deny. `parameters` are model parameters.
    """

    id: str
    folder: str | None = None
    role: str | None = None
    task: str | None = None
    parent: str | None = None
    system_prompt: str | None = None
    model: str | None = None
    tools: tuple[str, ...] | None = None
    permissions: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] | None = None


class Agent:
    """One agent. Its `spec` never changes, while `snapshot` and `permissions` follow the files.

    `parent` is None for the workspace folder's own agent, whose `depth` is 0. `children` are the names of its
    live children. `session` is the name of its conversation in the ledger.
    """

    __slots__ = (
        "_conversation",
        "_place",
        "children",
        "depth",
        "folder",
        "notice",
        "parameters",
        "parent",
        "permissions",
        "snapshot",
        "spec",
        "tools",
    )

    def __init__(
        self,
        spec: AgentSpec,
        *,
        parent: "Agent | None",
        snapshot: Snapshot,
        place: "tuple[Ledger, str] | None" = None,
    ) -> None:
        """`place`: the ledger, and the workspace folder in it, that the agent's conversation is stored in."""
        self.spec = spec
        self._place = place
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.children: list[str] = []
        self.snapshot = snapshot
        self.folder = snapshot.folder
        """The absolute path that it works in. Where that directory never existed, the agent reads its
        parent's.
        """
        self.permissions = AgentPermissions()
        self.tools: tuple[tuple[str, ...], ...] = ()
        self.parameters: dict[str, Any] = {}
        self._conversation: AgentConversation | None = None
        self.notice: str | None = None
        """What went wrong since the agent started: its folder is gone, or its parent grants less."""

    @property
    def id(self) -> str:
        """The agent's name, unique in its workspace folder."""
        return self.spec.id

    @property
    def session(self) -> str:
        """The name of the agent's conversation in the ledger."""
        return "main" if self.parent is None else f"agent:{self.id}"

    @property
    def role(self) -> str:
        """The agent's role: manager, worker or unified."""
        return self.spec.role or UNIFIED

    @property
    def task(self) -> str | None:
        """The text that says what the agent is to do, or None."""
        return self.spec.task

    @property
    def model(self) -> str | None:
        """The model of the agent's requests, unless a request names another. None if its settings name no
        model.
        """
        name = self.snapshot.effective.get("/provider/model")
        return name if isinstance(name, str) else None

    @property
    def prompt(self) -> Prompt:
        """The agent's system prompt, with the source of every character."""
        return self.snapshot.prompt

    @property
    def conversation(self) -> "AgentConversation":
        """The agent's messages, with its prompt, tools and budget. They are created at the first access."""
        # the assembly is slow to import, and most agents are looked at without a conversation
        from nexus_context.agents.conversation import AgentConversation

        with _beginning:
            if self._conversation is None:
                self._conversation = AgentConversation(
                    lambda: self.snapshot, place=self._place, session=self.session
                )
            return self._conversation

    def usage(
        self, *, counter: MinimalCounter | TokenCounter | None = None, now: datetime | None = None
    ) -> "TokenUsage":
        """Return what the agent's next request costs without a new message, as `turn.usage_of` does.

        The tools that were passed to `conversation.set_tool_definitions` are included.
        """
        from nexus_context.turn.assembly import measure
        from nexus_context.turn.request import Request

        request = Request(options=self.conversation.options)
        return measure(self.snapshot, self.conversation, request=request, counter=counter, now=now).usage
