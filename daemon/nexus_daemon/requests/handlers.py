"""The handlers of the `nexus/*` requests: find the folder, wait for its snapshot, do the work in a thread.

A method's handler has its name: `nexus/context/assemble` is `context_assemble`. A session's lock is taken
before anything is waited for: requests about it are answered in the order in which they came. It is free
again when the thread has ended that works on the session (`Daemon.work`), cancelled or not.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nexus_context.errors import RequestError
from nexus_context.init import plan_init
from nexus_context.snapshot import Snapshot
from nexus_daemon import convert, protocol
from nexus_daemon.requests import context, tokens, turns
from nexus_daemon.requests import status as daemon_status
from nexus_daemon.scaffold import scaffold

if TYPE_CHECKING:
    from nexus_daemon.client import Client
    from nexus_daemon.folders import Folder

T = TypeVar("T")


async def context_assemble(client: "Client", params: protocol.AssembleParams) -> protocol.Assembled:
    """One chat turn, ready to send: prompt, history, message, tools and parameters, every token with its row.

    The conversation stays as it was, but for one thing: a turn that reaches the compaction threshold is
    compacted first. A turn is a request with a `message`, or with a `format` that has a body, after a tool's
    result; not one that sets the model, a limit or the strategy itself. Nor is anything compacted after a
    compaction that did not help, until a turn was below the threshold, or after one that was undone, until
    one is asked for.

    What does not fit is cut from the history for this request. An unknown format, a parameter that does not
    exist or is out of range, and a body that would not fit the model are errors.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        snapshot = await folder.current()
        result, compacted = await client.daemon.work(
            turns.assemble, snapshot, conversation, params, folder.uri, _locator(client, snapshot)
        )
        if compacted:
            _compacted(client, folder, snapshot)
    return result


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
        spent, wanted = await client.daemon.work(
            context.measure, snapshot, conversation.manager, _locator(client, snapshot)
        )
        warning = conversation.warning(params.session, folder.name, spent, wanted)
    if warning is not None:
        client.daemon.show(warning)
    return protocol.AppendResult(session=params.session, turn=turn, count=count, usage=spent)


async def session_messages(client: "Client", params: protocol.SessionParams) -> protocol.MessagesResult:
    """The messages of a conversation; none where nothing was appended."""
    folder = client.daemon.folders.at(params.workspace_folder)
    conversation = folder.conversations.peek(params.session)
    async with conversation.lock:
        manager = conversation.manager
        pieces = manager.encoded_in_pieces
        encoded = pieces() if manager.all_encoded else await client.daemon.work(pieces)
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


async def session_compact(client: "Client", params: protocol.CompactParams) -> protocol.CompactResult:
    """Replace the old messages of a conversation by a summary, and say what was lost; it can be undone.

    The summary is extractive: it picks from the conversation and needs no model. Where there is nothing to
    replace, or nothing to gain, that is an error, and nothing changes.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    async with folder.conversations.changing(params.session, begin=False) as conversation:
        snapshot = await folder.current()
        receipt = await client.daemon.work(
            turns.compact,
            snapshot,
            conversation,
            pins=params.pins,
            instructions=params.instructions,
            overflow=params.overflow,
            now=datetime.now().astimezone(),
        )
        _compacted(client, folder, snapshot)
        spent = await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )
    made = msgspec.convert(receipt, protocol.Receipt, from_attributes=True)
    return protocol.CompactResult(compaction=receipt.id, receipt=made, usage=spent)


async def session_undo_compaction(client: "Client", params: protocol.UndoParams) -> protocol.UndoResult:
    """Put back the messages that a compaction replaced; what was appended since stays."""
    folder = client.daemon.folders.at(params.workspace_folder)
    async with folder.conversations.changing(params.session, begin=False) as conversation:
        snapshot = await folder.current()
        conversation.undo(params.compaction)
        client.daemon.announce(folder, "compaction")
        spent = await client.daemon.work(
            context.usage, snapshot, conversation.manager, _locator(client, snapshot)
        )
    return protocol.UndoResult(session=params.session, usage=spent)


async def tokens_count(client: "Client", params: protocol.CountParams) -> protocol.CountResult:
    """Count the tokens of texts and files. Nothing is sent anywhere."""
    overlays = dict(client.daemon.folders.overlays)
    return await client.daemon.work(tokens.count, params, overlays, client.position_encoding)


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


def _compacted(client: "Client", folder: "Folder", snapshot: Snapshot) -> None:
    """Tell of a compaction; it is the time to read the instruction files again."""
    client.daemon.announce(folder, "compaction")
    if snapshot.effective.get("/compaction/reload_prompt"):
        folder.reload.request("instructions")


def _locator(client: "Client", snapshot: Snapshot) -> convert.Locator:
    return convert.Locator(snapshot.layers, client.position_encoding)


async def _of_snapshot(
    client: "Client", params: protocol.FolderParams, job: Callable[[Snapshot, convert.Locator], T]
) -> T:
    folder = client.daemon.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    result: Any = await client.daemon.work(job, snapshot, _locator(client, snapshot))
    return result  # type: ignore[no-any-return]
