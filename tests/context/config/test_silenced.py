"""Problems that `check.ignore` or a comment silences."""

import pytest

from nexus_context.config.silenced import without_silenced
from nexus_context.errors import Problem, Severity, Span

PATH = "/w/docs/CLAUDE.md"
TEXT = "one\n{}\n@gone.md\nlast @gone.md\n"


def check(code: str, *ignore: str, comment: str = "", word: str = "@gone", text: str = TEXT) -> str:
    """Whether a problem at a word of a text is told."""
    text = text.format(comment)
    at = text.index(word)
    problem = Problem(PATH, Span(at, at + 1), code, Severity.WARNING, message="m")
    heard = without_silenced([problem], {PATH: text}, ignore, "/w")
    assert len(heard.problems) + len(heard.silenced) == 1
    return "told" if heard.problems else "silenced"


@pytest.mark.parametrize(
    ("ignore", "expected"),
    [
        ([], "told"),
        (["assistant.import"], "silenced"),
        (["assistant.*"], "silenced"),
        (["*"], "silenced"),
        (["assistant"], "told"),
        (["assistant.import:docs/**"], "silenced"),
        (["assistant.import:/docs/*.md"], "silenced"),
        (["assistant.import:CLAUDE.md"], "silenced"),
        (["assistant.import:src/**"], "told"),
        (["assistant.import:"], "told"),
        (["assistant.unread", "assistant.import:{a,docs}/**"], "silenced"),
        (["assistant.import:" + "{a,b}" * 60], "told"),
    ],
)
def test_a_setting(ignore: list[str], expected: str) -> None:
    assert check("assistant.import", *ignore) == expected


@pytest.mark.parametrize(
    ("comment", "word", "expected"),
    [
        ("<!-- nexus: ignore assistant.import -->", "@gone", "silenced"),
        ("<!-- nexus: ignore assistant.import-->", "@gone", "silenced"),
        ("# nexus: ignore skill.name, assistant.*", "@gone", "silenced"),
        ("// nexus: ignore assistant.import", "last", "told"),
        ("/* nexus: ignore-file assistant.import */", "last", "silenced"),
        ("nexus: ignore assistant.import", "@gone", "told"),
        ("<!-- nexus: ignore -->", "@gone", "told"),
        ("<!-- nexus: ignore assistant.unread -->", "@gone", "told"),
    ],
)
def test_a_comment(comment: str, word: str, expected: str) -> None:
    assert check("assistant.import", comment=comment, word=word) == expected


def test_a_comment_at_the_end_of_the_line_itself() -> None:
    assert (
        check("assistant.import", text="x\n@gone.md <!-- nexus: ignore assistant.import -->{}\n")
        == "silenced"
    )


def test_a_bug_of_nexus_is_never_silenced() -> None:
    assert check("internal", "*", "internal") == "told"
