"""docs/assistants.md says what the profiles and the recorded requests say."""

import json

from assistants_page import PAGE, page

RECORDED = PAGE.parents[1] / "tests" / "assistants" / "recorded.json"


def test_the_rules_are_those_of_the_profiles() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run `make generate`"


def test_the_table_is_that_of_the_recorded_requests() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, result in json.loads(RECORDED.read_text(encoding="utf-8")).items():
        row = f"| {name} | {result['version']} | {result['cases']} | {result['agreements']} |"
        assert row in text, "run `make test-assistants ASSISTANTS=--record`"
