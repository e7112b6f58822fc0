"""Builds the context of one task as messages: system prompt, memory, knowledge and the task itself (SPEC §9).

1. The order is: the system prompt; what the sources remember, direct messages first; knowledge that matches
   the task, as a system message; the task.
2. A task becomes a message as an event does (`events`). `execute` becomes a user message; `node.thinking` and
   `node.tool_call` become assistant messages; `node.tool_result` becomes none. A direct message
   (`node.message`) becomes a user message that names the sender, and none if it has expired.
3. What does not fit into `max_tokens` is left out, the oldest memory first, then knowledge, then direct
   messages. The system prompt and the task always stay.
4. A source that fails, or answers later than SOURCE_SECONDS, is left out, and the manager's `problems` say
   so. A late source's thread runs on until the source answers or the program ends.
"""

import asyncio
import inspect
import logging
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import ContextOverflowError, RequestError
from nexus_context.folder.prompt import texts
from nexus_context.ledger.records import DirectMessage
from nexus_context.memory import node_messages, queries
from nexus_context.memory.bus import EventBus
from nexus_context.memory.events import Event, message_of
from nexus_context.memory.item import MemoryItem, line
from nexus_context.memory.levels import Levels, MemorySettings
from nexus_context.memory.sources import (
    EventSource,
    MemorySource,
    PassageLike,
    Query,
    is_visible,
    passage_items,
)
from nexus_context.tokens import MinimalCounter, complete, get_token_counter

if TYPE_CHECKING:
    from nexus_context.memory.knowledge import KnowledgeIndex

logger = logging.getLogger(__name__)

NODE = "node."
"""Prefix of what an agent does by itself."""
DIRECT = "node.message"
MOST_EVENTS = 12
"""Events of a bus in one context."""
DEFAULT_MAX_TOKENS = 4_000
SOURCE_SECONDS = 10.0
"""The longest that a source, or the knowledge base, is waited for."""
KNOWN_PASSAGES, KNOWN_TOKENS = 5, 1_500
"""The most passages of a `KnowledgeIndex`, and the most tokens of them."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is to do, or what it did, as an action with its parameters."""

    task_id: str = ""
    action: str = "execute"
    parameters: Mapping[str, Any] = {}
    session_id: str | None = None
    source_agent: str | None = None
    target_agent: str | None = None
    created: float | None = None  # seconds since the epoch; None: now


class TaskSource(Protocol):
    """Remembers earlier tasks. Its methods may block on the disk; they are called in a worker thread."""

    @property
    def name(self) -> str:
        """The source's name for people."""
        ...

    def messages(self, task: Task) -> Iterable[Message]:
        """Return the messages that the source remembers for a task, oldest first, without direct messages."""
        ...

    def direct_messages(self, task: Task) -> Iterable[DirectMessage]:
        """Return the direct messages that wait for the task's agent."""
        ...


class KnowledgeBase(Protocol):
    """Finds passages that match a text, the best first. The result of `query` may be awaitable."""

    def query(self, text: str) -> Iterable[PassageLike | str] | Awaitable[Iterable[PassageLike | str]]: ...


class MessageCounter(Protocol):
    """Counts the tokens of messages."""

    def count_messages(self, messages: Iterable[Message]) -> int: ...


class MemoryContextSource:
    """Remembers L1 and L2 of the task's session in a ledger, and the direct messages for the task's agent."""

    name = "memory"

    def __init__(
        self,
        memory: Levels,
        *,
        workspace: str,
        settings: MemorySettings = MemorySettings(),  # noqa: B008 (frozen)
    ) -> None:
        self._levels = memory
        self._workspace = workspace
        self._settings = settings

    def messages(self, task: Task) -> list[Message]:
        """Return a system message with L2, without what L1 already has, followed by the newest messages
        (L1).
        """
        newest = self._levels.newest(self._workspace, task.session_id, limit=self._settings.l1_messages)
        recent = [message for _, message in newest]
        query = _query(task, self._workspace, history=recent, settings=self._settings)
        items = MemorySource(self._levels, include=("L2",)).items(query)
        return [*_system_message("memory", items), *recent]

    def direct_messages(self, task: Task) -> list[DirectMessage]:
        """Return the direct messages for the task's agent. They still wait: only `MessageStore.delivered`
        marks them as delivered.
        """
        if task.target_agent is None:
            return []
        return node_messages.inbox(
            self._levels.ledger,
            self._workspace,
            task.target_agent,
            now=time.time(),
            node=task.parameters.get("target_node_id"),
        )


class EventBusContextSource:
    """Remembers thinking and tool calls on a bus in the task's session, and the direct messages for the
    task's agent.
    """

    name = "events"

    def __init__(self, event_bus: EventBus, *, workspace: str = "", most: int = MOST_EVENTS) -> None:
        self._bus = event_bus
        self._workspace = workspace
        self._most = most

    def messages(self, task: Task) -> list[Message]:
        query = _query(task, self._workspace)
        events = [
            event
            for event in self._bus.events(self._workspace)
            if event.action in ("thinking", "tool_call") and is_visible(event, query)
        ]
        messages = [message_of(event) for event in events[-self._most :]]
        return [message for message in messages if message is not None]

    def direct_messages(self, task: Task) -> list[DirectMessage]:
        query = _query(task, self._workspace)
        return EventSource(self._bus).direct_messages(query)


