"""Transcripts of conversations, in the formats of various programs, as neutral messages.

Reading order: read_limits, records, chat_records, claude_code, read_transcript.
"""

from nexus_context.conversation.transcripts.read_limits import GZIP
from nexus_context.conversation.transcripts.read_transcript import (
    LIMIT,
    Conversation,
    Format,
    Transcript,
    joined,
    read,
)

__all__ = ["GZIP", "LIMIT", "Conversation", "Format", "Transcript", "joined", "read"]
