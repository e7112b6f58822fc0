"""Find the agent that a request is for: a live agent of the folder, or the folder's own agent.

1. A request for an agent uses the agent's snapshot (with its tools, permissions and model), its parameters
   and, if the request names no conversation, its conversation.
2. A conversation of a live agent is always measured for that agent, whoever sent the request.
3. A turn may be for a name that only clients know. It uses the folder's own snapshot and gets the messages
   for that name. But a name that an agent of this workspace has ever had, in any window and in any case,
   means that agent: if it is not live, the request is an error.
4. A turn in the conversation of an agent that has ended is also an error, unless it names another agent or
   `main`. Everyone may read, measure and append to that conversation.
"""

import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import RequestError
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.folder.request_prompt import for_choice
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.errors import LedgerError
from nexus_daemon import protocol
from nexus_daemon.lsp import convert
from nexus_daemon.sessions import next_request
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_events import SESSION
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:  # most requests are for no agent
    from nexus_context.agents import Agent
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.connection import Connection
    from nexus_daemon.windows.live_folder import LiveFolder

REMEDY = "Leave out `agent` to use the folder's own agent, or start that agent again."
GO_ON = "Set `agent` to `main` to continue its conversation as the folder's own, or start the agent again."
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one letter is a drive


async def find(
    client: "Connection", folder: "LiveFolder", name: str | None, *, remedy: str = REMEDY
) -> "Agent | None":
    """Return the live agent `name`. None for the folder's own agent, and for a name that only clients know.

    RequestError with the code unknown-agent by rule 3. `remedy` is the part of its text that says what to do
    if the agent has ended.
    """
    if name is None or name == MAIN:
        return None
    agent, names = await _find_live(client, folder, name)
    if agent is None and (names or name.casefold() == MAIN):
        raise RequestError(_not_live(name, names, remedy), code="unknown-agent")
    return agent


async def check_spelling(client: "Connection", folder: "LiveFolder", name: str) -> None:
    """Raise RequestError with the code unknown-agent if a name differs from an agent's name only in case."""
    if name == MAIN:
        return
    agent, names = await _find_live(client, folder, name)
    if agent is None and name not in names and (names or name.casefold() == MAIN):
        raise RequestError(_not_live(name, names, REMEDY), code="unknown-agent")


async def snapshot_of(client: "Connection", folder: "LiveFolder", name: str | None) -> Snapshot:
    """Return the snapshot of the agent `name`, or without a name the folder's own.

    RequestError with the code unknown-agent if there is no such live agent.
    """
    if name is None or name == MAIN:
        return await folder.current()
    agent = await find(client, folder, name)
    return (agent or (await client.daemon.agents.current(folder)).get(name)).snapshot


@asynccontextmanager
async def using(
    client: "Connection", params: protocol.SessionParams, agent: str | None = None, *, turn: bool = False
) -> AsyncIterator[SessionScope]:
    """Lock the conversation of a request, and yield its scope.

    Requests get the lock in the order of their arrival.

    `agent` names the agent that the request is for; by default it is the agent that owns the conversation.
    `turn` means that the request is for a model.
    """
    folder = client.folders.at(params.workspace_folder)
    since = time.monotonic()
    async with folder.conversations.using(params.session, by=client) as conversation:
        snapshot = await folder.current()
        ledger = (await client.daemon.ledgers.of(snapshot, folder, since=since)).for_client(
            client, since=since
        )
        if agent:
            owner = await find(client, folder, agent)
        else:
            owner = await _owner(client, folder, params.session, turn)
        snapshot = snapshot if owner is None else owner.snapshot
        yield await scope_of(client, conversation, ledger, folder=folder, snapshot=snapshot, agent=owner)


async def scope_of(
    client: "Connection",
    conversation: "Conversation",
    ledger: "FolderLedger",
    *,
    folder: "LiveFolder",
    snapshot: Snapshot,
    agent: "Agent | None",
) -> SessionScope:
    """Build the scope of a locked conversation. Its snapshot has the conversation's model."""
    snapshot = await with_choice(client, snapshot, conversation, ledger, agent=agent)
    return SessionScope(
        client=client,
        folder=folder,
        conversation=conversation,
        snapshot=snapshot,
        ledger=ledger if agent is None else ledger.for_agents(lineage_of(agent)),
        locate=convert.Locator(snapshot.layers, client.capabilities.position_encoding),
        agent=agent,
    )


