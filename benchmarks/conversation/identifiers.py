"""Identifiers: what a next step can only repeat, never guess. Apart from the product's own idea of them.

1. E-mail addresses; paths and URLs (rooted, or with two slashes, or ending in a file name with an extension).
2. ISO dates, and times of the clock: `7:30` and `07:30:00` are `07:30`.
3. Words of letters and digits mixed, four characters or more: HAT136, mia_li_3668, call-2a. Ordinals (20th)
   and times of day (10am) are none.
4. snake_case, and words of capitals only from five letters on (codes without a digit).
5. Numbers of three digits or more: ids, amounts, years. `$1,250.00` is `1250`, whoever writes it how.
6. Compared without regard to case.
7. Of a tool call the values of the arguments count, not the names of parameters and tools: every call repeats
   those.
"""

import json
import re
from collections.abc import Iterator

_EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_PATH = (
    r"(?:https?://|(?<![\w.~/])(?:~?/|\.{1,2}/))[\w.~%+-]+(?:/[\w.~%+-]+)*/?"
    r"|[\w.-]+(?:/[\w.-]+){2,}"
    r"|[\w.-]+/[\w-]+\.[A-Za-z]\w{0,4}\b"
)
_DATE = r"\b\d{4}-\d{2}-\d{2}\b"
_TIME = r"\b\d{1,2}:\d{2}(?::\d{2})?\b"
_NUMBER = r"\b\d{1,3}(?:,\d{3})+(?:\.\d+)?\b|\b\d{3,}(?:\.\d+)?\b"
_WORD = r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*"
_TOKEN = re.compile(
    "|".join(
        f"(?P<{name}>{pattern})"
        for name, pattern in (
            ("email", _EMAIL),
            ("path", _PATH),
            ("date", _DATE),
            ("time", _TIME),
            ("word", rf"\b(?=[\w-]*[A-Za-z]){_WORD}\b"),
            ("number", _NUMBER),
        )
    )
)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|am|pm|kg|lb|hr|min|k|x)", re.IGNORECASE)
SHORTEST_MIXED = 4  # characters
SHORTEST_CAPITALS = 5  # characters


def identifiers(text: str) -> Iterator[str]:
    """The identifiers of a text, in order, each as often as it occurs."""
    for match in _TOKEN.finditer(text):
        found = match.group()
        if match.lastgroup == "number":
            number = found.replace(",", "")
            yield number.rstrip("0").rstrip(".") if "." in number else number
        elif match.lastgroup == "time":
            hours, minutes = found.split(":")[:2]
            yield f"{hours:0>2}:{minutes}"
        elif match.lastgroup != "word":
            yield found.rstrip(".").lower()
        elif _is_identifier(found):
            yield found.lower()


def values(arguments: str) -> Iterator[str]:
    """The values of a JSON text, as texts; the text itself if it is no JSON."""
    try:
        yield from _leaves(json.loads(arguments))
    except ValueError:
        yield arguments


def _is_identifier(word: str) -> bool:
    digits = any(character.isdigit() for character in word)
    if digits:
        return len(word) >= SHORTEST_MIXED and _ORDINAL.fullmatch(word) is None
    return "_" in word or (word.isupper() and word.isalpha() and len(word) >= SHORTEST_CAPITALS)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
