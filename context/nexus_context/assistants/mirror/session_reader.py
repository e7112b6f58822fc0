"""Sessions of programs as conversations and turns, read from their files and not kept."""

import time
from collections.abc import Iterator

import msgspec

from nexus_context.assistants.importing import Conversation
from nexus_context.assistants.importing.importers import turns_of
from nexus_context.assistants.mirror import excerpts
from nexus_context.assistants.mirror.excerpts import Progress
from nexus_context.assistants.mirror.session_turns import COUNTER, count_messages
from nexus_context.assistants.mirror.transcript_files import TranscriptFile, file_at
from nexus_context.assistants.opencode import export as opencode_export
from nexus_context.assistants.sessions.model import AssistantSession
from nexus_context.ledger.records import Turn


def read_conversations(file: TranscriptFile, session_id: str) -> Iterator[Conversation]:
    """The conversations of a session's file: of a large one piece by piece, sub-agents among them.

    `session_id` chooses a session of a database. OSError or apsw.Error if the file cannot be read.
    """
    if file.is_database:
        exported = opencode_export.read_session(file.path, session_id)
        if exported is not None and exported.conversation is not None:
            yield msgspec.structs.replace(exported.conversation, id=session_id)
        return
    for excerpt in excerpts.read_excerpts(file, Progress(), now=time.time()):
        yield from excerpt.conversations


def read_turns(session: AssistantSession) -> Iterator[Turn]:
    """The turns of a session, without its sub-agents; the counts of their messages are estimates by length.

    OSError or apsw.Error if its file cannot be read.
    """
    file = file_at(session.path, session.assistant)
    seq = 0
    for conversation in read_conversations(file, session.id) if file is not None else ():
        if conversation.id != session.id:
            continue
        for turn in turns_of(conversation, None):
            seq += 1
            counts = tuple(count_messages(turn.messages))
            yield msgspec.structs.replace(
                turn, seq=seq, tokens=sum(counts), counts=counts, counter=COUNTER.name
            )
