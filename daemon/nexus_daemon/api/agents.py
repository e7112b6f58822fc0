"""The handlers of `nexus/agent/*` and `nexus/memory/*`: agents, messages between them, memory as tools.

See `handlers`. An agent and a message are written like a turn: when the reply is there, it is on the disk.
"""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_daemon import protocol
from nexus_daemon.agents import resolve
from nexus_daemon.agents.resolve import using
from nexus_daemon.lsp import convert
from nexus_daemon.sessions import turn_memory, usage
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:
    from nexus_context.agents import Agent
    from nexus_context.ledger.records import DirectMessage
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.workspace.client import Client
    from nexus_daemon.workspace.folders import Folder

ANOTHER_NAME = "Start it again, or write in another name."
MOST_LISTED = 200
"""Messages of one list."""


async def memory_query(client: "Client", params: protocol.MemoryQueryParams) -> protocol.MemoryQueryResult:
    """Run a call of a memory tool, for whoever runs a model's calls (`options.memoryTools` offers them).

    Without a `session_id` among the arguments, L2 and L3 are those of `session`; L4 is of all others. A
    session that does not exist has nothing. An argument that does not fit is an error that names it.
    """
    async with using(client, params) as scope:
        text = await scope.work(turn_memory.call_tool, params.tool, params.arguments)
    return protocol.MemoryQueryResult(text)


async def agent_spawn(client: "Client", params: protocol.SpawnParams) -> protocol.AgentInfo:
    """Start an agent below another: it reads what its directory says, and what its parent has read.

    It is there until it is disposed of, also when the daemon starts anew, and for all windows. Its
    conversation is the session `agent:<agentId>`; one of the same name before it has left it what was said.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await resolve.live(client, folder)
    return await _info(client, folder, await agents.spawn(resolve.asked_of(params)))


async def agent_list(client: "Client", params: protocol.FolderParams) -> protocol.AgentListResult:
    """The live agents of a folder."""
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await resolve.live(client, folder)
    return protocol.AgentListResult([await _info(client, folder, one) for one in agents.list()])


async def agent_get(client: "Client", params: protocol.AgentParams) -> protocol.AgentDetails:
    """One live agent, and what it was granted. `main` is the folder's own."""
    folder = client.daemon.folders.at(params.workspace_folder)
    agent = (await resolve.live(client, folder)).get(params.agent_id)
    info = await _info(client, folder, agent)
    may = agent.permissions
    return protocol.AgentDetails(
        **{name: getattr(info, name) for name in info.__struct_fields__},
        model=agent.model,
        system_prompt=agent.spec.system_prompt,
        tools=list(agent.tools[-1]) if agent.tools else None,
        permissions={"level": may.level, "allow": list(may.allow), "deny": list(may.deny)},
        parameters=agent.parameters,
        children=list(agent.children),
    )


async def agent_dispose(client: "Client", params: protocol.AgentParams) -> protocol.AgentDisposed:
    """End an agent and all below it. What was said in their conversations stays in the ledger."""
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await resolve.live(client, folder)
    return protocol.AgentDisposed(list(await agents.dispose(params.agent_id)))


async def agent_message(client: "Client", params: protocol.AgentMessageParams) -> protocol.AgentMessageResult:
    """Leave a message for an agent of the folder.

    It waits until a turn of that agent is assembled: a `nexus/context/assemble` with its name as `agent`, or
    in its conversation, and with a `message` or an `event`. A turn that names no agent is for `main`, in any
    other conversation of the folder. There it stands before what the user says, the highest priority first.
    When the conversation goes on, with an append to that session, it is delivered: no later turn has it, in
    no other conversation either. Until then each turn of that agent is given it again, whatever the user
    says, in case the model did not answer. What there was no room for waits for the next turn, and so does
    what is beyond 20 messages. An agent that has ended writes no messages; those for it wait until one of its
    name is started. A name that differs from an agent's in upper and lower case only is refused.
    """
    ledger = await _folder_ledger(client, params)
    folder = client.daemon.folders.at(params.workspace_folder)
    await resolve.check_spelling(client, folder, params.target)
    if await resolve.find(client, folder, params.source, remedy=ANOTHER_NAME) is not None:
        (await resolve.live(client, folder)).check_message(params.source, params.target)
    return protocol.AgentMessageResult(await client.daemon.work(_send, ledger, params))


async def agent_messages(
    client: "Client", params: protocol.AgentMessagesParams
) -> protocol.AgentMessagesResult:
    """What waits for an agent, at most 200 messages: also what was given out with a turn that nothing was
    appended after. Looking delivers nothing.
    """
    ledger = await _folder_ledger(client, params)
    found = await client.daemon.work(
        ledger.store.inbox,
        ledger.workspace,
        params.agent,
        now=time.time(),
        node=params.node,
        limit=MOST_LISTED,
    )
    return protocol.AgentMessagesResult([_message(one) for one in found])


async def _info(client: "Client", folder: "Folder", agent: "Agent") -> protocol.AgentInfo:
    """What an agent is, and what its next request costs."""
    async with folder.conversations.using(agent.session) as conversation:
        snapshot = agent.snapshot
        ledger = await client.daemon.folder_ledger(snapshot, folder)
        snapshot = await resolve.with_choice(client, snapshot, conversation, ledger, agent)
        locate = convert.Locator(snapshot.layers, client.position_encoding)
        scope = SessionScope(
            client=client,
            folder=folder,
            conversation=conversation,
            snapshot=snapshot,
            ledger=ledger,
            locate=locate,
            agent=agent,
        )
        spent = await scope.work(usage.read_usage)
    above = agent.parent
    return protocol.AgentInfo(
        agent_id=agent.id,
        parent=None if above is None or above.parent is None else above.id,
        cwd=agent.folder,
        role=agent.role,
        task=agent.task,
        depth=agent.depth,
        session=agent.session,
        usage=spent,
        notice=agent.notice,
    )


async def _folder_ledger(client: "Client", params: protocol.FolderParams) -> "FolderLedger":
    folder = client.daemon.folders.at(params.workspace_folder)
    return await client.daemon.folder_ledger(await folder.current(), folder)


def _send(ledger: "FolderLedger", params: protocol.AgentMessageParams) -> str:
    """Write the message; returns its id."""
    from nexus_context.memory import node_messages  # rarely needed

    try:
        message = node_messages.make(
            workspace=ledger.workspace,
            source=params.source,
            target=params.target,
            content=params.content,
            now=time.time(),
            priority=params.priority,
            ttl=params.ttl_seconds,
            node=params.node,
            task=params.task,
            metadata=params.metadata,
            session=params.session,
            id=params.id,
        )
    except RequestError as error:
        said = str(error)
        if not said.startswith("ttl "):
            raise
        raise RequestError(said.replace("ttl", "ttlSeconds", 1), code=error.code) from None
    ledger.send(message)
    return message.id


def _message(one: "DirectMessage") -> protocol.AgentMessage:
    return protocol.AgentMessage(
        id=one.id,
        source=one.source,
        target=one.target,
        content=one.content,
        priority=one.priority,
        created=datetime.fromtimestamp(one.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
        ttl_seconds=one.ttl,
        node=one.node,
        task=one.task,
        metadata=one.metadata,
        session=one.session,
    )
