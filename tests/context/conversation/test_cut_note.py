"""The note of a cut: what failed and still does comes first, within its share, without secrets."""

from typing import Any

import pytest

from nexus_context.conversation.cut_note import FAILURES_SHARE, CutNote
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.tokens import counter_for

COUNTER = counter_for("gpt-4o")
BROKEN = "E   TypeError: port is None\nexit code: 1"
WORKS = "12 passed\nexit code: 0"


def run(command: str, result: str, number: int = 1) -> list[Message]:
    """A call of a shell and its result."""
    call = ToolCall(f"c{number}", "bash", {"command": command})
    return [
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", result, tool_call_id=call.id, name="bash"),
    ]


def note_of(*cuts: list[Message], limit: int = 600) -> str:
    note = CutNote()
    for messages in cuts:
        note.extend(messages)
    return note.render(COUNTER, limit)


def failed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("Failed: ")]


def test_what_failed_is_told() -> None:
    assert failed(note_of(run("pytest tests/api", BROKEN))) == [
        "Failed: pytest tests/api: TypeError: port is None"
    ]


@pytest.mark.parametrize("cuts", [1, 2], ids=["in one cut", "in two cuts"])
def test_what_works_again_is_not_told(cuts: int) -> None:
    first, second = run("pytest tests/api", BROKEN), run("pytest tests/api", WORKS, 2)
    text = note_of([*first, *second]) if cuts == 1 else note_of(first, second)
    assert failed(text) == []
    assert "pytest tests/api" in text


def test_another_command_does_not_resolve_it() -> None:
    assert len(failed(note_of(run("pytest tests/api", BROKEN), run("pytest tests/web", WORKS, 2)))) == 1


def test_the_last_failures_are_told_and_the_newest_first() -> None:
    cuts = [run(f"make target-{number}", f"make: *** Error {number}", number) for number in range(1, 7)]
    assert [line.split(": ")[1] for line in failed(note_of(*cuts))] == [
        "make target-6",
        "make target-5",
        "make target-4",
    ]


def test_failures_leave_room_for_names() -> None:
    cuts = [run(f"pytest tests/unit_{number}", f"Error: {'long ' * 60}", number) for number in range(5)]
    text = note_of(*cuts, limit=120)
    assert COUNTER.count(text) <= 120
    assert COUNTER.count("\n".join(failed(text))) <= 120 * FAILURES_SHARE
    assert "tests/unit_4" in text.replace("\n".join(failed(text)), "")


def test_what_failed_is_one_short_line() -> None:
    """A tool may be called with any path: it must not take the room of what failed before."""
    call = ToolCall("c9", "read_file", {"path": "a\nb/" * 100_000})
    answer = Message("tool", "Error: no such file", tool_call_id="c9", meta={"isError": True})
    lines = failed(note_of(run("pytest a", BROKEN), [Message("assistant", "", tool_calls=(call,)), answer]))
    assert [line.split(":")[1].split()[0] for line in lines] == ["read_file", "pytest"]
    assert max(map(len, lines)) < 400


def test_a_secret_that_failed_is_not_told() -> None:
    secret = "ghp_" + "Z9x8C7v6B5n4M3l2K1j0" + "H9g8F7d6S5a4P3o2"
    text = note_of(run(f"git push https://me:{secret}@example.org/a.git", f"fatal: denied for {secret}"))
    assert secret not in text
    assert failed(text)


def test_a_copy_is_independent() -> None:
    note = CutNote()
    note.extend(run("pytest a", BROKEN))
    copy = note.copy()
    copy.extend(run("pytest a", WORKS, 2))
    assert len(failed(note.render(COUNTER, 600))) == 1
    assert failed(copy.render(COUNTER, 600)) == []


@pytest.mark.parametrize("arguments", [{}, {"command": 3}, "no object", None, {"command": ["a", "b"]}])
def test_calls_of_any_form_are_read(arguments: Any) -> None:
    call = ToolCall("c", "bash", arguments)
    note_of([Message("assistant", "", tool_calls=(call,)), Message("tool", "Error: x", tool_call_id="c")])