def lineage_of(agent: "Agent | None", name: str | None = None) -> tuple[str, ...]:
    """Return the names of the agent and of the agents above it, up to `main`.

    If `agent` is None, the result is just `name`, a name that only clients know, or `main`.
    """
    if agent is None:
        return (name or MAIN,)
    return (agent.id, *(() if agent.parent is None else lineage_of(agent.parent)))


async def lineage(
    client: "Connection", folder: "LiveFolder", name: str | None, session: str | None
) -> tuple[str, ...]:
    """Return the agent that an event in a session is published for, and the agents above it, as names.

    RequestError with the code unknown-agent by rule 3.
    """
    if name is None and session is not None:
        return lineage_of(await _owner(client, folder, session, turn=False))
    return lineage_of(await find(client, folder, name), name)


async def folder_ledger(client: "Connection", uri: str) -> "FolderLedger":
    """Return the ledger of the folder that contains the URI."""
    folder = client.folders.at(uri)
    return await client.daemon.ledgers.of(await folder.current(), folder)


async def with_choice(
    client: "Connection",
    snapshot: Snapshot,
    conversation: "Conversation",
    ledger: "FolderLedger",
    *,
    agent: "Agent | None",
) -> Snapshot:
    """Return the snapshot with the conversation's model in place of the folder's."""
    if next_request.choice_of(conversation, ledger, agent) in (None, snapshot.choice):
        return snapshot
    job = partial(next_request.snapshot_for, snapshot, conversation, ledger, agent=agent)
    return await client.work(job)


@asynccontextmanager
async def using_agent_session(
    client: "Connection", params: protocol.ConversationParams, *, turn: bool = False
) -> AsyncIterator[SessionScope]:
    """Lock a conversation as `using` does. If the request names no conversation, lock that of its agent."""
    folder = client.folders.at(params.workspace_folder)
    agent = None if params.agent is None or folder.agents is None else folder.agents.find(params.agent)
    session = params.session or (MAIN if agent is None else agent.session)
    while True:  # twice at most: only the lock makes certain which agent is live
        session_params = protocol.SessionParams(params.workspace_folder, session)
        async with using(client, session_params, params.agent, turn=turn) as scope:
            agent_session = MAIN if scope.agent is None else scope.agent.session
            if session in (params.session, agent_session):
                yield scope
                return
        session = agent_session


@asynccontextmanager
async def using_dry_run(
    client: "Connection", params: protocol.AssembleParams, dry_run: protocol.DryRun
) -> AsyncIterator[SessionScope]:
    """Yield the scope of a dry run: of a stored conversation, or of messages that are in no conversation.

    RequestError with the code bad-option if options exclude each other.
    """
    folder = client.folders.at(params.workspace_folder)
    if dry_run.view_as is not None and params.agent is not None:
        raise RequestError(
            "Both `agent` and `dryRun.viewAs` are set. Set only one: `viewAs` is for an agent that is not "
            "started.",
            code="bad-option",
        )
    if dry_run.system_prompt is not None and dry_run.messages is None:
        raise RequestError(
            "`dryRun.systemPrompt` goes with `dryRun.messages`: a conversation in the ledger has the prompt "
            "of its folder. Set both, or neither.",
            code="bad-option",
        )
    viewed = None if dry_run.view_as is None else await view_as(client, folder, dry_run.view_as)
    if dry_run.messages is not None:
        agent = viewed or await find(client, folder, params.agent)
        yield await _scope_apart(client, folder, agent, params=params, dry_run=dry_run)
    elif viewed is None:
        async with using_agent_session(client, params) as scope:
            yield await _without_effect(client, scope)
    else:
        session_params = protocol.SessionParams(params.workspace_folder, params.session or viewed.session)
        async with using(client, session_params) as stored_scope:
            scope = await _without_effect(client, stored_scope)
            yield await scope_of(
                client,
                scope.conversation,
                scope.ledger,
                folder=folder,
                snapshot=viewed.snapshot,
                agent=viewed,
            )


async def _without_effect(client: "Connection", scope: SessionScope) -> SessionScope:
    """The scope with a conversation of its own: nothing of a dry run stays in that of the windows."""
    conversation = await client.work(Conversation, scope.conversation.session)
    conversation.last_event = scope.conversation.last_event
    return msgspec.structs.replace(scope, conversation=conversation)


