"""Compares two requests of a conversation: what they share at their beginning, a provider's cache can reuse.

1. Providers cache the beginning of a request: tools, system prompt, history. The first token that differs
   ends the reuse.
2. The current message is new in each request. The next request begins with it if it was appended as it was
   sent.
3. Anthropic caches messages for one setting of thinking. If the setting changes, reuse ends before the first
   message.
4. A break is a place where something that was sent before was changed or removed. The tokens that would have
   been reused are written again, at the price of a write instead of the price of cached input.
"""

from collections.abc import Sequence

import msgspec

from nexus_context.conversation.bound_thinking import Reasoning
from nexus_context.conversation.message import Message, content_of
from nexus_context.conversation.view import View
from nexus_context.errors import Span
from nexus_context.folder.prompt.render import Fragment, Prompt
from nexus_context.tokens import Lifetime, ModelLimits, TokenCounter, count_message


class Prefix(msgspec.Struct, frozen=True):
    """The beginning of a request: model, tools, prompt and messages, with the tokens of its parts."""

    model: ModelLimits
    tools: tuple[bytes, ...]
    tool_names: tuple[str, ...]
    tool_tokens: tuple[int, ...]
    prompt: Prompt
    prompt_tokens: tuple[int, ...]  # of each fragment
    view: View
    ending: tuple[Message, ...] = ()  # what follows the conversation, as it is sent
    fixed_hash: str = ""  # of tools and prompt
    base: str = ""  # stands for model, tools and prompt
    format: str = ""  # of the body; "": none
    thinking: str | None = None  # how the body sets it, where that is part of the prefix; None: unknown
    lifetime: Lifetime = "5m"  # of what the provider caches
    reasoning: Reasoning = Reasoning()

    @property
    def tokens(self) -> int:
        """The tokens of everything that can be cached. Replacements of missing results are not included,
        since they will change.
        """
        return sum(self.tool_tokens) + sum(self.prompt_tokens) + self.view.tokens - self.view.repair_tokens


class CacheBreak(msgspec.Struct, frozen=True):
    """The first difference between two requests: in the tools, the system prompt, the history, or the model.

    `path` and `span` are its place in a file, if it has one. `tokens` have to be written to the cache again.
    `cost` is what that costs more than reuse, in US dollars, or None if the model's prices are unknown.
    """

    category: str
    label: str
    tokens: int
    cost: float | None
    path: str | None = None
    span: Span | None = None


class CacheReport(msgspec.Struct, frozen=True):
    """How many leading tokens of a request repeat the previous request, and what broke the rest.

    `lapsed` is how many answers lost their reasoning: the previous request sent it, and this one does not,
    because the reasoning was bound to what changed.
    """

    reused: int
    total: int
    broke: CacheBreak | None
    lapsed: int = 0


def compare(before: Prefix | None, now: Prefix, counter: TokenCounter) -> CacheReport:
    """Compute how much of `before` the request `now` can reuse. `before` is the last request of the same
    conversation.
    """
    if before is None:
        return CacheReport(0, now.tokens, None)
    reused, cause = _common(before, now, counter)
    if cause is None:
        return CacheReport(reused, now.tokens, None)
    category, label, fragment = cause
    lost = max(before.tokens - reused, 0)
    return CacheReport(
        reused,
        now.tokens,
        lapsed=max(before.reasoning.holding - now.reasoning.holding, 0),
        broke=CacheBreak(
            category,
            label,
            lost,
            _cost(now, lost),
            path=fragment.path if fragment is not None else None,
            span=fragment.source if fragment is not None and fragment.path else None,
        ),
    )


_Cause = tuple[str, str, Fragment | None]


def _common(before: Prefix, now: Prefix, counter: TokenCounter) -> tuple[int, _Cause | None]:
    """Tokens in common, and what ends them; None if nothing of `before` changed."""
    if before.model.given != now.model.given:
        return 0, ("model", f"{before.model.given or 'no model'} → {now.model.given or 'no model'}", None)
    tools = _count_equal(before.tools, now.tools)
    reused = sum(now.tool_tokens[:tools])
    if tools < max(len(before.tools), len(now.tools)):
        names = now.tool_names if tools < len(now.tools) else before.tool_names
        return reused, ("tools", names[tools], None)
    if before.prompt is not now.prompt and before.prompt.text != now.prompt.text:
        common, fragment = _prompt_break(before.prompt, now.prompt, now.prompt_tokens)
        return reused + common, ("system", fragment.title, fragment)
    reused += sum(now.prompt_tokens)
    if now.thinking != before.thinking and None not in (now.thinking, before.thinking):
        return reused, ("history", "thinking is set otherwise, and messages are cached with that", None)
    common, label = _history_break(before, now, counter)
    return reused + common, (("history", label, None) if label else None)


