"""Who a request is for: a live agent of the folder, or the folder's own agent.

1. What an agent is asked with is its own: its snapshot (with its tools, permissions and model), its
   parameters, and, where a request names no conversation, its conversation.
2. A conversation of a live agent is measured as what that agent is asked with, whoever asks for it.
3. A turn may be for a name that only clients know: then it is the folder's own, with that name's messages.
   A name that an agent of this workspace has had is none of those, however long ago and in whichever window,
   nor is one that differs from it in upper and lower case only: unless that agent lives, it is an error.
4. A turn in the conversation of an agent that has ended is an error, too, unless it names another agent, or
   `main`. What was said there can be read, measured and written on by all.
"""

import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import RequestError
from nexus_context.layers.agent_definitions import MAIN
from nexus_context.snapshot import Snapshot
from nexus_daemon import protocol
from nexus_daemon.lsp import convert
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:  # most requests are for no agent
    from nexus_context.agents import Agent
    from nexus_daemon.agents.registry import Agents
    from nexus_daemon.sessions.conversations import Conversation
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.workspace.client import Client
    from nexus_daemon.workspace.folders import Folder

SESSION = "agent:"
"""What the name of an agent's conversation begins with."""
REMEDY = "Leave out `agent` for the folder's own turn, or start it again."
GO_ON = "With `agent` as `main` its conversation goes on as the folder's own. Or start it again."
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one letter is a drive


async def live(client: "Client", folder: "Folder") -> "Agents":
    """The agents of a folder, as files and ledger are now."""
    from nexus_daemon.agents import registry

    return await registry.live(client.daemon, folder)


async def opened(client: "Client", folder: "Folder") -> "Agents":
    """The agents of a folder, for what follows files and ledger itself, as `view_as` does."""
    from nexus_daemon.agents import registry

    return await registry.opened(client.daemon, folder)


async def find(
    client: "Client", folder: "Folder", name: str | None, *, remedy: str = REMEDY
) -> "Agent | None":
    """The live agent of a name; None for the folder's own, and for a name that only clients know.

    RequestError, code unknown-agent, for a name as in rule 3; `remedy` says what to do about one that ended.
    """
    if name is None or name == MAIN:
        return None
    agent, names = await _known(client, folder, name)
    if agent is None and (names or name.casefold() == MAIN):
        raise RequestError(_not_live(name, names, remedy), code="unknown-agent")
    return agent


async def check_spelling(client: "Client", folder: "Folder", name: str) -> None:
    """RequestError, code unknown-agent, for a name that differs from an agent's in its case only."""
    if name == MAIN:
        return
    agent, names = await _known(client, folder, name)
    if agent is None and name not in names and (names or name.casefold() == MAIN):
        raise RequestError(_not_live(name, names, REMEDY), code="unknown-agent")


async def snapshot_of(client: "Client", folder: "Folder", name: str | None) -> Snapshot:
    """What an agent sees, or the folder's own where no name is given. RequestError, code unknown-agent."""
    if name is None or name == MAIN:
        return await folder.current()
    agent = await find(client, folder, name)
    return (agent or (await live(client, folder)).get(name)).snapshot


@asynccontextmanager
async def using(
    client: "Client", params: protocol.SessionParams, agent: str | None = None, *, turn: bool = False
) -> AsyncIterator[SessionScope]:
    """The conversation that a request is about, in the order in which they were asked for.

    `agent` is who it is for; without one a conversation of an agent is that agent's. `turn`: for a model.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    since = time.monotonic()
    async with folder.conversations.using(params.session) as conversation:
        snapshot = await folder.current()
        ledger = (await client.daemon.folder_ledger(snapshot, folder, since=since)).for_client(
            client, since=since
        )
        if agent:
            asked = await find(client, folder, agent)
        else:
            asked = await _owner(client, folder, params.session, turn)
        snapshot = await with_choice(
            client, snapshot if asked is None else asked.snapshot, conversation, ledger, asked
        )
        locate = convert.Locator(snapshot.layers, client.position_encoding)
        yield SessionScope(
            client=client,
            folder=folder,
            conversation=conversation,
            snapshot=snapshot,
            ledger=ledger,
            locate=locate,
            agent=asked,
        )


async def with_choice(
    client: "Client",
    snapshot: Snapshot,
    conversation: "Conversation",
    ledger: "FolderLedger",
    agent: "Agent | None",
) -> Snapshot:
    """The snapshot with the model that the conversation is used with."""
    from nexus_daemon.sessions import next_request

    if next_request.choice_of(conversation, ledger, agent) in (None, snapshot.choice):
        return snapshot
    return await client.daemon.work(next_request.snapshot_for, snapshot, conversation, ledger, agent)


@asynccontextmanager
async def using_own(
    client: "Client", params: protocol.ConversationParams, *, turn: bool = False
) -> AsyncIterator[SessionScope]:
    """As `using`; where the request names no conversation, that of the agent it is for."""
    folder = client.daemon.folders.at(params.workspace_folder)
    known = None if params.agent is None or folder.agents is None else folder.agents.known(params.agent)
    session = params.session or (MAIN if known is None else known.session)
    while True:  # twice at most: who is live is known for sure in the conversation's turn only
        about = protocol.SessionParams(params.workspace_folder, session)
        async with using(client, about, params.agent, turn=turn) as scope:
            own = MAIN if scope.agent is None else scope.agent.session
            if session in (params.session, own):
                yield scope
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


async def _known(client: "Client", folder: "Folder", name: str) -> "tuple[Agent | None, Mapping[str, bool]]":
    """The live agent of a name. Without one: the names of agents, this but for its case, and which live."""
    known = None if folder.agents is None else (await live(client, folder)).known(name)
    names: Mapping[str, bool] = {}
    for _ in range(2):  # the second time for one that starts or ends while it is looked for
        if known is not None:
            break
        ledger = await client.daemon.folder_ledger(await folder.current(), folder)
        names = await client.daemon.work(ledger.store.agent_names, ledger.workspace, name)
        if not names.get(name):
            break
        known = (await live(client, folder)).known(name)
    return known, names


async def _owner(client: "Client", folder: "Folder", session: str, turn: bool) -> "Agent | None":
    """The live agent whose conversation this is. RequestError for a turn of one that has ended."""
    name = session.removeprefix(SESSION) if session.startswith(SESSION) else ""
    if not name:
        return None
    agent, names = await _known(client, folder, name)
    if turn and agent is None and name in names:
        raise RequestError(_not_live(name, names, GO_ON), code="unknown-agent")
    return agent


def _not_live(name: str, names: Mapping[str, bool], remedy: str) -> str:
    """Why a name is no live agent's that is, or but for its case is, one of these, of which some live."""
    if names.get(name):
        return f"Agent {name!r} cannot be brought back: the daemon's log says why. Dispose of it."
    if name in names:
        return f"Agent {name!r} has ended. {remedy}"
    near = next((each for each, lives in names.items() if lives), next(iter(names), MAIN))
    if names.get(near, near == MAIN):
        return f"There is no agent {name!r}. Did you mean {near!r}?"
    return f"There is no agent {name!r}. Did you mean {near!r}, which has ended? {remedy}"


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
