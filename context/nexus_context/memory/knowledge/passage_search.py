"""A message → the passages that belong to it.

1. Any significant word of the message matches. Better passages have more of them, rarer ones, or have them in
   the heading.
2. Of many words, the rarest are searched for, as many as MOST_TERMS and MOST_ROWS allow: the cost of a query
   depends on the number of passages that it ranks. If all words are too common, passages with as many of them
   as possible are returned.
3. A passage with nearly the words of a better one is left out.
4. The best passages come first, as many as fit. If the first is too long alone, it is cut at a line, with a
   mark.
5. A literal secret in a passage is covered.
"""

import re
from collections.abc import Callable, Iterator

import msgspec

from nexus_context.errors import Span
from nexus_context.memory.knowledge.passage_index import (
    IndexBusyError,
    IndexLostError,
    KnowledgeIndex,
    PassageHit,
)
from nexus_context.memory.knowledge.terms import query_terms
from nexus_context.prompt import texts
from nexus_context.redact import secrets_in_text
from nexus_context.tokens import TokenCounter

MOST_TERMS = 12
MOST_ROWS = 10_000
"""Passages that a query ranks; ten thousand take about 10 ms."""

MOST_PASSAGES = 100
MORE = 4  # times top_k are fetched, to replace the ones left out
ALIKE = 0.8
"""Share of common words from which two passages count as the same."""

_WORDS = re.compile(r"\w+")


class Passage(msgspec.Struct, frozen=True):
    """A passage as it is shown: `text` stands at `span`, in code points of the decoded file.

    `heading` are the titles above it, outermost first, with ` › ` between them. A better passage has a higher
    `score`, comparable within one query only. `tokens` are those of path, heading and text. If `cut`, the
    text ends with a mark, and `span` is the text before it. Each character of a secret is replaced by `*`.
    """

    path: str
    heading: str
    text: str
    span: Span
    score: float
    tokens: int
    cut: bool = False


def query(
    index: KnowledgeIndex,
    message: str,
    counter: TokenCounter,
    *,
    top_k: int,
    max_tokens: int,
    accepts: Callable[[str], bool] = lambda _: True,
) -> list[Passage]:
    """The best passages for a message, at most `top_k`, of at most `max_tokens` tokens together.

    Only files whose path the caller `accepts` count, since the index may be older than the settings. Empty if
    the index cannot be read right now.
    """
    terms, most = query_terms(message), min(top_k, MOST_PASSAGES)
    if not terms or top_k < 1 or max_tokens < 1:
        return []
    try:
        rows = _rows(index, terms, most * MORE)
    except (IndexLostError, IndexBusyError):
        return []
    passages: list[Passage] = []
    left = max_tokens
    for row in _apart([row for row in rows if accepts(row.path)]):
        passage = _passage(row, row.text, counter)
        if passage.tokens > left:
            shortened = None if passages else _shortened(row, counter, left)
            if shortened is None:
                continue
            passage = shortened
        passages.append(passage)
        left -= passage.tokens
        if len(passages) == most:
            break
    return passages


def _rows(index: KnowledgeIndex, terms: list[str], limit: int) -> list[PassageHit]:
    counted = [(index.frequency(f'"{term}"', MOST_ROWS + 1), f'"{term}"') for term in terms]
    rarest = sorted((count, at, term) for at, (count, term) in enumerate(counted) if count)
    chosen, ranked = [], 0
    for count, _, term in rarest[:MOST_TERMS]:
        if ranked + count > MOST_ROWS:
            break
        chosen.append(term)
        ranked += count
    if chosen:
        return index.best(" OR ".join(chosen), limit)
    common = [term for _, _, term in rarest]
    for number in range(min(len(common), MOST_TERMS), 0, -1):
        rows = index.best(" AND ".join(common[:number]), limit)
        if rows:
            return rows
    return []


def _apart(rows: list[PassageHit]) -> Iterator[PassageHit]:
    """The passages without those that repeat a better one."""
    word_sets: list[set[str]] = []
    for row in rows:
        words = set(_WORDS.findall(row.text.lower()))
        if all(len(words & other) < ALIKE * len(words | other) for other in word_sets):
            word_sets.append(words)
            yield row


def _passage(row: PassageHit, text: str, counter: TokenCounter, *, cut: bool = False) -> Passage:
    covered = _covered(text)
    displayed = f"{covered}\n{texts.text('knowledge_cut')}" if cut else covered
    tokens = counter.count(row.path) + counter.count(row.heading) + counter.count(displayed)
    span = Span(row.span.start, row.span.start + len(text))
    return Passage(
        path=row.path, heading=row.heading, text=displayed, span=span, score=row.score, tokens=tokens, cut=cut
    )


def _shortened(row: PassageHit, counter: TokenCounter, limit: int) -> Passage | None:
    """The passage with as many of its first lines as fit; None if none does."""
    ends = [match.start() for match in re.finditer(r"(?<=\S)[ \t]*(?:\r\n|\r|\n)", row.text)]
    low, high, best = 0, len(ends), None
    while low < high:  # tokens grow with the text
        middle = (low + high) // 2
        passage = _passage(row, row.text[: ends[middle]], counter, cut=True)
        if passage.tokens <= limit:
            low, best = middle + 1, passage
        else:
            high = middle
    return best


def _covered(text: str) -> str:
    for span in secrets_in_text(text):
        text = text[: span.start] + "*" * (span.end - span.start) + text[span.end :]
    return text
