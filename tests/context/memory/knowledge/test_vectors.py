"""The search by meaning: what is embedded, what broken models and rows cost, how rankings are fused."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import Span
from nexus_context.memory.knowledge import (
    EmbeddingError,
    KnowledgeIndex,
    Passage,
    Vectors,
    passage_index,
    query,
    refresh,
    settings_for,
)
from nexus_context.memory.knowledge import vectors as module
from nexus_context.memory.knowledge.fusion import LISTED, RankedHit, fuse, rarity
from nexus_context.memory.knowledge.passage_index import PassageHit
from nexus_context.tokens import SimpleTokenCounter
from support.fixture import write_fixture

COUNTER = SimpleTokenCounter()
TOPICS = (
    {"car", "automobile", "vehicle", "engine"},
    {"cat", "feline", "kitten", "purr"},
    {"money", "refund", "invoice", "price"},
)


class TopicEmbedder:
    """Counts words of each topic; texts without any of them have a direction of their own."""

    def __init__(self, name: str = "topics 1", dimensions: int = 4) -> None:
        self.name = name
        self.dimensions = dimensions
        self.texts: list[str] = []
        self.failure: Exception | None = None
        self.answer: Callable[[Sequence[str]], Sequence[Sequence[float]]] = self.count

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if self.failure is not None:
            raise self.failure
        self.texts += texts
        return self.answer(texts)

    def count(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        rows = []
        for text in texts:
            words = text.lower().replace(".", " ").split()
            counts = [float(sum(word in topic for word in words)) for topic in TOPICS]
            padding = [0.0] * (self.dimensions - len(counts) - 1)
            rows.append([*counts, 0.0 if any(counts) else 1.0, *padding])
        return rows


class Base:
    """Files in `docs`, their index and their vectors."""

    def __init__(self, root: Path, fixture: str, embedder: TopicEmbedder | None = None) -> None:
        self.docs = root / "docs"
        self.database = root / "index.db"
        self.embedder = embedder or TopicEmbedder()
        self.index = KnowledgeIndex(str(self.database))
        write_fixture(fixture, self.docs)
        self.vectors = Vectors(self.index, self.embedder)

    def refresh(self) -> list[str]:
        """Bring index and vectors up to date; the texts that were embedded for it."""
        refresh(self.index, settings_for(str(self.docs)))
        del self.embedder.texts[:]
        embedded = self.vectors.refresh().embedded
        assert embedded == len(self.embedder.texts)
        return [text.replace("\n", "⏎") for text in self.embedder.texts]

    def use(self, embedder: TopicEmbedder) -> None:
        self.embedder, self.vectors = embedder, Vectors(self.index, embedder)

    def ask(self, message: str, *, top_k: int = 5, max_tokens: int = 1_000) -> list[Passage]:
        return query(self.index, message, COUNTER, top_k=top_k, max_tokens=max_tokens, vectors=self.vectors)

    def stored(self) -> int:
        with sqlite3.connect(self.database) as connection:
            ((count,),) = connection.execute("SELECT count(*) FROM vectors")
        connection.close()
        return int(count)

    def execute(self, statement: str, *values: object) -> None:
        with sqlite3.connect(self.database) as connection:
            assert connection.execute(statement, values).rowcount
        connection.close()


FILES = """
//- /cars.md
# Workshop
Every automobile is checked here.
//- /cats.md
A feline sleeps all day.
//- /money.md
Each invoice is paid back within a month.
"""
CARS, CATS, MONEY = (
    "Workshop⏎# Workshop⏎Every automobile is checked here.",
    "A feline sleeps all day.",
    "Each invoice is paid back within a month.",
)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = Base(tmp_path, FILES)
    yield made
    made.index.close()


def check(base: Base, message: str, *expected: str) -> None:
    """The passages for a message as `file: what found it`, the best first."""
    assert [f"{Path(each.path).name}: {' and '.join(each.matched_by)}" for each in base.ask(message)] == list(
        expected
    )


def test_a_passage_without_a_word_of_the_message_is_found(base: Base) -> None:
    assert base.refresh() == [CARS, CATS, MONEY]
    check(base, "my vehicle", "cars.md: meaning")
    check(base, "the kitten sleeps", "cats.md: words and meaning")
    check(base, "paid vehicle", "cars.md: meaning", "money.md: words")


def test_without_a_refresh_words_alone_are_searched(base: Base) -> None:
    refresh(base.index, settings_for(str(base.docs)))
    check(base, "my vehicle")
    check(base, "the kitten sleeps", "cats.md: words")
    assert base.embedder.texts == []


def test_a_message_of_stop_words_is_not_searched(base: Base) -> None:
    base.refresh()
    del base.embedder.texts[:]
    check(base, "and then, please?")
    assert base.embedder.texts == []


def test_only_what_changed_is_embedded_again(base: Base) -> None:
    base.refresh()
    assert base.refresh() == []
    (base.docs / "cats.md").write_text("A kitten.\n")
    assert base.refresh() == ["A kitten."]
    (base.docs / "cats.md").rename(base.docs / "pets.md")
    assert base.refresh() == []
    check(base, "feline", "pets.md: meaning")


def test_passages_with_the_same_text_share_a_vector(base: Base) -> None:
    write_fixture("//- /a.md\nA feline sleeps all day.\n//- /b.txt\nA feline sleeps all day.\n", base.docs)
    assert base.refresh() == [CATS, CARS, MONEY]
    assert base.stored() == 3


def test_what_is_deleted_is_forgotten(base: Base) -> None:
    base.refresh()
    (base.docs / "cars.md").unlink()
    assert base.refresh() == []
    check(base, "vehicle")
    assert base.stored() == 2


def test_a_file_that_is_gone_before_the_next_refresh_is_not_found(base: Base) -> None:
    base.refresh()
    base.index.write([], [str(base.docs / "cars.md")])
    check(base, "vehicle")


@pytest.mark.parametrize("embedder", [TopicEmbedder("topics 2"), TopicEmbedder(dimensions=8)])
def test_another_model_embeds_everything_again(base: Base, embedder: TopicEmbedder) -> None:
    base.refresh()
    base.use(embedder)
    assert base.refresh() == [CARS, CATS, MONEY]
    assert base.stored() == 3
    check(base, "vehicle", "cars.md: meaning")


def test_a_new_process_uses_what_is_stored(base: Base) -> None:
    base.refresh()
    base.use(TopicEmbedder())
    assert base.refresh() == []
    check(base, "vehicle", "cars.md: meaning")


@pytest.mark.parametrize(
    "damage",
    [b"", b"short", b"\0" * 9, numpy.full(4, numpy.nan, numpy.float16).tobytes()],
    ids=["empty", "short", "odd", "not a number"],
)
def test_a_damaged_vector_is_made_again(base: Base, damage: bytes) -> None:
    base.refresh()
    base.execute("UPDATE vectors SET vector = ? WHERE rowid = 1", damage)
    base.use(TopicEmbedder())
    assert base.refresh() == [CARS]
    check(base, "vehicle", "cars.md: meaning")


def test_a_damaged_index_is_built_again_with_its_vectors(base: Base) -> None:
    base.refresh()
    base.index.close()
    base.database.write_bytes(b"not a database" * 100)
    assert base.refresh() == [CARS, CATS, MONEY]
    check(base, "vehicle", "cars.md: meaning")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda texts: [[1.0] * 3 for _ in texts],
            "the model topics 1 returned numbers of shape (3, 3) instead of (3, 4)",
        ),
        (lambda texts: [[1.0] * 4], "the model topics 1 returned numbers of shape (1, 4) instead of (3, 4)"),
        (
            lambda texts: [[float("inf")] * 4 for _ in texts],
            "the model topics 1 returned numbers that are not finite",
        ),
        (
            lambda texts: ["x" for _ in texts],
            "the model topics 1 failed: ValueError(\"could not convert string to float: 'x'\")",
        ),
    ],
    ids=["dimensions", "count", "infinite", "text"],
)
def test_a_wrong_answer_of_the_model_is_an_error(
    base: Base, answer: Callable[[Sequence[str]], Sequence[Sequence[float]]], message: str
) -> None:
    base.embedder.answer = answer
    with pytest.raises(EmbeddingError) as raised:
        base.refresh()
    assert str(raised.value) == message
    assert base.stored() == 0
    check(base, "the kitten sleeps", "cats.md: words")


def test_a_model_that_fails_on_a_message_leaves_the_words(
    base: Base, caplog: pytest.LogCaptureFixture
) -> None:
    base.refresh()
    base.embedder.failure = RuntimeError("out of order")
    check(base, "the kitten sleeps", "cats.md: words")
    assert [record.message for record in caplog.records] == [
        "passages are found by words only: the model topics 1 failed: RuntimeError('out of order')"
    ]


def test_what_was_embedded_before_a_failure_is_kept(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    answer = base.embedder.answer

    def fail_on_money(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if any("invoice" in text for text in texts):
            raise MemoryError
        return answer(texts)

    base.embedder.answer = fail_on_money
    with pytest.raises(EmbeddingError, match="MemoryError"):
        base.refresh()
    check(base, "vehicle", "cars.md: meaning")
    base.embedder.answer = answer
    assert base.refresh() == [MONEY]


def test_a_refresh_that_is_stopped_goes_on_later(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 1)
    base.refresh()
    base.use(TopicEmbedder("topics 2"))
    answers = iter([False, False, True, True])
    assert base.vectors.refresh(stopped=lambda: next(answers)).embedded == 2
    check(base, "vehicle", "cars.md: meaning")
    assert base.refresh() == [MONEY]


def test_more_passages_than_the_limit(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VECTORS", 2)
    assert base.refresh() == [CARS, CATS]
    assert base.vectors.refresh().is_limited
    check(base, "price")
    (base.docs / "cars.md").unlink()
    assert base.refresh() == [MONEY]
    assert not base.vectors.refresh().is_limited


def test_the_least_similarity(base: Base) -> None:
    base.refresh()
    message = "vehicle vehicle kitten"  # cosines 0.89 and 0.45
    check(base, message, "cars.md: meaning", "cats.md: meaning")
    base.vectors.min_similarity = 0.5
    check(base, message, "cars.md: meaning")
    base.vectors.min_similarity = 0.9
    check(base, message)


def test_both_ends_of_a_long_message_count(base: Base) -> None:
    base.refresh()
    del base.embedder.texts[:]
    check(base, f"vehicle vehicle {'padding ' * 10_000} kitten", "cars.md: meaning", "cats.md: meaning")
    assert [len(text) for text in base.embedder.texts] == [module.LONGEST_MESSAGE + 1]


def test_limits_secrets_and_settings_hold_for_both(base: Base) -> None:
    write_fixture(
        "//- /keys.md\nThe engine key is sk-proj-abcdefghij0123456789abcdefghij0123456789.\n", base.docs
    )
    base.refresh()
    assert [Path(each.path).name for each in base.ask("vehicle")] == ["cars.md", "keys.md"]
    assert "abcdefghij" not in base.ask("vehicle")[1].text
    assert [Path(each.path).name for each in base.ask("vehicle", top_k=1)] == ["cars.md"]
    assert base.ask("vehicle", max_tokens=0) == []
    first = base.ask("vehicle")[0].tokens
    assert [Path(each.path).name for each in base.ask("vehicle", max_tokens=first)] == ["cars.md"]
    chosen = query(
        base.index,
        "vehicle",
        COUNTER,
        top_k=5,
        max_tokens=1_000,
        accepts=lambda path: not path.endswith("cars.md"),
        vectors=base.vectors,
    )
    assert [Path(each.path).name for each in chosen] == ["keys.md"]


def test_ten_thousand_passages(tmp_path: Path) -> None:
    sections = "\n".join(f"## Part {number}\nNumber {number} is plain.\n" for number in range(1_000))
    files = "".join(f"//- /{number}.md\n# File {number}\n{sections}" for number in range(10))
    base = Base(tmp_path, files + "//- /last.md\nA feline.\n")
    assert len(base.refresh()) == 10_001
    check(base, "kitten", "last.md: meaning")
    (base.docs / "5.md").write_text("An engine.\n")
    assert base.refresh() == ["An engine."]
    assert base.stored() == 9_002
    check(base, "vehicle", "5.md: meaning")
    base.index.close()


def test_nothing_is_imported_before_a_model_is_used(tmp_path: Path) -> None:
    code = (
        "import sys; import nexus_context.memory.knowledge; "
        "print([name for name in ('numpy', 'model2vec', 'wordllama', 'tokenizers') if name in sys.modules])"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


# ------------------------------------------------------------ fusion


def hit(number: int) -> PassageHit:
    return PassageHit(number, b"", f"{number}.md", "", text="", span=Span(0, 1), score=0.0)


def check_fused(words: list[tuple[int, float]], meaning: list[int], *expected: str) -> None:
    ranked = fuse([(hit(number), coverage) for number, coverage in words], [hit(each) for each in meaning])
    assert [f"{one.hit.id} {' and '.join(one.matched_by)}" for one in ranked] == list(expected)


def test_fusion() -> None:
    check_fused([], [])
    check_fused([(1, 1.0)], [2, 1], "1 words and meaning", "2 meaning")
    check_fused([(1, 1.0), (3, 0.1)], [2], "1 words", "2 meaning", "3 words")
    # a passage with all words is before the nearest one, and one with few of them is after it
    check_fused([(1, 0.6)], [2], "1 words", "2 meaning")
    check_fused([(1, 0.4)], [2], "2 meaning", "1 words")


def test_the_rarity_of_a_word() -> None:
    assert [round(rarity(count, 100), 2) for count in (0, 1, 50, 100, 101)] == [5.31, 4.21, 0.69, 0.0, 0.0]


RANKINGS = st.lists(st.integers(0, 80), unique=True, max_size=70)


@given(RANKINGS, RANKINGS, st.floats(0, 1))
def test_each_passage_is_ranked_once_and_by_what_found_it(
    words: list[int], meaning: list[int], coverage: float
) -> None:
    ranked: list[RankedHit] = fuse([(hit(each), coverage) for each in words], [hit(each) for each in meaning])
    assert sorted(one.hit.id for one in ranked) == sorted({*words[:LISTED], *meaning[:LISTED]})
    scores = [one.hit.score for one in ranked]
    assert scores == sorted(scores, reverse=True)
    for one in ranked:
        assert ("words" in one.matched_by) == (one.hit.id in words[:LISTED])
        assert ("meaning" in one.matched_by) == (one.hit.id in meaning[:LISTED])


def test_the_version_of_the_index() -> None:
    """Another schema needs another number: an index of the one before is emptied."""
    assert passage_index.VERSION == 2
