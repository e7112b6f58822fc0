"""Summarize with a model, or with the embedded summarizer if the model fails.

The model is that of the configured provider. If `provider.name` is `editor`, it is the client's
(`nexus/model/complete`).

1. An error, a timeout and an answer that is not a summary are reasons to use the embedded summarizer. The
   receipt lists them as failures.
2. If the request is cancelled, the request to the model is cancelled, too, and nothing has changed.
3. Only what fits the model is sent. If the whole request does not fit, the system prompt and the messages
   that stay are left out. If that does not fit either, no request is sent.
"""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context import ContextManager, Options, Request, assemble
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.conversation.repair import traced
from nexus_context.conversation.summary import readable
from nexus_context.conversation.view import View
from nexus_context.errors import NexusError, RequestError
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.turn.endpoint import endpoint_of
from nexus_daemon import protocol
from nexus_daemon.lsp import framing, progress
from nexus_daemon.process import lazy
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:
    from nexus_context.conversation.compaction.run import Plan
    from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written
    from nexus_daemon.providers import Target

LARGEST = framing.BODY_LIMIT // 2
"""The most bytes of messages that are sent."""
LONGEST_REASON = 200
"""The most characters of a client's error that a receipt quotes."""


class SummaryTask(msgspec.Struct, frozen=True, kw_only=True):
    """A plan to summarize, with the parts of the conversation's requests, whose prefix the model has cached.

    `limit` is the number of tokens of the model's window, or the configured maximum.
    """

    plan: "Plan"
    counter: TokenCounter
    prompt: str
    prompt_tokens: int
    view: View
    limit: int


async def has_model(scope: SessionScope) -> bool:
    """Whether a model is available to write summaries of this conversation."""
    provider = scope.snapshot.effective.get("/provider/name")
    if provider == "editor":
        return scope.client.capabilities.has_model
    return await _find_target(scope) is not None


async def summarize(scope: SessionScope, task: SummaryTask, *, seconds: float) -> "Written":
    """Write the summary, for which the model has `seconds`. CompactionError if no summarizer can write it."""
    target, embedded = await _find_target(scope), _Embedded(scope, task)
    model: _EditorModel | _ProviderModel = (
        _EditorModel(scope, task, seconds) if target is None else _ProviderModel(scope, task, target, seconds)
    )
    written = await lazy.summarizer.first_summary([model, embedded], task.plan.request())
    return msgspec.structs.replace(written, model=model.model if written.summarizer == model.name else None)


async def _find_target(scope: SessionScope) -> "Target | None":
    """The configured provider, if it can be asked."""
    if scope.client.provider is not None:
        return scope.client.provider
    if endpoint_of(scope.snapshot) is None:
        return None
    from nexus_daemon.providers.configured import find_target  # most compactions have none

    try:
        return await find_target(scope.snapshot, scope.client.folders.load_inputs.environ)
    except RequestError:
        return None


class _EditorModel:
    """The client's model as a `Summarizer`; `model` is its name, once the client has named it."""

    name = "editor"

    def __init__(self, scope: SessionScope, task: SummaryTask, seconds: float) -> None:
        self.model: str | None = None
        self._scope = scope
        self._task = task
        self._seconds = seconds

    async def summarize(self, request: "SummaryRequest") -> str:
        client = self._scope.client
        params = protocol.ModelCompleteParams(
            workspace_folder=self._scope.folder.uri,
            session=self._scope.conversation.session,
            purpose="compaction",
            messages=await client.daemon.workers.run(_messages, self._task),
            max_tokens=request.limit,
            model=request.model,
        )
        progress.report("Waiting for the model")
        try:
            answer = await client.ask(
                "nexus/model/complete", params, protocol.ModelCompleteResult, timeout_s=self._seconds
            )
        except TimeoutError:
            raise NexusError(f"no answer within {self._seconds:g} seconds") from None
        except NexusError as error:
            raise NexusError(_one_line(str(error)) or "an error without a message") from error
        flaw = await client.daemon.workers.run(_flaw, answer.content, request.limit, self._task)
        if flaw is not None:
            raise NexusError(flaw)
        self.model = answer.model
        return str(answer.content)


