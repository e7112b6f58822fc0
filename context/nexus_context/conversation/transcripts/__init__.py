"""Transcripts of real conversations, in the forms in which programs keep them, as neutral messages.

Reading order: records, messages, session, reading.
"""

from nexus_context.conversation.transcripts.reading import (
    GZIP,
    LIMIT,
    Conversation,
    Format,
    Transcript,
    joined,
    read,
)

__all__ = ["GZIP", "LIMIT", "Conversation", "Format", "Transcript", "joined", "read"]