async def _scope_apart(
    client: "Connection",
    folder: "LiveFolder",
    agent: "Agent | None",
    *,
    params: protocol.AssembleParams,
    dry_run: protocol.DryRun,
) -> SessionScope:
    """The scope of an empty conversation that nobody else sees, for the model last picked in the folder."""
    snapshot = await folder.current() if agent is None else agent.snapshot
    ledger, choice = await client.daemon.ledgers.apart(folder, snapshot)
    if params.options is None or params.options.model is None:
        snapshot = await client.work(for_choice, snapshot, choice)
    if dry_run.system_prompt is not None:
        from nexus_daemon.sessions import dry_runs  # most requests are none

        snapshot = dry_runs.with_prompt(snapshot, dry_run.system_prompt)
    session = params.session or (MAIN if agent is None else agent.session)
    return SessionScope(
        client=client,
        folder=folder,
        conversation=await client.work(Conversation, session),
        snapshot=snapshot,
        ledger=ledger,
        locate=convert.Locator(snapshot.layers, client.capabilities.position_encoding),
        agent=agent,
    )


async def view_as(client: "Connection", folder: "LiveFolder", view: protocol.ViewAs) -> "Agent":
    """Return the agent that `view` describes, without starting it.

    RequestError in the same cases as `spawn`.
    """
    try:
        agents = await client.daemon.agents.of(folder)
    except LedgerError:  # then no agent is live, and those of the settings need none
        from nexus_context.agents import AgentPool

        pool = AgentPool(await folder.current(), client.folders.load_inputs)
        return await client.work(partial(pool.view_as, **spawn_options(view)))
    return await agents.view_as(spawn_options(view))


def spawn_options(params: protocol.SpawnParams | protocol.ViewAs) -> dict[str, Any]:
    """Return the arguments for `AgentPool.spawn` and `AgentPool.view_as`."""
    options = msgspec.structs.asdict(params)
    options.pop("workspace_folder", None)
    cwd, permissions = options["cwd"], options["permissions"]
    options["cwd"] = None if cwd is None else _path(options["agent_id"], cwd)
    options["permissions"] = {"allow": permissions} if isinstance(permissions, list) else permissions
    return options


async def _find_live(
    client: "Connection", folder: "LiveFolder", name: str
) -> "tuple[Agent | None, Mapping[str, bool]]":
    """The live agent of that name; else the names equal to it except in case, and which of them are live."""
    agent = None if folder.agents is None else (await client.daemon.agents.current(folder)).find(name)
    names: Mapping[str, bool] = {}
    for _ in range(2):  # again, in case an agent starts or ends meanwhile
        if agent is not None:
            break
        ledger = await client.daemon.ledgers.of(await folder.current(), folder)
        names = await client.work(ledger.store.agents.names, ledger.workspace, name)
        if not names.get(name):
            break
        agent = (await client.daemon.agents.current(folder)).find(name)
    return agent, names


async def _owner(client: "Connection", folder: "LiveFolder", session: str, turn: bool) -> "Agent | None":
    """The live agent that owns the conversation. RequestError for a turn of an agent that has ended."""
    name = session.removeprefix(SESSION) if session.startswith(SESSION) else ""
    if not name:
        return None
    agent, names = await _find_live(client, folder, name)
    if turn and agent is None and name in names:
        raise RequestError(_not_live(name, names, GO_ON), code="unknown-agent")
    return agent


def _not_live(name: str, names: Mapping[str, bool], remedy: str) -> str:
    """Explain why `name` is not a live agent."""
    if names.get(name):
        return f"Agent {name!r} cannot be restored: the daemon's log says why. Dispose of it."
    if name in names:
        return f"Agent {name!r} has ended. {remedy}"
    suggestion = next((live_name for live_name, lives in names.items() if lives), next(iter(names), MAIN))
    if names.get(suggestion, suggestion == MAIN):
        return f"There is no agent {name!r}. Did you mean {suggestion!r}?"
    return f"There is no agent {name!r}. Did you mean {suggestion!r}, which has ended? {remedy}"


def _path(agent: str | None, cwd: str) -> str:
    """A path, or the path of a file URI. RequestError, code agent-cwd, for any other URI."""
    if not _URI.match(cwd):
        return cwd
    path = convert.uri_to_path(cwd)
    if path is None:
        raise RequestError(
            f"The cwd of agent {agent or 'agent'!r}, {cwd}, is not a path on this machine. Give a path or a "
            "URI that starts with `file:`.",
            code="agent-cwd",
        )
    return path
