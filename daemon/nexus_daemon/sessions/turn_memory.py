"""Collect what is put before the user's message of one turn: agents' messages, levels, events, passages of
files.

1. Only a turn has memory: a request with a user's message, or an event. Measuring a conversation reads none.
2. What the history already contains is not read again: usually that is all of L1.
3. A message to an agent is delivered when the conversation goes on after a turn that included it
   (`sync.append`). Until then every turn of that agent includes it, unless it has expired. A turn without an
   agent is for `main`, in any conversation of the folder.
4. Events are included once: a turn includes those since the conversation went on (`sync.append`), and so does
   every further request of that turn.
5. Failures are reported in `metadata.memory.failures`; the turn is assembled without what failed.

Everything here may block on the disk: call it in worker threads, while the conversation is locked.
"""

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.disk.files import read_text
from nexus_context.errors import RequestError
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.memory.events import memory_messages
from nexus_context.memory.item import MemoryItem
from nexus_context.memory.levels import settings_of
from nexus_context.turn.last_message import takes_memory
from nexus_context.turn.request import Request
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.process import lazy
from nexus_daemon.sessions.attachments import NO_ATTACHMENTS, Attachments
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:  # most turns have no memory
    from nexus_context.memory.knowledge import Passage
    from nexus_context.memory.sources import Source
    from nexus_context.turn.git import GitState

logger = logging.getLogger(__name__)

FILE_LIMIT = 1 << 20
"""The most bytes of a file to read to find the lines of a passage: as much as is indexed."""
MESSAGES_PER_EVENT = 8
"""The number of messages of the history to search for each event of L1."""


class TurnInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn brings besides the conversation.

    `agent` names the agent whose turn it is, which is the name that messages wait for. With a `node`,
    messages for other nodes of the agent are left out. `passages` match the user's message. `tools` are
    definitions that the client offers for this turn, `server_tools` those of MCP servers.
    """

    agent: str = MAIN
    node: str | None = None
    passages: "Sequence[Passage]" = ()
    git: "GitState | None" = None
    attachments: Attachments = NO_ATTACHMENTS
    tools: Sequence[dict[str, Any]] = ()
    server_tools: Sequence[dict[str, Any]] = ()


class TurnMemory(msgspec.Struct, frozen=True):
    """The memory items of a turn, and what failed.

    `searched` says that a source was read. `events` is the number of the newest event at that time.
    """

    searched: bool = False
    events: int = 0
    items: Sequence[MemoryItem] = ()
    failures: tuple[str, ...] = ()


def gather(scope: SessionScope, request: Request, inputs: TurnInputs) -> TurnMemory:
    """Read all sources for one turn, and put its attachments first. Call `follow` on the scope before."""
    memory = _search(scope, request, inputs) if takes_memory(request) else TurnMemory()
    attached = inputs.attachments.items
    return msgspec.structs.replace(memory, items=(*attached, *memory.items)) if attached else memory


def _search(scope: SessionScope, request: Request, inputs: TurnInputs) -> TurnMemory:
    conversation, ledger, agent = scope.conversation, scope.ledger, inputs.agent
    settings = settings_of(scope.snapshot.effective.get("/memory") or {})
    number = ledger.bus.number
    levels = settings.levels
    if levels == ("L1",) and _has_newest(conversation, settings.l1_messages):
        levels = ()
    events = settings.events > 0 and _happened(ledger, agent, conversation.last_event)
    if agent == MAIN and not (inputs.passages or levels or events) and not _waits(ledger, agent):
        return TurnMemory(events=number)
    sources = lazy.memory_sources
    memory_sources: list[Source] = [sources.DirectSource(ledger.store)]
    if levels:
        memory_sources.append(sources.MemorySource(ledger.levels, include=levels))
    if events:
        memory_sources.append(sources.EventSource(ledger.bus, most=settings.events))
    if inputs.passages:
        memory_sources.append(sources.KnowledgeSource(lambda _: inputs.passages))
    query = sources.Query(
        workspace=ledger.workspace,
        now=time.time(),
        session=conversation.session,
        agent=agent,
        node=inputs.node,
        events_after=conversation.last_event,
        text="" if request.message is None else text_of(request.message),
        history=_visible_messages(conversation),
        settings=settings,
    )
    items, failures = sources.gather(memory_sources, query)
    for failure in failures:
        logger.debug("a source of memory failed: %s", failure)
    return TurnMemory(searched=True, events=number, items=items, failures=tuple(failures))


def hand_out(conversation: Conversation, agent: str, messages: Sequence[str], events: int) -> None:
    """Note that the agent's turn includes these messages (ids) and the events up to the number `events`.

    They count as delivered once the conversation goes on.
    """
    turn = conversation.turn
    turn.handed_out_event = events
    if messages:
        turn.handed_out[agent] = tuple(messages)
    else:
        turn.handed_out.pop(agent, None)


def locator_of(locate: Locator, items: Sequence[MemoryItem]) -> Locator:
    """Return a locator that also knows the files of the items."""
    paths = {item.path for item in items if item.path is not None}
    texts = {path: read_text(path, limit=FILE_LIMIT).text or "" for path in sorted(paths)}
    return locate.beside(texts) if texts else locate


def _happened(ledger: FolderLedger, agent: str, after: int) -> bool:
    """Whether the bus has events after a number that the agent's turn might show. Its own are history."""
    events = ledger.bus.events(ledger.workspace, after=after)
    return any(event.turn is None or agent in event.above for event in events)


def _waits(ledger: FolderLedger, agent: str) -> bool:
    """Whether messages wait for an agent; true if the ledger fails, so that reading them reports why."""
    try:
        return ledger.waits(agent)
    except RequestError:
        return True


def _has_newest(conversation: Conversation, most: int) -> bool:
    """Whether the history certainly contains the newest `most` events of the conversation."""
    history = conversation.manager.history
    begin = history.gap.lead if history.gap.messages else 0
    if conversation.state.compaction is not None:  # what follows the summary: what precedes it may have gaps
        positions = conversation.positions
        summary_position = positions[0] if positions else 0
        begin = next(
            (index for index, position in enumerate(positions) if position > summary_position), len(history)
        )
    prefix = conversation.last_prefix
    if prefix is not None and prefix.view.history is history:
        begin = max(begin, prefix.view.start)
    if most <= 0 or (not begin and conversation.state.compaction is None):
        return True
    first_searched = max(begin, len(history) - MESSAGES_PER_EVENT * most)
    return len(memory_messages(history.messages[first_searched:])) >= most


def _visible_messages(conversation: Conversation) -> Sequence[Message]:
    """The messages of the last request and those since; else all that are loaded."""
    history = conversation.manager.history
    prefix = conversation.last_prefix
    if prefix is None or prefix.view.history is not history:
        return history.messages
    return [*prefix.view.messages(), *history.messages[prefix.view.end :]]
