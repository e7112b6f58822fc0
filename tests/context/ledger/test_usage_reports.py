"""The reports of providers in a ledger: they outlive a restart, their session and nothing else."""

from pathlib import Path

import pytest

from nexus_context import ContextConfig, ContextManager
from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.message import Message
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.ledger.store import Ledger
from nexus_context.ledger.usage_reports import MOST_STORED
from nexus_context.tokens.correction import Correction, UsageReport
from support.ledgers import anchor

FOLDER = "/work"


def report(reported: int, *, family: str = "claude", anchors: bool = True) -> UsageReport:
    return UsageReport(family, reported=reported, estimated=1000, shown=1000, anchors=anchors)


def append(ledger: Ledger, session: str, *reports: UsageReport | None) -> str:
    turn = ""
    for one in reports:
        message = Counted(Message("user", "hello"), 5)
        turn = ledger.append(FOLDER, session, NewTurn(messages=(message,), counter="c", report=one)).turn
    return turn


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


def test_the_newest_report_of_a_session_is_its_anchor(path: str) -> None:
    ledger = open_ledger(path)
    assert anchor(ledger, FOLDER, "none") is None
    first = append(ledger, "main", report(1100))
    append(ledger, "main", report(1200), None, report(1900, anchors=False))
    append(ledger, "other", report(1300))
    ledger.fork(FOLDER, "main", "early", turn=first)
    ledger.fork(FOLDER, "main", "late")
    append(ledger, "late", report(1400))
    ledger.close()
    again = open_ledger(path)
    names = ("main", "other", "early", "late")
    assert [anchor(again, FOLDER, name) for name in names] == [
        report(1200),
        report(1300),
        report(1100),
        report(1400),
    ]
    again.clear(FOLDER, "main")
    assert anchor(again, FOLDER, "main") is None
    again.delete(FOLDER, "other")
    assert anchor(again, FOLDER, "other") is None
    again.close()


def test_what_was_learned_outlives_a_restart_and_its_sessions(path: str) -> None:
    ledger = open_ledger(path)
    append(ledger, "main", *[report(1100)] * 4)
    append(ledger, "other", *[report(1200)] * 4, report(700, family="gemini"))
    assert ledger.usage.correction("claude") == Correction("claude", 1100, 91)
    assert ledger.usage.correction("gemini") == Correction("gemini")
    ledger.delete(FOLDER, "main")
    ledger.close()
    again = open_ledger(path)
    assert again.usage.correction("claude") == Correction("claude", 1100, 91)
    again.close()


def test_only_the_newest_reports_are_kept(path: str) -> None:
    ledger = open_ledger(path)
    for number in range(MOST_STORED // 8 + 1):
        append(ledger, f"old {number}", *[report(1900)] * 4)
    for number in range(MOST_STORED // 8):
        append(ledger, f"new {number}", *[report(1100)] * 8)
    assert ledger.usage.correction("claude").factor == 1100
    assert anchor(ledger, FOLDER, "old 0") is None
    assert anchor(ledger, FOLDER, "new 0") == report(1100)
    ledger.close()


def test_a_conversation_of_a_ledger_continues_with_its_anchor(path: str) -> None:
    ledger = open_ledger(path)
    config = ContextConfig(max_tokens=100_000)
    chat = ContextManager(config, model="claude-sonnet-4", ledger=ledger, folder=FOLDER)
    chat.add_user_message("What is in the log? " * 100)
    chat.add(
        [Message("assistant", "Nothing. " * 20)], usage=ProviderUsage(chat.get_token_usage().total + 90, 0)
    )
    corrected = chat.get_token_usage().corrected
    assert corrected is not None
    assert corrected.total == chat.get_token_usage().total + 90
    again = ContextManager(config, model="claude-sonnet-4", ledger=ledger, folder=FOLDER)
    assert again.get_token_usage() == chat.get_token_usage()
    chat.add(
        [Message("assistant", "Still nothing.")], usage=ProviderUsage(chat.get_token_usage().total + 9, 0)
    )
    again = ContextManager(config, model="claude-sonnet-4", ledger=ledger, folder=FOLDER)
    assert again.get_token_usage() == chat.get_token_usage(), "the newer report of the same turn"
    other = ContextManager(config, model="gpt-4o", ledger=ledger, folder=FOLDER)
    assert other.get_token_usage().corrected is None
    (turn,) = ledger.turns(FOLDER, "main")
    assert turn.outcome is not None
    assert turn.outcome.usage is not None
    assert turn.outcome.usage.input_tokens > 600
    ledger.close()
