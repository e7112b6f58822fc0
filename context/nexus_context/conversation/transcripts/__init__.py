"""Transcripts of real conversations, in the forms in which programs keep them, as neutral messages.

Reading order: limits, records, messages, session, reading.
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
