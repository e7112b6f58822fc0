"""The `nexus/*` methods: names, parameters and results.

Parameters and results are msgspec structs with camelCase names on the wire, decoded from and encoded to
raw bytes. Ranges are in the position encoding that the client and the daemon agreed on. Fields may be
added, never renamed. `docs/protocol.md` shows each with a real example.
"""

from nexus_daemon.protocol.config import EffectiveResult, McpServer, Provenance
from nexus_daemon.protocol.context import (
    Assembled,
    AssembleOptions,
    AssembleParams,
    ContextDidChange,
    Fragment,
    Layer,
    LayerFile,
    LayersResult,
    ParameterValue,
    Preview,
    SkippedLayer,
)
from nexus_daemon.protocol.session import (
    AppendParams,
    AppendResult,
    ClearResult,
    CompactParams,
    CompactResult,
    Lost,
    MessagesResult,
    Receipt,
    UndoParams,
    UndoResult,
)
from nexus_daemon.protocol.shapes import (
    Counter,
    Fix,
    FixEdit,
    FolderParams,
    Location,
    Position,
    Problem,
    Range,
    SessionParams,
    Sparse,
    TokenBudget,
    TokenUsage,
    UsageRow,
    Used,
    Wire,
)
from nexus_daemon.protocol.tokens import CountParams, CountResult
from nexus_daemon.protocol.workspace import FolderStatus, InitResult, NoParams, Status

__all__ = [
    "METHODS",
    "AppendParams",
    "AppendResult",
    "AssembleOptions",
    "AssembleParams",
    "Assembled",
    "ClearResult",
    "CompactParams",
    "CompactResult",
    "ContextDidChange",
    "CountParams",
    "CountResult",
    "Counter",
    "EffectiveResult",
    "Fix",
    "FixEdit",
    "FolderParams",
    "FolderStatus",
    "Fragment",
    "InitResult",
    "Layer",
    "LayerFile",
    "LayersResult",
    "Location",
    "Lost",
    "McpServer",
    "MessagesResult",
    "NoParams",
    "ParameterValue",
    "Position",
    "Preview",
    "Problem",
    "Provenance",
    "Range",
    "Receipt",
    "SessionParams",
    "SkippedLayer",
    "Sparse",
    "Status",
    "TokenBudget",
    "TokenUsage",
    "UndoParams",
    "UndoResult",
    "UsageRow",
    "Used",
    "Wire",
]

METHODS: dict[str, tuple[type[Wire], type[Wire]]] = {
    "nexus/context/assemble": (AssembleParams, Assembled),
    "nexus/context/preview": (FolderParams, Preview),
    "nexus/context/usage": (SessionParams, TokenUsage),
    "nexus/context/layers": (FolderParams, LayersResult),
    "nexus/config/effective": (FolderParams, EffectiveResult),
    "nexus/session/append": (AppendParams, AppendResult),
    "nexus/session/messages": (SessionParams, MessagesResult),
    "nexus/session/clear": (SessionParams, ClearResult),
    "nexus/session/compact": (CompactParams, CompactResult),
    "nexus/session/undoCompaction": (UndoParams, UndoResult),
    "nexus/tokens/count": (CountParams, CountResult),
    "nexus/workspace/init": (FolderParams, InitResult),
    "nexus/status": (NoParams, Status),
}
"""Every request: its parameters and its result."""
