"""Answer `nexus/config/effective`: the settings in force, and which layers set them."""

from typing import TYPE_CHECKING

from nexus_context.config import merge
from nexus_context.errors import Span
from nexus_context.folder.layers import Layers
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.json import parse_pointer
from nexus_context.text.redact import printable_setting
from nexus_daemon import protocol
from nexus_daemon.api.context import of_snapshot
from nexus_daemon.lsp.convert import Locator

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection


async def effective(client: "Connection", params: protocol.AgentViewParams) -> protocol.EffectiveResult:
    """Return the settings in force, the layers that set each of them, and the MCP servers.

    For an agent these are the settings of its directory, overridden by what it was granted.
    """
    return await of_snapshot(client, params, build_effective)


def build_effective(snapshot: Snapshot, locate: Locator) -> protocol.EffectiveResult:
    return protocol.EffectiveResult(
        revision=snapshot.revision,
        config=printable_setting(snapshot.effective.values),
        provenance={
            pointer: [_provenance(pointer, entry, snapshot.layers, locate) for entry in chain]
            for pointer, chain in snapshot.effective.provenance.items()
        },
        mcp_servers=[
            protocol.McpServer(
                name=server.name,
                type=server.type,
                origin=server.origin,
                uri=locate.uri(server.path),
                range=locate.range(server.path, server.span),
                enabled=server.enabled,
                shadowed_by=server.shadowed_by,
            )
            for server in snapshot.layers.servers
        ],
    )


def _provenance(
    pointer: str, entry: merge.Provenance, layers: Layers, locate: Locator
) -> protocol.Provenance:
    granted = entry.document is None and entry.layer != merge.BUILT_IN
    path = layers.folder if granted else entry.path
    return protocol.Provenance(
        layer=entry.layer,
        uri=locate.uri(path),
        range=locate.range(path, _present_span(entry, layers)),
        value=printable_setting(entry.value, parse_pointer(pointer)),
        wins=entry.wins,
        ignored=entry.ignored,
    )


def _present_span(entry: merge.Provenance, layers: Layers) -> Span:
    """Locate the value in the file's current text, from which a stale file's value may be gone."""
    current_document = layers.documents.get(entry.path)
    if entry.document is None or current_document is None or current_document is entry.document:
        return entry.span
    try:
        return current_document.span(entry.pointer)
    except KeyError:
        return Span(0, 0)
