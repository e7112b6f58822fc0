"""Who is measured: the protocol that an adapter fulfils, and the table of all subjects."""

import importlib
from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from benchmarks.conversation.facts import OpenAIMessage

Home = Literal["nexus", "peers"]


class Subject(Protocol):
    """One conversation in the hands of one library.

    Only `add`, `count`, `build` and `encode` are timed: each subject is given messages in its own form, and
    answers in it.
    """

    def prepare(self, message: OpenAIMessage) -> Any:
        """A message in the subject's own form."""

    def add(self, prepared: Any) -> None:
        """Appends a message to the history."""

    def build(self) -> Any:
        """What the next request holds, in the subject's own form."""

    def sent(self, built: Any) -> Sequence[OpenAIMessage]:
        """What was built, in OpenAI's form."""

    def encode(self) -> bytes | None:
        """The history as JSON, in whatever form the subject gives it; None if it has none."""


@runtime_checkable
class Counting(Subject, Protocol):
    """A subject that keeps exact counts of its own."""

    def count(self) -> int:
        """Exact tokens of the history as it is now."""


class Entry(msgspec.Struct, frozen=True):
    """One row of the tables: a class of an adapter and its arguments. `home`: whose virtualenv it runs in."""

    name: str
    home: Home
    adapter: str  # module:class
    options: dict[str, Any] = {}
    walked: bool = True  # whether quality is measured
    timed: bool = False  # whether speed is measured

    def make(self, budget: int, **more: Any) -> Any:
        """The subject, with an empty conversation and `budget` tokens for a request."""
        module, _, name = self.adapter.partition(":")
        adapter = getattr(importlib.import_module(f"benchmarks.conversation.adapters.{module}"), name)
        return adapter(budget, **self.options, **more)


NEXUS = "nexus"
PEERS = (
    Entry("langchain-core (recommended)", "peers", "langchain:Recommended", timed=True),
    Entry(
        "langchain-core (recommended, counting anew)",
        "peers",
        "langchain:Forgetful",
        walked=False,
        timed=True,
    ),
    Entry("langchain-core (recommended, approximate)", "peers", "langchain:Approximate", timed=True),
    Entry("langchain-core (default)", "peers", "langchain:Default"),
    Entry("haystack-ai (to 0.6)", "peers", "haystack_ai:Compacting", {"at": 1.0, "to": 0.6}, timed=True),
    Entry("haystack-ai (default, 0.7 to 0.4)", "peers", "haystack_ai:Compacting", {"at": 0.7, "to": 0.4}),
    Entry("pydantic-ai-harness (to 0.6)", "peers", "pydantic_harness:SlidingWindow", {"to": 0.6}, timed=True),
    Entry("openai-agents (limit)", "peers", "openai_sessions:Limited", timed=True),
    Entry("everything, uncut", "nexus", "plain:Everything"),
)

ENTRIES = {entry.name: entry for entry in (Entry(NEXUS, "nexus", "nexus:Nexus", timed=True), *PEERS)}

PER_TURN = "nexus, once a turn"
IN_TURNS = "nexus_turns:"
"""The adapters that take the facts of a turn as values; the others store them in the user's message."""

WITH_FACTS = {
    entry.name: entry
    for entry in (
        Entry(NEXUS, "nexus", f"{IN_TURNS}EveryStep"),
        Entry(PER_TURN, "nexus", f"{IN_TURNS}EveryTurn"),
        *(
            ENTRIES[name]
            for name in (
                "langchain-core (recommended)",
                "haystack-ai (to 0.6)",
                "pydantic-ai-harness (to 0.6)",
                "everything, uncut",
            )
        ),
    )
}
"""Who is walked with facts in every turn."""

COMPACTORS = "compactors:"
"""The adapters that are functions from a history to a compacted one; others are given a budget."""

SURVIVORS = {
    entry.name: entry
    for entry in (
        Entry(NEXUS, "nexus", f"{COMPACTORS}compact_with_nexus"),
        Entry("last N, in as many tokens", "nexus", f"{COMPACTORS}keep_last"),
        *(
            ENTRIES[name]
            for name in (
                "langchain-core (recommended)",
                "haystack-ai (to 0.6)",
                "pydantic-ai-harness (to 0.6)",
            )
        ),
    )
}
"""Who is compacted."""
