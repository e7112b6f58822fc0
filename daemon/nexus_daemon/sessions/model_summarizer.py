"""Summaries by the client's model (`nexus/model/complete`); by the embedded summarizer where there is none.

1. The client that made the request is asked, if it said that it has a model and `provider.name` is `editor`.
2. While the model writes, others may have the conversation; only one summary of it is asked for at a time,
   and none where somebody else compacted it meanwhile.
3. An error, silence, and an answer that is no summary are reasons to use the embedded summarizer, and are
   said in the receipt. When the request is cancelled, so is the question; nothing has changed then.
4. What would not fit the model is not sent: first the system prompt and what is kept are left out, then
   nobody is asked.
"""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.message import Message, content_of
from nexus_context.conversation.repair import traced
from nexus_context.errors import NexusError
from nexus_context.tokens import count_message
from nexus_daemon import protocol
from nexus_daemon.lsp import framing
from nexus_daemon.sessions.compaction import Draft, Steps, embedded
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:
    from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written
    from nexus_daemon.workspace.client import Client

ASKED_S = 60.0
"""Seconds that a model has for a summary that the user asked for."""
IN_A_TURN_S = 30.0
"""The same where somebody waits for a turn. A client may end that earlier: it answers with an error."""
LARGEST = framing.BODY_LIMIT // 2
"""Bytes of messages that are sent."""
LONGEST_REASON = 200
"""Characters of a client's error that are kept."""

T = TypeVar("T")


class _Ended(msgspec.Struct, frozen=True):
    """What came of steps."""

    value: Any


async def finished(client: "Client", scope: SessionScope, steps: Steps[T], *, seconds: float) -> T:
    """What comes of steps of a locked conversation that may need summaries; a model has `seconds` for one."""
    work = client.work
    if not (client.has_model and scope.snapshot.effective.get("/provider/name") == "editor"):
        return await work(embedded, steps)
    conversation = scope.conversation
    step = await work(_advanced, steps, None)
    while isinstance(step, Draft):
        async with AsyncExitStack() as alone:
            async with conversation.lent():
                await alone.enter_async_context(conversation.summarizing)
                answer = None
                if conversation.compaction == step.compaction:
                    answer = await _written(client, scope, step, seconds)
            step = await work(_advanced, steps, answer)
    value: T = step.value
    return value


def _advanced(steps: Steps[Any], answer: "Written | CompactionError | None") -> Draft | _Ended:
    try:
        return steps.throw(answer) if isinstance(answer, CompactionError) else steps.send(answer)
    except StopIteration as ended:
        return _Ended(ended.value)


async def _written(
    client: "Client", scope: SessionScope, draft: Draft, seconds: float
) -> "Written | CompactionError":
    from nexus_context.conversation.compaction.summarizer import first_summary  # rarely needed

    model, own = _EditorModel(client, scope, draft, seconds), _Embedded(client, draft)
    try:
        written = await first_summary([model, own], draft.plan.request())
    except CompactionError as error:
        return error
    return msgspec.structs.replace(written, model=model.model if written.summarizer == model.name else None)


class _EditorModel:
    """The client's model as a `Summarizer`; `model` is its name, once it has said so."""

    name = "editor"

    def __init__(self, client: "Client", scope: SessionScope, draft: Draft, seconds: float) -> None:
        self.model: str | None = None
        self._client = client
        self._scope = scope
        self._draft = draft
        self._seconds = seconds

    async def summarize(self, request: "SummaryRequest") -> str:
        work = self._client.work
        params = protocol.ModelCompleteParams(
            workspace_folder=self._scope.folder.uri,
            session=self._scope.conversation.session,
            purpose="compaction",
            messages=await work(_question, self._draft),
            max_tokens=request.limit,
            model=request.model,
        )
        try:
            answer = await self._client.ask(
                "nexus/model/complete", params, protocol.ModelCompleteResult, timeout_s=self._seconds
            )
        except TimeoutError:
            raise NexusError(f"no answer within {self._seconds:g} seconds") from None
        except NexusError as error:
            raise NexusError(_one_line(str(error)) or "an error without a message") from error
        flaw = await work(_flaw, answer.content, request.limit, self._draft)
        if flaw is not None:
            raise NexusError(flaw)
        self.model = answer.model
        return str(answer.content)


class _Embedded:
    """The embedded summarizer, in a thread."""

    name = "extractive"

    def __init__(self, client: "Client", draft: Draft) -> None:
        self._client = client
        self._draft = draft

    async def summarize(self, request: "SummaryRequest") -> str:
        from nexus_context.conversation.compaction.extractive import extract

        return (await self._client.work(extract, request, self._draft.counter)).text


def _question(draft: Draft) -> list[msgspec.Raw]:
    """What a model is sent, each message as JSON. NexusError where it does not fit."""
    plan, sent, count = draft.plan, draft.sent, draft.counter
    whole = plan.tokens_before if sent.view.truncated else sent.view.tokens
    asked = plan.request(()).messages[-1]
    room = sent.limit - sent.prompt_tokens - whole - count_message(count, content_of(asked))
    if room >= plan.summary_limit:
        messages = [Message("system", sent.prompt)] if sent.prompt else []
        if sent.view.truncated:  # what is not sent any more is to be summarized, too
            messages += traced(list(plan.messages)).messages
        else:
            messages += sent.view.sound_messages().messages
    else:
        asked = plan.request(room=-1).messages[-1]
        messages = traced(list(plan.messages[: plan.start])).messages
        tokens = sum(count_message(count, content_of(one), one.tool_calls) for one in (*messages, asked))
        if tokens + plan.summary_limit > sent.limit:
            raise NexusError(
                f"what is to be summarized takes {tokens:,} tokens, and with the summary "
                f"{sent.limit:,} is the most"
            )
    encoded = [msgspec.Raw(framing.encode(one)) for one in (*messages, asked)]
    size = sum(len(memoryview(one)) for one in encoded)
    if size > LARGEST:
        raise NexusError(f"what is to be summarized has {size:,} bytes, more than are sent")
    return encoded


def _flaw(answer: str, limit: int, draft: Draft) -> str | None:
    from nexus_context.conversation.compaction.summarizer import find_flaw

    return find_flaw(answer, limit=limit, counter=draft.counter)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"
