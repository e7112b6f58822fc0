"""Read from a transcript what it says before a compaction, and what is left after it.

Codex writes all that is left into the record of a compaction (`replacement_history`) before it reports that
the session goes on. Claude Code writes its summary later, but its hook for the agent that summarizes has it.
"""

import logging
import re
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.programs import WITH_SESSIONS
from nexus_context.assistants.sessions.recall import SessionFacts
from nexus_context.assistants.sessions.record import SessionRecord
from nexus_context.assistants.sessions.record_reader import last_compaction, records_since_compaction
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import Span

logger = logging.getLogger(__name__)

MOST_BYTES = 48 * 1024 * 1024  # bytes from the end of a transcript
_START = Span(0, 0)
_TEXTS = ("text", "content", "message", "arguments", "output")
_COMMAND = re.compile(r"\s*/[a-z][\w:-]*(?:\s|\Z)")


def read_facts(path: str, assistant: str) -> SessionFacts | None:
    """Collect facts from the messages that the program still sends to the model. None without messages."""
    messages = read_live_messages(path, assistant)
    return SessionFacts(messages) if messages else None


def read_live_messages(path: str, assistant: str) -> list[Message]:
    """Return the messages since the last compaction, with its summary.

    Empty if the transcript cannot be read.
    """
    records = _records(path, assistant)
    if not records:
        return []
    reader = WITH_SESSIONS[assistant].sessions.record_format().reader
    lines = [Record(record.value, _START, "A line") for record in records]
    lines = [line for line in lines if reader.is_record(line.value)]
    try:
        conversations = reader.convert(lines, Report(path), False)
    except Exception:  # a hook's answer must not fail
        logger.exception("a transcript of %s cannot be read", assistant)
        return []
    main = [conversation for conversation in conversations if conversation.agent is None]
    return [message for message in main[0].messages if not _is_command(message)] if main else []


def read_present(path: str, assistant: str) -> tuple[str, ...]:
    """Return the texts that the last compaction left. Empty if there is no record of a compaction."""
    record_type = _record_type(assistant)
    try:
        compaction = None if record_type is None else last_compaction(path, record_type, MOST_BYTES)
    except OSError:
        return ()
    payload = None if compaction is None else compaction.value.get("payload")
    return tuple(_texts(payload)) if isinstance(payload, dict) else ()


def _records(path: str, assistant: str) -> list[SessionRecord]:
    record_type = _record_type(assistant)
    try:
        return [] if record_type is None else records_since_compaction(path, record_type, MOST_BYTES)
    except OSError:
        return []


def _record_type(assistant: str) -> type[SessionRecord] | None:
    """Return the record type of a program's transcripts. None if it has no transcripts or is unknown."""
    program = WITH_SESSIONS.get(assistant)
    return (
        None
        if program is None or program.sessions.shares_file
        else program.sessions.record_format().record_type
    )


def _texts(value: Any) -> Iterator[str]:
    """The texts of messages in a JSON value."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            stack.extend(
                member for name, member in item.items() if name in _TEXTS or isinstance(member, list)
            )
        elif isinstance(item, str):
            yield item


def _is_command(message: Message) -> bool:
    """Whether a message is a command to the program, such as the `/compact` that it is about to carry out."""
    return message.role == "user" and _COMMAND.match(text_of(message)) is not None
