"""`nexus/event/*`: the event bus."""

from typing import Any

from nexus_daemon.protocol.shapes import FolderParams, Sparse, Wire


class PublishParams(FolderParams, frozen=True, kw_only=True):
    """An event to publish."""

    session: str | None = None  # the conversation that it is about; null: the whole folder
    # who it is of: a live agent, or a name that only the client uses; null: the agent of the session, or
    # `main`
    agent: str | None = None
    # `execute` (a request), `thinking`, `tool_call`, `tool_result`, or a name of the client such as
    # `build.failed`: at most 64 ASCII letters, digits, `.`, `_` and `-`, a letter first
    kind: str
    # `execute`, `thinking` and `tool_result` need an object with a text `content`, `tool_call` one with a
    # text `tool`; of other kinds any value, of at most 1 MB as JSON
    data: Any = None


class PublishResult(Wire, frozen=True):
    """The published event."""

    id: str  # its id, for `since` of `nexus/event/list`


class EventPublished(Wire, frozen=True):
    """Sent to every client of a folder when the bus has new events of it; several at once are one notice."""

    workspace_folder: str  # URI of the folder
    id: str  # id of the newest event. `nexus/event/list` with `since` has those behind the last known one


class EventListParams(FolderParams, frozen=True, kw_only=True):
    """Which events to list."""

    session: str | None = None  # only of this conversation
    agent: str | None = None  # only of this agent and those below it: what this agent may see
    since: str | None = None  # id of an event: list the next ones; null: the newest
    limit: int = 100  # how many at most, from 1 to 1000


class EventInfo(Sparse, frozen=True, kw_only=True):
    """Something that happened."""

    id: str  # its id; ids of one daemon are in the order of the events
    # `execute`, `thinking`, `tool_call`, `tool_result` (parts of a turn), `turn`, `compaction`,
    # `node.message`, or what a client published
    kind: str
    agent: str | None = None  # who it is of
    session: str | None = None  # the conversation; absent: it is about the folder
    at: str  # when it was published, in UTC
    data: Any  # what happened


class EventListResult(Sparse, frozen=True):
    """Events, oldest first."""

    events: list[EventInfo]  # at most `limit`
    more: bool = False  # with `since`: later events match, too; ask again with the last id
    # events after `since` are gone: too many came, or `since` is of a daemon that has ended
    missed: bool = False
