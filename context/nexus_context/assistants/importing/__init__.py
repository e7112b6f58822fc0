"""Transcripts of conversations, in the formats of various programs, as neutral messages.

Reading order: read_limits, records, chat_records; conversation, the result of every format; a module for each
format (steering belongs to claude_code, and codex uses responses); transcript.
"""

from nexus_context.assistants.importing.transcript import LIMIT, Transcript, joined, read_transcript
from nexus_context.assistants.transcripts.conversation import Answer, Conversation, Format
from nexus_context.assistants.transcripts.records import LeftOut
from nexus_context.text.read_limits import GZIP

__all__ = [
    "GZIP",
    "LIMIT",
    "Answer",
    "Conversation",
    "Format",
    "LeftOut",
    "Transcript",
    "joined",
    "read_transcript",
]
