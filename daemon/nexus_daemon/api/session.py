"""`nexus/session/*`: a conversation, locked, brought up to date and changed by a job in a thread."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from nexus_context.config.picked_model import ModelChoice
from nexus_context.errors import RequestError
from nexus_context.snapshot import Snapshot
from nexus_daemon import protocol
from nexus_daemon.api import transcript as pages
from nexus_daemon.api.resolve import using
from nexus_daemon.lsp import convert
from nexus_daemon.sessions import compaction, operations, usage
from nexus_daemon.sessions.budget_warning import budget_warning
from nexus_daemon.sessions.sync import TurnInput

if TYPE_CHECKING:
    from nexus_context.ledger.records import Hit
    from nexus_daemon.connection import Connection
    from nexus_daemon.sessions.ledger_writer import FolderLedger


async def create(client: "Connection", params: protocol.CreateParams) -> protocol.SessionPlace:
    """Begin a conversation without a message. An append begins one, too: this is for its name's sake."""
    async with using(client, params) as scope:
        session = await client.work(scope.ledger.create, params.session, params.agent)
    return protocol.SessionPlace(session=session.name, thread=session.head.thread)


async def list_sessions(client: "Connection", params: protocol.FolderParams) -> protocol.ListResult:
    """The conversations of a folder, those that changed last first, with their totals."""
    folder = client.daemon.folders.at(params.workspace_folder)
    ledger = await client.daemon.folder_ledger(await folder.current(), folder)
    sessions = await client.work(ledger.store.sessions, ledger.workspace)
    return protocol.ListResult(
        [
            protocol.SessionInfo(
                session=one.name,
                thread=one.head.thread,
                turns=one.head.seq,
                messages=one.head.messages,
                tokens=one.sent_tokens,
                created=one.created,
                updated=one.updated,
                agent=one.agent,
                forked_from=one.forked_from,
                model=choice.model,
                max_context_tokens=choice.max_tokens,
            )
            for one, choice in ((one, _own_choice(ledger, one.name)) for one in sessions)
        ]
    )


