"""Answer `nexus/agent/*`: agents and the messages between them.

Agents and messages are as durable as turns: when the reply arrives, they are on the disk.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.errors import RequestError
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.folder.prompt.blocks import WORKER
from nexus_daemon import protocol
from nexus_daemon.api import resolve
from nexus_daemon.process import lazy
from nexus_daemon.sessions import next_request, results, usage

if TYPE_CHECKING:
    from nexus_context.agents import Agent
    from nexus_context.ledger.records import DirectMessage
    from nexus_daemon.agents.registry import AgentRegistry
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.connection import Connection
    from nexus_daemon.windows.live_folder import LiveFolder

ANOTHER_NAME = "Start it again, or send the message under another name."
MOST_LISTED = 200
"""The most messages that one reply lists."""


async def spawn(client: "Connection", params: protocol.SpawnParams) -> protocol.AgentInfo:
    """Start an agent below another. Its prompt adds the files of its directory to what its parent has read.

    The agent lives until it is disposed of: all windows see it, and it survives a restart of the daemon. Its
    conversation is the session `agent:<agentId>`. It continues the conversation of an earlier agent of the
    same name.
    """
    folder = client.folders.at(params.workspace_folder)
    agents = await client.daemon.agents.current(folder)
    return await _info(client, folder, await agents.spawn(resolve.spawn_options(params)))


async def list_agents(client: "Connection", params: protocol.FolderParams) -> protocol.AgentListResult:
    """List the live agents of a folder."""
    folder = client.folders.at(params.workspace_folder)
    agents = await client.daemon.agents.current(folder)
    return protocol.AgentListResult([await _info(client, folder, agent) for agent in agents.list()])


async def get(client: "Connection", params: protocol.AgentParams) -> protocol.AgentDetails:
    """Return a live agent and what it was granted. `main` is the folder's own agent."""
    folder = client.folders.at(params.workspace_folder)
    agent = (await client.daemon.agents.current(folder)).get(params.agent_id)
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
    folder = client.folders.at(params.workspace_folder)
    agents = await client.daemon.agents.current(folder)
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
    folder = client.folders.at(params.workspace_folder)
    await resolve.check_spelling(client, folder, params.target)
    sender = await resolve.find(client, folder, params.source, remedy=ANOTHER_NAME)
    if sender is not None:
        (await client.daemon.agents.current(folder)).check_message(params.source, params.target)
    ledger = ledger.for_agents(resolve.lineage_of(sender, params.source))
    return protocol.AgentMessageResult(await client.work(_send, ledger, params))


async def messages(
    client: "Connection", params: protocol.AgentMessagesParams
) -> protocol.AgentMessagesResult:
    """List the messages that wait for an agent, at most 200.

    They include messages that a turn carried but no append has delivered yet. Listing delivers nothing.
    """
    ledger = await resolve.folder_ledger(client, params.workspace_folder)
    messages = await client.work(
        ledger.store.messages.inbox,
        ledger.workspace,
        params.agent,
        now=time.time(),
        node=params.node,
        limit=MOST_LISTED,
    )
    return protocol.AgentMessagesResult([_message(direct_message) for direct_message in messages])


async def call(client: "Connection", params: protocol.AgentCallParams) -> protocol.AgentCallResult:
    """Run an agent tool call, for a client that runs the model's calls (`options.agentTools` offers them).

    The caller is `agent`, else the owner of `session`, else the folder's own agent. It becomes the parent
    of an agent that it starts and the source of a message that it sends. It may end only agents below it. A
    worker lists only its manager and the agents below it, and sends messages to its manager only. A call is
    refused if the settings, the permissions or the role do not offer the tool. A mistake in the call is a
    result with `isError`, which says what to do.
    """
    conversation_params = protocol.ConversationParams(params.workspace_folder, params.session, params.agent)
    async with resolve.using_agent_session(client, conversation_params) as scope:
        options = next_request.options_beside(scope.snapshot, scope.conversation, scope.ledger)
        caller = _Caller(client, params, scope.agent, scope.conversation.session)
    check = partial(
        lazy.tool_calls.checked_arguments,
        params.tool,
        params.arguments,
        snapshot=scope.snapshot,
        options=options,
    )
    try:
        arguments = await client.work(check)
        text = await _CALLS[params.tool](caller, **arguments)
    except RequestError as error:
        if error.code.startswith("ledger-"):  # not a mistake of the model
            raise
        return protocol.AgentCallResult(str(error), is_error=True)
    return protocol.AgentCallResult(text)


class _Caller(NamedTuple):
    """The agent whose model made a call; `agent` is None for the folder's own, and for a client's name."""

    client: "Connection"
    params: protocol.AgentCallParams
    agent: "Agent | None"
    session: str

    @property
    def name(self) -> str:
        return self.params.agent or MAIN if self.agent is None else self.agent.id

    @property
    def uri(self) -> str:
        return self.params.workspace_folder


