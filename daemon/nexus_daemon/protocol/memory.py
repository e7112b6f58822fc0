"""`nexus/memory/*`: memory as tools."""

from typing import Any

from nexus_daemon.protocol.shapes import SessionParams, Wire


class MemoryQueryParams(SessionParams, frozen=True, kw_only=True):
    """A call of a memory tool, as a model made it."""

    tool: str  # `query_l2_memory`, `query_l3_memory` or `query_l4_memory`
    arguments: dict[str, Any] | str | None = None  # the call's arguments, as an object or as JSON text


class MemoryQueryResult(Wire, frozen=True):
    """The result of the call."""

    text: str  # for the model: the matches, or that there are none
