"""Reuses the result of `assemble` as long as nothing that it depends on has changed."""

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from nexus_context.folder.prompt import texts
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.item import MemoryItem
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import AssembledContext, Request

LARGEST_KEY = 64 * 1024
"""Bytes of a request as JSON that is looked up: comparing more costs as much as assembling."""


class AssemblyLookup(Protocol):
    """The methods of a cache that `assemble_cached` calls (`cache.AssemblyCache`)."""

    def get(self, key: Hashable) -> AssembledContext | None: ...

    def put(self, key: Hashable, value: AssembledContext) -> None: ...


def assemble_cached(
    cache: AssemblyLookup,
    snapshot: Snapshot,
    conversation: ContextManager,
    request: Request,
    *,
    now: datetime,
    memory: Sequence[MemoryItem] = (),
    versions: tuple[Hashable, ...] = (),
) -> tuple[AssembledContext, bool]:
    """Return the context, and whether it came from the cache. `versions` become part of the key, to tell
    equal snapshots apart.
    """
    encoded = msgspec.json.encode(request)
    items = tuple(memory)
    if len(encoded) > LARGEST_KEY:
        return assemble(snapshot, conversation, request, now=now, memory=items), False
    datetime_settings = snapshot.effective.get("/context/datetime") or {}
    is_timeless = datetime_settings.get("placement") == "off"
    moment = {} if is_timeless else texts.moment(now, datetime_settings)
    identity = (
        snapshot.agent,
        snapshot.revision,
        snapshot.choice,
        conversation.revision,
        conversation.freezes,
        conversation.correction,
    )
    key = (*versions, *identity, tuple(moment.values()), encoded, items)
    context = cache.get(key)
    if context is not None:
        conversation.requests.add(context.sent_request._replace(at=now))
        return context, True
    context = assemble(snapshot, conversation, request, now=now, memory=items)
    cache.put(key, context)
    return context, False