async def _call_spawn(caller: _Caller, **arguments: Any) -> str:
    parent = MAIN if caller.agent is None else caller.agent.id
    params = protocol.SpawnParams(caller.uri, parent=parent, **arguments)
    agent = await (await _live(caller)).spawn(resolve.spawn_options(params))
    return lazy.tool_calls.result(
        "spawned", agent=agent.id, role=agent.role, cwd=agent.folder, parent=parent, session=agent.session
    )


async def _call_message(caller: _Caller, *, target: str, **arguments: Any) -> str:
    if target == caller.name:
        raise RequestError("message_agent: target is you. Name another agent.", code="agent-message")
    params = protocol.AgentMessageParams(
        caller.uri, source=caller.name, target=target, session=caller.session, **arguments
    )
    await message(caller.client, params)
    agents = await _live(caller)
    is_live = target == MAIN or agents.find(target) is not None
    return lazy.tool_calls.result("sent" if is_live else "sent_unknown", target=target)


async def _call_list(caller: _Caller) -> str:
    agents = await _live(caller)
    lines = []
    if caller.agent is not None and caller.agent.role == WORKER and caller.agent.parent is not None:
        lines.append(_row(caller.agent.parent))
        agents_listed = [agent for agent in agents.list() if _is_below(agent, caller.agent)]
    else:
        lines.append(_row(agents.get(MAIN)))
        agents_listed = list(agents.list())
    return "\n".join([*lines, *(_row(agent) for agent in agents_listed)])


async def _call_dispose(caller: _Caller, *, agent_id: str) -> str:
    agents = await _live(caller)
    agent = agents.get(agent_id)
    if caller.agent is not None and not _is_below(agent, caller.agent):
        names = (
            ", ".join(descendant.id for descendant in agents.list() if _is_below(descendant, caller.agent))
            or "none"
        )
        raise RequestError(
            f"dispose_agent: agent_id {agent_id!r} is not below you. Agents below you: {names}.",
            code="agent-dispose",
        )
    result = await dispose(caller.client, protocol.AgentParams(caller.uri, agent_id))
    return lazy.tool_calls.result("disposed", agents=", ".join(result.disposed))


_CALLS: dict[str, Callable[..., Awaitable[str]]] = {
    "spawn_agent": _call_spawn,
    "message_agent": _call_message,
    "list_agents": _call_list,
    "dispose_agent": _call_dispose,
}


async def _live(caller: _Caller) -> "AgentRegistry":
    return await caller.client.daemon.agents.current(caller.client.folders.at(caller.uri))


def _is_below(agent: "Agent", ancestor: "Agent") -> bool:
    parent = agent.parent
    while parent is not None and parent is not ancestor:
        parent = parent.parent
    return parent is not None


def _row(agent: "Agent") -> str:
    """An agent, its task and its notice, for a model."""
    result = lazy.tool_calls.result
    if agent.parent is None:
        return result("agent_main", agent=agent.id, cwd=agent.folder)
    row = result("agent", agent=agent.id, role=agent.role, parent=agent.parent.id, cwd=agent.folder)
    if agent.task:
        row = result("task", row=row, task=" ".join(agent.task.split()))
    return result("notice", row=row, notice=agent.notice) if agent.notice else row


async def _info(client: "Connection", folder: "LiveFolder", agent: "Agent") -> protocol.AgentInfo:
    """Describe an agent and what its next request costs."""
    async with folder.conversations.using(agent.session, by=client) as conversation:
        snapshot = agent.snapshot
        ledger = await client.daemon.ledgers.of(snapshot, folder)
        scope = await resolve.scope_of(
            client, conversation, ledger, folder=folder, snapshot=snapshot, agent=agent
        )
        token_usage = await scope.work(usage.read_usage)
    parent = agent.parent
    return protocol.AgentInfo(
        agent_id=agent.id,
        parent=None if parent is None or parent.parent is None else parent.id,
        cwd=agent.folder,
        role=agent.role,
        task=agent.task,
        depth=agent.depth,
        session=agent.session,
        usage=token_usage,
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


def _message(direct_message: "DirectMessage") -> protocol.AgentMessage:
    return protocol.AgentMessage(
        id=direct_message.id,
        source=direct_message.source,
        target=direct_message.target,
        content=direct_message.content,
        priority=direct_message.priority,
        created=results.utc(direct_message.created),
        ttl_seconds=direct_message.ttl,
        node=direct_message.node,
        task=direct_message.task,
        metadata=direct_message.metadata,
        session=direct_message.session,
    )
