"""Defines the sources of an assembler: protocols of a few methods, and our own implementation of each.

| Protocol | Ours |
|---|---|
| `SessionStore` | `LedgerStore`: the sessions of a folder in a ledger |
| `ToolExecutor` | `ToolList`: definitions, filtered by the assembler itself |
| `SkillProvider` | `FolderSkills`: the skills of the folder |
"""

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.conversation.tools import Tool
from nexus_context.errors import RequestError
from nexus_context.folder.layers.layer_types import LayerSkill
from nexus_context.folder.request_prompt import active_skills, skill_text
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.store import Ledger
from nexus_context.turn.request import Options


class SessionStore(Protocol):
    """Stores the messages of sessions."""

    def get_messages(self, session_id: str) -> Sequence[Message | Mapping[str, Any]]:
        """Return the messages or `records` of a session, oldest first. Return none if the session does not
        exist.
        """
        ...

    def get_metadata(self, session_id: str) -> Mapping[str, Any]:
        """Return facts about a session. Its `parameters` and `agent_parameters` are model parameters: name →
        value.
        """
        ...


class AsyncSessionStore(Protocol):
    """A session store whose methods must be awaited."""

    def get_messages(self, session_id: str) -> Awaitable[Sequence[Message | Mapping[str, Any]]]: ...

    def get_metadata(self, session_id: str) -> Awaitable[Mapping[str, Any]]: ...


class ToolExecutor(Protocol):
    """Defines and runs tools."""

    def list(self) -> Sequence[Tool]:
        """Return the definitions of all tools."""
        ...

    def get_for_model(self, options: Options) -> Sequence[Tool]:
        """Return the definitions for a request. The assembler then filters them by the settings and the
        request.
        """
        ...


class ActiveSkill(msgspec.Struct, frozen=True):
    """A skill that is in use. `id` is the provider's identifier of it."""

    id: str
    name: str
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    examples: tuple[str, ...] = ()
    priority: int = 0


class SkillProvider(Protocol):
    """Provides the active skills of a session, with their instructions, tools and priorities."""

    def get_active_skills(self, agent_id: str | None, session_id: str) -> Sequence[ActiveSkill]:
        """Return the skills that an agent uses in a session."""
        ...

    def get_skill_instructions(self, skill_id: str) -> str: ...

    def get_skill_tools(self, skill_id: str) -> Sequence[Tool]: ...

    def get_skill_priority(self, skill_id: str) -> int:
        """Return the priority of a skill. Skills with a higher priority come first."""
        ...


def complete_skill(provider: SkillProvider, skill: ActiveSkill) -> ActiveSkill:
    """Return the skill with the instructions, tools and priority that the provider's getters return now. An
    empty answer leaves a field as it is.
    """
    return msgspec.structs.replace(
        skill,
        instructions=provider.get_skill_instructions(skill.id) or skill.instructions,
        tools=tuple(provider.get_skill_tools(skill.id) or skill.tools),
        priority=provider.get_skill_priority(skill.id) or skill.priority,
    )


class Answers:
    """Holds the answers of asynchronous sources, and acts as a source of each kind that returns them."""

    def set(
        self,
        messages: Sequence[Any],
        metadata: Mapping[str, Any],
        tools: Sequence[Tool],
        skills: Sequence[ActiveSkill],
    ) -> None:
        self._messages, self._metadata, self._tools = messages, metadata, tools
        self._skills = {skill.id: skill for skill in skills}

    def get_messages(self, session_id: str) -> Sequence[Any]:  # noqa: ARG002 - they were asked for it
        return self._messages

    def get_metadata(self, session_id: str) -> Mapping[str, Any]:  # noqa: ARG002
        return self._metadata

    def list(self) -> Sequence[Tool]:
        return self._tools

    def get_for_model(self, options: Options) -> Sequence[Tool]:  # noqa: ARG002
        return self._tools

    def get_active_skills(self, agent_id: str | None, session_id: str) -> Sequence[ActiveSkill]:  # noqa: ARG002
        return [*self._skills.values()]

    def get_skill_instructions(self, skill_id: str) -> str:
        return self._skills[skill_id].instructions

    def get_skill_tools(self, skill_id: str) -> Sequence[Tool]:
        return self._skills[skill_id].tools

    def get_skill_priority(self, skill_id: str) -> int:
        return self._skills[skill_id].priority


async def awaited(answer: Any) -> Any:
    """Return a source's answer, awaited if it is awaitable."""
    return await answer if inspect.isawaitable(answer) else answer


async def awaited_skill(provider: Any, skill: ActiveSkill) -> ActiveSkill:
    """Do the same as `complete_skill` for a provider whose getters may be asynchronous."""
    return msgspec.structs.replace(
        skill,
        instructions=await awaited(provider.get_skill_instructions(skill.id)) or skill.instructions,
        tools=tuple(await awaited(provider.get_skill_tools(skill.id)) or skill.tools),
        priority=await awaited(provider.get_skill_priority(skill.id)) or skill.priority,
    )


def is_asynchronous(source: Any) -> bool:
    """Whether one of the source's methods is a coroutine function."""
    names = ("get_messages", "get_metadata", "get_for_model", "get_active_skills")
    return any(inspect.iscoroutinefunction(getattr(source, name, None)) for name in names)


class LedgerStore:
    """Reads the sessions of one folder from a ledger."""

    def __init__(self, ledger: Ledger, workspace: str) -> None:
        """`workspace` is the absolute real path of the folder."""
        self._ledger = ledger
        self._workspace = workspace

    def get_messages(self, session_id: str) -> Sequence[Message]:
        """Return the messages of which the next request is made: all since the last compaction."""
        history = self._ledger.history(self._workspace, session_id)
        return [] if history is None else [message.message for message in history.messages]

    def get_metadata(self, session_id: str) -> Mapping[str, Any]:
        session = self._ledger.find(self._workspace, session_id)
        return {} if session is None else {"agent": session.agent, "parameters": session.parameters}


class ToolList:
    """A tool executor that only has definitions of tools."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools = list(tools)

    def list(self) -> Sequence[Tool]:
        return self._tools

    def get_for_model(self, options: Options) -> Sequence[Tool]:  # noqa: ARG002 - the assembler filters
        return self._tools


class FolderSkills:
    """Provides the skills of a folder. `active` are the names of the skills that are in use."""

    def __init__(self, snapshot: Snapshot, active: Sequence[str] = ()) -> None:
        """RequestError, `unknown-skill`, for a name that the folder does not have."""
        self._snapshot = snapshot
        self._active = [layer_skill.skill.name for layer_skill in active_skills(snapshot, active)]

    def get_active_skills(self, agent_id: str | None, session_id: str) -> Sequence[ActiveSkill]:  # noqa: ARG002
        return [self._skill(name) for name in self._active]

    def get_skill_instructions(self, skill_id: str) -> str:
        """Return the text that an active skill has in the prompt."""
        return skill_text(self._snapshot, skill_id)

    def get_skill_tools(self, skill_id: str) -> Sequence[Tool]:
        return self._find(skill_id).skill.tools

    def get_skill_priority(self, skill_id: str) -> int:
        return self._find(skill_id).skill.priority

    def _skill(self, name: str) -> ActiveSkill:
        skill = self._find(name).skill
        text = self.get_skill_instructions(name)
        return ActiveSkill(
            name, name, text, tools=skill.tools, examples=skill.examples, priority=skill.priority
        )

    def _find(self, name: str) -> LayerSkill:
        matches = active_skills(self._snapshot, [name])
        if not matches:
            raise RequestError("The settings switch skills off (`skills.enabled`).", code="unknown-skill")
        return matches[0]
