"""Decides whether the reasoning of earlier answers may be sent again. Reasoning is bound to everything that
was sent before it.

1. An answer with reasoning is stored with the fingerprint of the request that it answers (`Message.answers`):
   model, tools, system prompt, and every message before it, as they were sent.
2. Reasoning lapses if a request would send anything else before it: after a cut, a repair, a compaction, an
   edit of the prompt, or for another model. Lapsed reasoning is left out; later reasoning must match the
   messages without it.
3. If the earlier messages return, so does their reasoning: for example, after the undo of a compaction, the
   reasoning from before the compaction is valid again.
4. It is not known which request an answer without a fingerprint answers, for example an imported one. Its
   reasoning is not sent to models that check what it was bound to (`strict`).

Source: "Prefix checks on thinking blocks" in the documentation of the Claude API.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, sent_content, sent_message
from nexus_context.conversation.reported_usage import Estimate, report_of
from nexus_context.conversation.view import View
from nexus_context.tokens import TokenCounter, count_message, family_of_counter
from nexus_context.tokens.correction import Correction, UsageReport

REASONING = ("thinking", "redacted_thinking")
"""The types of the parts that are bound."""

_encode = msgspec.json.Encoder().encode


class RequestSize(NamedTuple):
    """The tokens of a request, counted by its model's counter."""

    counter: TokenCounter
    fixed: int
    total: int
    available: int


class SentRequest(msgspec.Struct, frozen=True):
    """A request as it was sent. `base` stands for model, tools and system prompt, and `current` is its last
    message.

    `strict` is true if the model checks what reasoning was bound to. `appended` is how many messages were
    appended to the history since. `rest` are these messages as they are sent, without `current`.
    """

    base: str
    view: View
    current: Message | None
    strict: bool = True
    rest: tuple[Message, ...] = ()
    appended: int = 0
    size: RequestSize | None = None

    def is_followed_by(self, history: History) -> bool:
        """Whether the next message that is added to this history continues this request."""
        return self.view.history is history and self.view.end + self.appended == len(history)


class _Progress:
    """The fingerprint behind the messages of one view so far, and which of them lapsed."""

    def __init__(self, key: tuple[object, ...], base: str, *, strict: bool) -> None:
        self.key = key
        self.strict = strict
        self.count = 0
        self.fingerprint = _begin(base)
        self.lapsed: list[int] = []
        self.holding = 0  # answers whose reasoning holds

    def add(self, message: Message) -> None:
        if has_reasoning(message):
            if message.answers == self.fingerprint.hex() or (message.answers is None and not self.strict):
                self.holding += 1
            else:
                self.lapsed.append(self.count)
                message = without_reasoning(message)
        self.fingerprint = _next(self.fingerprint, message)
        self.count += 1


def has_reasoning(message: Message) -> bool:
    """Whether a message has reasoning that is bound to the messages before it."""
    content = message.content
    return isinstance(content, list) and any(map(_is_reasoning, content))


def without_reasoning(message: Message) -> Message:
    content = message.content
    assert isinstance(content, list)  # noqa: S101 - only called for messages with reasoning
    return msgspec.structs.replace(message, content=[part for part in content if not _is_reasoning(part)])


class Reasoning(NamedTuple):
    """Which reasoning of a view may be sent, and which has lapsed.

    `lapsed` are the indexes of messages whose reasoning must not be sent, among the view's sound messages.
    `holding` is the number of messages whose reasoning may be sent.
    """

    lapsed: tuple[int, ...] = ()
    holding: int = 0


def check_reasoning(base: str, view: View, *, strict: bool) -> Reasoning:
    """Determine which answers of a view may be sent with their reasoning. `base` stands for model, tools and
    system prompt.
    """
    if not view.history.reasoning:
        return Reasoning()
    progress = _progress(base, view, strict=strict)
    return Reasoning(tuple(progress.lapsed), progress.holding)


