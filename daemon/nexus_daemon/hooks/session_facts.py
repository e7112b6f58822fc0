"""What may be given back of a session after its compaction, read from its transcript before that."""

import re

from nexus_context import files
from nexus_context.assistant_sessions.recall import SessionFacts
from nexus_context.conversation import transcripts
from nexus_context.conversation.message import Message, text_of

MOST = 48 * 1024 * 1024  # bytes from the end of a transcript
BOUNDARIES = (b'"compact_boundary"', b'"type":"compacted"', b'"type": "compacted"')
"""In the line of an earlier compaction: what is before it is in its summary, or lost already."""
_COMMAND = re.compile(r"\s*/[a-z][\w:-]*(?:\s|\Z)")


def read_facts(path: str) -> SessionFacts | None:
    """The facts of the messages that the model is still sent; None if there are none."""
    messages = read_live_messages(path)
    return SessionFacts(messages) if messages else None


def read_live_messages(path: str) -> list[Message]:
    """The messages since the last compaction, with its summary."""
    lines: list[bytes] = []
    try:
        for line in files.Lines(path, most=MOST):
            lines.append(line)
            if any(mark in line for mark in BOUNDARIES):
                break
    except OSError:
        return []
    transcript = transcripts.read(b"\n".join(reversed(lines)), path)
    main = [one for one in transcript.conversations if one.agent is None]
    return [message for message in main[0].messages if not _is_command(message)] if main else []


def _is_command(message: Message) -> bool:
    """Whether a message is a command to the program, such as the `/compact` that it is about to carry out."""
    return message.role == "user" and _COMMAND.match(text_of(message)) is not None
