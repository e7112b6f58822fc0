"""What a transcript says before a compaction, and what it says that is left after it.

Codex writes all that is left into the record of a compaction (`replacement_history`) before it says that the
session goes on. Claude Code writes its summary later; its hook for the agent that summarizes has it.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from nexus_context import files
from nexus_context.assistant_sessions.recall import SessionFacts
from nexus_context.conversation import transcripts
from nexus_context.conversation.message import Message, text_of

MOST = 48 * 1024 * 1024  # bytes from the end of a transcript
BOUNDARIES = (b'"compact_boundary"', b'"type":"compacted"', b'"type": "compacted"')
"""In the line of an earlier compaction: what is before it is in its summary, or lost already."""
_TEXTS = ("text", "content", "message", "arguments", "output")
_COMMAND = re.compile(r"\s*/[a-z][\w:-]*(?:\s|\Z)")


def read_facts(path: str, assistant: str) -> SessionFacts | None:
    """The facts of the messages that the model is still sent; None if there are none."""
    messages = read_live_messages(path, assistant)
    return SessionFacts(messages) if messages else None


def read_live_messages(path: str, assistant: str) -> list[Message]:
    """The messages since the last compaction, with its summary."""
    lines: list[bytes] = []
    try:
        for line in files.Lines(path, most=MOST):
            lines.append(line)
            if is_boundary(line):
                break
    except OSError:
        return []
    transcript = transcripts.read_transcript(b"\n".join(reversed(lines)), path, format=assistant)
    main = [one for one in transcript.conversations if one.agent is None]
    return [message for message in main[0].messages if not _is_command(message)] if main else []


def read_present(path: str) -> tuple[str, ...]:
    """The texts that the last compaction left; empty without a record of one."""
    try:
        line = next((one for one in files.Lines(path, most=MOST) if is_boundary(one)), b"")
        record = msgspec.json.decode(line or b"null")
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    payload = record.get("payload") if isinstance(record, dict) else None
    return tuple(_texts(payload)) if isinstance(payload, dict) else ()


def is_boundary(line: bytes) -> bool:
    """Whether a line may be the record of a compaction."""
    return any(mark in line for mark in BOUNDARIES)


def _texts(value: Any) -> Iterator[str]:
    """The texts of messages in a JSON value."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            stack.extend(each for name, each in item.items() if name in _TEXTS or isinstance(each, list))
        elif isinstance(item, str):
            yield item


def _is_command(message: Message) -> bool:
    """Whether a message is a command to the program, such as the `/compact` that it is about to carry out."""
    return message.role == "user" and _COMMAND.match(text_of(message)) is not None
