"""A chat walked with facts in every turn, through a provider that is as strict as the documentation.

1. Each user turn carries its facts (`turn_facts`). A library without a place for them stores them in the
   user's message.
2. Before each step of the assistant the request is built and sent (`tests/support/strict_provider`), for
   Anthropic with thinking, which the provider binds to what came before it.
3. A request that replays thinking behind a changed prefix is refused. It is counted and sent again so that
   the provider drops that thinking.
4. Cache and cost are those of all requests of an uncut chat, else of those whose history no longer fits.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from benchmarks.conversation.anthropic_form import anthropic_body
from benchmarks.conversation.fact_quality import (
    MINIMUM,
    MODELS,
    UNCUT,
    Body,
    FactQuality,
    TurnSubject,
    Vendor,
)
from benchmarks.conversation.facts import OpenAIMessage, calls_of, count, facts_of, text_of
from benchmarks.conversation.identifiers import identifiers, values
from benchmarks.conversation.subject import Subject
from benchmarks.conversation.turn_facts import TurnFacts, facts_of_turn

from support.strict_provider import Answer, Pricing, Refused, Reply, StrictProvider

PRICING = Pricing(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25, cache_write_1h=2.0)
"""Relative to the price of input, so that costs compare with those of the other walks."""
STEP_S = 20.0  # between two requests of a turn
THINKING = "The user needs the newest reservation, so I look it up and compare what it says with the invoice."
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
BOUND = "bound to a different conversation"


class Stored:
    """A library that knows messages only: its users write the facts into the user's message."""

    def __init__(self, subject: Subject, vendor: Vendor) -> None:
        self._subject = subject
        self._vendor = vendor
        self._thinking: dict[
            str, list[Sequence[Body]]
        ] = {}  # of answers that say the same, one after another

    def load(self, messages: Sequence[OpenAIMessage]) -> None:
        for message in messages:
            self._add(message)

    def begin(self, message: OpenAIMessage, facts: TurnFacts) -> int:
        if message["role"] == "system":
            return self._add(message)
        return self._add(message | {"content": f"{facts.front}\n\n{text_of(message)}"})

    def build(self) -> tuple[Body, int]:
        start = time.perf_counter_ns()
        built = self._subject.build()
        taken = time.perf_counter_ns() - start
        messages = self._subject.sent(built)
        model = MODELS[self._vendor]
        if self._vendor == "openai":
            return {"model": model, "messages": list(map(_with_content, messages))}, taken
        return anthropic_body(model, messages, self._thinking_of(messages)), taken

    def answer(self, message: OpenAIMessage, thinking: Sequence[Body]) -> int:
        self._thinking.setdefault(_key(message), []).append(thinking)
        return self._add(message)

    def result(self, message: OpenAIMessage) -> int:
        return self._add(message)

    def _thinking_of(self, messages: Sequence[OpenAIMessage]) -> list[Sequence[Body]]:
        """The thinking of each message. Of answers that say the same, the newest were kept."""
        kept: dict[str, list[Sequence[Body]]] = {}
        thinking: list[Sequence[Body]] = []
        for message in reversed(messages):
            key = _key(message) if message["role"] == "assistant" else ""
            left = kept.setdefault(key, list(self._thinking.get(key, ())))
            thinking.append(left.pop() if left else ())
        return thinking[::-1]

    def _add(self, message: OpenAIMessage) -> int:
        prepared = self._subject.prepare(message)
        start = time.perf_counter_ns()
        self._subject.add(prepared)
        return time.perf_counter_ns() - start


def walk_with_facts(
    subject: TurnSubject, trace: Sequence[OpenAIMessage], budget: int, vendor: Vendor
) -> FactQuality:
    """Walks the trace; `budget` in tokens, for everything that is sent."""
    return _Walk(subject, budget, vendor).run(with_unique_calls(trace))


def with_unique_calls(trace: Sequence[OpenAIMessage]) -> list[OpenAIMessage]:
    """The trace with an id of its own for each call: recorded ones repeat some, which Anthropic refuses."""
    ids: dict[str, str] = {}
    changed = []
    for number, message in enumerate(trace):
        if message.get("tool_calls"):
            ids = {call["id"]: f"call_{number}_{at}" for at, call in enumerate(message["tool_calls"])}
            calls = [call | {"id": ids[call["id"]]} for call in message["tool_calls"]]
            message = message | {"tool_calls": calls}
        elif message["role"] == "tool":
            message = message | {"tool_call_id": ids[message["tool_call_id"]]}
        changed.append(message)
    return changed