def _prompt_break(before: Prompt, now: Prompt, tokens: Sequence[int]) -> tuple[int, Fragment]:
    """Tokens before the first fragment that differs, and that fragment, or the one that was removed."""
    common = first_difference(before.text, now.text)
    ends = [fragment.span.end <= common for fragment in now.fragments]
    reused = sum(count for count, is_common in zip(tokens, ends, strict=True) if is_common)
    old_fragment = next((fragment for fragment in before.fragments if fragment.span.end > common), None)
    if old_fragment is not None and (
        common == len(now.text) or _source(old_fragment) not in map(_source, now.fragments)
    ):
        return reused, old_fragment
    return reused, next(fragment for fragment in now.fragments if fragment.span.end > common)


def _source(fragment: Fragment) -> tuple[str, str | None, str | None]:
    return fragment.section, fragment.layer, fragment.path


def first_difference(text: str, other_text: str) -> int:
    """Return the length of the common beginning of two texts."""
    low, high = 0, min(len(text), len(other_text))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other_text[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _history_break(before: Prefix, now: Prefix, counter: TokenCounter) -> tuple[int, str]:
    """Tokens of the messages in common, and what ends them; "" if all of `before` is still there."""
    old_view, new_view = before.view, now.view
    if old_view.history is not new_view.history:
        # it was read again, or replaced: message by message
        sent_messages = [*before.view.messages(), *before.ending]
        equal_messages = _count_equal(sent_messages, new_view.messages())
        label = "the conversation was cleared, compacted or restored"
        is_whole = equal_messages == len(sent_messages)
        return sum(new_view.sizes(counter)[:equal_messages]), "" if is_whole else label
    same_cut = (old_view.head, old_view.start, old_view.note, old_view.anchor) == (
        new_view.head,
        new_view.start,
        new_view.note,
        new_view.anchor,
    )
    changed = [
        index
        for index in {*old_view.replaced, *new_view.replaced}
        if index < old_view.end and old_view.replaced.get(index) != new_view.replaced.get(index)
    ]
    if same_cut and not changed:
        appended_tokens = _appended_tokens(before, new_view, counter)
        return _tokens_before(new_view, old_view.end, counter) + appended_tokens, ""
    if same_cut and all(new_view.history.messages[index].role == "tool" for index in changed):
        return _tokens_before(new_view, min(changed), counter), "a long tool result was shortened"
    moved = new_view.removed - old_view.removed
    label = "the cut moved" + (f": {moved:,} more messages are not sent" if moved > 0 else "")
    if same_cut:
        label = "event and memory text of earlier turns is not sent any more"
    appended = _count_equal(
        before.ending, new_view.history.sent[old_view.end : old_view.end + len(before.ending)]
    )
    sent_messages = [*old_view.messages(), *before.ending[:appended]]
    equal_messages = _count_equal(sent_messages, new_view.messages())
    is_whole = equal_messages == len(sent_messages)
    return sum(new_view.sizes(counter)[:equal_messages]), "" if is_whole else label


def _appended_tokens(before: Prefix, now: View, counter: TokenCounter) -> int:
    """Tokens of the messages that ended the request before, and that the history has by now."""
    sent_messages, sums, end = now.history.sent, now.history.sums(counter), before.view.end
    equal_messages = _count_equal(before.ending, sent_messages[end : min(now.end, end + len(before.ending))])
    return sums[end + equal_messages] - sums[end] + _added(now, end, end + equal_messages)


def _tokens_before(view: View, index: int, counter: TokenCounter) -> int:
    """Tokens of what is sent before the message of that index, which is not before the cut."""
    sums = view.history.sums(counter)
    tokens_after = sums[view.end] - sums[index] + _added(view, index, view.end)
    for at, message in view.replaced.items():
        if at >= index:
            size = count_message(counter, content_of(message), message.tool_calls, message.role)
            tokens_after += size - (sums[at + 1] - sums[at])
    return view.tokens - view.repair_tokens - tokens_after


def _added(view: View, start: int, end: int) -> int:
    """Tokens that the body adds to these messages."""
    return sum(tokens for index, tokens in view.added.items() if start <= index < end)


def _count_equal(before: Sequence[object], now: Sequence[object]) -> int:
    """How many leading elements are equal."""
    for index, (previous, current) in enumerate(zip(before, now, strict=False)):
        if previous != current:
            return index
    return min(len(before), len(now))


def _cost(now: Prefix, tokens: int) -> float | None:
    write, read = now.model.write_price(now.lifetime), now.model.cached_input_price
    if write is None or read is None:
        return None
    return round(tokens * (write - read) / 1_000_000, 6)
