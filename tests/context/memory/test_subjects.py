"""Facts that replace each other: what two sentences are about."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.message import Message
from nexus_context.ledger import open_ledger
from nexus_context.memory import queries
from nexus_context.memory.levels import Levels
from nexus_context.memory.sources import MemorySource, Query
from nexus_context.memory.subjects import subject_of
from support.ledgers import turn_of

FOLDER = "/home/a"


@pytest.mark.parametrize(
    ("sentence", "subject"),
    [
        ("port: 8080", "is port"),
        ("Remember: the port = 9090.", "is port"),
        ("The port is 9090.", "is port"),
        ("Actually, the port must be 9090.", "is port"),
        ("From now on the port is now `http`.", "is port"),
        ("Set the port to 9090.", "is port"),
        ('The branch should be "release 2".', "is branch"),
        ("Never push.", "may push"),
        ("You may push now.", "may push"),
        ("Don't push to the main branch!", "may push to main branch"),
        ("The API must be fast.", None),
        ("Use port 8080 for the API.", None),
        ("It is 42.", None),
        ("Fix: see below", None),
        ("See https://example.org/a", None),
        ("Read page 3 first.", None),
        ("one two three four five six seven: 8", None),
        ("", None),
    ],
)
def test_what_a_sentence_is_about(sentence: str, subject: str | None) -> None:
    assert subject_of(sentence) == subject


@given(st.text())
def test_any_text_has_a_subject_or_none(text: str) -> None:
    subject = subject_of(text)
    assert subject is None or subject.startswith(("is ", "may "))


def check(root: Path, turns: list[list[Any]], expected: list[str], **meta: Any) -> None:
    """The working memory after these turns; what is queried and what comes with a message are the same."""
    ledger = open_ledger(str(root / "ledger.db"))
    for turn in turns:
        messages = [one if isinstance(one, Message) else Message("user", one) for one in turn]
        ledger.append(FOLDER, "main", turn_of(*messages, Message("assistant", "Yes.")))
    levels = Levels(ledger)
    entries = levels.important(FOLDER, "main", limit=20)
    assert [f"{each.seq}: {each.text}" for each in entries] == expected
    answer = queries.run("query_l2_memory", {}, levels=levels, workspace=FOLDER, session="main")
    items = MemorySource(levels, include=("L2",)).items(Query(workspace=FOLDER, now=0, session="main"))
    for entry, item in zip(entries, items, strict=True):
        assert entry.text in answer
        assert entry.text == item.text
    ledger.close()


def pinned(text: str, subject: Any = None) -> Message:
    return Message("user", text, meta={"pinned": True, "subject": subject})


def test_a_later_order_replaces_an_earlier_one_and_says_so(tmp_path: Path) -> None:
    check(
        tmp_path,
        [
            ["Remember: the port is 8080."],
            ["Always read the log."],
            ["Never push."],
            ["Actually, the port must be 9090."],
            ["From now on, always push."],
        ],
        [
            "2: user: Always read the log.",
            "4: user: Actually, the port must be 9090. (replaces what turn 1 said)",
            "5: user: From now on, always push. (replaces what turn 3 said)",
        ],
    )


def test_what_else_an_exchange_said_stays(tmp_path: Path) -> None:
    check(
        tmp_path,
        [
            ["Never push. Always read the log."],
            ["You may only push now."],
            ["Always push."],
            ["Always push."],
        ],
        [
            "1: user: Always read the log.",
            "2: user: You may only push now.",
            "4: user: Always push.",
        ],
    )


def test_the_assistant_replaces_no_order(tmp_path: Path) -> None:
    check(
        tmp_path,
        [
            ["Remember: the port is 8080."],
            ["Go on.", Message("assistant", "Decided: the port is 9090.")],
            ["Go on.", Message("assistant", "Decided: the host is `a`.")],
            ["Remember: the host is `b`."],
        ],
        [
            "1: user: Remember: the port is 8080.",
            "2: user: Go on.\nassistant: Decided: the port is 9090.",
            "4: user: Remember: the host is `b`. (replaces what turn 3 said)",
        ],
    )


def test_pinned_messages_name_their_subject(tmp_path: Path) -> None:
    check(
        tmp_path,
        [
            [pinned("Helm it is.", "deploy")],
            [pinned("Blue.")],
            [pinned("By hand now.", " Deploy ")],
            [pinned("Red.", 7)],
        ],
        [
            "2: user: Blue.",
            "3: user: By hand now. (replaces what turn 1 said)",
            "4: user: Red.",
        ],
    )
