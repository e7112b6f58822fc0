"""The labelled set, the measures and the promises of `benchmarks/knowledge`."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.knowledge import measures
from benchmarks.knowledge.measures import Question, judge_answers
from benchmarks.promises import Run, measure

from support.embeddings import needs_model

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def test_the_labelled_set() -> None:
    pages = (measures.HERE / "corpus").glob("*.md")
    headings = [heading for page in pages for heading in HEADING.findall(page.read_text(encoding="utf-8"))]
    questions = measures.read_questions()
    assert len(headings) == len(set(headings)) == 242
    assert Counter(one.kind for one in questions) == {
        "identifier": 16,
        "error": 16,
        "question": 20,
        "paraphrase": 30,
    }
    assert len({one.text for one in questions}) == len(questions)
    assert {heading for one in questions for heading in one.relevant} <= set(headings)


def test_quality() -> None:
    one, two = Question("a", "", ("x",)), Question("a", "", ("x", "y"))
    assert judge_answers([(one, ["x"])]) == measures.Quality(1.0, 1.0)
    assert judge_answers([(one, ["a", "x"]), (two, ["a", "b", "y", "c", "d", "x"])]) == measures.Quality(
        0.75, (1 / 2 + 1 / 3) / 2
    )
    assert judge_answers([(one, [])]) == measures.Quality(0.0, 0.0)


@needs_model
def test_both_ways_find_more(tmp_path: Path) -> None:
    recall, rank = measure(measures.labelled, Run(tmp_path))
    assert (recall.outcome, recall.value, recall.reference) == ("pass", approx(0.846), approx(0.724))
    assert (rank.outcome, rank.value, rank.reference) == ("pass", approx(0.761), approx(0.716))


def approx(value: float) -> object:
    return pytest.approx(value, abs=0.02)