class _Walk:
    def __init__(self, subject: TurnSubject, budget: int, vendor: Vendor) -> None:
        self._subject = subject
        self._budget = budget
        self._quality = FactQuality()
        self._now = 0.0
        self._provider = StrictProvider(
            vendor, clock=lambda: self._now, count=count, pricing=PRICING, minimum=MINIMUM[vendor]
        )
        self._seen: set[str] = set()
        self._total = 0
        self._steps: list[int] = []

    def run(self, trace: Sequence[OpenAIMessage]) -> FactQuality:
        turn, taken = 0, 0
        for message in trace:
            facts = facts_of(message)
            self._total += facts.tokens
            if message["role"] in ("system", "user"):
                turn_facts = facts_of_turn(turn)
                taken += self._subject.begin(message, turn_facts)
                turn += message["role"] == "user"
                self._total += count(turn_facts.front) if message["role"] == "user" else 0
            elif message["role"] == "tool":
                taken += self._subject.result(message)
            else:
                needed = facts.identifiers & self._seen
                reply, built = self._step(needed, full=self._total - facts.tokens > self._budget)
                if built:  # nothing is built in the middle of a turn that is assembled once
                    self._steps.append(taken + built)
                blocks = _thinking_of(reply)
                taken = self._subject.answer(message, blocks)
            self._seen |= facts.identifiers
        self._quality.step_us = statistics.median(self._steps or [0]) / 1e3
        return self._quality

    def _step(self, needed: frozenset[str], *, full: bool) -> tuple[Reply | None, int]:
        quality = self._quality
        quality.requests += 1
        quality.full += full
        measured = full or self._budget >= UNCUT
        quality.needed += len(needed) if measured else 0
        self._now += STEP_S
        try:
            body, taken = self._subject.build()
            reply = self._send(body)
        except Exception as error:  # noqa: BLE001 - whatever a library raises is its result
            quality.invalid += 1
            quality.failure = quality.failure or f"{type(error).__name__}: {error}"[:300]
            return None, 0
        quality.over_budget += reply.usage.sent > self._budget
        if measured:
            quality.dropped += len(reply.dropped)
            quality.sent_tokens += reply.usage.sent
            quality.read_tokens += reply.usage.cache_read
            quality.paid += reply.usage.cost_of_input(PRICING) * 1e6
            quality.kept += len(needed & _identifiers(body))
        return reply, taken

    def _send(self, body: Body) -> Reply:
        answer = Answer("", thinking=(THINKING,))
        try:
            return self._provider.send(body, answer)
        except Refused as refused:
            if BOUND not in refused.message:
                raise
            self._quality.refused += 1
            return self._provider.send(body | {"thinking": DROP}, answer)


def _thinking_of(reply: Reply | None) -> list[Body]:
    content = [] if reply is None else reply.message["content"] or []
    return [block for block in content if block["type"] == "thinking"]


def _with_content(message: OpenAIMessage) -> OpenAIMessage:
    """A recorded answer may say nothing: OpenAI takes an empty text, not none."""
    silent = message.get("content") is None and not message.get("tool_calls")
    return message | {"content": ""} if silent else message


def _key(message: OpenAIMessage) -> str:
    """What an answer says, however a library writes it."""
    calls = [(call.id, call.name) for call in calls_of(message)]
    return repr((text_of(message).strip(), calls))


# ---------------------------------------------------------------- identifiers of a body


def _identifiers(body: Body) -> frozenset[str]:
    """The identifiers in a body of either vendor."""
    found: set[str] = set()
    for message in body["messages"]:
        content = message.get("content")
        parts = [content] if isinstance(content, str) else list(content or ())
        for part in [*parts, *(message.get("tool_calls") or ())]:
            found |= _of_part(part)
    return frozenset(found)


_REMEMBERED: dict[str, frozenset[str]] = {}


def _of_part(part: Any) -> frozenset[str]:
    if isinstance(part, str):
        return _of_text(part)
    kind = part.get("type")
    if kind == "tool_use":
        return frozenset[str]().union(*map(_of_text, values(msgspec.json.encode(part["input"]).decode())))
    if kind == "function":
        return frozenset[str]().union(*map(_of_text, values(part["function"]["arguments"])))
    if kind == "tool_result":
        inner = part.get("content", "")
        parts = [inner] if isinstance(inner, str) else inner
        return frozenset[str]().union(*map(_of_part, parts))
    return _of_text(part.get("text", ""))


def _of_text(text: str) -> frozenset[str]:
    if text not in _REMEMBERED:
        _REMEMBERED[text] = frozenset(identifiers(text))
    return _REMEMBERED[text]
