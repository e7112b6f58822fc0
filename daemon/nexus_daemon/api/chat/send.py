"""Run the loop of a turn: assemble → stream → record → run the calls → record."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.errors import RequestError
from nexus_daemon import api, protocol
from nexus_daemon.api import resolve
from nexus_daemon.api.chat.limits import TurnSpending, limits_of
from nexus_daemon.api.chat.stream import ChatStream
from nexus_daemon.api.chat.tools import (
    CallsCancelledError,
    ToolResult,
    ToolRunner,
    result_message,
)
from nexus_daemon.protocol.chat import ChatItem, ChatOptions, ChatSendParams, ChatSendResult
from nexus_daemon.providers import FORMATS, Answer, Provider, ProviderError, TextDelta, ThinkingDelta
from nexus_daemon.providers.configured import describe_target, find_target

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

PAUSED = "pause_turn"
"""Anthropic's reason to stop an answer that continues once it is sent back."""
NOT_RUN = "Not run: the turn has reached its limit ({limit}). The user can send a message to go on."


async def send(client: "Connection", params: ChatSendParams) -> ChatSendResult:
    """Take one turn with the model of the configured provider (`provider`), and record it step by step.

    The answer is streamed to `partialResultToken`. The daemon runs the calls of the model. A tool of an MCP
    server runs once the user has allowed it (`nexus/tool/approve`). What the model wrote is recorded even if
    the turn fails or is cancelled. A request that the provider refuses as too long is compacted further and
    sent once more.

    One turn of a conversation runs at a time. If another window appends to it meanwhile, the turn goes on in
    a fork.
    """
    return await _take_turn(client, params, None)


