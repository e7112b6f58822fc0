"""What is measured: how well a knowledge base answers, how fast, and what its model costs.

Garbage collection is off while the clock runs. The model's cost is measured in a process of its own.
"""

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from benchmarks.conversation.speed import Times, quiet, timed
from benchmarks.conversation.traces import ROOT
from benchmarks.ledger import texts

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
from nexus_context.tokens import TiktokenCounter, TokenCounter

HERE = Path(__file__).resolve().parent
WORDS, MEANING, HYBRID = "words (BM25)", "meaning (embeddings)", "both (hybrid)"
FIRST = 5  # passages that recall counts
RANKED = 10  # passages that the reciprocal rank counts
TRAIL = " › "


class Rounds(msgspec.Struct, frozen=True):
    """How much is measured."""

    repeats: int  # of each labelled query
    files: int  # of the large knowledge base
    searches: int  # in it


FULL = Rounds(repeats=5, files=10_000, searches=300)
QUICK = Rounds(repeats=1, files=300, searches=20)


class Question(msgspec.Struct, frozen=True):
    """A labelled query: the headings of the passages that answer it."""

    kind: str
    text: str
    relevant: tuple[str, ...]


class Quality(msgspec.Struct, frozen=True):
    """The mean over some queries."""

    recall: float  # share of the relevant passages among the first five
    reciprocal_rank: float  # 1 / rank of the first relevant passage; 0 if it is not among the first ten


class Way(msgspec.Struct, frozen=True):
    """One way of searching: its quality for each kind of query and for all, and its time."""

    quality: dict[str, Quality]
    times: Times
    processor: Times


class Large(msgspec.Struct, frozen=True):
    """A large knowledge base, searched with whole messages."""

    files: int
    passages: int
    index_s: float  # processor time, as the next two
    embed_s: float
    again_s: float  # to find that nothing changed
    megabytes: float  # of the database
    times: dict[str, Times]
    processor: dict[str, Times]


class Cost(msgspec.Struct, frozen=True):
    """What the model costs a process."""

    import_s: float  # processor time, as the next three
    load_s: float
    thousand_s: float  # to embed a thousand passages
    message_ms: float  # to embed a message
    megabytes: float  # of resident memory, with its libraries


class Outcome(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    passages: int
    ways: dict[str, Way]
    large: Large
    cost: Cost


Search = Callable[[str], Sequence[str]]
"""Headings of the passages for a message, the best first."""


def questions() -> list[Question]:
    """The labelled queries."""
    lines = (HERE / "queries.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Question) for line in lines]


def measure(folder: Path, rounds: Rounds) -> Outcome:
    """Measure everything, with files in `folder`."""
    index = KnowledgeIndex(str(folder / "labelled.db"))
    refresh(index, settings_for(str(HERE / "corpus")))
    vectors = Vectors(index, load_model(find_model()))
    vectors.refresh()
    ways = {name: _way(search, rounds) for name, search in searches(index, vectors).items()}
    _, passages = index.totals()
    return Outcome(passages, ways, _large(folder, rounds), cost())


def searches(index: KnowledgeIndex, vectors: Vectors) -> dict[str, Search]:
    """The three ways to search an index; the same limits for each."""
    counter = TiktokenCounter("cl100k_base")
    counter.count("loads the vocabulary")
    return {
        WORDS: lambda text: _headings(index, counter, text, None),
        MEANING: lambda text: [_title(hit.heading) for hit in vectors.nearest(text, RANKED)],
        HYBRID: lambda text: _headings(index, counter, text, vectors),
    }


def quality(answers: Sequence[tuple[Question, Sequence[str]]]) -> Quality:
    """The quality of some answers."""
    recalls = [
        len(set(answer[:FIRST]) & set(one.relevant)) / min(len(one.relevant), FIRST)
        for one, answer in answers
    ]
    ranks = [
        next((1 / rank for rank, title in enumerate(answer[:RANKED], 1) if title in one.relevant), 0.0)
        for one, answer in answers
    ]
    return Quality(sum(recalls) / len(recalls), sum(ranks) / len(ranks))


def cost() -> Cost:
    """What the model costs a new process."""
    command = [sys.executable, "-m", "benchmarks.knowledge.worker"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=Cost)


def _way(search: Search, rounds: Rounds) -> Way:
    times: list[int] = []
    processor: list[int] = []
    answers: list[tuple[Question, Sequence[str]]] = []
    search("the first search reads the index")
    with quiet():
        for number in range(rounds.repeats):
            for one in questions():
                with timed(times), _timed_processor(processor):
                    answer = search(one.text)
                if not number:
                    answers.append((one, answer))
    kinds = sorted({one.kind for one, _ in answers})
    of_kind = {kind: quality([each for each in answers if each[0].kind == kind]) for kind in kinds}
    return Way(of_kind | {"all": quality(answers)}, Times.of(times), Times.of(processor))


@contextmanager
def _timed_processor(processor: list[int]) -> Iterator[None]:
    """As `timed`, for the time of the processor: other programs do not count."""
    began = time.process_time_ns()
    yield
    processor.append(time.process_time_ns() - began)


def _large(folder: Path, rounds: Rounds) -> Large:
    pages = folder / "pages"
    for number, page in enumerate(texts.pages(rounds.files)):
        file = pages / f"{number % 100:02}" / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8")
    database = folder / "large.db"
    index = KnowledgeIndex(str(database))
    clock: list[int] = []
    with _timed_processor(clock):
        refresh(index, settings_for(str(pages)))
    vectors = Vectors(index, load_model(find_model()))
    for _ in range(2):
        with _timed_processor(clock):
            vectors.refresh()
    messages = [text_of(turn.messages[0].message) for turn in texts.made(rounds.searches, seed=9)]
    all_times: dict[str, Times] = {}
    all_processor: dict[str, Times] = {}
    for name, search in searches(index, vectors).items():
        times: list[int] = []
        processor: list[int] = []
        with quiet():
            for message in messages:
                with timed(times), _timed_processor(processor):
                    search(message)
        all_times[name], all_processor[name] = Times.of(times), Times.of(processor)
    index_s, embed_s, again_s = (value / 1e9 for value in clock)
    _, passages = index.totals()
    index.close()
    size = database.stat().st_size / 1e6
    return Large(
        rounds.files,
        passages,
        index_s,
        embed_s=embed_s,
        again_s=again_s,
        megabytes=size,
        times=all_times,
        processor=all_processor,
    )


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
