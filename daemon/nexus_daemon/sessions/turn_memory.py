"""What is put before the user's message of one turn: messages of agents, L1, and passages of files.

1. Only a turn asks: a request with a user's message, or an event. Looking at a conversation costs nothing.
2. Nothing is read that the history shows anyway: mostly that is all of L1.
3. A message of an agent is delivered when the conversation goes on after a turn was assembled that has it
   (`following.append`). Until then each request gets it again, whatever it says, if it has not expired. A
   turn that is for nobody else is for `main`, in whichever conversation of the folder.
4. What fails is said in `metadata.memory.failures`, and the turn is assembled without it.

Everything here may block on the disk: for worker threads, while the conversation is locked.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.assembly import Request
from nexus_context.assembly.last_message import takes_memory
from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import RequestError
from nexus_context.files import read_text
from nexus_context.layers.agent_definitions import MAIN
from nexus_context.memory.item import MemoryItem
from nexus_context.memory.settings import MemorySettings, settings_of
from nexus_context.snapshot import Snapshot
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

if TYPE_CHECKING:  # most turns have nothing that is remembered
    from nexus_context.memory.knowledge import Passage
    from nexus_context.memory.sources import Query, Source

logger = logging.getLogger(__name__)

FILE_LIMIT = 1 << 20
"""Bytes of a file whose lines are counted for the place of a passage: as much as is indexed."""
LOOKED_AT = 8
"""Messages of the history for each of L1 among which those of L1 are looked for."""


class Found(msgspec.Struct, frozen=True):
    """What is remembered for a turn, and what failed. `asked`: whether anything was looked for."""

    asked: bool = False
    items: Sequence[MemoryItem] = ()
    failures: tuple[str, ...] = ()

    def behind(self, items: Sequence[MemoryItem]) -> "Found":
        """The same behind items that the request itself brought."""
        return msgspec.structs.replace(self, items=(*items, *self.items)) if items else self


NOTHING = Found()


def gathered(
    snapshot: Snapshot,
    conversation: Conversation,
    ledger: FolderLedger,
    request: Request,
    *,
    agent: str,
    passages: "Sequence[Passage]",
) -> Found:
    """Ask all sources for one turn. The conversation has been followed up to now."""
    if not takes_memory(request):
        return NOTHING
    settings = settings_of(snapshot.effective.get("/memory") or {})
    newest = not _shows_newest(conversation, settings.l1_messages)
    if agent == MAIN and not passages and not newest and not _waits(ledger, agent):
        return NOTHING
    from nexus_context.memory import sources  # what it imports takes 30 ms

    chosen: list[Source] = [_Inbox(ledger)]
    if newest:
        chosen.append(sources.MemorySource(ledger.levels))
    if passages:
        chosen.append(sources.KnowledgeSource(lambda _: passages))
    query = sources.Query(
        workspace=ledger.workspace,
        now=time.time(),
        session=conversation.session,
        agent=agent,
        text="" if request.message is None else text_of(request.message),
        history=_shown(conversation),
        settings=settings,
    )
    items, failures = sources.gather(chosen, query)
    for failure in failures:
        logger.debug("not remembered: %s", failure)
    return Found(asked=True, items=items, failures=tuple(failures))


def given_out(conversation: Conversation, agent: str, sent: Sequence[str]) -> None:
    """These messages are in the agent's turn: when the conversation goes on, they wait no more."""
    if sent:
        conversation.given_out[agent] = tuple(sent)
    else:
        conversation.given_out.pop(agent, None)


def answer(
    ledger: FolderLedger,
    snapshot: Snapshot,
    session: str,
    tool: str,
    arguments: Mapping[str, Any] | str | None,
) -> str:
    """What a call of a memory tool returns. RequestError for a tool or an argument that cannot be."""
    from nexus_context.memory import queries  # rarely needed

    settings: MemorySettings = settings_of(snapshot.effective.get("/memory") or {})
    return queries.run(
        tool,
        arguments,
        levels=ledger.levels,
        workspace=ledger.workspace,
        session=session,
        settings=settings,
    )


def with_files(locate: Locator, items: Sequence[MemoryItem]) -> Locator:
    """A locator that knows the files of the items, too."""
    paths = {item.path for item in items if item.path is not None}
    texts = {path: read_text(path, limit=FILE_LIMIT).text or "" for path in sorted(paths)}
    return locate.beside(texts) if texts else locate


class _Inbox:
    """The direct messages that wait for the query's agent."""

    name = "messages"

    def __init__(self, ledger: FolderLedger) -> None:
        self._ledger = ledger

    def items(self, query: "Query") -> list[MemoryItem]:
        if query.agent is None:
            return []
        from nexus_context.memory import node_messages

        ledger = self._ledger.store
        return node_messages.items(
            node_messages.inbox(ledger, query.workspace, query.agent, now=query.now, node=query.node)
        )


def _waits(ledger: FolderLedger, agent: str) -> bool:
    """Whether messages wait for an agent, or that cannot be said: then who asks for them says why."""
    try:
        return ledger.waits(agent)
    except RequestError:
        return True


def _shows_newest(conversation: Conversation, most: int) -> bool:
    """Whether the history surely shows the newest `most` messages of the conversation."""
    history = conversation.manager.history
    begin = history.gap.lead if history.gap.messages else 0
    if conversation.compaction is not None:  # what follows the summary; what was kept may have gaps
        first = conversation.positions[0] if conversation.positions else 0
        begin = next((at for at, each in enumerate(conversation.positions) if each > first), len(history))
    prefix = conversation.last_prefix
    if prefix is not None and prefix.view.history is history:
        begin = max(begin, prefix.view.start)
    if most <= 0 or (not begin and conversation.compaction is None):
        return True
    from nexus_context.memory.events import memory_messages

    return len(memory_messages(history.messages[max(begin, len(history) - LOOKED_AT * most) :])) >= most


def _shown(conversation: Conversation) -> Sequence[Message]:
    """The messages that the last request showed, and what came since; else all that are loaded."""
    history = conversation.manager.history
    prefix = conversation.last_prefix
    if prefix is None or prefix.view.history is not history:
        return history.messages
    return [*prefix.view.messages(), *history.messages[prefix.view.end :]]
