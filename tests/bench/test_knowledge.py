"""The labelled set, the measures and the promises of `benchmarks/knowledge`."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.knowledge import measures, report
from benchmarks.knowledge.measures import HYBRID, MEANING, WORDS, Question, Rounds, quality

from support.embeddings import needs_model

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def test_the_labelled_set() -> None:
    pages = (measures.HERE / "corpus").glob("*.md")
    headings = [heading for page in pages for heading in HEADING.findall(page.read_text(encoding="utf-8"))]
    questions = measures.questions()
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
    assert quality([(one, ["x"])]) == measures.Quality(1.0, 1.0)
    assert quality([(one, ["a", "x"]), (two, ["a", "b", "y", "c", "d", "x"])]) == measures.Quality(
        0.75, (1 / 2 + 1 / 3) / 2
    )
    assert quality([(one, [])]) == measures.Quality(0.0, 0.0)


@needs_model
def test_everything_is_measured_and_both_ways_find_more(tmp_path: Path) -> None:
    outcome = measures.measure(tmp_path, Rounds(repeats=1, files=5, searches=2))
    assert outcome.passages == 242
    recalls = {way: each.quality["all"].recall for way, each in outcome.ways.items()}
    assert recalls == pytest.approx({WORDS: 0.724, MEANING: 0.807, HYBRID: 0.846}, abs=0.02)
    assert outcome.cost.megabytes > 10
    verdicts = list(report.verdicts(outcome))
    assert [verdict.result for verdict in verdicts[:2]] == ["pass", "pass"]
    text = report.markdown("today knowledge", {"CPU": "one"}, verdicts, outcome)
    assert "| words (BM25)         | 1.000 / 1.000 |" in text
