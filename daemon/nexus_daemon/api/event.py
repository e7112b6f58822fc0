"""Answer `nexus/event/*`: the event bus. It is in memory only and ends with the daemon."""

import re
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_daemon import protocol
from nexus_daemon.api import resolve
from nexus_daemon.process import lazy
from nexus_daemon.sessions import results

if TYPE_CHECKING:
    from nexus_context.memory.bus import EventPage
    from nexus_context.memory.events import Event
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.connection import Connection

KIND = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
RESERVED = {
    "turn": "append the turn with `nexus/session/append`",
    "compaction": "compact the conversation with `nexus/session/compact`",
    "node.message": "send the message with `nexus/agent/message`",
}
"""Kinds that only the daemon publishes, and what to do instead."""
MOST_LISTED = 1_000


async def publish(client: "Connection", params: protocol.PublishParams) -> protocol.PublishResult:
    """Publish an event for the agents and clients of a folder.

    The next turn of the event's agent in that session includes it, and so does the next turn of each agent
    above that agent (`memory.events`). An event without a session is included in a turn of any session of its
    agent. No other agent sees it.

    The daemon itself publishes turns and their parts, compactions and messages between agents. The bus is in
    memory: it keeps at most 1,000 events and 8 MB per folder, removes the oldest first, and keeps nothing
    across a restart. `data` larger than 1 MB is an error. Texts of turns longer than 16,000 characters are
    shortened with a mark, since the ledger has them in full.
    """
    if not KIND.fullmatch(params.kind):
        raise RequestError(
            f"kind is {params.kind!r:.80}; it must be a letter and at most 63 more ASCII letters, digits, "
            "`.`, `_` and `-`.",
            code="bad-event",
        )
    if params.kind in RESERVED:
        raise RequestError(
            f"Events of the kind {params.kind} are published by Nexus: {RESERVED[params.kind]}.",
            code="bad-event",
        )
    _check_names(params)
    folder = client.folders.at(params.workspace_folder)
    agents = await resolve.lineage(client, folder, params.agent, params.session)
    ledger = (await resolve.folder_ledger(client, params.workspace_folder)).for_agents(agents)
    return protocol.PublishResult((await client.work(_publish, ledger, params)).id)


async def list_events(client: "Connection", params: protocol.EventListParams) -> protocol.EventListResult:
    """List the events of a folder after a given event, or the newest ones. Listing removes nothing."""
    if not 1 <= params.limit <= MOST_LISTED:
        raise RequestError(
            f"limit is {params.limit}; it must be a whole number from 1 to {MOST_LISTED:,}.", code="bad-event"
        )
    _check_names(params)
    ledger = await resolve.folder_ledger(client, params.workspace_folder)
    page = await client.work(_page, ledger, params)
    return protocol.EventListResult(
        [_info(event) for event in page.events], more=page.more, missed=page.missed
    )


def _check_names(params: protocol.PublishParams | protocol.EventListParams) -> None:
    for name in ("session", "agent"):
        if getattr(params, name) == "":
            raise RequestError(f"{name} is empty; give a name, or leave it out.", code="bad-event")


def _publish(ledger: "FolderLedger", params: protocol.PublishParams) -> "Event":
    event = lazy.events.from_data(params.kind, params.data, session=params.session)
    return ledger.publish([event])[0]


def _page(ledger: "FolderLedger", params: protocol.EventListParams) -> "EventPage":
    return ledger.bus.page(
        ledger.workspace,
        since=params.since,
        limit=params.limit,
        session=params.session,
        agent=params.agent,
    )


def _info(event: "Event") -> protocol.EventInfo:
    return protocol.EventInfo(
        id=event.id,
        kind=event.action,
        agent=event.agent,
        session=event.session,
        at=results.utc(event.at),
        data=lazy.events.data_of(event),
    )
