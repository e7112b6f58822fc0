"""Passages: where a text is cut, and that nothing of it is lost or said twice."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.memory.knowledge.chunks import LONGEST, chunks
from nexus_context.memory.knowledge.terms import MOST_WORDS, query_terms, searchable
from support.fixture import parse_fixture

LONGEST_S = 1.0


def check(fixture: str, *passages: str) -> None:
    """The passages of the fixture's only file, each as `outer › inner | text`, line ends as `⏎`."""
    ((path, text),) = parse_fixture(fixture).files.items()
    assert [shown(each.heading, each.text) for each in chunks(path, text)] == list(passages)


def shown(heading: tuple[str, ...], text: str) -> str:
    return f"{' › '.join(heading)} | {text}".replace("\n", "⏎")


def test_headings_of_markdown() -> None:
    check(
        """
        //- /a.md
        before

        # One #
        first

        second
        ## C#
        text
        #no heading
        # Two
        last
        """,
        " | before",
        "One | # One #⏎first⏎⏎second",
        "One › C# | ## C#⏎text⏎#no heading",
        "Two | # Two⏎last",
    )


def test_underlined_headings_of_markdown() -> None:
    check(
        """
        //- /a.md
        ---
        title: x
        ---
        Title
        =====
        text
        more
        ---

        - item
        ---
        Sub
        ---
        end
        """,
        " | ---⏎title: x⏎---",
        "Title | Title⏎=====⏎text⏎more⏎---⏎⏎- item⏎---⏎Sub⏎---⏎end",
    )
    check("//- /a.md\nA\n===\nx\n\nB\n---\ny", "A | A⏎===⏎x", "A › B | B⏎---⏎y")


def test_nothing_in_a_fence_is_a_heading() -> None:
    check(
        """
        //- /a.markdown
        # One
        ````sh
        # comment

        ```
        ## also
        ````
        ## Two
        ~~~
        # open to the end
        """,
        "One | # One⏎````sh⏎# comment⏎⏎```⏎## also⏎````",
        "One › Two | ## Two⏎~~~⏎# open to the end",
    )


def test_a_heading_alone_goes_with_what_is_below_it() -> None:
    check(
        "//- /a.md\n# A\n\n## B\n\n### C\nc\n## D\n# E\n",
        "A › B › C | # A⏎⏎## B⏎⏎### C⏎c",
        "A › D | ## D",
        "E | # E",
    )


def test_other_formats() -> None:
    check("//- /a.txt\n# no heading\n\nTitle\n=====\nx\n", " | # no heading⏎⏎Title⏎=====⏎x")
    check(
        "//- /a.adoc\n= A\n\n== B\nb\n----\n== no\n----\n== C\nc\n",
        "A › B | = A⏎⏎== B⏎b⏎----⏎== no⏎----",
        "A › C | == C⏎c",
    )
    check(
        """
        //- /a.rst
        ====
        Book
        ====
        intro

        Part
        ----
        text

        Next
        ----
        too long a line for this rule
        ----
        """,
        "Book | ====⏎Book⏎====⏎intro",
        "Book › Part | Part⏎----⏎text",
        "Book › Next | Next⏎----⏎too long a line for this rule⏎----",
    )


def test_nothing() -> None:
    check("//- /a.md\n")
    check("//- /a.md\n \n\t\n\n")


def test_a_long_section_is_cut_at_blank_lines_into_like_parts() -> None:
    paragraph = "word " * 99 + "end"
    text = "# Title\n\n" + "\n\n".join([paragraph] * 7)
    found = chunks("/a.md", text)
    assert [len(each.text) for each in found] == [1507, 1498, 498]
    assert {each.heading for each in found} == {("Title",)}
    assert found[1].text == "\n\n".join([paragraph] * 3)


def test_a_long_paragraph_is_cut_at_lines_and_a_long_line_at_spaces() -> None:
    lines = "\n".join(f"{number:04} " + "x" * 95 for number in range(40))
    assert [each.text[-100:-95] for each in chunks("/a.txt", lines)] == ["0013 ", "0027 ", "0039 "]
    words = chunks("/a.txt", "  " + "word " * 1000)
    assert all(each.text.strip().startswith("word") and each.text.endswith("word") for each in words)
    assert [len(each.text) for each in chunks("/a.txt", "x" * 4000)] == [1600, 1600, 800]


line = st.sampled_from(
    [
        "",
        "",
        " ",
        "text",
        "# A",
        "## B ##",
        "### ",
        "===",
        "---",
        "----",
        "```",
        "~~~",
        "````",
        "    code",
        "- x",
    ]
) | st.text(max_size=30)
texts = st.lists(line, max_size=40).map("\n".join) | st.lists(
    st.text("ab \n", max_size=3).map(lambda each: each * 300), max_size=6
).map("".join)


@given(texts, st.sampled_from([".md", ".rst", ".adoc", ".txt"]))
def test_passages_hold_all_of_a_text_once_and_in_order(text: str, suffix: str) -> None:
    end = 0
    for each in chunks(f"/a{suffix}", text):
        assert text[end : each.span.start].strip() == ""
        assert each.text == text[each.span.start : each.span.end]
        assert each.text.strip()
        assert each.text == each.text.rstrip()
        assert len(each.text) <= LONGEST or len(each.text.splitlines()) == 1
        end = each.span.end
    assert text[end:].strip() == ""


@pytest.mark.parametrize(
    "unit",
    ["a", "aB", "A", "`", "\n", "# x\n", "x\n===\n", "```\n", "- ", "字", "=", "> ", "# " + " " * 999 + "x"],
)
def test_a_text_of_one_thing_is_read_in_linear_time(unit: str) -> None:
    text = (unit * 200_000)[:200_000]
    for suffix in (".md", ".rst", ".adoc"):
        started = time.process_time()
        for each in chunks(f"/a{suffix}", text):
            searchable(each.text)
        assert time.process_time() - started < LONGEST_S  # ordinarily a tenth of it


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("How do I configure the retries?", ["configure", "retries"]),
        ("getUserName user_id", ["getusername", "user", "name", "id"]),
        ("docs/http-server.md: HTTPServer2 v2", ["docs", "http", "server", "md", "httpserver2", "v2"]),
        ("Größe naïve", ["größe", "naïve"]),
        ("并发控制 x 字", ["并发", "发控", "控制", "字"]),
        ('a "quoted" * NOT (x OR y)', ["quoted"]),
        ("x" * 65, []),
        ("", []),
    ],
)
def test_words_of_a_message(message: str, words: list[str]) -> None:
    assert [word for word in query_terms(message) if word not in ("2",)] == words


def test_of_a_long_message_the_first_and_the_last_words_are_asked_for() -> None:
    found = query_terms(" ".join(f"word{number:04}" for number in range(1000)))
    assert (len(found), found[0], found[-1]) == (MOST_WORDS, "word0000", "word0999")


@given(st.text())
def test_words_are_always_safe_to_ask_for(message: str) -> None:
    assert all('"' not in word and word.strip() == word != "" for word in query_terms(message))
    indexed = re.findall(r"[^\W_]+", searchable(message))
    assert set(re.findall(r"[^\W_]+", message)) <= set(indexed) or not message.isascii()
