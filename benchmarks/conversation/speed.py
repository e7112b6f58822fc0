"""Speed: adding a message with its count, adding one and building the request, encoding a payload.

Garbage collection is off while the clock runs. Messages are prepared in the subject's own form beforehand,
and the vocabulary is loaded; no text occurs twice, so nobody can look a count up.
"""

import gc
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, pairwise

import msgspec
from benchmarks.conversation import traces
from benchmarks.conversation.fact_quality import TurnSubject
from benchmarks.conversation.facts import OpenAIMessage, facts_of, text_of
from benchmarks.conversation.subject import Counting, Subject
from benchmarks.conversation.turn_facts import facts_of_turn

from nexus_context.tokens import TiktokenCounter

LEAST_STEPS = 3
ADDED = 4_000  # messages
ENCODED = 500  # messages
UNBOUNDED = 10**9  # tokens: everything is sent


class Times(msgspec.Struct, frozen=True):
    """Many values of one kind, in microseconds."""

    n: int
    p50: float
    p95: float
    mean: float
    worst: float

    @classmethod
    def of(cls, nanoseconds: list[int]) -> "Times":
        """Their statistics; p95 is the nearest rank."""
        values = sorted(each / 1e3 for each in nanoseconds)
        p95 = values[-(-len(values) * 95 // 100) - 1]
        return cls(len(values), statistics.median(values), p95, statistics.fmean(values), values[-1])


class Stepping(msgspec.Struct, frozen=True):
    """Add + build at one length of history. `cold` is the first build, in microseconds."""

    messages: int
    cold: float
    steps: Times


class Adding(msgspec.Struct, frozen=True):
    """Add + exact count, beside the bare tokenizer on the same texts."""

    tokens: float  # of a message, on average
    added: Times
    floor: Times


class Encoding(msgspec.Struct, frozen=True):
    """A payload of ENCODED messages after one more was added, beside `json.dumps` of OpenAI's form."""

    encoded: Times
    stdlib: Times


def step(subject: Subject, size: int, *, steps: int, seconds: float) -> Stepping:
    """Fills a history of `size` messages, then times add + build before each step of the assistant.

    Ends after `steps` of them, or once `seconds` are over, but not before LEAST_STEPS.
    """
    wanted = size + 1 + steps * 2 + 4
    messages = [(each["role"], subject.prepare(each)) for each in traces.even(wanted)]
    for _, prepared in messages[:size]:
        subject.add(prepared)
    times: list[int] = []
    with quiet():
        started = time.perf_counter_ns()
        subject.build()
        cold = time.perf_counter_ns() - started
        until = time.monotonic() + seconds
        for role, prepared in messages[size:]:
            if role == "assistant":  # no request follows it: added, and counted, by the way
                subject.add(prepared)
                if isinstance(subject, Counting):
                    subject.count()
                continue
            started = time.perf_counter_ns()
            subject.add(prepared)
            subject.build()
            times.append(time.perf_counter_ns() - started)
            if len(times) >= steps or (len(times) >= LEAST_STEPS and time.monotonic() > until):
                break
    return Stepping(size, cold / 1e3, Times.of(times))


def turn(subject: TurnSubject, size: int, *, steps: int, seconds: float) -> Stepping:
    """Fills a history of `size` messages, then times turns with facts: append, build, append an answer.

    Ends as `step` does.
    """
    messages = list(traces.even(size + 1 + 4 * steps))
    subject.load(messages[:size])
    said = [each for each in messages[size:] if not _is_of_tool(each)]
    turns = [pair for pair in pairwise(said) if pair[0]["role"] == "user"]
    times: list[int] = []
    with quiet():
        until = time.monotonic() + seconds
        for number, (message, answer) in enumerate(turns):
            taken = subject.begin(message, facts_of_turn(number))
            _, built = subject.build()
            times.append(taken + built + subject.answer(answer, ()))
            if len(times) > LEAST_STEPS and time.monotonic() > until:
                break
    return Stepping(size, times[0] / 1e3, Times.of(times[1:]))


def _is_of_tool(message: OpenAIMessage) -> bool:
    return message["role"] == "tool" or bool(message.get("tool_calls"))


def add(subject: Counting) -> Adding:
    """Times add + count of each message of a new history, and the tokenizer alone on what it says."""
    counter = TiktokenCounter("cl100k_base")
    messages = list(traces.even(ADDED + 1))
    prepared = [subject.prepare(each) for each in messages]
    texts = [text_of(each) or each["tool_calls"][0]["function"]["arguments"] for each in messages]
    tokens = [facts_of(each).tokens for each in messages[1:]]
    added: list[int] = []
    floor: list[int] = []
    subject.add(prepared[0])
    subject.count()
    with quiet():
        for each, text in islice(zip(prepared, texts, strict=True), 1, None):
            started = time.perf_counter_ns()
            subject.add(each)
            subject.count()
            between = time.perf_counter_ns()
            counter.count(text)
            floor.append(time.perf_counter_ns() - between)
            added.append(between - started)
    return Adding(statistics.fmean(tokens), Times.of(added), Times.of(floor))


def encode(subject: Subject, rounds: int) -> Encoding:
    """Times the encoding of a history that grew by one message since it was encoded last."""
    messages = list(traces.even(ENCODED + rounds))
    for each in messages[:ENCODED]:
        subject.add(subject.prepare(each))
    subject.encode()
    encoded: list[int] = []
    stdlib: list[int] = []
    with quiet():
        for end in range(ENCODED, ENCODED + rounds):
            subject.add(subject.prepare(messages[end]))
            started = time.perf_counter_ns()
            subject.encode()
            between = time.perf_counter_ns()
            json.dumps(messages[: end + 1]).encode()
            stdlib.append(time.perf_counter_ns() - between)
            encoded.append(between - started)
    return Encoding(Times.of(encoded), Times.of(stdlib))


@contextmanager
def timed(times: list[int]) -> Iterator[None]:
    """Adds the nanoseconds that its block takes."""
    started = time.perf_counter_ns()
    yield
    times.append(time.perf_counter_ns() - started)


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection within."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
