"""Finds what a compaction by another program dropped: the messages before it compared with those after it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nexus_context.assistants.sessions.report import DroppedItems
from nexus_context.conversation.message import Message
from nexus_context.text.redact import redact_message

if TYPE_CHECKING:
    from nexus_context.conversation.compaction.extract_facts import Facts
    from nexus_context.conversation.identifiers import IdentifierIndex

MOST_ITEMS = 50
"""Items of each kind that are listed."""


class CompactionReceipt:
    """Compares the messages that a compaction replaced with the messages after it. The former are analysed
    once.
    """

    def __init__(self, replaced: Sequence[Message]) -> None:
        self._replaced = replaced
        self._facts: Facts | None = None
        self._index: IdentifierIndex | None = None

    def compare(self, history: Sequence[Message], folder: str | None = None) -> DroppedItems:
        """List what `history` no longer has of the user's instructions, open tasks, paths and names.

        What counts as one is as in our own compactions (`conversation.compaction`). Secrets are left out.
        Paths in the folder are relative to it.
        """
        # 20 ms to import, for sessions with a compaction only
        from nexus_context.conversation.compaction.extract_facts import extract_facts
        from nexus_context.conversation.compaction.names_note import Words, names_in, texts_of
        from nexus_context.conversation.compaction.run import find_lost

        if self._facts is None or self._index is None:
            self._facts, self._index = extract_facts(self._replaced), names_in(self._replaced)
        lost = find_lost(self._replaced, history, self._facts, index=self._index)
        words = Words(map(redact_message, texts_of(history)))
        tasks = [task for fact in self._facts.of("tasks") if not words.has(task := _task(fact.text))]
        relative = dict.fromkeys(path.removeprefix(f"{folder}/") for path in lost.paths)
        paths = [path for path in relative if path in lost.paths or not words.has(path)]
        listed = {
            "instructions": list(lost.instructions),
            "tasks": tasks,
            "paths": paths,
            "identifiers": list(lost.identifiers),
        }
        counts = {kind: max(lost.counts.get(kind, 0), len(items)) for kind, items in listed.items()}
        counts["paths"] -= len(lost.paths) - len(paths)
        return DroppedItems(
            **{kind: tuple(items[:MOST_ITEMS]) for kind, items in listed.items()},
            counts={kind: count for kind, count in counts.items() if count},
        )


def _task(line: str) -> str:
    """The text of a task as the summary's line has it: `[ ] #3 Write tests`."""
    text = line.removeprefix("[ ] ")
    return text.partition(" ")[2] if text.startswith("#") else text
