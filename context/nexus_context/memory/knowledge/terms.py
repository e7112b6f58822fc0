"""Extracts the words of a text for the index, and the words of a message for a search.

1. A name matches whole and by its parts: `getUserName`, `user_name`, `docs/user-name.md`.
2. Chinese, Japanese and Korean have no spaces between words: they are indexed by pairs of characters.
3. Search terms are the significant words of a message: without stop words, each once, in order. An identifier
   such as `fix-3`, `v1.2` or `utf-8` is one term, because its parts say little and occur in many other
   identifiers.
"""

import re

MOST_WORDS = 48
"""Words of a message that are searched for: the first and the last, where people state their request."""

_LONGEST = 64  # code points; longer ones are data
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(  # possessive: a text may be one long word
    r"(?<![A-Za-z0-9])"
    r"(?:[a-z]++[A-Z][A-Za-z0-9]*|[A-Z]++[a-z0-9]++[A-Z][A-Za-z0-9]*|[A-Z]{2,}+[a-z][A-Za-z0-9]*)"
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+(?:[-.#_:][A-Za-z0-9]+)+|[^\W_]+")  # or one word
_TELLS_LITTLE = re.compile(r"(?:^|[-.#_:])(?:[A-Za-z]|[A-Za-z]*[0-9]+[A-Za-z]*)(?=$|[-.#_:])")
_LONGEST_IDENTIFIER = 24
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\Wa-zA-Z0-9_]+")
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")

_STOP_WORDS = """
a about above after again against all also am an and any anyone anything are as at be because been before
being below between both but by came can cannot come could did do does doing done down during each either
else ever every few for from further get gets getting give given go goes going got had has have having he
help her here hers him his how however i if in into is it its itself just know let lets like ll look make
makes many may maybe me might mine more most much must my need needs never no nor not now of off ok okay
on once one only onto or other others our ours out over own per perhaps please put quite rather re really
same see seem seems shall she should show since so some someone something still such sure take tell than
thank thanks that the their theirs them then there these they thing things think this those though through
thus to together too try trying under until up upon us use used uses using ve very via want wants was way
we well were what whatever when where whether which while who whom whose why will with within without won
would yes yet you your yours don doesn didn isn aren wasn weren hasn haven hadn couldn shouldn wouldn
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def searchable(text: str) -> str:
    """Convert a text for the index. Each name is followed by its parts, and East Asian text becomes pairs of
    characters.
    """
    text = _NAME.sub(_with_parts, text)
    return text if text.isascii() else _EAST_ASIAN.sub(lambda match: f" {' '.join(_pairs(match[0]))} ", text)


def query_terms(message: str) -> list[str]:
    """Return the significant words of a message in lower case, at most MOST_WORDS. No word contains a
    quotation mark.
    """
    terms: dict[str, None] = {}
    for match in _IDENTIFIER.finditer(message):
        is_whole = len(match[0]) <= _LONGEST_IDENTIFIER and _TELLS_LITTLE.search(match[0])
        for word in [match[0]] if is_whole else _WORD.findall(match[0]):
            if len(word) <= _LONGEST:
                for form in _forms(word):
                    if (len(form) > 1 or not form.isascii()) and form not in STOP_WORDS:
                        terms[form] = None
    words = list(terms)
    half = MOST_WORDS // 2
    return words if len(words) <= MOST_WORDS else [*words[:half], *words[-half:]]


def _forms(word: str) -> list[str]:
    """The indexed forms of a word."""
    if not word.isascii() and _EAST_ASIAN.search(word):
        split = _EAST_ASIAN.sub(lambda match: f" {' '.join(_pairs(match[0]))} ", word)
        return split.lower().split()
    parts = _PART.findall(word) if _NAME.fullmatch(word) else []
    return [word.lower(), *(part.lower() for part in parts)]


def _with_parts(match: re.Match[str]) -> str:
    return f"{match[0]} {' '.join(_PART.findall(match[0]))}"


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]