async def _take_turn(
    client: "Connection", params: ChatSendParams, parent_spending: TurnSpending | None
) -> ChatSendResult:
    """A turn; `parent_spending` is that of the turn that started this one."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    target = client.provider or await find_target(snapshot, client.folders.load_inputs.environ)
    options = params.options or ChatOptions()
    spending = TurnSpending(limits_of(snapshot.effective, options), parent_spending)
    session = params.session or await _session_of(client, params)
    running, key = client.daemon.running_chats, (folder.path, session)
    while (running_task := running.get(key)) is not None:
        if not running_task.cancelling():
            raise RequestError(
                f"A turn of {session!r} is running. Wait for its end, cancel it, or fork the conversation.",
                code="chat-busy",
            )
        await asyncio.wait([running_task])  # what was said of it is being recorded
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    running[key] = task
    stream = ChatStream(
        client, params.partial_result_token, agent=None if parent_spending is None else params.agent
    )
    try:
        async with Provider(target) as provider:
            params = msgspec.structs.replace(params, session=session)
            return await _Turn(client, params, provider, spending=spending, stream=stream).run()
    finally:
        # the key of a fork, too
        for key in [key for key, running_task in running.items() if running_task is task]:
            del running[key]


async def _session_of(client: "Connection", params: ChatSendParams) -> str:
    about = protocol.ConversationParams(params.workspace_folder, None, params.agent)
    async with resolve.using_agent_session(client, about) as scope:
        return scope.conversation.session


class _Turn:
    """One turn of a conversation. Lives on the event loop."""

    def __init__(
        self,
        client: "Connection",
        params: ChatSendParams,
        provider: Provider,
        *,
        spending: TurnSpending,
        stream: ChatStream,
    ) -> None:
        self._client = client
        self._params = params
        self._provider = provider
        self._spending = spending
        self._options = params.options or ChatOptions()
        self._session = params.session or "main"
        self._message: Message | None = (
            params.message if isinstance(params.message, Message) else Message("user", params.message)
        )
        self._stream = stream
        self._tools = ToolRunner(client, params, self._session, self._run_agent)
        self._parent: str | None = None
        self._last_append: protocol.AppendResult | None = None
        self._is_forked = False
        self._is_compacted = False

    async def run(self) -> ChatSendResult:
        context = await self._assemble()
        spending = self._spending
        self._announce(context)
        limit: str | None = None
        while True:
            answer, context = await self._answer(context)
            spending.add(context.model, answer.usage)
            usage = _usage_of(answer)
            self._stream.add(ChatItem("usage", provider_usage=usage))
            message = _named(answer.message, context)
            is_empty = not message.tool_calls and not text_of(message) and answer.stop_reason != PAUSED
            if is_empty and self._last_append is not None:  # said before its calls: they were all of it
                limit = answer.stop_reason or "end_turn"
                break
            if is_empty:
                raise RequestError(
                    f"{context.model} answered nothing ({answer.stop_reason or 'no reason given'}). Send the "
                    "message again, or use another model.",
                    code="chat-failed",
                )
            await self._append(context, [message], usage=usage)
            limit = spending.reached()
            if message.tool_calls:
                await self._run_calls(context, message.tool_calls, limit)
                limit = spending.reached()  # agents among them have spent, too
            elif answer.stop_reason != PAUSED:
                limit = answer.stop_reason or "end_turn"
            if limit is not None:
                break
            context = await self._assemble()
        last_append = self._last_append
        assert last_append is not None  # noqa: S101 - a step was appended
        return ChatSendResult(
            session=self._session,
            turn=last_append.turn,
            message=message,
            usage=last_append.usage,
            stop_reason=limit,
            steps=spending.steps,
            spending=spending.report(),
            model=context.model,
            provider_usage=usage,
            forked=self._is_forked,
            persists=last_append.persists,
        )

    async def _run_agent(self, agent: str, task: str) -> str:
        """The report of an agent that was started for a task: it works on it, here, until it is done."""
        limit = self._spending.reached()
        if limit is not None:  # an agent beside it has spent what was left
            raise RequestError(NOT_RUN.format(limit=limit), code="chat-failed")
        own_options = self._options
        options = ChatOptions(
            max_steps=own_options.max_steps, max_tokens=own_options.max_tokens, max_usd=own_options.max_usd
        )
        params = ChatSendParams(
            self._params.workspace_folder,
            agent=agent,
            message=task,
            options=options,
            partial_result_token=self._params.partial_result_token,
        )
        result = await _take_turn(self._client, params, self._spending)
        return text_of(result.message)

    def _announce(self, context: protocol.AssembledContext) -> None:
        """Say once in a conversation who is sent it."""
        if context.parent_turn is None:
            text = (
                f"This conversation goes to {describe_target(self._provider.target)}, model {context.model}."
            )
            self._stream.add(ChatItem("notice", text=text))

    async def _assemble(self) -> protocol.AssembledContext:
        """The next request: with the user's message, until that is recorded."""
        options, params = self._options, self._params
        context = await api.context.assemble(
            self._client,
            protocol.AssembleParams(
                params.workspace_folder,
                session=self._session,
                agent=params.agent,
                message=self._message,
                format=FORMATS[self._provider.target.provider],
                attachments=params.attachments,
                files=params.files,
                options=protocol.AssembleOptions(
                    model=options.model,
                    parameters=options.parameters,
                    additional_system_prompt=options.additional_system_prompt,
                    skills=options.skills,
                    disabled_tools=options.disabled_tools,
                    memory_tools=True,
                    skill_tools=True,
                    agent_tools=True,
                    mcp_tools=True,
                ),
            ),
        )
        if not context.model:
            raise RequestError(
                "The settings name no model. Set provider.model, or give options.model.", code="no-provider"
            )
        self._parent = context.parent_turn
        await self._tools.prepare(context)
        return context

    async def _answer(self, context: protocol.AssembledContext) -> tuple[Answer, protocol.AssembledContext]:
        """The model's answer, and the context that it answers: after an overflow, another one.

        An answer that ends early is recorded as far as it came.
        """
        text_pieces: list[str] = []
        answer: Answer | None = None
        try:
            async for item in self._provider.stream({"model": context.model, **(context.request or {})}):
                match item:
                    case TextDelta():
                        text_pieces.append(item.text)
                        self._stream.add_text("text", item.text)
                    case ThinkingDelta():
                        self._stream.add_text("thinking", item.text)
                    case Answer():
                        self._stream.flush()
                        answer = item
        except ProviderError as error:
            if error.kind == "overflow" and not text_pieces and not self._is_compacted:
                return await self._answer(await self._compacted(error))
            await self._append_partial(context, text_pieces, str(error))
            raise RequestError(str(error), code="chat-failed") from error
        except asyncio.CancelledError:
            await self._append_partial(context, text_pieces, None)
            raise
        assert answer is not None  # noqa: S101 - a stream ends with an answer or an error
        return answer, context

    async def _compacted(self, error: ProviderError) -> protocol.AssembledContext:
        """The request once more, after a compaction: the provider calls it too long."""
        self._is_compacted = True
        try:
            result = await api.session.compact(
                self._client,
                protocol.CompactParams(self._params.workspace_folder, self._session, overflow=True),
            )
        except RequestError as failure:
            raise RequestError(
                f"{error} Compacting the conversation did not help: {failure}", code="chat-failed"
            ) from failure
        receipt = result.receipt
        if receipt.model is not msgspec.UNSET:
            self._spending.include(0, None, ["the request for a summary"])
        text = (
            f"The conversation was too long for the model. A summary replaces {receipt.replaced_messages:,} "
            "messages, and the request is sent again."
        )
        self._stream.add(ChatItem("notice", text=text))
        return await self._assemble()

    async def _append_partial(
        self, context: protocol.AssembledContext, text_pieces: list[str], error: str | None
    ) -> None:
        """Record an answer that did not end, if there is something of it."""
        self._stream.flush()
        if text_pieces:
            why = {"reason": "cancelled"} if error is None else {"reason": "failed", "error": error}
            message = Message("assistant", "".join(text_pieces), meta={"partial": True, **why})
            await self._append(context, [message], error=error)

    async def _run_calls(
        self, context: protocol.AssembledContext, calls: tuple[ToolCall, ...], limit: str | None
    ) -> None:
        """Run the calls of an answer, unless the turn has reached a limit, and record all results."""
        for call in calls:
            self._stream.add(ChatItem("toolCall", id=call.id, name=call.name, arguments=call.arguments))
        if limit is not None:
            results = [ToolResult(NOT_RUN.format(limit=limit), is_error=True)] * len(calls)
            for call, result in zip(calls, results, strict=True):
                self._tell(call, result)
        else:
            names = {str(tool.get("name")) for tool in context.tools}
            try:
                results = await self._tools.run_all(calls, names, self._tell)
            except CallsCancelledError as cancelled:
                await self._append_results(context, calls, cancelled.results)
                raise
        await self._append_results(context, calls, results)

    def _tell(self, call: ToolCall, result: ToolResult) -> None:
        item = ChatItem("toolResult", id=call.id, name=call.name, text=result.text, is_error=result.is_error)
        self._stream.add(item)

    async def _append_results(
        self, context: protocol.AssembledContext, calls: tuple[ToolCall, ...], results: list[ToolResult]
    ) -> None:
        await self._append(context, list(map(result_message, calls, results)))

    async def _append(
        self,
        context: protocol.AssembledContext,
        messages: list[Message],
        *,
        usage: protocol.ProviderUsage | None = None,
        error: str | None = None,
    ) -> None:
        """Write a step behind the turn that the model was shown; the first one with the user's message."""
        user_messages = [] if self._message is None else [self._message]
        step = protocol.AppendParams(
            self._params.workspace_folder,
            self._session,
            messages=[*user_messages, *messages],
            parent_turn=self._parent,
            model=context.model,
            request_id=context.request_id,
            provider_usage=usage,
            error=error,
        )
        writing = asyncio.ensure_future(api.session.append(self._client, step))
        try:
            appended = await asyncio.shield(writing)
        except asyncio.CancelledError:
            await writing  # the user has seen it; another window may hold the conversation meanwhile
            raise
        self._message, self._parent = None, appended.turn
        self._last_append = appended
        if appended.forked:
            text = (
                f"Another window has continued the session {self._session}, so this turn is saved in a new "
                f"one, {appended.session}."
            )
            self._stream.add(ChatItem("notice", text=text))
            self._session, self._is_forked = appended.session, True
            self._tools.session = appended.session
            path, task = self._client.folders.at(step.workspace_folder).path, asyncio.current_task()
            assert task is not None  # noqa: S101 - a coroutine runs in one
            self._client.daemon.running_chats[path, appended.session] = task


def _usage_of(answer: Answer) -> protocol.ProviderUsage | None:
    if answer.usage is None:
        return None
    counted: dict[str, Any] = msgspec.structs.asdict(answer.usage)
    return protocol.ProviderUsage(**counted, stop_reason=answer.stop_reason)


def _named(message: Message, context: protocol.AssembledContext) -> Message:
    """The answer with tools under their own names: some providers are sent others."""
    renamed = context.metadata.get("renamedTools") or {}
    if not renamed or not message.tool_calls:
        return message
    calls = [
        msgspec.structs.replace(call, name=renamed.get(call.name, call.name)) for call in message.tool_calls
    ]
    return msgspec.structs.replace(message, tool_calls=tuple(calls))
