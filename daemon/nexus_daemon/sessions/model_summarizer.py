"""Summaries by the client's model (`nexus/model/complete`), or by the embedded summarizer if that fails.

1. An error, a timeout and an answer that is not a summary are reasons to use the embedded summarizer. The
   receipt lists them as failures.
2. If the request is cancelled, so is the client's; nothing has changed then.
3. Only what fits the model is sent. If the whole request does not fit, the system prompt and the messages
   that stay are left out; if that does not fit either, the model is not asked.
"""

from typing import TYPE_CHECKING

import msgspec

from nexus_context.conversation.message import Message, content_of
from nexus_context.conversation.repair import traced
from nexus_context.conversation.summary import readable
from nexus_context.conversation.view import View
from nexus_context.errors import NexusError
from nexus_context.tokens import TokenCounter, count_message
from nexus_daemon import protocol
from nexus_daemon.lsp import framing, progress
from nexus_daemon.process import lazy
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:
    from nexus_context.conversation.compaction.run import Plan
    from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written

LARGEST = framing.BODY_LIMIT // 2
"""Bytes of messages that are sent."""
LONGEST_REASON = 200
"""Characters of a client's error that a receipt quotes."""


class SummaryTask(msgspec.Struct, frozen=True, kw_only=True):
    """What to summarize, and what the conversation's requests look like: the model's cache has their prefix.

    `limit` is the tokens of the model's window, or the configured maximum.
    """

    plan: "Plan"
    counter: TokenCounter
    prompt: str
    prompt_tokens: int
    view: View
    limit: int


async def summarize(scope: SessionScope, task: SummaryTask, *, seconds: float) -> "Written":
    """Write the summary; the model has `seconds`. CompactionError if nobody can write it."""
    model, embedded = _EditorModel(scope, task, seconds), _Embedded(scope, task)
    written = await lazy.summarizer.first_summary([model, embedded], task.plan.request())
    return msgspec.structs.replace(written, model=model.model if written.summarizer == model.name else None)


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
    """The messages to send to the model, each as JSON. NexusError if they do not fit."""
    plan, view, counter = task.plan, task.view, task.counter
    history_tokens = plan.tokens_before if view.truncated else view.tokens
    instruction = plan.request(()).messages[-1]
    instruction_tokens = count_message(counter, content_of(instruction))
    room = task.limit - task.prompt_tokens - history_tokens - instruction_tokens
    if room >= plan.summary_limit:
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
    encoded = [msgspec.Raw(framing.encode(readable(message))) for message in (*messages, instruction)]
    size = sum(len(memoryview(raw)) for raw in encoded)
    if size > LARGEST:
        raise NexusError(f"what is to be summarized has {size:,} bytes, more than are sent")
    return encoded


def _flaw(answer: str, limit: int, task: SummaryTask) -> str | None:
    return lazy.summarizer.find_flaw(answer, limit=limit, counter=task.counter)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"
