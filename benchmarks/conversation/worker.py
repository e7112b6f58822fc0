"""One subject in a process of its own: `… benchmarks.conversation.worker SUBJECT QUESTION …` prints JSON.

    walk CHATS BUDGET…  quality on the first chats that are there, with each budget (tokens)
    anthropic, openai CHATS BUDGET…   the same with facts in every turn, through a strict provider
    survive WINDOW…    what survives compactions of the made coding sessions
    step SIZE N S      add + build at SIZE messages, N steps or S seconds
    add, encode N      add + count; encoding, N rounds

Peers run in a virtualenv that knows nothing of this project but its tokenizer.
"""

import sys
import warnings
from collections.abc import Iterator
from itertools import islice

import msgspec
from benchmarks.conversation import speed, traces
from benchmarks.conversation.fact_quality import MODELS, TurnSubject, Vendor, WalkedWithFacts
from benchmarks.conversation.facts import OpenAIMessage
from benchmarks.conversation.subject import ENTRIES, IN_TURNS, SURVIVORS, WITH_FACTS, Counting, Entry
from benchmarks.conversation.survival import survivals
from benchmarks.conversation.walk import Quality, walk

STEP_BUDGET = 16_000  # tokens


class Walked(msgspec.Struct, frozen=True):
    """The quality of one walk."""

    trace: str
    messages: int
    budget: int
    quality: Quality


def available() -> dict[str, list[OpenAIMessage]]:
    """The traces that are there."""
    made = {"synthetic": traces.synthetic()}
    return {"tau-bench": traces.tau(), **made} if traces.tau_file().is_file() else made


def walked(entry: Entry, budget: int) -> Iterator[Walked]:
    """The walks of every trace, with one budget; the sessions of coding are walked one after the other."""
    chats = {name: [trace] for name, trace in available().items()}
    sessions = traces.coding()
    for name, group in (
        chats
        | {"coding": sessions, "coding, observations": list(map(traces.observed, sessions))}
        | {"coding, long turns": traces.coding_loops()}
    ).items():
        quality = Quality()
        for trace in group:
            walk(entry.make(budget), trace, budget, into=quality)
        yield Walked(name, sum(map(len, group)), budget, quality)


def with_facts(entry: Entry, vendor: Vendor, chats: int, *budgets: int) -> list[WalkedWithFacts]:
    """The walks with facts of every trace: those that are there, and one of long tool turns."""
    from benchmarks.conversation.fact_walk import walk_with_facts  # with the provider of the tests

    return [
        WalkedWithFacts(
            vendor, name, budget, walk_with_facts(turn_subject(entry, budget, vendor), trace, budget, vendor)
        )
        for name, trace in islice((available() | {"long tool turns": traces.long_turns()}).items(), chats)
        for budget in budgets
    ]


def turn_subject(entry: Entry, budget: int, vendor: Vendor) -> TurnSubject:
    """The subject, with the facts of its turns as values or in the messages that it stores."""
    from benchmarks.conversation.fact_walk import Stored

    if entry.adapter.startswith(IN_TURNS):
        subject: TurnSubject = entry.make(budget, vendor=vendor)
        return subject
    return Stored(entry.make(budget), vendor)


def answer(name: str, question: str, arguments: list[int]) -> object:
    """The result of one measure; ValueError for a question that is none."""
    if question == "survive":
        return survivals(SURVIVORS[name], arguments)
    vendor = next((vendor for vendor in MODELS if vendor == question), None)
    if vendor is not None:
        return with_facts(WITH_FACTS[name], vendor, *arguments)
    entry = ENTRIES[name]
    if question == "walk":
        chats, *budgets = arguments
        return [walk for budget in budgets for walk in islice(walked(entry, budget), chats)]
    if question == "step":
        return [speed.step(entry.make(STEP_BUDGET), *arguments)]
    subject = entry.make(speed.UNBOUNDED)
    if question == "encode":
        return speed.encode(subject, *arguments)
    if question == "add" and isinstance(subject, Counting):
        return speed.add(subject)
    raise ValueError(f"{name} has no answer to {question}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the libraries' own, on their own future
    print(msgspec.json.encode(answer(sys.argv[1], sys.argv[2], [*map(int, sys.argv[3:])])).decode())
