"""What of replaced messages appears nowhere in the history that takes their place; rules in `receipt`."""

from collections.abc import Iterable, Iterator, Sequence

from nexus_context.conversation.compaction.extract_facts import Harvest, Item, harvest
from nexus_context.conversation.compaction.receipt import MOST_LISTED, Lost
from nexus_context.conversation.compaction.summary import unwrapped
from nexus_context.conversation.identifiers.mentions import arguments_of, leaves
from nexus_context.conversation.identifiers.names_note import IdentifierIndex
from nexus_context.conversation.message import Message, text_of

MOST_NAMES = 20_000
"""Names and values that are looked for."""
MOST_COMPARED = 4_000_000_000
"""Characters that are gone through to look for them: of a long history fewer names are looked for."""
LEAST_NAMES = 1_000


def lost(replaced: Sequence[Message], history: Iterable[Message], harvested: Harvest | None = None) -> Lost:
    """What of `replaced` is nowhere in `history`. `harvested`: what `replaced` says, if that is known."""
    present = "\n".join(text for message in history for text in _said(message))
    found = harvest(replaced) if harvested is None else harvested
    most = MOST_COMPARED // (len(present) + 1)
    index = IdentifierIndex(most=min(MOST_NAMES, max(LEAST_NAMES, most)))
    index.extend(map(unwrapped, replaced))
    names = [each for each in index.ranked() if not _within(each.text, present)]
    missing = {
        "paths": [each.text for each in names if each.kind == "path"],
        "commands": [command for command in _commands(found) if not _within(command, present)],
        "identifiers": [each.text for each in names if each.kind not in ("path", "command")],
        "errors": [error for error in _errors(found) if not _within(error, present)],
        "instructions": [item.text for item in _best(found.items("instructions"), present)],
        "decisions": [item.text for item in _best(found.items("decisions"), present)],
    }
    counts = {kind: len(items) for kind, items in missing.items() if items}
    return Lost(**{kind: tuple(items[:MOST_LISTED]) for kind, items in missing.items()}, counts=counts)


def _said(message: Message) -> Iterator[str]:
    yield text_of(message)
    for call in message.tool_calls:
        arguments = arguments_of(call.arguments)
        yield from (str(value) for _, value in leaves(arguments) if value is not None)


def _within(text: str, present: str) -> bool:
    return text in present or text.removesuffix(" …") in present


def _commands(found: Harvest) -> list[str]:
    return [run.command for run in sorted(found.work.runs, key=lambda run: -run.at)]


def _errors(found: Harvest) -> list[str]:
    failures = sorted(found.work.failures, key=lambda each: (each.resolved, -each.at))
    return list(dict.fromkeys(each.text.removesuffix(" […]") for each in failures))


def _best(items: Sequence[Item], present: str) -> list[Item]:
    ranked = sorted(items, key=lambda item: (-item.weight, -item.at))
    return [item for item in ranked if not _within(item.text.removesuffix(" […]"), present)]
