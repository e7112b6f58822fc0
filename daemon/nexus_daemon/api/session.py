"""Answer `nexus/session/*`: lock a conversation, sync it, and change it in a worker thread."""

from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.config.parameters import check as check_parameter
from nexus_context.config.picked_model import ModelChoice
from nexus_context.conversation.agent_result import AgentResult, ProviderUsage, TurnOutcome
from nexus_context.errors import RequestError
from nexus_context.text.decoding import convert_to
from nexus_daemon import protocol
from nexus_daemon.api import transcript as pages
from nexus_daemon.api.resolve import using
from nexus_daemon.sessions import compaction, operations, usage
from nexus_daemon.sessions.budget_warning import budget_warning
from nexus_daemon.sessions.sync import TurnInput

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection


async def create(client: "Connection", params: protocol.CreateParams) -> protocol.SessionPlace:
    """Create an empty conversation, to reserve its name. An append also creates a missing conversation.

    `parameters` are stored with the conversation and apply to all its requests, with the origin `session`. A
    parameter that does not exist or is out of range is an error.
    """
    _check_parameters(params.parameters)
    async with using(client, params) as scope:
        session = await client.work(scope.ledger.create, params.session, params.agent, params.parameters)
    return protocol.SessionPlace(session=session.name, thread=session.head.thread)


async def set_parameters(
    client: "Connection", params: protocol.SetParametersParams
) -> protocol.SetParametersResult:
    """Change model parameters of a conversation, also of `main`, for all its requests from now on.

    Parameters that the request does not name stay. A missing conversation is created.
    """
    _check_parameters(params.parameters)
    async with using(client, params) as scope:
        session = await client.work(scope.ledger.set_parameters, params.session, params.parameters)
    return protocol.SetParametersResult(session=session.name, parameters=dict(session.parameters))


def _check_parameters(parameters: dict[str, Any]) -> None:
    for name, value in parameters.items():
        check_parameter(name, value, "session")


async def focus(client: "Connection", params: protocol.SessionParams) -> protocol.FocusResult:
    """Report which conversation the user views in this window: its model counts layers, problems and lenses.

    The folder's last picked model counts them until a client reports a conversation, and for a conversation
    without a turn. The cost of a conversation is always counted with its own model.
    """
    folder = client.folders.at(params.workspace_folder)
    await client.daemon.ledgers.of(await folder.current(), folder)
    folder.focus = params.session
    client.daemon.ledgers.follow_choice(folder)
    choice = folder.choice or ModelChoice()
    return protocol.FocusResult(params.session, choice.model, choice.max_tokens)


async def append(client: "Connection", params: protocol.AppendParams) -> protocol.AppendResult:
    """Append messages to a conversation as one turn; an unknown session is created.

    When the reply arrives, the turn is on the disk and survives a crash or a power failure. If `persists` is
    false, the ledger is only in memory, and the turn is lost when the daemon ends. A session opens with a
    message of Nexus that states when it began; `count` includes that message.

    An `idempotencyKey` names one append of a session: a retry with the same key, because no reply came, adds
    nothing. Reusing a key with a different message count is an error; an empty key is ignored.

    Two windows may append to one conversation; their turns follow each other. A window that wants its turn
    directly after the last turn it has seen names that turn as `parentTurn`. If another turn came first, the
    append goes to a new conversation that shares all turns up to the parent: `session` names it, and `forked`
    is true.

    If an answer holds a `compaction` part, which its provider's server wrote, the turn is stored without that
    part. A compaction follows the turn: the part alone is its summary, and the answer and what follows are
    kept. So the next request begins with the part. Its receipt is `opaque`; `nexus/session/undoCompaction`
    restores the messages.
    """
    if not params.messages:
        raise RequestError("`messages` is empty: there is nothing to append.", code="empty-append")
    turn_input = TurnInput(
        result=_result(params),
        key=params.idempotency_key or None,
        parent=params.parent_turn,
        model=params.model,
        event=params.event,
        answered=params.request_id,
    )
    folder = client.folders.at(params.workspace_folder)
    async with using(client, params) as scope:
        answer, measured = await client.work(operations.append, scope, turn_input)
        if measured is not None:
            warning = budget_warning(
                scope.conversation, scope.folder.name, measured.usage, percent=measured.percent
            )
            if warning is not None:
                client.daemon.windows.show(warning, folder)
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


def _result(params: protocol.AppendParams) -> AgentResult:
    usage = params.provider_usage
    if usage is None:
        return AgentResult(params.messages, TurnOutcome(error=params.error))
    provider_usage = ProviderUsage(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    )
    provider_usage.check()
    return AgentResult(params.messages, TurnOutcome(provider_usage, usage.stop_reason, params.error))


