"""Assembles contexts of sessions with one object, `ContextAssembler`, for programs that have their own
sources.

1. The pipeline is `turn.assemble`; this object only brings its inputs together.
2. Each call checks the folder's files and the session's messages. A context is reused for at most `cache.TTL`
   seconds, as long as nothing that it depends on has changed, the minute of the clock included.
3. Messages that were counted once are not counted again while the session only grows.
4. A setting in `config` counts like one of the global `config.json`.
5. If a request brings neither a message nor an event, it is made for the user's message at the end of the
   session, to which the time is added. Later requests send that message as it was sent.
"""

import os
import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, overload

import msgspec

from nexus_context.assembler.records import messages_of
from nexus_context.assembler.sources import (
    ActiveSkill,
    Answers,
    AsyncSessionStore,
    SessionStore,
    SkillProvider,
    ToolExecutor,
    ToolList,
    awaited,
    awaited_skill,
    complete_skill,
    is_asynchronous,
)
from nexus_context.config.fixes import meant
from nexus_context.conversation.compaction.detection import settings_of
from nexus_context.conversation.message import Message
from nexus_context.conversation.tools import Tool
from nexus_context.errors import RequestError
from nexus_context.folder.layers.walk import global_directory, user_home
from nexus_context.folder.loading import load
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.environment import detect
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_context.turn.assembly import measure
from nexus_context.turn.cache import AssemblyCache, Statistics
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import AssembledContext, Options, Request
from nexus_context.turn.reuse import assemble_cached

_SHORTCUTS = {
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "thinking_level": ("thinking", "level"),
    "thinking_budget": ("thinking", "budget"),
}
"""Options that stand for a parameter of the model."""
_RENAMED = {"model_id": "model", "sandbox_mode": "sandbox"}
_REQUEST = ("message", "event", "format")


class ContextCache(Protocol):
    """Stores contexts of one session by key. `AssemblyCache` is the default implementation."""

    def get(self, key: Hashable) -> AssembledContext | None: ...

    def put(self, key: Hashable, value: AssembledContext) -> None: ...

    def invalidate(self) -> None: ...

    def statistics(self) -> Statistics: ...


class ContextMetadata(msgspec.Struct, frozen=True):
    """Describes an assembled context. `assembly_time` is in milliseconds.

    `token_estimate` has the keys `system_prompt`, `messages`, `tools` and `total`. `truncation_info` has the
    keys of docs/protocol.md in snake case.
    """

    session_id: str
    model_id: str
    token_estimate: dict[str, int]
    truncated: bool
    truncation_info: dict[str, Any] | None
    should_compact: bool
    compaction_reason: str | None
    active_skills: list[str]
    assembly_time: float
    cached: bool


class ModelContext(msgspec.Struct, frozen=True):
    """What is sent to a model. `assembled` is the complete result of `turn.assemble`, with a row for every
    token.
    """

    system_prompt: str
    messages: list[Message]
    tools: list[Tool]
    parameters: dict[str, Any]
    metadata: ContextMetadata
    assembled: AssembledContext


class CompactionCheck(msgspec.Struct, frozen=True):
    """Whether a session should be compacted, and why. `threshold` is in tokens."""

    needed: bool
    reason: str | None
    current_tokens: int
    threshold: int


class _Session:
    """A session as it was last read. `sent` is the message at its end as it was last sent."""

    def __init__(self, cache: ContextCache) -> None:
        self.cache = cache
        self.conversation = ContextManager()
        self.stored: list[Message] = []
        self.sent: Message | None = None

    def follow(self, messages: Sequence[Message]) -> ContextManager:
        """The conversation with exactly these messages."""
        if messages[: len(self.stored)] != self.stored:
            self.conversation = ContextManager()
            self.stored, self.sent = [], None
        new_messages = list(messages[len(self.stored) :])
        if (
            new_messages
            and self.sent is not None
            and (new_messages[0].role, new_messages[0].content) == ("user", self.sent.content)
        ):
            new_messages[0] = self.sent
        self.conversation.add(new_messages)
        self.stored = list(messages)
        return self.conversation


