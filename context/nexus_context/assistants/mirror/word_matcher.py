"""Finds the words of a query in texts and in files, as the ledger's index does.

1. A text matches if it has all required terms and no excluded one (`search_query`). Words are letters and
   digits; a term of several words matches where they are adjacent. Case makes no difference.
2. A file may match if its bytes have the words of all required terms, as UTF-8 or as JSON escapes, in lower,
   upper or title case, or as they are in the query. ASCII words are found in any case.
3. Accents make a difference, unlike in the index.
"""

import json
import re
from collections.abc import Callable

from nexus_context.ledger.part_index import split_runs
from nexus_context.ledger.search import AFTER, AROUND, BEFORE
from nexus_context.ledger.search_query import Term, terms
from nexus_context.text.redact import redact_message

EXCERPT = 160
"""Characters of a snippet."""
BLOCK = 1 << 20
"""Bytes of a file that are searched at once: they stay in the processor's cache."""

_GAP = re.compile(r"[\W_]+")


class WordMatcher:
    """Matches the words of a query. Without a required word, nothing matches."""

    def __init__(self, query: str) -> None:
        query_terms = terms(query)
        self._required = [_pattern(term) for term in query_terms if not term.excluded]
        self._excluded = [_pattern(term) for term in query_terms if term.excluded]
        words = {word for term in query_terms if not term.excluded for word in _words(term)}
        self._needles = [_needles(word) for word in sorted(words, key=len, reverse=True)]
        self._overlap = max((len(needle) for needles in self._needles for needle in needles), default=1) - 1
        self._any = re.compile("|".join(pattern.pattern for pattern in self._required), re.IGNORECASE)

    def matches(self, text: str) -> bool:
        """Whether a text matches the query (rule 1)."""
        return (
            bool(self._required)
            and all(pattern.search(text) for pattern in self._required)
            and not any(pattern.search(text) for pattern in self._excluded)
        )

    def may_match(self, read_range: Callable[[int, int], bytes], start: int = 0) -> bool:
        """Whether a message in a file may match the query (rule 2).

        `read_range` gets an offset and a number of bytes, and reads at most so many from there. The file is
        searched from `start` on.
        """
        missing_needles = self._needles
        while missing_needles:
            block = read_range(start, BLOCK + self._overlap)
            lower = block.lower()
            missing_needles = [
                needles for needles in missing_needles if not any(needle in lower for needle in needles)
            ]
            if len(block) < BLOCK + self._overlap:
                break
            start += BLOCK
        return bool(self._required) and not missing_needles

    def snippet(self, text: str) -> str:
        """Return the text around the first match, with each match marked and secrets covered."""
        match = self._any.search(text)
        start = max(0, (match.start() if match else 0) - EXCERPT // 3)
        context_start = max(0, start - AROUND)
        redacted = redact_message(text[context_start : start + EXCERPT + AROUND])[start - context_start :][
            :EXCERPT
        ]
        marked = self._any.sub(lambda term_match: f"{BEFORE}{term_match[0]}{AFTER}", redacted)
        return f"{'…' if start else ''}{marked}{'…' if len(text) > start + EXCERPT else ''}"


def _words(term: Term) -> list[str]:
    return [word for word in _GAP.split(term.text) if word]


def _pattern(term: Term) -> re.Pattern[str]:
    """The words of a term side by side; in scripts without spaces, anywhere."""
    pattern = r"[\W_]+".join(map(re.escape, _words(term)))
    if split_runs(term.text) is None:
        pattern = rf"(?<![^\W_]){pattern}" + (r"[^\W_]*" if term.prefix else r"(?![^\W_])")
    return re.compile(pattern, re.IGNORECASE)


def _needles(word: str) -> frozenset[bytes]:
    """What a file that has the word contains, with ASCII letters in lower case."""
    forms = {word, word.lower(), word.upper(), word.title()}
    escaped = {json.dumps(form)[1:-1] for form in forms}
    return frozenset(form.encode().lower() for form in forms | escaped)
