"""`nexus/agent/*`: agents and the messages between them.

An agent and a message are written like a turn: when the reply arrives, they are on the disk.
"""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_daemon import lazy, protocol
from nexus_daemon.api import resolve
from nexus_daemon.lsp import convert
from nexus_daemon.sessions import usage
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:
    from nexus_context.agents import Agent
    from nexus_context.ledger.records import DirectMessage
    from nexus_daemon.connection import Connection
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.state import LiveFolder

ANOTHER_NAME = "Start it again, or write in another name."
MOST_LISTED = 200
"""Messages of one list."""


async def spawn(client: "Connection", params: protocol.SpawnParams) -> protocol.AgentInfo:
    """Start an agent below another: it reads what its directory says, and what its parent has read.

    It is there until it is disposed of, also when the daemon starts anew, and for all windows. Its
    conversation is the session `agent:<agentId>`; one of the same name before it has left it what was said.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await client.daemon.live_agents(folder)
    return await _info(client, folder, await agents.spawn(resolve.spawn_options(params)))


async def list_agents(client: "Connection", params: protocol.FolderParams) -> protocol.AgentListResult:
    """The live agents of a folder."""
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await client.daemon.live_agents(folder)
    return protocol.AgentListResult([await _info(client, folder, one) for one in agents.list()])


async def get(client: "Connection", params: protocol.AgentParams) -> protocol.AgentDetails:
    """One live agent, and what it was granted. `main` is the folder's own."""
    folder = client.daemon.folders.at(params.workspace_folder)
    agent = (await client.daemon.live_agents(folder)).get(params.agent_id)
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


async def dispose(client: "Connection", params: protocol.AgentParams) -> protocol.AgentDisposed:
    """End an agent and all below it. What was said in their conversations stays in the ledger."""
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await client.daemon.live_agents(folder)
    return protocol.AgentDisposed(list(await agents.dispose(params.agent_id)))


async def message(client: "Connection", params: protocol.AgentMessageParams) -> protocol.AgentMessageResult:
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
        (await client.daemon.live_agents(folder)).check_message(params.source, params.target)
    return protocol.AgentMessageResult(await client.work(_send, ledger, params))


async def messages(
    client: "Connection", params: protocol.AgentMessagesParams
) -> protocol.AgentMessagesResult:
    """What waits for an agent, at most 200 messages: also what was given out with a turn that nothing was
    appended after. Looking delivers nothing.
    """
    ledger = await _folder_ledger(client, params)
    messages = await client.work(
        ledger.store.inbox,
        ledger.workspace,
        params.agent,
        now=time.time(),
        node=params.node,
        limit=MOST_LISTED,
    )
    return protocol.AgentMessagesResult([_message(one) for one in messages])


async def _info(client: "Connection", folder: "LiveFolder", agent: "Agent") -> protocol.AgentInfo:
    """What an agent is, and what its next request costs."""
    async with folder.conversations.using(agent.session) as conversation:
        snapshot = agent.snapshot
        ledger = await client.daemon.folder_ledger(snapshot, folder)
        snapshot = await resolve.with_choice(client, snapshot, conversation, ledger, agent=agent)
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


async def _folder_ledger(client: "Connection", params: protocol.FolderParams) -> "FolderLedger":
    folder = client.daemon.folders.at(params.workspace_folder)
    return await client.daemon.folder_ledger(await folder.current(), folder)


def _send(ledger: "FolderLedger", params: protocol.AgentMessageParams) -> str:
    """Write the message; returns its id."""
    try:
        message = lazy.node_messages.make(
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
        text = str(error)
        if not text.startswith("ttl "):
            raise
        raise RequestError(text.replace("ttl", "ttlSeconds", 1), code=error.code) from None
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