async def focus(client: "Connection", params: protocol.SessionParams) -> protocol.FocusResult:
    """Say which conversation the user looks at: layers, problems and lenses are counted for its model.

    Until a client says so, and for a conversation that was not used yet, they are counted for the model that
    was picked last in the folder. What a conversation costs is always counted for its own.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    await client.daemon.folder_ledger(await folder.current(), folder)
    folder.focus = params.session
    client.daemon.follow_choice(folder)
    choice = folder.choice or ModelChoice()
    return protocol.FocusResult(params.session, choice.model, choice.max_tokens)


async def append(client: "Connection", params: protocol.AppendParams) -> protocol.AppendResult:
    """Add messages to a conversation, as one turn; an unknown session is begun.

    When the reply is there, the turn is on the disk: it survives the end of the daemon and of the power. Not
    where `persists` is false: then the ledger keeps nothing, and the turn is gone when the daemon ends. A
    session opens with a message of Nexus that says when it began; `count` includes it.

    An `idempotencyKey` names one append of a session: the same again, because no reply came, adds nothing.
    With another number of messages it is an error. An empty one is none.

    Two windows may append to one conversation: their turns follow each other. One that wants its turn right
    behind what it has seen says so with `parentTurn`; if it comes too late, its turn goes to a new
    conversation that shares all turns up to there, `session` names it and `forked` is true.
    """
    if not params.messages:
        raise RequestError("There is nothing to append: `messages` is empty.", code="empty-append")
    turn_input = TurnInput(
        messages=params.messages,
        key=params.idempotency_key or None,
        parent=params.parent_turn,
        model=params.model,
        event=params.event,
    )
    async with using(client, params) as scope:
        answer, measured = await client.work(operations.append, scope, turn_input)
        if measured is not None:
            warning = budget_warning(
                scope.conversation, scope.folder.name, measured.usage, percent=measured.percent
            )
            if warning is not None:
                client.daemon.show(warning)
    if measured is None:
        fork = protocol.SessionParams(params.workspace_folder, answer.session)
        async with using(client, fork) as scope:
            measured = await client.work(usage.measure, scope)
    persists = scope.ledger.store.persists
    return protocol.AppendResult(
        session=answer.session,
        turn=answer.turn,
        count=measured.count,
        usage=measured.usage,
        forked=answer.forked,
        persists=persists,
    )


async def messages(client: "Connection", params: protocol.MessagesParams) -> protocol.MessagesResult:
    """The messages of a conversation since its last compaction; none where nothing was appended.

    With `limit` a page of them: the last ones, or those before a position.
    """
    async with using(client, params) as scope:
        if params.limit is None and params.before is None:
            encoded = await client.work(operations.read_messages, scope)
            return protocol.MessagesResult(session=params.session, messages=encoded)
        limit = params.limit
        if limit is not None and limit < 1:
            raise RequestError(f"`limit` is {limit}: it must be at least 1.", code="bad-option")
        encoded, before = await client.work(operations.read_page, scope, limit, params.before)
    return protocol.MessagesResult(session=params.session, messages=encoded, before=before)


async def transcript(client: "Connection", params: protocol.TranscriptParams) -> protocol.TranscriptResult:
    """A page of all that was said in a conversation, to be read by people, and which of it is still sent.

    In contrast to `nexus/session/messages`, compacted messages, summaries and what was taken back are there,
    turn by turn, with the tokens of each message as the folder's model counts them. Only the messages of the
    page are read and counted: a conversation of any length is shown at once. Control characters are made
    visible and secrets covered; `nexus/session/export` has them as they are. A conversation that does not
    exist has no turns, and an empty `thread`.
    """
    if not 1 <= params.limit <= pages.MOST_MESSAGES:
        raise RequestError(
            f"`limit` is {params.limit}: it must be from 1 to {pages.MOST_MESSAGES:,}.",
            code="bad-option",
        )
    async with using(client, params) as scope:
        return await client.work(pages.page, scope, params)


async def fork(client: "Connection", params: protocol.ForkParams) -> protocol.SessionPlace:
    """Go on with a conversation in another one too: it shares all turns up to one, and nothing is copied."""
    async with using(client, params) as scope:
        session = await client.work(scope.ledger.fork, params.session, params.to, params.turn)
    return protocol.SessionPlace(session=session.name, thread=session.head.thread)


async def rename(client: "Connection", params: protocol.RenameParams) -> protocol.SessionPlace:
    """Give a conversation another name; it goes on as it was."""
    async with using(client, params) as scope:
        session = await client.work(scope.ledger.rename, params.session, params.to)
        scope.conversation.forget()
    return protocol.SessionPlace(session=session.name, thread=session.head.thread)


async def clear(client: "Connection", params: protocol.SessionParams) -> protocol.ClearResult:
    """Begin a conversation anew, without its messages and the idempotency keys of their appends.

    What was said can still be found by a search, until the conversation is deleted.
    """
    async with using(client, params) as scope:
        spent = await client.work(operations.clear, scope)
    return protocol.ClearResult(session=params.session, usage=spent)


async def delete(client: "Connection", params: protocol.SessionParams) -> protocol.DeleteResult:
    """Remove a conversation for good, from the disk and from what is searched.

    Turns that a fork shares stay there.
    """
    async with using(client, params) as scope:
        await client.work(scope.ledger.delete, params.session)
        scope.conversation.forget()
    return protocol.DeleteResult(session=params.session)


async def compact(client: "Connection", params: protocol.CompactParams) -> protocol.CompactResult:
    """Replace the old messages of a conversation by a summary, and say what was lost; it can be undone.

    A client that has a model is asked for the summary (`nexus/model/complete`), for a minute at most. Other
    requests and other windows go on meanwhile; however fast they append, it stays as it is, behind the
    summary, and does not hold the compaction up. Without a model, or where it fails, the summary is
    extractive: it picks from the conversation; the receipt says who wrote it, and who failed and why. Where
    there is nothing to replace, or nothing to gain, that is an error, and nothing changes; so it is where
    the conversation was compacted or cleared meanwhile. Of a very long one the beginning and the
    newest 500,000 tokens of what is replaced are read, or as many as the window holds; summary and receipt
    (`unreadMessages`) say how many messages lie between them.
    """
    async with using(client, params) as scope:
        receipt, spent = await compaction.compact(scope, params)
    result = msgspec.convert(msgspec.to_builtins(receipt), protocol.Receipt)
    return protocol.CompactResult(compaction=receipt.id, receipt=result, usage=spent)


async def undo_compaction(client: "Connection", params: protocol.UndoParams) -> protocol.UndoResult:
    """Put back the messages that a compaction replaced; what was appended since stays."""
    async with using(client, params) as scope:
        spent = await client.work(operations.undo_compaction, scope, params.compaction)
    return protocol.UndoResult(session=params.session, usage=spent)


async def receipt(client: "Connection", params: protocol.ReceiptParams) -> protocol.ReceiptResult:
    """What a compaction did, as its receipt said then: also later, and after it was taken back.

    By its id a compaction is found in whichever conversation of the folder holds it; without one, the last
    of the conversation is meant.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    ledger = await client.daemon.folder_ledger(await folder.current(), folder)
    stored = await client.work(ledger.store.receipt, ledger.workspace, params.session, params.compaction)
    receipt = msgspec.convert(stored.receipt, protocol.Receipt)
    return protocol.ReceiptResult(session=stored.session, receipt=receipt, in_force=stored.in_force)


