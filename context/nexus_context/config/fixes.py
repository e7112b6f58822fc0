"""Makes quick fixes of JSON files: rename, remove or replace a member. Suggests words for misspelt ones."""

import functools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from nexus_context.errors import Edit, Fix, Span
from nexus_context.text.json import JsonDocument

Pointer = tuple[str | int, ...]

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(r"[\w.$@/* -]{1,80}")
_BLANK = " \t\r\n"
_SIMILAR = 0.7
_LONGEST = 80  # characters of a word that are compared
_MOST_COMPARED = 50  # choices, letter by letter; of more choices only those with the same first letter


def meant(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that `word` most likely stands for, or None.

    One that differs only in case, `_` and `-` comes before a similar one. Two texts are similar if they share
    most characters in the same order. Takes a step for each character of at most `_MOST_COMPARED` choices.
    """
    return _meant(word[:_LONGEST], tuple(choices))


@functools.lru_cache(maxsize=64)
def _meant(word: str, choices: tuple[str, ...]) -> str | None:
    # cached: most keystrokes are elsewhere, and the misspelt words stay the same
    bare = _bare(word)
    for choice in choices:
        if _bare(choice) == bare:
            return choice
    near = [choice for choice in choices if _similarity(len(word), choice, len(word)) >= _SIMILAR]
    if len(near) > _MOST_COMPARED:
        near = [choice for choice in near if choice[:1].casefold() == word[:1].casefold()][:_MOST_COMPARED]
    positions: dict[str, int] = {}
    for position, character in enumerate(word):
        positions[character] = positions.get(character, 0) | 1 << position
    ranked = [(_similarity(len(word), choice, _in_both(positions, choice)), choice) for choice in near]
    best, choice = max(ranked, key=lambda pair: pair[0], default=(0.0, ""))
    return choice if best >= _SIMILAR else None


def _similarity(length: int, choice: str, common: int) -> float:
    """The similarity of two texts with so many common characters, at most all of the shorter one."""
    return 2 * min(common, len(choice)) / (length + len(choice) or 1)


def _in_both(places: dict[str, int], text: str) -> int:
    """The length of the longest common subsequence of a text and a word.

    `places` are the bits of each character in the word. All of them move at once (Crochemore and others,
    "A fast and practical bit-vector algorithm for the longest common subsequence problem", 2001).
    """
    every = functools.reduce(int.__or__, places.values(), 0)
    free = every
    for character in text[:_LONGEST]:
        taken = free & places.get(character, 0)
        free = (free + taken | free - taken) & every
    return (every ^ free).bit_count()


def rename(document: JsonDocument, pointer: Pointer, name: str) -> Fix | None:
    """Return the fix that renames the key at `pointer`. None for the root and for list items."""
    span = document.key_span(pointer)
    return Fix(f"Rename to {quoted(name)}", (Edit(span, quoted(name)),)) if span else None


def replace(document: JsonDocument, pointer: Pointer, text: str, *, title: str = "") -> Fix:
    """Return the fix that replaces the value at `pointer` by JSON text."""
    return Fix(title or f"Replace by {text}", (Edit(document.span(pointer), text),))


def enclose(title: str, span: Span, opening: str, closing: str) -> Fix:
    """Return the fix that puts a value between two characters."""
    return Fix(title, (Edit(Span(span.start, span.start), opening), Edit(Span(span.end, span.end), closing)))


def remove(document: JsonDocument, pointer: Pointer) -> Fix | None:
    """Return the fix that removes the member at `pointer` and its comma.

    None if it is not a plain member: the root, a list item, or inside text that is not JSON.
    """
    key = document.key_span(pointer)
    if key is None:
        return None
    span = _member(document.text, key.start, document.span(pointer).end)
    return Fix(f"Remove {quoted(str(pointer[-1]))}", (Edit(span, ""),)) if span else None


def is_plain(name: str) -> bool:
    """Whether a key of a broken text is certainly only a key. Otherwise it may contain the text before it."""
    return _PLAIN.fullmatch(name) is not None


def quoted(name: str) -> str:
    """Return the name as JSON text, cut if it is very long."""
    return as_json(name if len(name) <= 80 else name[:77] + "...")


def as_json(value: Any) -> str:
    """Return a value as readable JSON text.

    Characters other than ASCII are escaped only if the text has a lone surrogate.
    """
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or not _SURROGATE.search(text) else json.dumps(value)


def listed(names: Sequence[Any]) -> str:
    """Return the names as a sentence lists them: `a, b or c`."""
    words = [str(name) for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _bare(word: str) -> str:
    return word.replace("_", "").replace("-", "").casefold()


def _member(text: str, start: int, end: int) -> Span | None:
    gap_end = _skip(text, end)
    if text[gap_end : gap_end + 1] == ",":
        return Span(start, _skip(text, gap_end + 1))
    gap_start = start
    while gap_start and text[gap_start - 1] in _BLANK:
        gap_start -= 1
    if text[gap_end : gap_end + 1] != "}" or text[gap_start - 1 : gap_start] not in {
        ",",
        "{",
    }:
        return None
    return Span(gap_start - 1 if text[gap_start - 1] == "," else gap_start, end)


def _skip(text: str, offset: int) -> int:
    while offset < len(text) and text[offset] in _BLANK:
        offset += 1
    return offset
