"""How well and how quickly passages are found by their words, by their meaning and by both.

The labelled set is `corpus/`, the handbook of a company that does not exist, and `queries.jsonl` with the
headings that answer each query. It was written for this, the queries before anything was measured.
"""

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from benchmarks.ledger import texts
from benchmarks.ledger.measures import each_of, plain_search
from benchmarks.promises import ROOT, Measured, Promise, Run, processor_ms, promises, take_turns

from nexus_context.conversation.message import text_of
from nexus_context.memory.knowledge import (
    KnowledgeIndex,
    Vectors,
    find_model,
    load_model,
    query,
    refresh,
    settings_for,
)
from nexus_context.memory.knowledge.terms import query_terms
from nexus_context.tokens import TiktokenCounter, TokenCounter

HERE = Path(__file__).resolve().parent
WORDS, MEANING, HYBRID = "words (BM25)", "meaning (embeddings)", "both (hybrid)"
FIRST = 5  # passages that recall counts
RANKED = 10  # passages that the reciprocal rank counts
TRAIL = " › "
FTS = "plain FTS5, the same words"


class Question(msgspec.Struct, frozen=True):
    """A labelled query: the headings of the passages that answer it."""

    kind: str
    text: str
    relevant: tuple[str, ...]


class Quality(msgspec.Struct, frozen=True):
    """The mean over some queries."""

    recall: float  # share of the relevant passages among the first five
    reciprocal_rank: float  # 1 / rank of the first relevant passage; 0 if it is not among the first ten


class Cost(msgspec.Struct, frozen=True):
    """What the model costs a process: the processor's time, for a thousand passages and for a message."""

    import_s: float
    load_s: float
    thousand_s: float
    message_ms: float
    megabytes: float  # of resident memory, with its libraries


Search = Callable[[str], Sequence[str]]
"""Headings of the passages for a message, the best first."""


@promises(
    Promise("recall@5 of both", 1.0, WORDS, unit="", at_least=True),
    Promise("MRR of both", 1.0, WORDS, unit="", at_least=True),
)
def labelled(run: Run) -> Iterator[Measured]:
    """Queries of four kinds: identifiers, errors as people paste them, questions, and paraphrases."""
    index = KnowledgeIndex(str(run.root / "labelled.db"))
    refresh(index, settings_for(str(HERE / "corpus")))
    vectors = Vectors(index, load_model(find_model()))
    vectors.refresh()
    overall = {}
    for name, search in searches(index, vectors).items():
        answers = [(question, search(question.text)) for question in read_questions()]
        overall[name] = judge_answers(answers)
        for kind in sorted({question.kind for question, _ in answers}):
            part = judge_answers([answer for answer in answers if answer[0].kind == kind])
            columns = {"recall@5": part.recall, "MRR": part.reciprocal_rank}
            run.note("Knowledge: labelled queries", f"{name}, {kind}", **columns)
    yield "recall@5 of both", overall[HYBRID].recall, overall[WORDS].recall
    yield "MRR of both", overall[HYBRID].reciprocal_rank, overall[WORDS].reciprocal_rank
    command = [sys.executable, "-m", "benchmarks.knowledge.worker"]
    cost = msgspec.json.decode(run.execute(command, cwd=ROOT), type=Cost)
    run.note("Knowledge: the model, processor time", "one process", **msgspec.structs.asdict(cost))


@promises(
    Promise("a whole message in 10,000 files, words", 1.5, FTS),
    Promise("a whole message in 10,000 files, meaning", 0.4, FTS),
    Promise("a whole message in 10,000 files, both", 2.3, FTS),
)
def large(run: Run) -> Iterator[Measured]:
    """Passages for a message out of many files, in processor time: the clock also shows what else runs."""
    pages = list(texts.pages(run.pick(full=10_000, quick=1_000)))
    folder = run.folder(
        "pages", {f"{number % 100:02}/{number}.md": page for number, page in enumerate(pages)}
    )
    index = KnowledgeIndex(str(run.root / "large.db"))
    index_s = processor_ms(lambda: refresh(index, settings_for(str(folder)))) / 1e3
    vectors = Vectors(index, load_model(find_model()))
    embed_s = processor_ms(vectors.refresh) / 1e3
    again_ms = processor_ms(vectors.refresh)
    figures = {"index, s": index_s, "embed, s": embed_s, "embed again, ms": again_ms}
    run.note("Knowledge: many files, processor time", f"{len(pages):,} files", **figures)
    rounds = run.pick(full=200, quick=20)
    messages = [text_of(turn.messages[0].message) for turn in texts.made(rounds + 1, seed=9)]
    with plain_search(run.root, pages) as match:
        steps = {
            name: each_of(search, messages, processor_ms) for name, search in searches(index, vectors).items()
        }
        terms = [" OR ".join(f'"{term}"' for term in query_terms(message)) for message in messages]
        turns = take_turns(steps | {FTS: each_of(match, terms, processor_ms)}, rounds)
    for name, lane in (("words", WORDS), ("meaning", MEANING), ("both", HYBRID)):
        yield f"a whole message in 10,000 files, {name}", turns[lane], turns[FTS]
    run.note_turns("Knowledge: a whole message in many files, ms of the processor", turns)


def read_questions() -> list[Question]:
    """The labelled queries."""
    lines = (HERE / "queries.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Question) for line in lines]


def searches(index: KnowledgeIndex, vectors: Vectors) -> dict[str, Search]:
    """The three ways to search an index; the same limits for each."""
    counter = TiktokenCounter("cl100k_base")
    counter.count("loads the vocabulary")
    return {
        WORDS: lambda text: _headings(index, counter, text, None),
        MEANING: lambda text: [_title(hit.heading) for hit in vectors.nearest(text, RANKED)],
        HYBRID: lambda text: _headings(index, counter, text, vectors),
    }


def judge_answers(answers: Sequence[tuple[Question, Sequence[str]]]) -> Quality:
    """The quality of some answers."""
    recalls = [
        len(set(answer[:FIRST]) & set(question.relevant)) / min(len(question.relevant), FIRST)
        for question, answer in answers
    ]
    ranks = [
        next((1 / rank for rank, title in enumerate(answer[:RANKED], 1) if title in question.relevant), 0.0)
        for question, answer in answers
    ]
    return Quality(sum(recalls) / len(recalls), sum(ranks) / len(ranks))


def passages_of_documents() -> Iterator[str]:
    """Texts of about 1,000 characters from the project's documents, without end."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    parts = [page[at : at + 1_000] for page in pages for at in range(0, len(page), 1_000)]
    return itertools.cycle(parts)


def _headings(index: KnowledgeIndex, counter: TokenCounter, text: str, vectors: Vectors | None) -> list[str]:
    passages = query(index, text, counter, top_k=RANKED, max_tokens=20_000, vectors=vectors)
    return [_title(each.heading) for each in passages]


def _title(heading: str) -> str:
    return heading.rpartition(TRAIL)[2]
