"""Finds what changed in a server's definitions since they were approved, and what in them is suspicious."""

import difflib
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from nexus_context.folder.prompt.hidden_text import hidden_markup, hidden_text
from nexus_context.servers.definitions import ServerDefinitions

Kind = Literal["added", "removed", "changed"]
Suspicion = Literal["hidden", "orders"]

MOST_WORDS = 400  # of a text that is compared word by word; a longer one is shown as a whole
MOST_FLAGS = 100
_SPLIT = re.compile(r"(\s+)")
_ORDERS = re.compile(
    r"(?i)\bignore (?:all |any )?(?:previous|prior|other) (?:instructions|rules|prompts)"
    r"|\bdo not (?:tell|mention|inform|reveal|show)\b[^.\n]{0,60}\b(?:user|human|anyone)"
    r"|\bwithout (?:telling|informing|asking) the user"
    r"|<\s*(?:important|system|instructions?|secret)\s*>"
    r"|\b(?:always|must) (?:first )?(?:call|use|read|send|include)\b[^.\n]{0,80}"
    r"\b(?:before|instead of|file|contents?|conversation|history|secret|password|token|key)s?\b"
    r"|\bside ?note\b[^.\n]{0,60}\b(?:pass|include|read)"
    r"|~/\.(?:ssh|aws|cursor|config)\b|\bid_rsa\b"
)
"""Sentences that speak to the model about more than the tool: heuristics, so that a person looks."""


class Word(msgspec.Struct, frozen=True):
    """A part of a text that was kept, added or removed."""

    text: str
    state: Literal["kept", "added", "removed"]


class DefinitionChange(msgspec.Struct, frozen=True):
    """One difference between two versions of a server's definitions.

    `place` names the text, such as `tool` or `tool.description`. `words` are those of a text that changed.
    """

    kind: Kind
    place: str
    words: tuple[Word, ...] = ()


class Flag(msgspec.Struct, frozen=True):
    """Something suspicious in a text for the model: hidden characters, or orders to the model."""

    suspicion: Suspicion
    place: str
    message: str


class ReviewedDefinitions(msgspec.Struct, frozen=True):
    """The definitions of a server, with their pin and what is suspicious in them."""

    definitions: ServerDefinitions
    pin: str
    flags: tuple[Flag, ...] = ()


def review(definitions: ServerDefinitions) -> ReviewedDefinitions:
    """Compute the pin and the flags of definitions. DefinitionsError if they cannot be pinned."""
    return ReviewedDefinitions(definitions, definitions.pin, find_flags(definitions))


def compare(old: ServerDefinitions, new: ServerDefinitions) -> tuple[DefinitionChange, ...]:
    """Return what changed between two versions of the texts of a server that a model reads.

    If no text changed but the pins differ, that is one change of a schema's structure.
    """
    old_lines, new_lines = dict(_lines(old)), dict(_lines(new))
    changes = []
    for place in dict.fromkeys((*old_lines, *new_lines)):
        was, now = old_lines.get(place), new_lines.get(place)
        if was is None and now is not None:
            changes.append(DefinitionChange("added", place, (Word(now, "added"),)))
        elif was is not None and now is None:
            changes.append(DefinitionChange("removed", place, (Word(was, "removed"),)))
        elif was is not None and now is not None and was != now:
            changes.append(DefinitionChange("changed", place, compare_words(was, now)))
    if not changes and old.pin != new.pin:
        changes.append(DefinitionChange("changed", "the structure of a schema"))
    return tuple(changes)


def compare_words(old: str, new: str) -> tuple[Word, ...]:
    """Return the words of two texts, each kept, added or removed.

    If one of the texts is too long, all of `old` is removed and all of `new` is added.
    """
    old_words, new_words = (_SPLIT.split(text) for text in (old, new))
    if max(len(old_words), len(new_words)) > 2 * MOST_WORDS:
        return (Word(old, "removed"), Word(new, "added"))
    words: list[Word] = []
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
    for tag, begin, end, start, stop in matcher.get_opcodes():
        if tag == "equal":
            words.append(Word("".join(old_words[begin:end]), "kept"))
            continue
        for text, state in (
            ("".join(old_words[begin:end]), "removed"),
            ("".join(new_words[start:stop]), "added"),
        ):
            if text:
                words.append(Word(text, state))  # type: ignore[arg-type]
    return tuple(words)


def find_flags(definitions: ServerDefinitions) -> tuple[Flag, ...]:
    """Find the suspicious texts in the definitions of a server, at most MOST_FLAGS."""
    flags: list[Flag] = []
    for place, text in definitions.leaves():
        if not isinstance(text, str):
            continue
        problems = (*hidden_text(place, text), *hidden_markup(place, text))
        flags += (Flag("hidden", place, problem.message) for problem in problems)
        match = _ORDERS.search(text)
        if match is not None:
            flags.append(Flag("orders", place, f"It speaks to the model: “{_excerpt_around(text, match)}”"))
        if len(flags) >= MOST_FLAGS:
            break
    return tuple(flags[:MOST_FLAGS])


def _lines(definitions: ServerDefinitions) -> Iterator[tuple[str, str]]:
    """Every value of the definitions as text; several of one place are numbered."""
    seen: dict[str, int] = {}
    for place, value in definitions.leaves():
        seen[place] = seen.get(place, 0) + 1
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield (place if seen[place] == 1 else f"{place} ({seen[place]})"), text


def _excerpt_around(text: str, match: "re.Match[str]") -> str:
    start, end = max(match.start() - 20, 0), min(match.end() + 40, len(text))
    return " ".join(text[start:end].split())
