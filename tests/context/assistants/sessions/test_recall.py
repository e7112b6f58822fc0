"""What is given back after another assistant's compaction: what the summary dropped, and nothing else."""

import pytest
from inline_snapshot import snapshot

from nexus_context.assistants.sessions.recall import SessionFacts, recall_dropped
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.folder.prompt import texts
from nexus_context.tokens import counter_for

COUNTER = counter_for("claude-sonnet-5")
HEAD = texts.text("recall_head").strip()
SESSION = [
    Message("user", "Fix the gate in src/app/gate.py. Never use spaces for indentation. Ticket ABC-123."),
    Message(
        "assistant", "I will do that.", tool_calls=(ToolCall("1", "Read", {"file_path": "src/app/lock.py"}),)
    ),
    Message("tool", "def lock(): ...", tool_call_id="1"),
    Message("assistant", "The gate is fixed. I still have to run tests/test_gate.py."),
    Message(
        "user",
        "Always run the tests with pytest -q. The password is hunter2hunter2, DB_PASSWORD=hunter2hunter2.",
    ),
]


def check(summary: str, text: str, *, limit: int = 1_500) -> None:
    head, _, body = recall_dropped(SessionFacts(SESSION), (summary,), COUNTER, limit).partition("\n\n")
    assert (head, body) == (HEAD if text else "", text)


def test_everything_is_dropped() -> None:
    check(
        "The user wants something.",
        snapshot("""\
Instructions from the user:
- Never use spaces for indentation.
- Fix the gate in src/app/gate.py.
- Always run the tests with pytest -q.

Open tasks:
- I still have to run tests/test_gate.py.

Names and values:
Files: src/app/lock.py
Symbols: DB_PASSWORD, lock
Ids: ABC-123\
"""),
    )


def test_what_the_summary_says_is_not_given_back() -> None:
    check(
        "The user said: never use spaces for indentation; always run the tests with pytest -q. "
        "Ticket ABC-123, fix the gate in src/app/gate.py, and src/app/lock.py was read.",
        snapshot("""\
Open tasks:
- I still have to run tests/test_gate.py.

Names and values:
Symbols: DB_PASSWORD\
"""),
    )


def test_nothing_is_dropped() -> None:
    check("\n".join(str(message.content) for message in SESSION) + " src/app/lock.py", "")


def test_what_only_the_analysis_says_is_dropped() -> None:
    text = "".join(str(message.content) for message in SESSION)
    assert recall_dropped(
        SessionFacts(SESSION), (f"<analysis>{text}</analysis><summary></summary>",), COUNTER, 1_500
    )


@pytest.mark.parametrize("limit", [*range(0, 200, 7)])
def test_it_fits(limit: int) -> None:
    text = recall_dropped(SessionFacts(SESSION), ("",), COUNTER, limit)
    assert COUNTER.count(text) <= limit


def test_secrets_are_not_given_back() -> None:
    assert "hunter2" not in recall_dropped(SessionFacts(SESSION), ("",), COUNTER, 5_000)


def test_it_is_the_same_each_time() -> None:
    texts = {recall_dropped(SessionFacts(SESSION), ("gate",), COUNTER, 300) for _ in range(3)}
    assert len(texts) == 1


def test_many_instructions_leave_room_for_names() -> None:
    rules = " ".join(f"Never change the function number{at} of the module." for at in range(200))
    facts = SessionFacts([*SESSION, Message("user", rules)])
    text = recall_dropped(facts, ("",), COUNTER, 400)
    assert "Never change" in text
    assert "Files: " in text
