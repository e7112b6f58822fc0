"""The handlers of the `nexus/*` requests: find the folder, wait for its snapshot, do the work in a thread.

A method's handler has its name: `nexus/context/assemble` is `context_assemble`. A session's lock is taken
before anything is waited for: requests about it are answered in the order in which they came. It is free
again when the thread has ended that works on the session (`Daemon.work`), cancelled or not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_context.errors import RequestError
from nexus_context.init import plan_init
from nexus_context.snapshot import Snapshot
from nexus_daemon import convert, protocol
from nexus_daemon.requests import context, tokens
from nexus_daemon.requests import status as daemon_status
from nexus_daemon.scaffold import scaffold

if TYPE_CHECKING:
    from nexus_daemon.client import Client

T = TypeVar("T")


async def context_assemble(client: "Client", params: protocol.AssembleParams) -> protocol.Assembled:
    """One chat turn, ready to send: prompt, history, message, tools and parameters, every token with its row.

    Nothing is recorded: the conversation stays as it was. An unknown format and a parameter that does not
    exist or is out of range are errors.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        snapshot = await folder.current()
        return await client.daemon.work(
            context.assemble, snapshot, conversation.manager, params, folder.uri, _locator(client, snapshot)
        )


async def context_usage(client: "Client", params: protocol.SessionParams) -> protocol.TokenUsage:
    """What the next request of a conversation costs, before its own message and tools."""
    folder = client.daemon.folders.at(params.workspace_folder)
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        snapshot = await folder.current()
        return await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )


async def context_preview(client: "Client", params: protocol.FolderParams) -> protocol.Preview:
    """The system prompt as the model sees it, with the source of every part."""
    return await _of_snapshot(client, params, context.preview)


async def context_layers(client: "Client", params: protocol.FolderParams) -> protocol.LayersResult:
    """The layers of a folder, their files, what was left out and why, and every problem."""
    return await _of_snapshot(client, params, context.layers)


async def config_effective(client: "Client", params: protocol.FolderParams) -> protocol.EffectiveResult:
    """The settings in force, the layers that set each of them, and the MCP servers."""
    return await _of_snapshot(client, params, context.effective)


async def session_append(client: "Client", params: protocol.AppendParams) -> protocol.AppendResult:
    """Add messages to a conversation, as one turn; an unknown session is begun.

    A session opens with a message of Nexus that says when it began; `count` includes it. Conversations live
    as long as the daemon, and a folder has 1,000 at most.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    if not params.messages:
        raise RequestError("There is nothing to append: `messages` is empty.", code="empty-append")
    async with folder.conversations.changing(params.session) as conversation:
        snapshot = await folder.current()
        turn = conversation.append(params.messages, params.idempotency_key)
        client.daemon.announce(folder, "session")  # also when the request is cancelled from here on
        count = len(conversation.manager)
        spent = await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )
    return protocol.AppendResult(session=params.session, turn=turn, count=count, usage=spent)


async def session_messages(client: "Client", params: protocol.SessionParams) -> protocol.MessagesResult:
    """The messages of a conversation; none where nothing was appended."""
    folder = client.daemon.folders.at(params.workspace_folder)
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        manager = conversation.manager
        encoded = manager.encoded() if manager.all_encoded else await client.daemon.work(manager.encoded)
    return protocol.MessagesResult(session=params.session, messages=encoded)


async def session_clear(client: "Client", params: protocol.SessionParams) -> protocol.ClearResult:
    """Forget a conversation: its messages, and the idempotency keys of their appends."""
    folder = client.daemon.folders.at(params.workspace_folder)
    async with folder.conversations.changing(params.session, begin=False) as conversation:
        snapshot = await folder.current()
        conversation.clear()
        client.daemon.announce(folder, "session")
        spent = await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )
    return protocol.ClearResult(session=params.session, usage=spent)


async def tokens_count(client: "Client", params: protocol.CountParams) -> protocol.CountResult:
    """Count the tokens of texts and files. Nothing is sent anywhere."""
    overlays = dict(client.daemon.folders.overlays)
    return await client.daemon.work(tokens.count, params, overlays)


async def workspace_init(client: "Client", params: protocol.FolderParams) -> protocol.InitResult:
    """Write templates into the folder's `.nexus3/`. A file that exists is never touched."""
    folder = client.daemon.folders.at(params.workspace_folder)
    if folder is not client.daemon.folders.get(params.workspace_folder):
        raise RequestError(
            f"{params.workspace_folder} lies inside {folder.uri}. Nothing was written: name a workspace "
            "folder itself, or add this one to the workspace first.",
            code="not-a-workspace-folder",
        )
    done = await client.daemon.work(lambda: scaffold(plan_init(folder.path)))
    folder.reload.request("layers")
    return protocol.InitResult(
        created=[convert.path_to_uri(path) for path in done.created],
        existing=[convert.path_to_uri(path) for path in done.existing],
    )


async def status(client: "Client", _: protocol.NoParams) -> protocol.Status:
    """What the daemon holds: folders, sessions, clients, memory."""
    return daemon_status.status(client.daemon)


def _locator(client: "Client", snapshot: Snapshot) -> convert.Locator:
    return convert.Locator(snapshot.layers, client.position_encoding)


async def _of_snapshot(
    client: "Client", params: protocol.FolderParams, job: Callable[[Snapshot, convert.Locator], T]
) -> T:
    folder = client.daemon.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    result: Any = await client.daemon.work(job, snapshot, _locator(client, snapshot))
    return result  # type: ignore[no-any-return]
