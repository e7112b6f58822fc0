"""Names and values that a conversation mentions: a later step can only repeat them, never guess them."""

from nexus_context.conversation.identifiers.find import find
from nexus_context.conversation.identifiers.mentions import Source, mentions
from nexus_context.conversation.identifiers.names_note import IdentifierIndex
from nexus_context.conversation.identifiers.word_kinds import Kind, Mention

__all__ = ["IdentifierIndex", "Kind", "Mention", "Source", "find", "mentions"]