def without_lapsed(view: View, reasoning: Reasoning, counter: TokenCounter) -> View:
    """Return the view with the tokens of lapsed reasoning subtracted."""
    indexes, origins = view.indexes(), view.sound_messages().origins
    added, history = dict(view.added), view.history
    saved = 0
    for position in reasoning.lapsed:
        index = indexes[origins[position]]
        if index is None:
            continue
        bare_message = without_reasoning(history.sent[index])
        tokens = history.reasoning_tokens(counter, index, bare_message)
        added[index] = added.get(index, 0) - tokens
        saved += tokens
    return msgspec.structs.replace(view, added=added, tokens=view.tokens - saved)


def report_behind(
    request: SentRequest,
    history: History,
    usage: ProviderUsage,
    messages: Sequence[Message],
    *,
    correction: Correction,
) -> UsageReport | None:
    """Report what a provider counted for a turn's last request, beside our estimate. Return None if the size
    of the request is unknown or there is no answer.

    `request` is that last request. `messages` came after it, and are not in `history` yet.
    """
    if request.size is None or not any(message.role == "assistant" for message in messages):
        return None
    counter, fixed, total, _ = request.size
    estimate = Estimate(family_of_counter(counter).name, total)
    if request.view.history is history:
        messages = [*history.messages[request.view.end :], *messages]
    else:  # the history was replaced since
        estimate = Estimate(estimate.family, fixed + history.tokens(counter), begun=True)
    tokens = [
        count_message(counter, sent_content(message), message.tool_calls, message.role)
        for message in messages
    ]
    return report_of(usage, estimate, messages, tokens, correction=correction)


def bind_answers(
    messages: Sequence[Message], request: SentRequest, *, summary: Message | None = None, kept: int = 0
) -> tuple[list[Message], SentRequest]:
    """Return the messages that continue a conversation after a request, with a fingerprint in each answer
    that has reasoning. Also return the request as the next messages continue it.

    The first message may be the one that the request ended with. If a provider's server made a `summary`, it
    replaces everything before the last `kept` messages, and these are bound to the summary only.
    """
    bound, news = list(messages), []
    fingerprint = _fingerprint_behind(request) if any(map(has_reasoning, bound)) else b""
    for at, message in enumerate(bound):
        if summary is not None and at == len(bound) - kept and fingerprint:
            fingerprint = _next(_begin(request.base), summary)
        sent_form = sent_message(message)
        if not request.appended and not at and sent_form == request.current:
            continue
        if fingerprint:
            if has_reasoning(message):
                bound[at] = msgspec.structs.replace(message, answers=fingerprint.hex())
            fingerprint = _next(fingerprint, sent_form)
        news.append(sent_form)
    rest, appended = (*request.rest, *news), request.appended + len(bound)
    return bound, msgspec.structs.replace(request, rest=rest, appended=appended)


def _fingerprint_behind(request: SentRequest) -> bytes:
    """The fingerprint behind a request and what was appended since."""
    fingerprint = _progress(request.base, request.view, strict=request.strict).fingerprint
    for message in (*(() if request.current is None else (request.current,)), *request.rest):
        fingerprint = _next(fingerprint, message)
    return fingerprint


def _progress(base: str, view: View, *, strict: bool) -> _Progress:
    """The state behind the view's messages; messages that it has read before are not read again."""
    messages, repairs, origins = view.sound_messages()
    is_repaired = bool(repairs) or not isinstance(origins, range)
    leading = view.history.leading
    key = (base, leading, view.head, view.start, view.anchor, view.note, view.replaced, is_repaired)
    progress = view.history.binding
    if (
        not isinstance(progress, _Progress)
        or progress.key != key
        or is_repaired
        or progress.count > len(messages)
    ):
        progress = _Progress(key, base, strict=strict)
    for message in messages[progress.count :]:
        progress.add(message)
    view.history.binding = progress
    return progress


def _begin(base: str) -> bytes:
    """The fingerprint before the first message."""
    return blake2b(base.encode(), digest_size=16).digest()


def _next(fingerprint: bytes, message: Message) -> bytes:
    """The fingerprint behind one more message."""
    role, calls = message.role, message.tool_calls
    fields = (role, message.content, calls, message.tool_call_id, message.name)
    return blake2b(_encode(fields), digest_size=16, key=fingerprint).digest()


def _is_reasoning(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in REASONING
