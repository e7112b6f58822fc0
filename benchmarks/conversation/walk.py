"""Quality: chats walked message by message. Before each step of the assistant the request is checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from benchmarks.conversation import validity
from benchmarks.conversation.facts import OpenAIMessage, facts_of, tokens_of
from benchmarks.conversation.prompt_cache import PromptCache, cost
from benchmarks.conversation.subject import Subject

FAR = 20
"""Messages since an identifier was last mentioned, above which it counts as far."""


class Quality(msgspec.Struct):
    """The sums of walks. Validity is counted over all requests; hits, cost and recall over those whose
    whole history no longer fits the budget: before that there is nothing to choose.
    """

    requests: int = 0
    full: int = 0  # requests whose history no longer fits
    broken: int = 0
    wrong_start: int = 0
    over_budget: int = 0
    lost: int = 0  # the newest message is not sent
    no_system: int = 0  # the system prompt is not sent
    failed: int = 0
    failure: str = ""  # the first one
    sent_tokens: int = 0
    read_tokens: int = 0
    paid: float = 0.0  # plain tokens
    needed: int = 0  # identifiers of next steps that were seen before
    kept: int = 0  # those of them that are still sent
    far_needed: int = 0  # those of them that were last mentioned more than FAR messages ago
    far_kept: int = 0

    @property
    def hit(self) -> float:
        """The share of the sent tokens that are read from the cache."""
        return self.read_tokens / self.sent_tokens if self.sent_tokens else 0.0

    @property
    def cost(self) -> float:
        """What is paid for a sent token, relative to one without a cache."""
        return self.paid / self.sent_tokens if self.sent_tokens else 0.0

    @property
    def recall(self) -> float:
        """The share of the identifiers of next steps that were seen before and are still sent."""
        return self.kept / self.needed if self.needed else 1.0

    @property
    def far(self) -> float:
        """The same of those that were last mentioned more than FAR messages ago."""
        return self.far_kept / self.far_needed if self.far_needed else 1.0


def walk(
    subject: Subject, trace: Sequence[OpenAIMessage], budget: int, *, into: Quality | None = None
) -> Quality:
    """Adds the messages of the trace one by one; `budget` in tokens, for everything that is sent.

    The sums are added to those of `into`, if given.
    """
    quality, cache = into or Quality(), PromptCache()
    mentions: dict[str, int] = {}  # the number of the last message that has an identifier
    total = 0
    for number, message in enumerate(trace):
        facts = facts_of(message)
        if message["role"] == "assistant":
            sent = _request(subject, quality)
            full, needed = total > budget, facts.identifiers & mentions.keys()
            far = frozenset(name for name in needed if number - mentions[name] > FAR)
            quality.full += full
            quality.needed += len(needed) if full else 0  # of a refused request nothing is kept
            quality.far_needed += len(far) if full else 0
            if sent is not None:
                _check(quality, sent, trace[number - 1], budget)
                quality.no_system += trace[0]["role"] == "system" and validity.lacks_system(sent, trace[0])
                present = _measure(quality, cache, sent, full=full)
                quality.kept += len(needed & present)
                quality.far_kept += len(far & present)
        subject.add(subject.prepare(message))
        mentions.update(dict.fromkeys(facts.identifiers, number))
        total += facts.tokens
    return quality


def _request(subject: Subject, quality: Quality) -> Sequence[OpenAIMessage] | None:
    quality.requests += 1
    try:
        return subject.sent(subject.build())
    except Exception as error:  # noqa: BLE001 - whatever a library raises is its result
        quality.failed += 1
        quality.failure = quality.failure or f"{type(error).__name__}: {error}"[:300]
        return None


def _check(quality: Quality, sent: Sequence[OpenAIMessage], newest: Mapping[str, Any], budget: int) -> None:
    quality.broken += validity.has_broken_pair(sent)
    quality.wrong_start += validity.has_wrong_start(sent)
    quality.over_budget += tokens_of(sent) > budget
    quality.lost += not validity.has_newest(sent, newest)


def _measure(
    quality: Quality, cache: PromptCache, sent: Sequence[OpenAIMessage], *, full: bool
) -> frozenset[str]:
    """Adds what is paid for a request that is full; returns its identifiers."""
    facts = [facts_of(message) for message in sent]
    system = next((n for n, message in enumerate(sent) if message["role"] != "system"), len(sent))
    blocks = [block for each in facts for block in each.blocks]
    tokens, read = cache.send(blocks, sum(len(each.blocks) for each in facts[:system]))
    if not full:
        return frozenset()
    quality.sent_tokens += tokens
    quality.read_tokens += read
    quality.paid += cost(tokens, read)
    return frozenset[str]().union(*(each.identifiers for each in facts))