class TaskContextManager:
    """Builds the messages that a model needs for a task.

    After each call of `build_context`, `problems` has a sentence about each source that failed.
    """

    def __init__(
        self,
        *,
        token_counter: MinimalCounter | MessageCounter,
        sources: Sequence[TaskSource] = (),
        max_tokens: int = DEFAULT_MAX_TOKENS,
        system_prompt: str = "",
        knowledge_base: "KnowledgeBase | KnowledgeIndex | None" = None,
        source_seconds: float = SOURCE_SECONDS,
    ) -> None:
        """`source_seconds` is the longest that each source is waited for."""
        if max_tokens < 1:
            raise RequestError(f"max_tokens is {max_tokens}; it must be at least 1.", code="bad-option")
        self._counter: MessageCounter
        if isinstance(token_counter, MinimalCounter):
            self._counter = complete(token_counter)
        else:
            self._counter = token_counter
        self._sources = tuple(sources)
        self._max_tokens = max_tokens
        self._system_prompt = system_prompt
        self._knowledge_base = knowledge_base
        self._source_seconds = source_seconds
        self.problems: tuple[str, ...] = ()

    async def build_context(self, task: Task) -> list[dict[str, Any]]:
        """Return the messages `{"role", "content"}` for a task, with at most `max_tokens` tokens.

        Raise RequestError, code `bad-task`, if the task does not become a message. Raise ContextOverflowError
        if system prompt and task alone do not fit.
        """
        current = message_of_task(task)
        if current is None:
            raise RequestError(
                f"A task with the action {task.action!r} has no message; use `execute`, `node.thinking`, "
                "`node.tool_call` or `node.message`.",
                code="bad-task",
            )
        system = [Message("system", self._system_prompt)] if self._system_prompt else []
        problems: list[str] = []
        memory, directs = await self._memory_messages(task, problems)
        if memory and (memory[-1].role, text_of(memory[-1])) == (current.role, text_of(current)):
            memory = memory[:-1]  # the task was appended already
        knowledge = await self._knowledge(text_of(current), problems)
        self.problems = tuple(problems)
        return [
            {"role": message.role, "content": text_of(message)}
            for message in self._fit([*system, current], memory, directs=directs, knowledge=knowledge)
        ]

    async def _memory_messages(self, task: Task, problems: list[str]) -> tuple[list[Message], list[Message]]:
        """The messages of all sources, and the direct messages apart. No source repeats an earlier one."""
        memory: list[Message] = []
        directs: dict[str, DirectMessage] = {}
        for source in self._sources:
            earlier = {(message.role, text_of(message)) for message in memory}
            name = getattr(source, "name", type(source).__name__)

            def ask(source: TaskSource = source) -> tuple[list[Message], list[DirectMessage]]:
                return [*source.messages(task)], [*source.direct_messages(task)]

            messages, waiting = await self._asked(f"The source {name}", ask, problems) or ([], [])
            memory += [message for message in messages if (message.role, text_of(message)) not in earlier]
            directs |= {direct.id: direct for direct in waiting}
        waiting = node_messages.waiting(directs.values(), now=time.time())
        return memory, [Message("user", node_messages.rendered(direct)) for direct in waiting]

    async def _knowledge(self, text: str, problems: list[str]) -> list[Message]:
        """The passages for a text as one system message, if there are any."""
        if self._knowledge_base is None or not text.strip():
            return []
        query = _query_of(self._knowledge_base, self._counter)

        def ask() -> Any:
            answer = query(text)
            return _awaited_items(answer) if inspect.isawaitable(answer) else _items(answer)

        return _system_message("knowledge", await self._asked("The knowledge base", ask, problems) or [])

    async def _asked(self, name: str, ask: Callable[[], Any], problems: list[str]) -> Any:
        """Ask a source, and await its answer if need be; None, with a problem, if it fails or is too slow."""
        limit = asyncio.timeout(self._source_seconds)
        try:
            async with limit:
                answer = await _in_thread(ask)
                return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - a source may be anybody's
            problem = f"{name} failed: {str(error) or type(error).__name__}"
            if limit.expired():
                problem = f"{name} did not answer within {self._source_seconds:g} seconds."
        problems.append(problem)
        logger.warning("%s", problem)
        return None

    def _fit(
        self,
        needed: list[Message],
        memory: list[Message],
        *,
        directs: list[Message],
        knowledge: list[Message],
    ) -> list[Message]:
        """Leave out as much as rule 3 needs for the rest to fit. The task is the last of what is `needed`."""
        *system, current = needed
        removable = len(memory) + len(knowledge) + len(directs)

        def without(count: int) -> list[Message]:
            removed_after_memory = max(count - len(memory), 0)
            passages = knowledge[removed_after_memory:]
            removed_directs = max(removed_after_memory - len(knowledge), 0)
            return [*system, *directs[: len(directs) - removed_directs], *memory[count:], *passages, current]

        def fits(count: int) -> bool:
            return self._counter.count_messages(without(count)) <= self._max_tokens

        if not fits(removable):
            tokens = self._counter.count_messages(without(removable))
            raise ContextOverflowError(
                f"The system prompt and the task need {tokens:,} tokens; "
                f"max_tokens is {self._max_tokens:,}. Shorten them, or raise max_tokens."
            )
        return without(bisect_left(range(removable), True, key=fits))


