"""Earlier summaries, ours and those of other programs, are merged by their sections."""

import time

import pytest

from nexus_context.conversation.compaction.earlier_summary import Item, items_of
from nexus_context.conversation.compaction.extract_facts import extract_facts
from nexus_context.conversation.compaction.extractive import summary
from nexus_context.conversation.message import Message
from nexus_context.conversation.summary import as_summary, create_summary_message, is_summary, summary_of
from nexus_context.tokens import TiktokenCounter
from support.chats import chat

CLAUDE = """\
This session is being continued from a previous conversation that ran out of context. The conversation is summarized below:
Analysis:
The user wants a parser. I must never repeat this.

Summary:
1. Primary Request and Intent:
   - Port the parser to src/parse.py.
   - Never use regular expressions.

2. Key Technical Concepts:
   - Recursive descent

3. Files and Code Sections:
   - `src/parse.py`
     - Holds the tokenizer
     ```python
     def tokenize(): ...
     ```

4. Errors and fixes:
   - ValueError: bad port: fixed by a default.

6. All user messages:
   - "Port the parser."
   - "dates in UTC"

7. Pending Tasks:
   - Write the tests

8. Current Work:
   The lexer was finished.

Please continue the conversation from where we left it off without asking the user any further questions.
"""  # noqa: E501


def check(text: str, expected: list[tuple[str, str]]) -> None:
    """The items of a summary."""
    assert list(items_of(text)) == [Item(*item) for item in expected]


def test_a_summary_by_claude_code() -> None:
    message = as_summary(Message("user", CLAUDE))
    assert is_summary(message)
    check(
        summary_of(message),
        [
            ("goal", "Port the parser to src/parse.py."),
            ("goal", "Never use regular expressions."),
            ("state", "Recursive descent"),
            ("files", "`src/parse.py`\n- Holds the tokenizer"),
            ("errors", "ValueError: bad port: fixed by a default."),
            ("latest", '"Port the parser."'),
            ("latest", '"dates in UTC"'),
            ("tasks", "Write the tests"),
            ("state", "The lexer was finished."),
        ],
    )


def test_it_is_merged_into_ours() -> None:
    text = summary(
        [as_summary(Message("user", CLAUDE)), *chat("edit: src/parse.py\n=> ok")],
        TiktokenCounter(),
        limit=900,
    )
    for line in (
        "## Goal\n- Port the parser to src/parse.py.\n",
        "- Never use regular expressions.\n",
        "- dates in UTC\n",
        "## Open tasks\n- Write the tests\n",
        "- ValueError: bad port: fixed by a default.\n",
        "- The lexer was finished.",
    ):
        assert line in text
    for absent in ("This session is being continued", "Please continue", "never repeat this", "def tokenize"):
        assert absent not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Goal\n- a\n  b\n- c", [("goal", "a\nb"), ("goal", "c")]),
        ("**Open tasks**\n* a\n", [("tasks", "a")]),
        (
            "## Messages of the user\n- ## not a heading\n- - a\n",
            [("latest", "## not a heading"), ("latest", "- a")],
        ),
        ("## Anything\nSee `a`.", [("state", "See `a`.")]),
        ("3. a step that ends with: this", [("state", "3. a step that ends with: this")]),
        (
            "## Messages of the user\n- a\n  ## b\n  1. c:\n- d",
            [("latest", "a\n## b\n1. c:"), ("latest", "d")],
        ),
        ("", []),
    ],
)
def test_items(text: str, expected: list[tuple[str, str]]) -> None:
    check(text, expected)


@pytest.mark.parametrize(
    "message",
    [
        as_summary(
            Message(
                "user",
                "Another language model started to solve this problem and produced a summary\n## Goal\n- a",
            )
        ),
        Message("user", "## Goal\n- a", meta={"isCompactSummary": True}),
        create_summary_message("## Goal\n- a"),
    ],
)
def test_summaries_of_programs_are_summaries(message: Message) -> None:
    assert [fact.text for fact in extract_facts([message]).of("goal")] == ["a"]


def test_what_was_found_out_survives_five_compactions() -> None:
    talk = chat(
        "user: Build the shop. dates in UTC, everywhere\nassistant: Two workers write total.csv, 40 ms apart."
    )
    for number in range(5):
        text = summary(talk, TiktokenCounter(), limit=1_500)
        more = "".join(
            f"user: Add page {number}_{at}.\nedit: src/page_{number}_{at}.py\n=> ok\n"
            f"assistant: Page {number}_{at} now works because the route was missing.\n"
            for at in range(4)
        )
        talk = [create_summary_message(text), *chat(more)]
    text = summary(talk, TiktokenCounter(), limit=1_500)
    assert "- Build the shop. dates in UTC, everywhere" in text
    assert "- Two workers write total.csv, 40 ms apart." in text
    assert text.count("\n- Add page ") == 20


def test_an_order_in_a_long_message_outlives_the_message() -> None:
    filler = "The page shows what the shop has sold on that day and how much of it came back. " * 5
    order = "Do not touch src/coupon_store.py."
    text = summary(
        chat(f"user: Build it.\nuser: {filler}{order} {filler}\nuser: Go on with it"),
        TiktokenCounter(),
        limit=4_000,
    )
    assert f"{filler}{order} {filler}".strip() in text
    later = [create_summary_message(text), *chat("".join(f"user: add page {n} please\n" for n in range(40)))]
    assert f"\n- {order}\n" in summary(later, TiktokenCounter(), limit=900)


HOSTILE = {
    "10,000 names in one message": [Message("user", " ".join(f"name_{n}.py" for n in range(10_000)))],
    "names of 10 KB": [Message("user", f"use {'a_b' * 3_500}.py and {'x/' * 5_000}y.py") for _ in range(20)],
    "nothing but results": [
        Message("tool", f"Error: {n} failed\n" * 50, tool_call_id=str(n)) for n in range(500)
    ],
    "every message a summary": [
        create_summary_message(f"## Goal\n- goal {n}\n## Files\n- `src/{n}.py`: changed") for n in range(500)
    ],
    "headings only": [Message("user", CLAUDE.replace("-", "##") * 300)],
    "analysis without an end": [Message("user", CLAUDE[:120] + "\n" + "Analysis:\n<analysis>" * 40_000)],
    "fences without an end": [create_summary_message("```\n" * 100_000)],
}


@pytest.mark.parametrize("messages", HOSTILE.values(), ids=HOSTILE)
def test_hostile_conversations_are_summarized_in_bounded_time(messages: list[Message]) -> None:
    counter = TiktokenCounter()
    began = time.process_time()
    text = summary(messages, counter, limit=2_000)
    assert time.process_time() - began < 4.0
    assert counter.count(text) <= 2_000