class _ProviderModel:
    """The model of the configured provider as a `Summarizer`; `model` is its name, once it has answered."""

    def __init__(self, scope: SessionScope, task: SummaryTask, target: "Target", seconds: float) -> None:
        self.name = target.provider
        self.model: str | None = None
        self._scope = scope
        self._task = task
        self._target = target
        self._seconds = seconds

    async def summarize(self, request: "SummaryRequest") -> str:
        work = self._scope.client.daemon.workers.run
        name = request.model or self._scope.snapshot.effective.get("/provider/model")
        if not name:
            raise NexusError("the settings name no model")
        progress.report("Waiting for the model")
        body = await work(_body, self._task, request.limit, model=name, provider=self._target.provider)
        try:
            async with asyncio.timeout(self._seconds):
                text = await _answer_of(self._target, body)
        except TimeoutError:
            raise NexusError(f"no answer within {self._seconds:g} seconds") from None
        flaw = await work(_flaw, text, request.limit, self._task)
        if flaw is not None:
            raise NexusError(flaw)
        self.model = name
        return text


async def _answer_of(target: "Target", body: dict[str, Any]) -> str:
    """The text of a provider's answer. Raises ProviderError."""
    from nexus_daemon.providers import Answer, Provider

    text = ""
    async with Provider(target) as provider:
        async for item in provider.stream(body):
            if isinstance(item, Answer):
                text = text_of(item.message)
    return text


def _body(task: SummaryTask, limit: int, *, model: str, provider: str) -> dict[str, Any]:
    """The request to a provider, without tools. NexusError if what it needs does not fit."""
    from nexus_daemon.providers import FORMATS

    messages = _plain_messages(task)
    manager = ContextManager(model=model)
    if messages and messages[0].role == "system":
        manager.set_system_prompt(text_of(messages.pop(0)))
    manager.add(messages[:-1])
    options = Options(parameters={"max_tokens": limit}, reserve_tokens=0)
    request = Request(messages[-1], format=FORMATS[provider], options=options)
    turn = assemble(None, manager, request, now=datetime.now().astimezone())
    return {"model": model, **(turn.request or {})}


class _Embedded:
    """The embedded summarizer, in a worker thread."""

    name = "extractive"

    def __init__(self, scope: SessionScope, task: SummaryTask) -> None:
        self._scope = scope
        self._task = task

    async def summarize(self, request: "SummaryRequest") -> str:
        extract = lazy.extractive.extract
        return (await self._scope.client.daemon.workers.run(extract, request, self._task.counter)).text


def _messages(task: SummaryTask) -> list[msgspec.Raw]:
    """The messages to send to the client's model, each as JSON. NexusError if they do not fit."""
    encoded = [msgspec.Raw(framing.encode(message)) for message in _plain_messages(task)]
    size = sum(len(memoryview(raw)) for raw in encoded)
    if size > LARGEST:
        raise NexusError(f"what is to be summarized has {size:,} bytes, more than are sent")
    return encoded


def _plain_messages(task: SummaryTask) -> list[Message]:
    """The messages to send to a model, the instruction last. NexusError if they do not fit."""
    plan, view, counter = task.plan, task.view, task.counter
    history_tokens = plan.tokens_before if view.truncated else view.tokens
    instruction = plan.request(()).messages[-1]
    instruction_tokens = count_message(counter, content_of(instruction))
    available_tokens = task.limit - task.prompt_tokens - history_tokens - instruction_tokens
    if available_tokens >= plan.summary_limit:
        messages = [Message("system", task.prompt)] if task.prompt else []
        if view.truncated:  # what requests no longer send has to be summarized, too
            messages += traced(list(plan.messages)).messages
        else:
            messages += view.sound_messages().messages
    else:
        instruction = plan.request(room=-1).messages[-1]
        messages = traced(plan.covered()).messages
        tokens = sum(
            count_message(counter, content_of(message), message.tool_calls, message.role)
            for message in (*messages, instruction)
        )
        if tokens + plan.summary_limit > task.limit:
            raise NexusError(
                f"what is to be summarized takes {tokens:,} tokens, and with the summary "
                f"{task.limit:,} is the most"
            )
    return [readable(message) for message in (*messages, instruction)]


def _flaw(answer: str, limit: int, task: SummaryTask) -> str | None:
    return lazy.summarizer.find_flaw(answer, limit=limit, counter=task.counter)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"