async def messages(client: "Connection", params: protocol.MessagesParams) -> protocol.MessagesResult:
    """Return the messages of a conversation since its last compaction. Empty if nothing was appended.

    `limit` selects a page: the last messages, or those before a position.
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
    """Return a page of a conversation's full history, for people to read, and which of it is still sent.

    Unlike `nexus/session/messages`, it includes compacted messages, summaries and undone compactions, turn by
    turn, with each message's tokens as the folder's model counts them. Only the messages of the page are read
    and counted, so a conversation of any length opens at once. Control characters are made visible and
    secrets are covered; `nexus/session/export` returns them unchanged. A conversation that does not exist has
    no turns and an empty `thread`.
    """
    if not 1 <= params.limit <= pages.MOST_MESSAGES:
        raise RequestError(
            f"`limit` is {params.limit}: it must be from 1 to {pages.MOST_MESSAGES:,}.",
            code="bad-option",
        )
    async with using(client, params) as scope:
        return await client.work(pages.page, scope, params)


async def fork(client: "Connection", params: protocol.ForkParams) -> protocol.SessionPlace:
    """Fork a conversation: the new one shares all turns up to a given turn, and nothing is copied."""
    async with using(client, params) as scope:
        session = await client.work(operations.fork, scope, params.to, params.turn)
    return protocol.SessionPlace(session=session.name, thread=session.head.thread)


async def rename(client: "Connection", params: protocol.RenameParams) -> protocol.SessionPlace:
    """Rename a conversation. Nothing else about it changes."""
    async with using(client, params) as scope:
        session = await client.work(scope.ledger.rename, params.session, params.to)
        scope.conversation.forget()
    return protocol.SessionPlace(session=session.name, thread=session.head.thread)


async def clear(client: "Connection", params: protocol.SessionParams) -> protocol.ClearResult:
    """Start a conversation over, without its messages and the idempotency keys of their appends.

    A search still finds the old messages until the conversation is deleted.
    """
    async with using(client, params) as scope:
        token_usage = await client.work(operations.clear, scope)
    return protocol.ClearResult(session=params.session, usage=token_usage)


async def delete(client: "Connection", params: protocol.SessionParams) -> protocol.DeleteResult:
    """Remove a conversation permanently, from the disk and from searches.

    A fork keeps the turns that it shares with the conversation.
    """
    async with using(client, params) as scope:
        await client.work(scope.ledger.delete, params.session)
        scope.conversation.forget()
    return protocol.DeleteResult(session=params.session)


async def compact(client: "Connection", params: protocol.CompactParams) -> protocol.CompactResult:
    """Replace the old messages of a conversation with a summary and report what was lost; it can be undone.

    If the client has a model, the daemon asks it for the summary (`nexus/model/complete`) and waits at most a
    minute. Meanwhile other requests and windows continue. What they append stays unchanged after the summary
    and does not delay the compaction. Without a model, or if the model fails, Nexus writes an extractive
    summary. The receipt says who wrote the summary, and who failed and why.

    It is an error, and nothing changes, if there is nothing to replace or to gain, or if the conversation was
    compacted or cleared meanwhile. If a very long part is replaced, only its beginning and its newest 500,000
    tokens, or as many as the window holds, are read. The summary and the receipt (`unreadMessages`) state how
    many messages lie between.
    """
    async with using(client, params) as scope:
        receipt, token_usage = await compaction.compact(scope, params)
    result = convert_to(msgspec.to_builtins(receipt), protocol.Receipt)
    return protocol.CompactResult(compaction=receipt.id, receipt=result, usage=token_usage)


async def undo_compaction(client: "Connection", params: protocol.UndoParams) -> protocol.UndoResult:
    """Restore the messages that a compaction replaced. Later messages stay."""
    async with using(client, params) as scope:
        token_usage = await client.work(operations.undo_compaction, scope, params.compaction)
    return protocol.UndoResult(session=params.session, usage=token_usage)


async def rebase(client: "Connection", params: protocol.SessionParams) -> protocol.RebaseResult:
    """Render the system prompt and the tools anew in the next request of a conversation.

    Otherwise each request repeats those of the request before, and notes tell the model what changed
    (`usage.pending`). The `cache` of the resulting usage shows what a provider's cache loses. Earlier notes
    are not sent any more.
    """
    async with using(client, params) as scope:
        token_usage = await client.work(operations.render_anew, scope)
    return protocol.RebaseResult(session=params.session, usage=token_usage)


async def export(client: "Connection", params: protocol.ExportParams) -> protocol.ExportResult:
    """Return a whole conversation as text: every turn since it began, with compactions and their receipts."""
    async with using(client, params) as scope:
        text = await client.read(operations.export, scope, params.format)
    return protocol.ExportResult(session=params.session, format=params.format, text=text)
