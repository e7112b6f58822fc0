"""The knowledge base: passages of the user's text files that belong to a message, found by their words."""

from nexus_context.memory.knowledge.file_selection import KnowledgePath, Settings, settings_of
from nexus_context.memory.knowledge.passage_index import IndexBusyError, KnowledgeIndex, index_path
from nexus_context.memory.knowledge.passage_search import Passage, query
from nexus_context.memory.knowledge.refresh import Refreshed, refresh

__all__ = [
    "IndexBusyError",
    "KnowledgeIndex",
    "KnowledgePath",
    "Passage",
    "Refreshed",
    "Settings",
    "index_path",
    "query",
    "refresh",
    "settings_of",
]
