"""Who a request is for: a live agent of the folder, or the folder's own agent.

1. What an agent is asked with is its own: its snapshot (with its tools, permissions and model), its
   parameters, and, where a request names no conversation, its conversation.
2. A conversation of a live agent is measured as what that agent is asked with, whoever asks for it.
3. A turn may be for a name that only clients know: then it is the folder's own, with that name's messages.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import RequestError
from nexus_context.layers.agents import MAIN
from nexus_context.snapshot import Snapshot
from nexus_daemon import convert, protocol
from nexus_daemon.requests.used import Used

if TYPE_CHECKING:  # most requests are for no agent
    from nexus_context.agents import Agent
    from nexus_daemon.agents import Agents
    from nexus_daemon.client import Client
    from nexus_daemon.folders import Folder

SESSION = "agent:"
"""What the name of an agent's conversation begins with."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one letter is a drive


async def live(client: "Client", folder: "Folder") -> "Agents":
    """The agents of a folder, as files and ledger are now."""
    from nexus_daemon import agents

    return await agents.live(client.daemon, folder)


async def opened(client: "Client", folder: "Folder") -> "Agents":
    """The agents of a folder, for what follows files and ledger itself, as `view_as` does."""
    from nexus_daemon import agents

    return await agents.opened(client.daemon, folder)


async def find(client: "Client", folder: "Folder", name: str | None) -> "Agent | None":
    """The live agent of a name; None for the folder's own, and for a name that only clients know."""
    if name is None or name == MAIN:
        return None
    from nexus_daemon import agents

    return await agents.find(client.daemon, folder, name)


async def snapshot_of(client: "Client", folder: "Folder", name: str | None) -> Snapshot:
    """What an agent sees, or the folder's own where no name is given. RequestError, code unknown-agent."""
    if name is None or name == MAIN:
        return await folder.current()
    return (await live(client, folder)).get(name).snapshot


@asynccontextmanager
async def using(
    client: "Client", params: protocol.SessionParams, agent: str | None = None
) -> AsyncIterator[Used]:
    """The conversation that a request is about, in the order in which they were asked for.

    `agent` is who it is for; without one a conversation of an agent is that agent's.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    async with folder.conversations.using(params.session) as conversation:
        snapshot = await folder.current()
        book = (await client.daemon.book(snapshot, folder)).asked_by(client)
        asked = await find(client, folder, agent or _owner(params.session))
        snapshot = snapshot if asked is None else asked.snapshot
        locate = convert.Locator(snapshot.layers, client.position_encoding)
        yield Used(folder, conversation, snapshot, book, locate, asked)


@asynccontextmanager
async def using_own(client: "Client", params: protocol.AskedParams) -> AsyncIterator[Used]:
    """As `using`; where the request names no conversation, that of the agent it is for."""
    folder = client.daemon.folders.at(params.workspace_folder)
    known = None if params.agent is None or folder.agents is None else folder.agents.known(params.agent)
    session = params.session or (MAIN if known is None else known.session)
    while True:  # twice at most: who is live is known for sure in the conversation's turn only
        async with using(
            client, protocol.SessionParams(params.workspace_folder, session), params.agent
        ) as used:
            own = MAIN if used.agent is None else used.agent.session
            if session in (params.session, own):
                yield used
                return
        session = own


def asked_of(params: protocol.SpawnParams | protocol.ViewAs) -> dict[str, Any]:
    """The arguments of `AgentPool.spawn` and `view_as`."""
    asked = msgspec.structs.asdict(params)
    asked.pop("workspace_folder", None)
    place, may = asked["cwd"], asked["permissions"]
    asked["cwd"] = None if place is None else _path(asked["agent_id"], place)
    asked["permissions"] = {"allow": may} if isinstance(may, list) else may
    return asked


def _owner(session: str) -> str | None:
    """The name of the agent whose conversation this is, if it lives."""
    return session.removeprefix(SESSION) if session.startswith(SESSION) else None


def _path(agent: str | None, given: str) -> str:
    """A path, or the path of a URI. RequestError, code agent-cwd, for a URI of something else than a file."""
    if not _URI.match(given):
        return given
    path = convert.uri_to_path(given)
    if path is None:
        raise RequestError(
            f"The cwd of agent {agent or 'agent'!r}, {given}, is no file on this machine. Give a path or a "
            "URI that starts with `file:`.",
            code="agent-cwd",
        )
    return path
