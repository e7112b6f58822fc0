"""The example of docs/compaction.md is what the embedded summarizer writes."""

import re
from pathlib import Path

from nexus_context.conversation.compaction.extract_facts import headings
from nexus_context.conversation.compaction.extractive import LITTLE, SHARES, summary
from nexus_context.conversation.compaction.names_note import NAMES_SHARE
from nexus_context.tokens import TiktokenCounter
from support.chats import chat

PAGE = (Path(__file__).resolve().parents[4] / "docs/compaction.md").read_text(encoding="utf-8")


def test_the_example() -> None:
    talk = re.search(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
    expected = re.search(r"```markdown\n(.*?)\n```", PAGE, re.DOTALL)
    assert talk is not None
    assert expected is not None
    assert summary(chat(talk[1]), TiktokenCounter(), limit=700) == expected[1]


def test_the_shares() -> None:
    rows = re.findall(r"^\| ([A-Z][\w ]+) \| (\d+) %", PAGE, re.MULTILINE)
    shares = {headings()[section]: round(100 * share) for section, share in SHARES.items()}
    assert dict(rows) == {title: str(share) for title, share in shares.items()} | {
        headings()["facts"]: str(round(100 * NAMES_SHARE))
    }
    assert f"less than {LITTLE} tokens" in PAGE
