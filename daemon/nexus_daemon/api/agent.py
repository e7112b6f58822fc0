"""`nexus/agent/*`: agents and the messages between them.

Agents and messages are as durable as turns: when the reply arrives, they are on the disk.
"""

import time
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_daemon import lazy, protocol, results
from nexus_daemon.api import resolve
from nexus_daemon.sessions import usage

if TYPE_CHECKING:
    from nexus_context.agents import Agent
    from nexus_context.ledger.records import DirectMessage
    from nexus_daemon.connection import Connection
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.state import LiveFolder

ANOTHER_NAME = "Start it again, or send the message under another name."
MOST_LISTED = 200
"""The most messages that one reply lists."""


async def spawn(client: "Connection", params: protocol.SpawnParams) -> protocol.AgentInfo:
    """Start an agent below another. Its prompt adds the files of its directory to what its parent has read.

    The agent lives until it is disposed of: all windows see it, and it survives a restart of the daemon. Its
    conversation is the session `agent:<agentId>`. It continues the conversation of an earlier agent of the
    same name.
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
    """One live agent and what it was granted. `main` is the folder's own agent."""
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
    """End an agent and all agents below it. Their conversations stay in the ledger."""
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await client.daemon.live_agents(folder)
    return protocol.AgentDisposed(list(await agents.dispose(params.agent_id)))


async def message(client: "Connection", params: protocol.AgentMessageParams) -> protocol.AgentMessageResult:
    """Leave a message for an agent of the folder.

    The message waits for a turn of that agent: a `nexus/context/assemble` that names it as `agent` or uses
    its conversation, and that has a `message` or an `event`. A turn that names no agent, in any other
    conversation of the folder, belongs to `main`. The turn places messages before the user's own, the highest
    priority first.

    An append to that session delivers the message: no later turn of any conversation repeats it. Until then
    every turn of the agent includes it again, in case the model did not answer. A turn takes at most 20
    messages; further ones, and those that do not fit, wait for the next turn.

    An agent that has ended cannot send messages. Messages to it wait until an agent of that name starts. A
    name that differs from an agent's name only in case is refused.
    """
    ledger = await resolve.folder_ledger(client, params.workspace_folder)
    folder = client.daemon.folders.at(params.workspace_folder)
    await resolve.check_spelling(client, folder, params.target)
    sender = await resolve.find(client, folder, params.source, remedy=ANOTHER_NAME)
    if sender is not None:
        (await client.daemon.live_agents(folder)).check_message(params.source, params.target)
    ledger = ledger.for_agents(resolve.lineage_of(sender, params.source))
    return protocol.AgentMessageResult(await client.work(_send, ledger, params))


async def messages(
    client: "Connection", params: protocol.AgentMessagesParams
) -> protocol.AgentMessagesResult:
    """The messages that wait for an agent, at most 200.

    They include messages that a turn carried but no append has delivered yet. Listing delivers nothing.
    """
    ledger = await resolve.folder_ledger(client, params.workspace_folder)
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
    """Describe an agent and what its next request costs."""
    async with folder.conversations.using(agent.session) as conversation:
        snapshot = agent.snapshot
        ledger = await client.daemon.folder_ledger(snapshot, folder)
        scope = await resolve.scope_of(
            client, conversation, ledger, folder=folder, snapshot=snapshot, agent=agent
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


def _send(ledger: "FolderLedger", params: protocol.AgentMessageParams) -> str:
    """Write the message and return its id."""
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
        created=results.utc(one.created),
        ttl_seconds=one.ttl,
        node=one.node,
        task=one.task,
        metadata=one.metadata,
        session=one.session,
    )
