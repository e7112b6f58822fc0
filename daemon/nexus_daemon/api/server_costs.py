"""Compute what the MCP servers of a folder cost a turn that has their tools, and find servers that nobody
calls.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from nexus_context.conversation.tools import name_of, tool_rows
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.errors import LedgerError
from nexus_context.servers.offered import OfferedTool, prefix_of
from nexus_context.turn import costs
from nexus_context.turn.deferral import Room, defer
from nexus_context.turn.models import model_of
from nexus_context.turn.offered_tools import offered_tools
from nexus_context.turn.request import Options, Request
from nexus_daemon import protocol
from nexus_daemon.sessions.ledger_writer import FolderLedger

OFFERED = ("stopped", "starting", "ready")
"""The states in which a turn may have a server's tools."""
UNUSED_DAYS = 30


class FolderTools(NamedTuple):
    """The MCP servers of a folder with what their tools cost, in tokens.

    `deferred` is the cost of the tools that a turn begins without, `window` what a request may take.
    """

    infos: list[protocol.ServerInfo]
    deferred: int
    window: int


def room_of(snapshot: Snapshot) -> Room:
    """Return the model, the counter and the available tokens of a turn in the folder."""
    model, counter = model_of(snapshot, None)
    return Room(model, counter, costs.available_tokens(snapshot, Request(), model))


def with_settings(
    snapshot: Snapshot,
    infos: Sequence[protocol.ServerInfo],
    tools: Mapping[str, Sequence[OfferedTool]],
    room: Room,
) -> FolderTools:
    """Apply the settings to the servers' `tools` (server name → tools): which are left out, and which are
    deferred.
    """
    definitions = [tool.definition for info in infos for tool in tools[info.name]]
    left_out = offered_tools(snapshot, Options(server_tools=definitions), room.model).left_out
    sent_definitions = [
        tool.definition
        for info in infos
        if info.state in OFFERED
        for tool in tools[info.name]
        if tool.name not in left_out
    ]
    deferral = defer(snapshot, sent_definitions, Options(server_tools=sent_definitions), room=room)
    deferred_tokens = sum(row.tokens for row in tool_rows(deferral.waiting, room.counter))
    names = set(map(name_of, deferral.waiting))
    window = room.model.limit(snapshot.effective.get("/context/max_tokens"))
    return FolderTools([_with_settings(info, left_out, names) for info in infos], deferred_tokens, window)


def _with_settings(
    info: protocol.ServerInfo, left_out: Mapping[str, str], deferred: set[str]
) -> protocol.ServerInfo:
    tools = [
        msgspec.structs.replace(
            tool, enabled=tool.offered_as not in left_out, deferred=tool.offered_as in deferred
        )
        for tool in info.tools
    ]
    return msgspec.structs.replace(
        info, tools=tools, tokens=sum(tool.tokens for tool in tools if tool.enabled)
    )


def summarize(
    folder_tools: FolderTools, ledger: FolderLedger | None, now: datetime
) -> protocol.ServersResult:
    """Add to each server when it was called last, read from the ledger if there is one.

    `now` has a time zone.
    """
    infos = folder_tools.infos
    try:
        infos = infos if ledger is None else [_with_last_call(info, ledger) for info in infos]
    except LedgerError:  # it is damaged, or too large to be read in time
        ledger = None
    offered = [info for info in infos if info.state in OFFERED and info.tokens]
    since = now - timedelta(days=UNUSED_DAYS)
    unused = [info.name for info in offered if ledger is not None and not _was_called(info, since)]
    result = protocol.ServersResult(
        infos,
        sum(info.tokens for info in offered),
        folder_tools.deferred,
        window=folder_tools.window,
        unused=unused,
    )
    exact = all(info.exact for info in offered)
    return msgspec.structs.replace(result, summary=_summary(result, len(offered), exact=exact))


def _with_last_call(info: protocol.ServerInfo, ledger: FolderLedger) -> protocol.ServerInfo:
    if not info.tools:
        return info
    last_call = ledger.store.pages.last_call(ledger.workspace, prefix_of(info.name))
    return msgspec.structs.replace(info, last_call=last_call)


def _was_called(info: protocol.ServerInfo, since: datetime) -> bool:
    return info.last_call is not None and datetime.fromisoformat(info.last_call) >= since


def _summary(result: protocol.ServersResult, servers: int, *, exact: bool) -> str | None:
    """One sentence for people."""
    if not servers:
        return None
    mark = "" if exact else "≈"
    percent = 100 * result.tokens / result.window
    share = f"{percent:.0f} %" if percent >= 1 else "less than 1 %"
    subject = "This server costs" if servers == 1 else f"These {servers:,} servers cost"
    sentence = f"{subject} {mark}{result.tokens:,} tokens, {share} of the window of {result.window:,}"
    if result.deferred_tokens:
        sentence += f", of which {mark}{result.deferred_tokens:,} are sent only when the model looks for them"
    unused = len(result.unused)
    if not unused:
        return f"{sentence}."
    uncalled = "it was" if servers == 1 else f"{unused:,} was" if unused == 1 else f"{unused:,} were"
    return f"{sentence}; {uncalled} not called in {UNUSED_DAYS} days."
