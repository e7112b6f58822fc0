"""Finds the passages that belong to a message.

1. A passage matches if it has a significant word of the message. It ranks higher with more such words, with
   rarer ones, or with one in its heading.
2. Of many words, only the rarest are searched for, as many as MOST_TERMS and MOST_ROWS allow, because the
   cost of a query depends on the number of passages that it ranks. If all words are too common, passages that
   have as many of them as possible are returned.
3. A passage that has nearly the same words as a better passage is left out.
4. The best passages come first, as many as fit. If the first is too long alone, it is cut at a line, with a
   mark.
5. A literal secret in a passage is covered.
6. With vectors, the passages that are nearest to the message by meaning are ranked together with those found
   by words (`fusion`). If the model fails, words alone decide.
"""

import logging
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from nexus_context.errors import Span
from nexus_context.folder.prompt import texts
from nexus_context.memory.knowledge.embedder import EmbeddingError
from nexus_context.memory.knowledge.fusion import LISTED, MatchedBy, RankedHit, coverages, fuse, rarity
from nexus_context.memory.knowledge.passage_index import (
    IndexBusyError,
    IndexLostError,
    KnowledgeIndex,
    PassageHit,
)
from nexus_context.memory.knowledge.terms import query_terms
from nexus_context.memory.knowledge.vectors import Vectors
from nexus_context.text.redact import cover_literals
from nexus_context.tokens import TokenCounter

MOST_TERMS = 12
MOST_ROWS = 10_000
"""Passages that a query ranks; ten thousand take about 10 ms."""

MOST_PASSAGES = 100
MORE = 4  # times top_k are fetched, to replace the ones left out
ALIKE = 0.8
"""Share of common words from which two passages count as the same."""

logger = logging.getLogger(__name__)

_WORDS = re.compile(r"\w+")


class Passage(msgspec.Struct, frozen=True):
    """A passage as it is shown. `text` stands at `span`, in code points of the decoded file.

    `heading` are the titles above it, outermost first, with ` › ` between them. A better passage has a higher
    `score`, which is comparable within one query only. `tokens` are those of path, heading and text. If `cut`
    is true, the text ends with a mark, and `span` is the text before the mark. Each character of a secret is
    replaced by `*`. `matched_by` says whether its words or its meaning were found.
    """

    path: str
    heading: str
    text: str
    span: Span
    score: float
    tokens: int
    cut: bool = False
    matched_by: MatchedBy = ("words",)


class _WordSearch(NamedTuple):
    """Passages found by words, and what was searched for.

    `counts` has the number of passages with each term of the message, up to MOST_ROWS + 1; `chosen` are the
    terms that were searched for; `required`: each passage has all of them.
    """

    hits: list[PassageHit]
    counts: dict[str, int]
    chosen: list[str]
    required: bool = False


def query(
    index: KnowledgeIndex,
    message: str,
    counter: TokenCounter,
    *,
    top_k: int,
    max_tokens: int,
    accepts: Callable[[str], bool] = lambda _: True,
    vectors: Vectors | None = None,
) -> list[Passage]:
    """Return the best passages for a message: at most `top_k`, with at most `max_tokens` tokens together.

    Only files whose path `accepts` permits count, since the index may be older than the settings. With
    `vectors` of this index, passages are also found by meaning. The result is empty if the index cannot be
    read right now.
    """
    terms, max_passages = query_terms(message), min(top_k, MOST_PASSAGES)
    if not terms or top_k < 1 or max_tokens < 1:
        return []
    try:
        ranked = _ranked(index, message, terms, max_passages * MORE, vectors=vectors)
    except (IndexLostError, IndexBusyError):
        return []
    passages: list[Passage] = []
    tokens_left = max_tokens
    for ranked_hit in _apart([ranked_hit for ranked_hit in ranked if accepts(ranked_hit.hit.path)]):
        passage = _passage(ranked_hit, ranked_hit.hit.text, counter)
        if passage.tokens > tokens_left:
            shortened = None if passages else _shortened(ranked_hit, counter, tokens_left)
            if shortened is None:
                continue
            passage = shortened
        passages.append(passage)
        tokens_left -= passage.tokens
        if len(passages) == max_passages:
            break
    return passages