def _in_thread(ask: Callable[[], Any]) -> "asyncio.Future[Any]":
    """Call a function in a thread that does not keep the program from ending if it hangs."""
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(ask())
        except Exception as error:  # noqa: BLE001 - the caller's to handle
            outcome.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - a source does not end the program
            outcome.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))

    Thread(target=run, name="context-source", daemon=True).start()
    return asyncio.wrap_future(outcome)


def _query_of(
    base: "KnowledgeBase | KnowledgeIndex", counter: MessageCounter
) -> Callable[[str], Iterable[PassageLike | str] | Awaitable[Iterable[PassageLike | str]]]:
    from nexus_context.memory import knowledge  # its search is imported where it is used

    if not isinstance(base, knowledge.KnowledgeIndex):
        return base.query
    plain = counter if isinstance(counter, MinimalCounter) else get_token_counter()
    return partial(
        knowledge.query, base, counter=complete(plain), top_k=KNOWN_PASSAGES, max_tokens=KNOWN_TOKENS
    )


def _items(passages: Iterable[PassageLike | str]) -> list[MemoryItem]:
    """The passages as items; a text alone, itself an iterable of texts, is one passage."""
    return [
        item
        for passage in ([passages] if isinstance(passages, str) else passages)
        for item in (
            [MemoryItem("knowledge", "knowledge", passage)]
            if isinstance(passage, str)
            else passage_items([passage])
        )
    ]


async def _awaited_items(passages: Awaitable[Iterable[PassageLike | str]]) -> list[MemoryItem]:
    return _items(await passages)


class MemoryTools:
    """Runs the memory tools that a model calls (`queries.definitions`)."""

    def __init__(self, levels: Levels, *, workspace: str, session: str | None = None) -> None:
        self._levels = levels
        self._workspace = workspace
        self._session = session

    async def execute(self, tool_name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
        """Run a tool and return its answer. Raise RequestError as `queries.run` does."""
        return await asyncio.to_thread(
            queries.run,
            tool_name,
            arguments,
            levels=self._levels,
            workspace=self._workspace,
            session=self._session,
        )


def event_of(task: Task) -> Event:
    """Convert a task to an event. Raise RequestError if it is a direct message with an invalid field."""
    parameters = task.parameters
    fields: dict[str, Any] = {"session": task.session_id, "agent": task.source_agent}
    if task.action == DIRECT:
        return Event(action=DIRECT, direct=_direct_message(task), **fields)
    return Event(
        action=task.action.removeprefix(NODE),
        text=str(parameters.get("content", "")),
        tool=parameters.get("tool_name"),
        arguments=parameters.get("arguments"),
        **fields,
    )


def message_of_task(task: Task) -> Message | None:
    """Convert a task to a message. Return None if the context leaves it out, for example an expired direct
    message.
    """
    event = event_of(task)
    if event.direct is not None:
        expired = node_messages.is_expired(event.direct, now=time.time())
        return None if expired else Message("user", node_messages.rendered(event.direct))
    return message_of(event)


def _direct_message(task: Task) -> DirectMessage:
    parameters = task.parameters
    return node_messages.make(
        workspace="tasks",
        source=task.source_agent or "",
        target=task.target_agent or "",
        content=parameters.get("content", ""),
        now=time.time() if task.created is None else task.created,
        priority=parameters.get("priority", node_messages.DEFAULT_PRIORITY),
        ttl=parameters.get("ttl_seconds"),
        node=parameters.get("target_node_id"),
        task=parameters.get("parent_task_id"),
        metadata=parameters.get("metadata"),
        session=task.session_id,
        id=task.task_id or None,
    )


def _query(
    task: Task,
    workspace: str,
    *,
    history: Sequence[Message] = (),
    settings: MemorySettings = MemorySettings(),  # noqa: B008 (frozen)
) -> Query:
    return Query(
        workspace=workspace,
        now=time.time(),
        session=task.session_id,
        agent=task.target_agent,
        node=task.parameters.get("target_node_id"),
        history=history,
        settings=settings,
    )


def _system_message(source: str, items: Sequence[MemoryItem]) -> list[Message]:
    """The items under their heading, as a system message; none without items."""
    if not items:
        return []
    heading = line("heading", title=texts.table("memory_headings")[source])
    return [Message("system", "\n\n".join([heading, *(item.text for item in items)]))]
