"""Merges the passages found by words and those found by meaning into one ranking.

1. Reciprocal rank fusion gives a passage `weight / (RANK_CONSTANT + rank)` from each ranking that has it. The
   first rank is 1 (Cormack, Clarke and Büttcher, SIGIR 2009, doi:10.1145/1571941.1572114).
2. The weight of a passage found by words is twice its coverage: the share of the message's words that it has,
   weighted by their rarity. Plain fusion would treat a passage with one minor word of the message like one
   with all of them. It would also put a passage that is far down in both rankings before the best passage of
   one ranking.
3. The paper's constant is 60, for rankings of a thousand documents. Of rankings of LISTED passages, 60 makes
   all ranks nearly the same.
4. The rarity of a word is BM25's (Robertson and Spärck Jones): `log(1 + (N - n + 0.5) / (n + 0.5))`, with `n`
   of `N` passages having it.

The numbers are measured in `benchmarks/knowledge`: between 5 and 20, and 20 and 50, they matter little.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from nexus_context.memory.knowledge.passage_index import PassageHit

RANK_CONSTANT = 10
LISTED = 50
"""Passages of each ranking that count."""
WORDS_WEIGHT = 2.0

MatchedBy = tuple[Literal["words", "meaning"], ...]
"""What found a passage: its words, its meaning or both."""


class RankedHit(msgspec.Struct, frozen=True):
    """A passage in the final ranking. `matched_by` says whether its words, its meaning or both were found."""

    hit: PassageHit
    matched_by: MatchedBy = ("words",)


def fuse(words: Sequence[tuple[PassageHit, float]], meaning: Sequence[PassageHit]) -> list[RankedHit]:
    """Merge two rankings of passages into one, the best first. Each passage in `words` comes with its
    coverage (rule 2).
    """
    scores: dict[int, float] = {}
    hits: dict[int, PassageHit] = {}
    for rank, (hit, coverage) in enumerate(words[:LISTED], start=1):
        hits[hit.id] = hit
        scores[hit.id] = WORDS_WEIGHT * coverage / (RANK_CONSTANT + rank)
    by_words = set(hits)
    for rank, hit in enumerate(meaning[:LISTED], start=1):
        hits.setdefault(hit.id, hit)
        scores[hit.id] = scores.get(hit.id, 0.0) + 1 / (RANK_CONSTANT + rank)
    by_meaning = {hit.id for hit in meaning[:LISTED]}
    ranked = sorted(hits.values(), key=lambda hit: (-scores[hit.id], hit.path, hit.span))
    return [
        RankedHit(
            msgspec.structs.replace(hit, score=scores[hit.id]),
            _matched_by(words=hit.id in by_words, meaning=hit.id in by_meaning),
        )
        for hit in ranked
    ]


def rarity(count: int, total: int) -> float:
    """Return how much a word says, if `count` of `total` passages have it (rule 4)."""
    return math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def coverages(
    hits: Iterable[PassageHit], term_passages: Sequence[tuple[float, set[int]]], total_rarity: float
) -> list[float]:
    """Return the coverage of each passage (rule 2). `term_passages` has, for each term, its rarity and the
    ids of the passages that have it.
    """
    return [
        sum(weight for weight, ids in term_passages if hit.id in ids) / total_rarity if total_rarity else 0.0
        for hit in hits
    ]


def _matched_by(*, words: bool, meaning: bool) -> MatchedBy:
    if words and meaning:
        return ("words", "meaning")
    return ("words",) if words else ("meaning",)
