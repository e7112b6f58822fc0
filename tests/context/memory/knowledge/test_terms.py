"""What a message is searched for."""

import pytest

from nexus_context.memory.knowledge.terms import MOST_WORDS, query_terms


@pytest.mark.parametrize(
    ("message", "terms"),
    [
        ("What about fix-3 now?", ["fix-3"]),
        ("Use utf-8, v1.2 and 3.11.", ["utf-8", "v1.2", "3.11"]),
        ("docs/user-name.md", ["docs", "user", "name", "md"]),
        ("issue#34 in getUserName", ["issue#34", "getusername", "user", "name"]),
        ("a-very-long-name-of-a-branch-2026", ["long", "name", "branch", "2026"]),
        ("it is 5 o'clock", ["clock"]),
        ("日本語 test", ["日本", "本語", "test"]),
        ("", []),
    ],
)
def test_terms(message: str, terms: list[str]) -> None:
    assert query_terms(message) == terms


def test_of_a_long_message_the_first_and_the_last_words_count() -> None:
    words = [f"word{number}" for number in range(200)]
    terms = query_terms(" ".join(words))
    assert terms == [*words[: MOST_WORDS // 2], *words[-MOST_WORDS // 2 :]]