async def export(client: "Connection", params: protocol.ExportParams) -> protocol.ExportResult:
    """A whole conversation as text: every turn since it began, compactions and their receipts too."""
    async with using(client, params) as scope:
        text = await client.work(operations.export, scope, params.format)
    return protocol.ExportResult(session=params.session, format=params.format, text=text)


async def search(client: "Connection", params: protocol.SearchParams) -> protocol.SearchResult:
    """Messages in which all words occur, in the conversations of a folder or in all there are, best first.

    What was compacted or cleared is found, too. Upper and lower case and accents make no difference.
    """
    daemon = client.daemon
    if params.limit < 1:
        raise RequestError(f"`limit` is {params.limit}: it must be at least 1.", code="bad-option")
    if params.workspace_folder is None:
        ledger, workspace = await daemon.folder_ledger(await _some_snapshot(client)), None
    else:
        folder = daemon.folders.at(params.workspace_folder)
        ledger = await daemon.folder_ledger(await folder.current(), folder)
        workspace = ledger.workspace
    hits = await client.work(
        ledger.store.search,
        params.query,
        workspace=workspace,
        session=params.session,
        limit=params.limit,
    )
    uris = {one.ledger.workspace: one.uri for one in daemon.folders if one.ledger is not None}
    return protocol.SearchResult([_hit(hit, uris) for hit in hits])


async def _some_snapshot(client: "Connection") -> Snapshot:
    """A snapshot with the user's own settings, which are the same in every folder."""
    for folder in client.daemon.folders:
        return await folder.current()
    return await client.work(operations.load_user_settings, client.daemon.folders.load_inputs)


def _hit(hit: "Hit", uris: Mapping[str, str]) -> protocol.SearchHit:
    return protocol.SearchHit(
        workspace_folder=uris.get(hit.workspace) or convert.path_to_uri(hit.workspace),
        session=hit.session,
        turn=hit.turn,
        seq=hit.seq,
        position=hit.position,
        role=hit.role,
        snippet=hit.snippet,
        created=hit.created,
        thread=hit.turn.rpartition("-")[0],
    )


def _own_choice(ledger: "FolderLedger", session: str) -> ModelChoice:
    options = ledger.session_options(session)
    return ModelChoice() if options is None else options.choice
