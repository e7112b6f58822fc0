"""Speed, in µs of the processor: adding a message with its count, or with the next request; encoding.

Garbage collection is off while the clock runs. Messages are prepared in the subject's own form beforehand,
and the vocabulary is loaded; no text occurs twice, so nobody can look a count up.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from itertools import islice

import msgspec
from benchmarks.conversation import traces
from benchmarks.conversation.facts import OpenAIMessage, text_of
from benchmarks.conversation.subject import Counting, Subject
from benchmarks.promises import quiet

from nexus_context.tokens import TiktokenCounter

LEAST_STEPS = 3
ADDED = 4_000  # messages
ENCODED = 500  # messages
UNBOUNDED = 10**9  # tokens: everything is sent


class Stepping(msgspec.Struct):
    """Add + build at one length of history, beside the bare tokenizer on the same texts."""

    cold: float  # the first build
    steps: list[float] = []
    floor: list[float] = []


class Adding(msgspec.Struct):
    """Add + exact count, beside the bare tokenizer on the same texts."""

    added: list[float] = []
    floor: list[float] = []


class Encoding(msgspec.Struct):
    """A payload of ENCODED messages after one more was added, beside `json.dumps` of OpenAI's form."""

    encoded: list[float] = []
    floor: list[float] = []


def step(subject: Subject, size: int, steps: int, seconds: int) -> Stepping:
    """Fills a history of `size` messages, then times add + build before each step of the assistant.

    Ends after `steps` of them, or once `seconds` are over, but not before LEAST_STEPS.
    """
    count = _counter()
    messages = [(message, subject.prepare(message)) for message in traces.even(size + 5 + steps * 2)]
    for _, prepared in messages[:size]:
        subject.add(prepared)
    with quiet():
        result = Stepping(_microseconds(subject.build))
        until = time.monotonic() + seconds
        for message, prepared in messages[size:]:
            if message["role"] == "assistant":  # no request follows it: added, and counted, by the way
                subject.add(prepared)
                if isinstance(subject, Counting):
                    subject.count()
                continue
            result.floor.append(_microseconds(partial(count, _plain(message))))
            result.steps.append(_microseconds(partial(subject.add, prepared), subject.build))
            if len(result.steps) >= steps or (len(result.steps) >= LEAST_STEPS and time.monotonic() > until):
                break
    return result


def add(subject: Counting) -> Adding:
    """Times add + count of each message of a new history, and the tokenizer alone on what it says."""
    count = _counter()
    messages = list(traces.even(ADDED + 1))
    prepared = [subject.prepare(message) for message in messages]
    result = Adding()
    subject.add(prepared[0])
    subject.count()
    with quiet():
        for item, message in islice(zip(prepared, messages, strict=True), 1, None):
            result.added.append(_microseconds(partial(subject.add, item), subject.count))
            result.floor.append(_microseconds(partial(count, _plain(message))))
    return result


def encode(subject: Subject, rounds: int) -> Encoding:
    """Times the encoding of a history that grew by one message since it was encoded last."""
    messages = list(traces.even(ENCODED + rounds))
    for message in messages[:ENCODED]:
        subject.add(subject.prepare(message))
    subject.encode()
    result = Encoding()
    with quiet():
        for end in range(ENCODED, ENCODED + rounds):
            subject.add(subject.prepare(messages[end]))
            result.encoded.append(_microseconds(subject.encode))
            result.floor.append(_microseconds(partial(json.dumps, messages[: end + 1])))
    return result


def _counter() -> Callable[[str], int]:
    counter = TiktokenCounter("cl100k_base")
    counter.count("loads the vocabulary")
    return counter.count


def _plain(message: OpenAIMessage) -> str:
    return text_of(message) or str(message["tool_calls"][0]["function"]["arguments"])


def _microseconds(*functions: Callable[[], object]) -> float:
    started = time.process_time_ns()
    for function in functions:
        function()
    return (time.process_time_ns() - started) / 1e3