class ContextAssembler:
    """Assembles contexts of the sessions of one folder. Only one thread may use it at a time."""

    def __init__(
        self,
        session_store: SessionStore,
        tool_executor: ToolExecutor | None = None,
        *,
        folder: str | Path,
        skill_provider: SkillProvider | None = None,
        config: Mapping[str, Any] | None = None,
        new_cache: Callable[[], ContextCache] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`folder` is an absolute path. `new_cache` makes the cache of a session.

        `config` replaces the global `config.json`.
        """
        if any(map(is_asynchronous, (session_store, tool_executor, skill_provider))):
            raise TypeError("a source is asynchronous: use AsyncContextAssembler or create_context_assembler")
        self._store = session_store
        self._executor = tool_executor or ToolList()
        self._skills = skill_provider
        self._folder = str(folder)
        self._environ = os.environ if environ is None else environ
        self._environment = detect("repl", environ=self._environ)
        self._overlays = {}
        if config is not None:
            path = os.path.join(global_directory(self._environ), "config.json")
            self._overlays[path] = msgspec.json.encode(config).decode()
        self._new_cache = new_cache or (lambda: AssemblyCache(time.monotonic))
        self._snapshots: dict[str | None, Snapshot] = {}
        self._sessions: dict[str, _Session] = {}
        self._dropped = Statistics()

    def snapshot(self, agent_id: str | None = None) -> Snapshot:
        """Return the folder as it is now, for the agent `agent_id`, or for no agent if it is None."""
        inputs = LoadInputs(
            home=global_directory(self._environ),
            user_home=user_home(self._environ),
            environ=self._environ,
            environment=self._environment,
            overlays=self._overlays,
            agent=agent_id,
        )
        snapshot = load(self._folder, inputs, previous=self._snapshots.get(agent_id))
        self._snapshots[agent_id] = snapshot
        return snapshot

    def assemble(self, session_id: str, agent_id: str | None = None, **options: Any) -> ModelContext:
        """Return the context of a session's next request.

        `options` may be `message`, `event` and `format` of `Request`, the fields of `Options`, and these
        shortcuts for model parameters: `temperature`, `max_tokens`, `top_p`, `top_k`, `thinking_level`,
        `thinking_budget`. `model_id` and `sandbox_mode` are other names of `model` and `sandbox`. Raise
        RequestError as `turn.assemble` does, and with code `bad-option` for an option that does not exist.
        """
        began = time.perf_counter()
        snapshot = self.snapshot(agent_id)
        session = self._session(session_id)
        request, skills = self._request(snapshot, session_id, agent_id, options)
        history, request = self._read(session_id, request)
        conversation = session.follow(history)
        context, cached = assemble_cached(
            session.cache, snapshot, conversation, request, now=_now(), versions=(agent_id,)
        )
        session.sent = context.turn_message if context.current_message is not None else None
        return _model_context(context, session_id, skills, cached=cached, began=began)

    def check_compaction(self, session_id: str, agent_id: str | None = None) -> CompactionCheck:
        """Return whether a session should be compacted before its next request, and why."""
        snapshot = self.snapshot(agent_id)
        history, request = self._read(session_id, Request())
        conversation = self._session(session_id).follow(history)
        measured = measure(snapshot, conversation, request=request, now=_now())
        available = measured.usage.available
        return CompactionCheck(
            needed=measured.compaction_reason is not None,
            reason=measured.compaction_reason,
            current_tokens=round(measured.wanted_percent * available / 100),
            threshold=round(settings_of(snapshot.effective).threshold * available),
        )

    def invalidate_cache(self, session_id: str) -> None:
        """Forget the contexts of a session. If its messages change, this call is not needed."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            statistics = session.cache.statistics()
            self._dropped += Statistics(statistics.hits, statistics.misses)
            session.cache.invalidate()

    def get_cache_stats(self) -> Statistics:
        """Return hits, misses, entries and the hit rate over all sessions."""
        return sum((session.cache.statistics() for session in self._sessions.values()), self._dropped)

    def _session(self, session_id: str) -> _Session:
        return self._sessions.setdefault(session_id, _Session(self._new_cache()))

    def _read(self, session_id: str, request: Request) -> tuple[list[Message], Request]:
        """The session's messages, and the request, for the user's message at their end if it has none."""
        messages = messages_of(self._store.get_messages(session_id))
        has_own = request.message is not None or request.event is not None
        if has_own or not messages or messages[-1].role != "user" or messages[-1].preamble is not None:
            return messages, request
        *history, last_message = messages
        return history, msgspec.structs.replace(request, message=last_message)

    def _request(
        self, snapshot: Snapshot, session_id: str, agent_id: str | None, values: Mapping[str, Any]
    ) -> tuple[Request, list[str]]:
        """The request, and the names of the provider's skills."""
        options = _options_of(values)
        skills = self._active_skills(snapshot, options, agent_id, session_id)
        tools = [*self._executor.get_for_model(options), *(tool for skill in skills for tool in skill.tools)]
        prompt = [*([options.additional_system_prompt] if options.additional_system_prompt else [])]
        options = msgspec.structs.replace(
            options,
            additional_tools=[*tools, *options.additional_tools],
            additional_system_prompt="\n\n".join([*map(_skill_prompt, skills), *prompt]) or None,
        )
        metadata = self._store.get_metadata(session_id)
        message = values.get("message")
        request = Request(
            message=Message("user", message) if isinstance(message, str | list) else message,
            event=values.get("event"),
            format=values.get("format", "neutral"),
            options=options,
            session=session_id,
            session_parameters=metadata.get("parameters") or {},
            agent_parameters=metadata.get("agent_parameters") or {},
        )
        return request, [skill.name for skill in skills]

    def _active_skills(
        self, snapshot: Snapshot, options: Options, agent_id: str | None, session_id: str
    ) -> list[ActiveSkill]:
        """The provider's active skills, by priority."""
        if self._skills is None or options.skip_skills or not snapshot.effective.get("/skills/enabled"):
            return []
        skills = [
            complete_skill(self._skills, skill)
            for skill in self._skills.get_active_skills(agent_id, session_id)
        ]
        only = options.skill_filter
        offered = [skill for skill in skills if only is None or skill.name in only or skill.id in only]
        return sorted(offered, key=lambda skill: (-skill.priority, skill.name))


class AsyncContextAssembler:
    """A `ContextAssembler` for asynchronous sources. `assemble` and `check_compaction` must be awaited."""

    def __init__(
        self,
        session_store: AsyncSessionStore,
        tool_executor: Any = None,
        *,
        skill_provider: Any = None,
        **options: Any,
    ) -> None:
        """`options` are the other arguments of a `ContextAssembler`. Each method of a source may be
        asynchronous or not.
        """
        self._store, self._executor, self._skills = session_store, tool_executor, skill_provider
        self._answers = Answers()
        self._assembler = ContextAssembler(
            self._answers, self._answers, skill_provider=self._answers, **options
        )

    async def assemble(self, session_id: str, agent_id: str | None = None, **options: Any) -> ModelContext:
        """Do the same as `ContextAssembler.assemble`."""
        await self._ask(session_id, agent_id, _options_of(options))
        return self._assembler.assemble(session_id, agent_id, **options)

    async def check_compaction(self, session_id: str, agent_id: str | None = None) -> CompactionCheck:
        """Do the same as `ContextAssembler.check_compaction`."""
        await self._ask(session_id, agent_id, Options(skip_skills=True))
        return self._assembler.check_compaction(session_id, agent_id)

    def invalidate_cache(self, session_id: str) -> None:
        """Forget the contexts of a session."""
        self._assembler.invalidate_cache(session_id)

    def get_cache_stats(self) -> Statistics:
        """Return hits, misses, entries and the hit rate over all sessions."""
        return self._assembler.get_cache_stats()

    async def _ask(self, session_id: str, agent_id: str | None, options: Options) -> None:
        """Await everything that an assembly reads; it reads it before anything else is awaited."""
        tools: Sequence[Tool] = ()
        if self._executor is not None:
            tools = await awaited(self._executor.get_for_model(options))
        skills: list[ActiveSkill] = []
        if self._skills is not None and not options.skip_skills:
            active = await awaited(self._skills.get_active_skills(agent_id, session_id))
            skills = [await awaited_skill(self._skills, skill) for skill in active]
        messages = await awaited(self._store.get_messages(session_id))
        self._answers.set(messages, await awaited(self._store.get_metadata(session_id)), tools, skills)


@overload
def create_context_assembler(
    session_store: SessionStore, tool_executor: ToolExecutor | None = None, **options: Any
) -> ContextAssembler: ...


@overload
def create_context_assembler(
    session_store: AsyncSessionStore, tool_executor: Any = None, **options: Any
) -> AsyncContextAssembler: ...


def create_context_assembler(
    session_store: Any, tool_executor: Any = None, **options: Any
) -> ContextAssembler | AsyncContextAssembler:
    """Create an assembler. `options` are the other arguments of its constructor.

    If a source is asynchronous, return an `AsyncContextAssembler`, whose `assemble` and `check_compaction`
    must be awaited.
    """
    sources = (session_store, tool_executor, options.get("skill_provider"))
    is_async = any(map(is_asynchronous, sources))
    return (AsyncContextAssembler if is_async else ContextAssembler)(session_store, tool_executor, **options)


def _now() -> datetime:
    return datetime.now().astimezone()


def _options_of(values: Mapping[str, Any]) -> Options:
    fields: dict[str, Any] = {}
    parameters: dict[str, Any] = {**(values.get("parameters") or {})}
    known_options = (*Options.__struct_fields__, *_SHORTCUTS, *_RENAMED, *_REQUEST)
    for name, value in values.items():
        if name in _SHORTCUTS:
            outer, *inner = _SHORTCUTS[name]
            parameters[outer] = {**parameters.get(outer, {}), inner[0]: value} if inner else value
        elif name in Options.__struct_fields__ or name in _RENAMED:
            fields[_RENAMED.get(name, name)] = value
        elif name not in _REQUEST:
            near = meant(name, known_options)
            proposal = f"did you mean {near}?" if near else f"known are {', '.join(known_options)}."
            raise RequestError(f"There is no option {name}: {proposal}", code="bad-option")
    return Options(**{**fields, "parameters": parameters})


def _skill_prompt(skill: ActiveSkill) -> str:
    parts = [f"{texts.text('skill_active').format(name=skill.name)}\n\n{skill.instructions}"]
    if skill.examples:
        rows = "\n".join(f"- {example}" for example in skill.examples)
        parts.append(texts.text("skill_examples").format(rows=rows))
    return "\n\n".join(parts)


def _in_snake_case(figures: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if figures is None:
        return None
    return {re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower(): value for name, value in figures.items()}


def _token_estimate(context: AssembledContext) -> dict[str, int]:
    """Tokens of the system prompt, of the tools, of all messages, and of everything."""
    tokens, total = context.metadata["tokens"], context.usage.total
    prompt, tools = tokens.get("system", 0), tokens.get("tools", 0)
    return {"system_prompt": prompt, "messages": total - prompt - tools, "tools": tools, "total": total}


def _model_context(
    context: AssembledContext, session_id: str, skills: list[str], *, cached: bool, began: float
) -> ModelContext:
    get = context.metadata.get
    metadata = ContextMetadata(
        session_id=session_id,
        model_id=context.model,
        token_estimate=_token_estimate(context),
        truncated=context.metadata["truncated"],
        truncation_info=_in_snake_case(get("truncation")),
        should_compact=context.metadata["shouldCompact"],
        compaction_reason=get("compactionReason"),
        active_skills=[*context.metadata["activeSkills"], *skills],
        assembly_time=round((time.perf_counter() - began) * 1000, 3),
        cached=cached,
    )
    current = [] if context.current_message is None else [context.current_message]
    return ModelContext(
        system_prompt=context.system_prompt,
        messages=[*context.history, *current],
        tools=context.tools,
        parameters={name: parameter.value for name, parameter in context.parameters.items()},
        metadata=metadata,
        assembled=context,
    )
