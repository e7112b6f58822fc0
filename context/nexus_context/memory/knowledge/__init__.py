"""The knowledge base: passages of the user's text files that belong to a message, found by their words."""

from nexus_context.memory.knowledge.file_selection import Place, Settings, settings_of
from nexus_context.memory.knowledge.passage_index import Index, IndexBusyError, index_path
from nexus_context.memory.knowledge.passage_search import Passage, query
from nexus_context.memory.knowledge.refresh import Refreshed, refresh

__all__ = [
    "Index",
    "IndexBusyError",
    "Passage",
    "Place",
    "Refreshed",
    "Settings",
    "index_path",
    "query",
    "refresh",
    "settings_of",
]
