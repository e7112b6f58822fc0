"""Reads sessions of programs as conversations and turns, from their files, without keeping them."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain

import msgspec

from nexus_context.assistants.importing import Conversation
from nexus_context.assistants.importing.importers import turns_of
from nexus_context.assistants.mirror import excerpts
from nexus_context.assistants.mirror.excerpts import Progress
from nexus_context.assistants.mirror.session_turns import COUNTER, count_messages
from nexus_context.assistants.mirror.transcript_files import TranscriptFile, agents_of, file_at
from nexus_context.assistants.opencode import export as opencode_export
from nexus_context.assistants.sessions.session_types import AssistantSession
from nexus_context.ledger.excerpt import CHARACTERS
from nexus_context.ledger.records import Excerpt, ExcerptTurn, StoredMessage, Turn
from nexus_context.ledger.rows import searchable


def read_conversations(file: TranscriptFile, session_id: str) -> Iterator[Conversation]:
    """Yield the conversations of a session's file, those of sub-agents in it among them. A large file is read
    piece by piece.

    `session_id` chooses a session of a database. Raise OSError or apsw.Error if the file cannot be read.
    """
    if file.is_database:
        exported = opencode_export.read_session(file.path, session_id)
        if exported is not None and exported.conversation is not None:
            yield msgspec.structs.replace(exported.conversation, id=session_id)
        return
    for excerpt in excerpts.read_excerpts(file, Progress(), now=time.time()):
        yield from excerpt.conversations


def read_turns(session: AssistantSession, name: str | None = None) -> Iterator[Turn]:
    """Yield the turns of a session, or of its sub-agent with the id `name`. The token counts are estimates by
    length.

    Raise OSError or apsw.Error if a file cannot be read.
    """
    file, name = file_at(session.path, session.assistant), name or session.id
    files = [] if file is None else [file]
    if name != session.id:
        files += agents_of(session.path, session.assistant)
    seq = 0
    for conversation in chain.from_iterable(read_conversations(file, session.id) for file in files):
        if conversation.id != name:
            continue
        for turn in turns_of(conversation, None):
            seq += 1
            counts = tuple(count_messages(turn.messages))
            yield msgspec.structs.replace(
                turn, seq=seq, tokens=sum(counts), counts=counts, counter=COUNTER.name
            )


def read_excerpt(
    session: AssistantSession, name: str, *, first: int | None = None, before: int | None = None, limit: int
) -> Excerpt:
    """Return a page of a session or of its sub-agent `name`, as `SessionPages.excerpt` does. It raises what
    `read_turns` does.

    The whole file is read; only the messages of the page are held in memory.
    """
    first = None if first is None else max(first, 0)
    turns: list[ExcerptTurn] = []
    page: deque[StoredMessage] = deque(maxlen=limit)
    position = 0
    for turn in read_turns(session, name):
        excerpt_turn = ExcerptTurn(
            id=f"{name}-{turn.seq}",
            seq=turn.seq,
            type=turn.type,
            created=turn.created or session.started or session.changed,
            first=position,
            messages=len(turn.messages),
            stored=(),
            model=turn.model,
        )
        turns.append(excerpt_turn)
        for message, tokens in zip(turn.messages, turn.counts, strict=True):
            is_before = before is None or position < before
            if is_before and (first is None or first <= position < first + limit):
                page.append(StoredMessage(position, tokens, turn.counter, message))
            position += 1
    messages = _bounded(page, forwards=first is not None)
    start = messages[0].position if messages else min(first or 0, position)
    end = start + len(messages)
    return Excerpt(
        thread=name,
        current=True,
        turns=len(turns),
        messages=position,
        first=start,
        end=end,
        page=tuple(
            msgspec.structs.replace(
                turn, stored=tuple(messages[max(turn.first - start, 0) : turn.first + turn.messages - start])
            )
            for turn in turns
            if turn.first < end and turn.first + turn.messages > start
        ),
    )


def _bounded(page: Iterable[StoredMessage], *, forwards: bool) -> list[StoredMessage]:
    """As many messages from the start, or from the end, as fit into a page."""
    messages = list(page) if forwards else [*page][::-1]
    sizes = accumulate(len(searchable(stored_message.message)) for stored_message in messages)
    fitting = messages[: 1 + sum(size < CHARACTERS for size in sizes)]
    return fitting if forwards else fitting[::-1]
