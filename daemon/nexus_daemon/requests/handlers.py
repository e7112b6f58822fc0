"""The handlers of the `nexus/*` requests: find the folder, wait for its snapshot, do the work in a thread."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_context.init import plan_init
from nexus_context.snapshot import Snapshot
from nexus_daemon import convert, protocol
from nexus_daemon.requests import context, tokens
from nexus_daemon.requests import status as daemon_status
from nexus_daemon.scaffold import scaffold

if TYPE_CHECKING:
    from nexus_daemon.client import Client

T = TypeVar("T")


async def assemble(client: "Client", params: protocol.AssembleParams) -> protocol.Assembled:
    folder = client.daemon.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        return await client.daemon.work(
            context.assemble, snapshot, conversation.manager, params, folder.uri, _locator(client, snapshot)
        )


async def usage(client: "Client", params: protocol.SessionParams) -> protocol.TokenUsage:
    folder = client.daemon.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        return await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )


async def preview(client: "Client", params: protocol.FolderParams) -> protocol.Preview:
    return await _of_snapshot(client, params, context.preview)


async def layers(client: "Client", params: protocol.FolderParams) -> protocol.LayersResult:
    return await _of_snapshot(client, params, context.layers)


async def effective(client: "Client", params: protocol.FolderParams) -> protocol.EffectiveResult:
    return await _of_snapshot(client, params, context.effective)


async def append(client: "Client", params: protocol.AppendParams) -> protocol.AppendResult:
    folder = client.daemon.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    conversation = folder.conversations.open(params.session)
    async with conversation.lock:
        turn = conversation.append(params.messages, params.idempotency_key)
        count = len(conversation.manager)
        spent = await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )
    client.daemon.announce(folder, "session")
    return protocol.AppendResult(session=params.session, turn=turn, count=count, usage=spent)


async def messages(client: "Client", params: protocol.SessionParams) -> protocol.MessagesResult:
    folder = client.daemon.folders.at(params.workspace_folder)
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        return protocol.MessagesResult(session=params.session, messages=conversation.manager.messages)


async def clear(client: "Client", params: protocol.SessionParams) -> protocol.ClearResult:
    folder = client.daemon.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        conversation.clear()
        spent = await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )
    client.daemon.announce(folder, "session")
    return protocol.ClearResult(session=params.session, usage=spent)


async def count(client: "Client", params: protocol.CountParams) -> protocol.CountResult:
    overlays = dict(client.daemon.folders.overlays)
    return await client.daemon.work(tokens.count, params, overlays)


async def init(client: "Client", params: protocol.FolderParams) -> protocol.InitResult:
    folder = client.daemon.folders.at(params.workspace_folder)
    done = await client.daemon.work(lambda: scaffold(plan_init(folder.path)))
    folder.reload.request("layers")
    return protocol.InitResult(
        created=[convert.path_to_uri(path) for path in done.created],
        existing=[convert.path_to_uri(path) for path in done.existing],
    )


async def status(client: "Client", _: protocol.NoParams) -> protocol.Status:
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
