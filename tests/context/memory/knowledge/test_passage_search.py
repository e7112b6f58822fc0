"""Which passages belong to a message: rank, budget, cuts, omissions and covered secrets."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.errors import Span
from nexus_context.folder.prompt import texts
from nexus_context.memory.knowledge import KnowledgeIndex, KnowledgePath, Passage, Settings, query, refresh
from nexus_context.tokens import SimpleTokenCounter
from support.fixture import write_fixture

COUNTER = SimpleTokenCounter()
CUT = texts.text("knowledge_cut")
Ask = Callable[..., list[Passage]]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Callable[[str], Ask]]:
    opened: list[KnowledgeIndex] = []

    def make(fixture: str) -> Ask:
        write_fixture(fixture, tmp_path / "docs")
        docs = str(tmp_path / "docs")
        index = KnowledgeIndex(str(tmp_path / "index.db"))
        opened.append(index)
        refresh(index, Settings((KnowledgePath(docs, (), docs, "local", docs, docs, Span(0, 0)),)))

        def ask(
            message: str,
            *,
            top_k: int = 5,
            max_tokens: int = 1000,
            accepts: Callable[[str], bool] = lambda _: True,
        ) -> list[Passage]:
            return query(index, message, COUNTER, top_k=top_k, max_tokens=max_tokens, accepts=accepts)

        return ask

    yield make
    for index in opened:
        index.close()


def check(found: list[Passage], *expected: str) -> None:
    """Passages as `file heading: text`, in order, each of which must stand at its span."""
    for each in found:
        if not each.cut:
            assert Path(each.path).read_text()[slice(*each.span)] == each.text
    shown = (f"{Path(each.path).name} {each.heading}: {each.text}".replace("\n", "⏎") for each in found)
    assert list(shown) == list(expected)


FILES = """
    //- /client.md
    # Client
    ## Retries
    A request is sent again after a timeout.
    ## Headers
    Every request carries headers.
    //- /server.md
    # Server
    The server answers each request, with a timeout for slow clients.
    //- /names.rst
    Names
    =====
    `getUserName` reads user_id from ~/.config/app.toml. Größe in naïve texts; 并发控制 in others.
