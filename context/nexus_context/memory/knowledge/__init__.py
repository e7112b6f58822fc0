"""Searches the user's text files for passages that belong to a message, by words and by meaning."""

from nexus_context.memory.knowledge.embedder import (
    Embedder,
    EmbeddingError,
    ModelFiles,
    find_model,
    load_model,
)
from nexus_context.memory.knowledge.file_selection import (
    EmbeddingSettings,
    KnowledgePath,
    Settings,
    settings_for,
    settings_of,
)
from nexus_context.memory.knowledge.passage_index import (
    IndexBusyError,
    IndexLostError,
    KnowledgeIndex,
    index_path,
)
from nexus_context.memory.knowledge.passage_search import Passage, query
from nexus_context.memory.knowledge.refresh import Refreshed, refresh
from nexus_context.memory.knowledge.vectors import MOST_VECTORS, Vectors

__all__ = [
    "MOST_VECTORS",
    "Embedder",
    "EmbeddingError",
    "EmbeddingSettings",
    "IndexBusyError",
    "IndexLostError",
    "KnowledgeIndex",
    "KnowledgePath",
    "ModelFiles",
    "Passage",
    "Refreshed",
    "Settings",
    "Vectors",
    "find_model",
    "index_path",
    "load_model",
    "query",
    "refresh",
    "settings_for",
    "settings_of",
]
