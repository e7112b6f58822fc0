"""What survives a compaction: a session is replayed, and compacted whenever it fills 80 % of a window.

1. A compaction is due before the assistant's step at which the history has THRESHOLD of the window.
2. Names: the identifiers in the calls of the next STEPS steps of the assistant that had been said before;
   the share of them that the compacted history holds, summed over the first ROUNDS compactions.
3. Marks (`coding_sessions.Mark`): the share of the orders, errors, edited files, facts, … said so far that
   the compacted history holds word for word, over the same compactions. Of tasks, those open at that time.
4. After five: what the fifth compaction in a row still holds of all orders, and of the six plain facts,
   preferences and findings that the first turns said.
5. Libraries without summaries keep KEPT of the window, at least what Nexus keeps. "last N" keeps the newest
   messages that fit in exactly the tokens that Nexus would keep there.
"""

import importlib
import time
from collections.abc import Callable, Sequence

import msgspec
from benchmarks.conversation.coding_sessions import (
    HELD_OUT_SEEDS,
    CodingSession,
    Mark,
    coding_session,
)
from benchmarks.conversation.facts import OpenAIMessage, call_identifiers, calls_of, facts_of, text_of
from benchmarks.conversation.identifiers import values
from benchmarks.conversation.subject import COMPACTORS, Entry

from nexus_context.tokens.vocabulary import load_encoding

THRESHOLD = 0.8
STEPS = 30
ROUNDS = 5
KEPT = 0.4
WINDOWS = (40_000, 100_000, 200_000)
LENGTH = 230_000
"""Tokens of a made session."""
KINDS = ("order", "error", "edited", "command", "finding", "fact", "preference", "task")


class Compacted(msgspec.Struct):
    """A history after a compaction; `summary` and `limit` in tokens, if there is a summary."""

    messages: list[OpenAIMessage]
    milliseconds: float = 0.0
    summary: int = 0
    limit: int = 0


Compactor = Callable[[list[OpenAIMessage], int], Compacted]
"""From the history and the tokens of the window."""


class Share(msgspec.Struct):
    """How much of something is still there."""

    kept: int = 0
    total: int = 0

    def add(self, kept: int, total: int) -> None:
        self.kept += kept
        self.total += total

    @property
    def value(self) -> float | None:
        return self.kept / self.total if self.total else None


class Survival(msgspec.Struct):
    """The sums over the compactions of sessions; `five` are those after the fifth in a row."""

    compactions: int = 0
    names: Share = msgspec.field(default_factory=Share)
    marks: dict[str, Share] = msgspec.field(default_factory=lambda: {kind: Share() for kind in KINDS})
    five: dict[str, Share] = msgspec.field(default_factory=lambda: {"orders": Share(), "plain": Share()})
    least_plain: int | None = None  # of six, in the worst session
    tokens: list[int] = []  # after each compaction
    used: list[float] = []  # share of the limit that each summary takes
    milliseconds: list[float] = []  # of the processor, for each compaction
    count_ms: list[float] = []  # the same to count the tokens of the whole history


class Survived(msgspec.Struct, frozen=True):
    """What survived at one window."""

    window: int
    survival: Survival


def compactor_of(entry: Entry) -> Compactor:
    """The compaction of a subject; one that only trims is given KEPT of the window as its budget."""
    if entry.adapter.startswith(COMPACTORS):
        module = importlib.import_module("benchmarks.conversation.adapters.compactors")
        function: Compactor = getattr(module, entry.adapter.removeprefix(COMPACTORS))
        return function

    def trim(messages: list[OpenAIMessage], window: int) -> Compacted:
        subject = entry.make(int(KEPT * window / entry.options.get("to", 1.0)))
        names = {call.id: call.name for message in messages for call in calls_of(message)}
        for message in messages:
            plain = {key: value for key, value in message.items() if key != "meta"}
            if message["role"] == "tool":
                plain |= {"name": names.get(message["tool_call_id"], "tool")}  # some leave it out
            subject.add(subject.prepare(plain))
        return Compacted(list(subject.sent(subject.build())))

    return trim


def survivals(entry: Entry, windows: Sequence[int]) -> list[Survived]:
    """What survives in the held-out sessions: their phrases, errors and findings are not the tuned ones."""
    sessions = [coding_session(seed, LENGTH) for seed in HELD_OUT_SEEDS]
    survived = []
    for window in windows:
        survival = Survival()
        for session in sessions:
            survive(compactor_of(entry), session, window, survival)
        if survival.compactions:
            survived.append(Survived(window, survival))
    return survived


def survive(compact: Compactor, session: CodingSession, window: int, into: Survival) -> None:
    """Replay a session and add what survived."""
    history: list[OpenAIMessage] = []
    size, rounds, said = 0, 0, set[str]()
    for at, message in enumerate(session.messages):
        if message["role"] == "assistant" and size >= THRESHOLD * window:
            compacted = compact(history, window)
            if compacted.limit:
                into.count_ms.append(_count_ms(history))
                into.milliseconds.append(compacted.milliseconds)
            history = compacted.messages
            size = sum(facts_of(each).tokens for each in history)
            rounds += 1
            _add(into, compacted, size)
            _judge(into, session, history, at, said, last=rounds == ROUNDS)
            if rounds == ROUNDS:
                return
        history.append(message)
        size += facts_of(message).tokens
        said |= facts_of(message).identifiers


def _count_ms(history: Sequence[OpenAIMessage]) -> float:
    encoding = load_encoding("cl100k_base")
    texts = [text for message in history for text in _texts(message)]
    began = time.process_time()
    encoding.encode_batch(texts, num_threads=1, disallowed_special=())
    return 1e3 * (time.process_time() - began)


def _add(into: Survival, compacted: Compacted, size: int) -> None:
    into.compactions += 1
    into.tokens.append(size)
    if compacted.limit:
        into.used.append(compacted.summary / compacted.limit)


def _judge(
    into: Survival,
    session: CodingSession,
    history: Sequence[OpenAIMessage],
    at: int,
    said: set[str],
    *,
    last: bool,
) -> None:
    present = frozenset[str]().union(*(facts_of(each).identifiers for each in history))
    needed = _needed(session.messages[at:]) & said
    into.names.add(len(needed & present), len(needed))
    text = "\n".join(part for each in history for part in _texts(each))
    before = [mark for mark in session.marks if mark.at < at]
    for kind in KINDS[:-1]:
        marks = [mark for mark in before if mark.kind == kind]
        into.marks[kind].add(_held(marks, text), len(marks))
    tasks = next((each for since, each in reversed(session.tasks) if since <= at), ())
    into.marks["task"].add(sum(task in text for task in tasks), len(tasks))
    if last:
        orders = [mark for mark in before if mark.kind == "order"]
        plain = [mark for mark in before if mark.early]
        into.five["orders"].add(_held(orders, text), len(orders))
        into.five["plain"].add(_held(plain, text), len(plain))
        into.least_plain = min(_held(plain, text), 6 if into.least_plain is None else into.least_plain)


def _held(marks: Sequence[Mark], text: str) -> int:
    return sum(mark.text in text for mark in marks)


def _needed(messages: Sequence[OpenAIMessage]) -> frozenset[str]:
    """The identifiers in the calls of the next steps."""
    steps = [each for each in messages if each["role"] == "assistant"][:STEPS]
    return frozenset[str]().union(*(call_identifiers(calls_of(each)) for each in steps))


def _texts(message: OpenAIMessage) -> list[str]:
    calls = calls_of(message)
    return [text_of(message), *(value for call in calls for value in values(call.arguments))]
