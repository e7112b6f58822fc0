"""Finds what a summary of another assistant dropped of a session: the user's instructions, open tasks, names.

1. The facts are those of a compaction of our own (`extract_facts`, `names_in`), from the messages before it.
2. An instruction or a task counts as dropped if the summary has neither its text nor most of its words
   (COVERED). The names in an instruction that the summary has in other words are still looked for.
3. The text has at most `limit` tokens: first instructions, the most important ones first, then tasks, then
   names. Each section gets at most its SHARE if another one follows. Within a section, facts are in the order
   of time.
4. If nothing was dropped, nothing is given back. The same messages and summary give the same text.
"""

import re
from collections.abc import Iterable, Sequence

from nexus_context.conversation.compaction.extract_facts import Fact, extract_facts, headings
from nexus_context.conversation.compaction.names_note import missing_names, names_in
from nexus_context.conversation.identifiers import IdentifierIndex
from nexus_context.conversation.message import Message
from nexus_context.folder.prompt import texts
from nexus_context.text.redact import redact_message
from nexus_context.tokens import TokenCounter

COVERED = 0.8
"""Share of an instruction's words in the summary from which it counts as said there."""
SHARE = 0.5
MOST_FACTS = 400
MOST_NAMES = 5_000
LONGEST = 1_200  # characters of a fact
_WORD = re.compile(r"[^\W_]{3,}")
_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|\Z)", re.DOTALL)


class SessionFacts:
    """What can be given back of the messages before a compaction: instructions and tasks, the most important
    first, and names.
    """

    __slots__ = ("instructions", "names", "tasks")

    def __init__(self, messages: Sequence[Message]) -> None:
        facts = extract_facts(messages)
        self.instructions = _ranked(facts.of("instructions"))
        self.tasks = _ranked(facts.of("tasks"))
        self.names: IdentifierIndex = names_in(messages, most=MOST_NAMES)


def recall_dropped(facts: SessionFacts, present: Iterable[str], counter: TokenCounter, limit: int) -> str:
    """Write the text that gives back the facts which the texts in `present` lack. Empty if they lack nothing,
    or nothing fits into `limit` tokens.
    """
    texts_present = [redact_message(_ANALYSIS.sub("", text)) for text in present]
    summary = _Summary(texts_present)
    titles = headings()
    head = texts.text("recall_head").strip()
    remaining_tokens = limit - counter.count(head) - 1
    blocks: list[str] = []
    dropped = (("instructions", facts.instructions), ("tasks", facts.tasks))
    for section, ranked in dropped:
        missing_facts = [fact for fact in ranked if not summary.says(fact.text)]
        block = _section(titles[section], missing_facts, counter, int(remaining_tokens * SHARE))  # type: ignore[index]
        if block:
            blocks.append(block)
            remaining_tokens -= counter.count(block) + 2
    title = f"{titles['facts']}:"
    names = missing_names(
        facts.names, (*texts_present, *blocks), counter, remaining_tokens - counter.count(title) - 2
    )
    if names:
        blocks.append(f"{title}\n{names}")
    text = "\n\n".join((head, *blocks)) if blocks else ""
    return text if counter.count(text) <= limit else ""


class _Summary:
    """The texts that the model still has."""

    def __init__(self, present: Sequence[str]) -> None:
        self._text = " ".join(" ".join(present).split())
        self._words = _words_of(self._text)

    def says(self, fact: str) -> bool:
        """Whether the texts have a fact, or most of its words."""
        if " ".join(fact.split()) in self._text:
            return True
        words = _words_of(fact)
        return bool(words) and len(words & self._words) >= COVERED * len(words)


def _section(title: str, ranked: Sequence[Fact], counter: TokenCounter, remaining_tokens: int) -> str:
    """A section with the facts that fit into `remaining_tokens`, in the order of time; empty without any."""
    remaining_tokens -= counter.count(f"{title}:") + 1
    chosen_facts: list[Fact] = []
    for fact in ranked:
        cost = counter.count(_line(fact)) + 1
        if cost <= remaining_tokens:
            chosen_facts.append(fact)
            remaining_tokens -= cost
    if not chosen_facts:
        return ""
    return "\n".join((f"{title}:", *map(_line, sorted(chosen_facts, key=lambda fact: fact.at))))


def _line(fact: Fact) -> str:
    return f"- {' '.join(fact.text.split())}"


def _ranked(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    short = (fact for fact in facts if len(fact.text) <= LONGEST)
    return tuple(sorted(short, key=lambda fact: (-fact.weight, -fact.at))[:MOST_FACTS])


def _words_of(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
