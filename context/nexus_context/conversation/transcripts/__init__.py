"""Transcripts of real conversations, in the forms in which programs keep them, as neutral messages.

Reading order: limits, records, messages, session, reading.
"""

from nexus_context.conversation.transcripts.limits import GZIP
from nexus_context.conversation.transcripts.reading import (
    LIMIT,
    Conversation,
    Format,
    Transcript,
    joined,
    read,
)

__all__ = ["GZIP", "LIMIT", "Conversation", "Format", "Transcript", "joined", "read"]