"""


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("When are retries sent after a timeout?", ["Client › Retries", "Server"]),
        ("retry", ["Client › Retries"]),
        ("request headers", ["Client › Headers", "Client › Retries", "Server"]),
        ("get the user's name", ["Names"]),
        ("GETUSERNAME", ["Names"]),
        ("config/app.toml", ["Names"]),
        ("grosse GRÖSSE NAIVE", ["Names"]),
        ("控制", ["Names"]),
        ("names.rst", ["Names"]),
        ("nothing of the kind", []),
        ("when is it that you", []),
        ("", []),
        ('" OR * NEAR(', []),
    ],
)
def test_what_is_found(base: Callable[[str], Ask], message: str, found: list[str]) -> None:
    assert [each.heading for each in base(FILES)(message)] == found


def test_a_passage_says_where_it_stands(base: Callable[[str], Ask]) -> None:
    ask = base(FILES)
    check(
        ask("retries timeout"),
        "client.md Client › Retries: # Client⏎## Retries⏎A request is sent again after a timeout.",
        "server.md Server: # Server⏎The server answers each request, with a timeout for slow clients.",
    )
    first, second = ask("retries timeout")
    assert first.score > second.score > 0
    assert first.tokens == sum(map(COUNTER.count, (first.path, first.heading, first.text)))


def test_a_word_in_a_heading_counts_for_more(base: Callable[[str], Ask]) -> None:
    ask = base("//- /a.md\n# Other\nplums are plums\n//- /b.md\n# Plums\nsomething else there\n")
    assert [each.heading for each in ask("plums")] == ["Plums", "Other"]


def test_limits(base: Callable[[str], Ask]) -> None:
    ask = base(
        "".join(f"//- /{number}.md\n# Part {number}\nplum {number} {'x' * number}\n" for number in range(9))
    )
    assert [len(ask("plum", top_k=count)) for count in (0, 1, 4, 1000)] == [0, 1, 4, 9]
    for most in (0, 30, 60, 100):
        assert sum(each.tokens for each in ask("plum", top_k=9, max_tokens=most)) <= most
    assert [Path(each.path).name for each in ask("plum", accepts=lambda path: path.endswith("3.md"))] == [
        "3.md"
    ]


def test_the_first_is_cut_at_a_line(base: Callable[[str], Ask]) -> None:
    lines = "\n".join(f"line {number} of plums" for number in range(40))
    ask = base(f"//- /a.md\n# Plums\n{lines}\n//- /b.md\nplums\n")
    whole = ask("plums", top_k=1)[0]
    found = ask("plums", max_tokens=whole.tokens // 2)
    assert found[0].cut
    assert found[0].text.endswith(f" of plums\n{CUT}")
    assert whole.text.startswith(found[0].text.removesuffix(f"\n{CUT}") + "\n")
    assert Path(found[0].path).read_text()[slice(*found[0].span)] == found[0].text.removesuffix(f"\n{CUT}")
    assert sum(each.tokens for each in found) <= whole.tokens // 2
    assert ask("plums", max_tokens=5) == []


def test_what_says_the_same_is_left_out(base: Callable[[str], Ask]) -> None:
    text = " ".join(f"word{number}" for number in range(50))
    ask = base(
        f"//- /a.md\nplums {text}\n//- /b.md\nplums  {text}\n"
        f"//- /c.md\nPlums {text} more\n//- /d.md\nplums else\n"
    )
    assert sorted(Path(each.path).name for each in ask("plums word1")) == ["a.md", "d.md"]


def test_a_secret_is_covered(base: Callable[[str], Ask]) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    ask = base(f"//- /a.md\nThe plum token is {secret} today.\n")
    (found,) = ask("plum")
    assert found.text == f"The plum token is {'*' * len(secret)} today."


def test_common_words_are_asked_for_together(
    base: Callable[[str], Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = base(
        "".join(f"//- /{number}.md\nplum {number}\n//- /{number}x.md\npear {number}\n" for number in range(9))
        + "//- /both.md\nplum and pear\n//- /rare.md\nfig\n"
    )
    monkeypatch.setitem(query.__globals__, "MOST_ROWS", 5)
    assert [Path(each.path).name for each in ask("plum pear")] == ["both.md"]
    assert len(ask("plum pear missing")) == 1
    assert len(ask("plum missing")) == 5
    assert [Path(each.path).name for each in ask("plum pear fig")] == ["rare.md"]


WORDS = [
    "plum",
    "pear",
    "fig",
    "getUserName",
    "user_id",
    "并发控制",
    "naïve",
    '"',
    "NOT",
    "*",
    "OR",
    "the",
    "🦀",
    "\ud800",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(message=st.lists(st.sampled_from(WORDS) | st.text(max_size=5)).map(" ".join), most=st.integers(0, 300))
def test_any_message_gets_an_answer_within_its_budget(
    base: Callable[[str], Ask], message: str, most: int
) -> None:
    draw = random.Random(7)  # noqa: S311 - the same files each time
    text = "".join(
        f"//- /{n}.md\n# {draw.choice(WORDS[:7])}\n" + " ".join(draw.choices(WORDS[:13], k=90)) + "\n"
        for n in range(9)
    )
    found = base(text)(message, max_tokens=most)
    assert sum(each.tokens for each in found) <= most
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert not any(each.cut for each in found[1:])


def test_an_identifier_is_found_whole(base: Callable[[str], Ask]) -> None:
    ask = base("""
        //- /a.md
        The plan of fix-11 is ready.
        //- /b.md
        The plan of fix-3 is late.
        """)
    assert [Path(each.path).name for each in ask("fix-3")] == ["b.md"]
    assert [Path(each.path).name for each in ask("fix-4")] == []
