"""What a compaction by another program dropped: the messages before it compared with those after it."""

from collections.abc import Sequence

from nexus_context.assistant_sessions.report import DroppedItems
from nexus_context.conversation.message import Message
from nexus_context.redact import redact_message

MOST_ITEMS = 50
"""Items of each kind that are listed."""


def dropped_items(
    replaced: Sequence[Message], history: Sequence[Message], folder: str | None = None
) -> DroppedItems:
    """The user's instructions, the open tasks, the paths and names of `replaced` that `history` lacks.

    What counts as one is as in our own compactions (`conversation.compaction`). Secrets are no items. Paths
    in the folder are relative to it.
    """
    # 20 ms to import, for sessions with a compaction only
    from nexus_context.conversation.compaction.extract_facts import extract_facts
    from nexus_context.conversation.compaction.names_note import Words, texts_of
    from nexus_context.conversation.compaction.run import find_lost

    facts = extract_facts(replaced)
    lost = find_lost(replaced, history, facts)
    words = Words(map(redact_message, texts_of(history)))
    tasks = [task for fact in facts.of("tasks") if not words.has(task := _task(fact.text))]
    within = f"{folder}/"
    relative = dict.fromkeys(path.removeprefix(within) for path in lost.paths)
    paths = [path for path in relative if path in lost.paths or not words.has(path)]
    doubled = len(lost.paths) - len(paths)
    listed = {
        "instructions": list(lost.instructions),
        "tasks": tasks,
        "paths": paths,
        "identifiers": list(lost.identifiers),
    }
    counts = {kind: max(lost.counts.get(kind, 0), len(items)) for kind, items in listed.items()}
    counts["paths"] -= doubled
    return DroppedItems(
        **{kind: tuple(items[:MOST_ITEMS]) for kind, items in listed.items()},
        counts={kind: count for kind, count in counts.items() if count},
    )


def _task(line: str) -> str:
    """The text of a task as the summary's line has it: `[ ] #3 Write tests`."""
    text = line.removeprefix("[ ] ")
    return text.partition(" ")[2] if text.startswith("#") else text
