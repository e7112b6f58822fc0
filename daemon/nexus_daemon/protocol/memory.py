"""`nexus/memory/*`: memory as tools."""

from typing import Any

from nexus_daemon.protocol.shapes import FolderParams, Sparse, Wire


class MemoryQueryParams(FolderParams, frozen=True, kw_only=True):
    """A call of a memory tool, as a model made it."""

    session: str | None = "main"  # the conversation that calls; null: none, so all are searched
    tool: str  # `query_l2_memory`, `query_l3_memory` or `query_l4_memory`
    arguments: dict[str, Any] | str | None = None  # the call's arguments, as an object or as JSON text


class MemoryQueryResult(Wire, frozen=True):
    """The result of the call."""

    text: str  # for the model: the matches, or that there are none


class MemoryListParams(FolderParams, frozen=True, kw_only=True):
    """What to list of memory."""

    session: str | None = None  # only of this conversation
    limit: int = 10  # at most this many entries of each kind


class MemoryEntry(Sparse, frozen=True):
    """Something that is remembered of a conversation."""

    session: str  # the conversation
    seq: int  # number of its turn, from 1; 0: of no turn
    created: str  # when, in ISO 8601
    text: str  # what is remembered
    weight: float = 0.0  # how much it matters


class MemoryListResult(Wire, frozen=True):
    """What the conversations of a folder remember."""

    important: list[MemoryEntry]  # L2: the exchanges that matter, oldest first, conversation by conversation
    summaries: list[MemoryEntry]  # L3: the newest summaries, oldest first