def _ranked(
    index: KnowledgeIndex, message: str, terms: list[str], limit: int, *, vectors: Vectors | None
) -> list[RankedHit]:
    if vectors is None:
        return [RankedHit(hit) for hit in _search_words(index, terms, limit).hits]
    search = _search_words(index, terms, max(limit, LISTED))
    try:
        nearest = vectors.nearest(message, LISTED)
    except EmbeddingError as error:
        logger.warning("passages are found by words only: %s", error)
        nearest = []
    if not nearest:
        return [RankedHit(hit) for hit in search.hits]
    return fuse(list(zip(search.hits, _coverages(index, search), strict=True)), nearest)


def _search_words(index: KnowledgeIndex, terms: list[str], limit: int) -> _WordSearch:
    counts = {term: index.frequency(_quoted(term), MOST_ROWS + 1) for term in terms}
    rarest = sorted((term for term in terms if counts[term]), key=counts.__getitem__)
    chosen: list[str] = []
    rows = 0
    for term in rarest[:MOST_TERMS]:
        if rows + counts[term] > MOST_ROWS:
            break
        chosen.append(term)
        rows += counts[term]
    if chosen:
        return _WordSearch(index.best(" OR ".join(map(_quoted, chosen)), limit), counts, chosen)
    for number in range(min(len(rarest), MOST_TERMS), 0, -1):
        hits = index.best(" AND ".join(map(_quoted, rarest[:number])), limit)
        if hits:
            return _WordSearch(hits, counts, rarest[:number], required=True)
    return _WordSearch([], counts, [])


def _coverages(index: KnowledgeIndex, search: _WordSearch) -> list[float]:
    """The share of the message's words that each passage has, by their rarity."""
    _, total = index.totals()
    rarities = {term: rarity(count, total) for term, count in search.counts.items()}
    every = {hit.id for hit in search.hits}
    term_passages = [
        (rarities[term], every if search.required else index.containing(_quoted(term)))
        for term in search.chosen
    ]
    return coverages(search.hits, term_passages, sum(rarities.values()))


def _quoted(term: str) -> str:
    return f'"{term}"'


def _apart(ranked: list[RankedHit]) -> Iterator[RankedHit]:
    """Leave out passages that repeat a better one."""
    word_sets: list[set[str]] = []
    for ranked_hit in ranked:
        words = set(_WORDS.findall(ranked_hit.hit.text.lower()))
        if all(len(words & word_set) < ALIKE * len(words | word_set) for word_set in word_sets):
            word_sets.append(words)
            yield ranked_hit


def _passage(ranked: RankedHit, text: str, counter: TokenCounter, *, cut: bool = False) -> Passage:
    hit = ranked.hit
    covered = cover_literals(text)
    displayed = f"{covered}\n{texts.text('knowledge_cut')}" if cut else covered
    return Passage(
        path=hit.path,
        heading=hit.heading,
        text=displayed,
        span=Span(hit.span.start, hit.span.start + len(text)),
        score=hit.score,
        tokens=counter.count(hit.path) + counter.count(hit.heading) + counter.count(displayed),
        cut=cut,
        matched_by=ranked.matched_by,
    )


def _shortened(ranked: RankedHit, counter: TokenCounter, limit: int) -> Passage | None:
    """The passage with as many of its first lines as fit; None if none does."""
    text = ranked.hit.text
    ends = [match.start() for match in re.finditer(r"(?<=\S)[ \t]*(?:\r\n|\r|\n)", text)]
    low, high, best = 0, len(ends), None
    while low < high:  # tokens grow with the text
        middle = (low + high) // 2
        passage = _passage(ranked, text[: ends[middle]], counter, cut=True)
        if passage.tokens <= limit:
            low, best = middle + 1, passage
        else:
            high = middle
    return best
