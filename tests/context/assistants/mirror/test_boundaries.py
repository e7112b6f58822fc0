"""Where reading can resume: small transcripts, and which of their records may be the first of the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.claude_code.record_format import FORMAT as CLAUDE_CODE
from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.codex.record_format import FORMAT as CODEX
from nexus_context.assistants.codex.records import CodexRecord
from support.assistant_logs import ClaudeLog, CodexLog, use


def records(log: Any) -> list[Any]:
    record_type = ClaudeCodeRecord if isinstance(log, ClaudeLog) else CodexRecord
    return [record_type(json.loads(line)) for line in log.path.read_text().splitlines()]


def boundaries(values: list[Any], find: Any) -> list[int]:
    """The last boundary of each beginning of the records."""
    ends = (find(values[:end]) for end in range(1, len(values) + 1))
    return sorted({boundary.at for boundary in ends if boundary is not None})


def claude(values: list[Any]) -> list[int]:
    return boundaries(values, lambda part: CLAUDE_CODE.find_boundary(part, False))


def test_before_an_answer_and_before_a_message_of_the_user(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, "s1")
    log.user("Where?")
    log.answer("Let me look.", use("c1"), use("c2"))  # records 1 to 3
    log.result("c1", "one")
    log.result("c2", "two")
    log.answer("There.")
    log.user("Sure?")
    log.put("attachment", attachment={"type": "date"})
    log.answer("Yes.")
    assert claude(records(log)) == [1, 6, 7, 9]


def test_not_while_a_call_waits_for_its_result(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, "s1")
    log.user("Where?")
    log.answer(use("c1"), use("c2"))
    log.result("c1", "one")
    log.user("Stop!")
    log.answer("Well.")
    log.result("c2", "two")
    log.user("Go on.")
    assert claude(records(log)) == [1, 7]


def test_not_while_a_text_waits_in_the_queue(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, "s1")
    log.user("Where?")
    for operation in ("enqueue", "enqueue", "dequeue"):
        log.put("queue-operation", operation=operation, content="Hurry!")
    log.answer("There.")
    log.put("queue-operation", operation="popAll")
    log.user("Sure?")
    values = records(log)
    assert claude(values) == [6]
    assert CLAUDE_CODE.list_waiting(values[:3]) == [1, 2]
    assert CLAUDE_CODE.list_waiting(values[:5]) == [2]
    assert CLAUDE_CODE.list_waiting(values) == []


def test_a_text_is_taken_out_of_the_queue_by_its_words(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, "s1")
    for text in ("One", "Two"):
        log.put("queue-operation", operation="enqueue", content=text)
    log.put("queue-operation", operation="remove", content="Two")
    assert CLAUDE_CODE.list_waiting(records(log)) == [0]


def test_the_parents_are_those_of_the_last_exchange(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, "s1")
    log.user("Where?")
    log.answer("Let me look.", use("c1"))
    log.result("c1", "one")
    log.answer("There.")
    boundary = CLAUDE_CODE.find_boundary(records(log), False)
    assert boundary is not None
    assert (boundary.at, boundary.parents) == (4, ("s1-2", "s1-3", "s1-4"))


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        (["p", "a", "b"], True),
        (["q", "a", "b"], True),
        (["x", "a", "b"], False),  # before the last exchange
        (["p", "p", "b"], False),  # the user went back
        (["p", "a", None], False),
        (["p", "a", ["b"]], False),
        ([None], False),
    ],
)
def test_what_simply_continues(parents: list[Any], expected: bool) -> None:
    uuids = ("a", "b", "c")
    values = [
        ClaudeCodeRecord({"uuid": uuid, "parentUuid": parent})
        for uuid, parent in zip(uuids, parents, strict=False)
    ]
    assert CLAUDE_CODE.continues(values, ("p", "q"), False) == expected


def test_the_parents_follow_the_last_message(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, "s1")
    log.user("Where?")
    answer = log.answer("There.") and log.last
    log.put("system", subtype="local_command", content="!ls")  # a message of the user
    note = log.last
    log.put("system", subtype="informational", parent=answer)
    log.put("system", subtype="turn_duration", parent=note)
    log.user("Sure?")
    boundary = CLAUDE_CODE.find_boundary(records(log), False)
    assert boundary is not None
    assert (boundary.at, boundary.parents) == (5, (note, "s1-5"))


def test_the_parents_after_a_compaction(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, "s1")
    log.user("Where?")
    log.put("system", subtype="compact_boundary", parent=None, logicalParentUuid=log.last)
    log.user("A summary", isCompactSummary=True)
    boundary = CLAUDE_CODE.find_boundary(records(log), False)
    assert boundary is not None
    assert (boundary.at, boundary.parents) == (2, ("s1-1", "s1-2"))


def test_a_compaction_continues_and_a_nameless_sub_agent_does_not() -> None:
    def continues(value: dict[str, Any], *parents: str, is_agent: bool = False) -> bool:
        return CLAUDE_CODE.continues([ClaudeCodeRecord(value)], parents, is_agent)

    compaction = {"uuid": "a", "parentUuid": None, "subtype": "compact_boundary"}
    assert continues(compaction)
    assert continues(compaction | {"logicalParentUuid": "p"}, "p")
    assert not continues(compaction | {"logicalParentUuid": "x"}, "p")
    side = {"uuid": "a", "parentUuid": "x", "isSidechain": True}
    assert not continues(side)
    assert continues(side | {"agentId": "a7"})
    assert continues(side, "x", is_agent=True)


def test_codex(tmp_path: Path) -> None:
    log = CodexLog(tmp_path, "r1")  # two records
    log.user("Where?")
    log.answer("Let me look.")  # and its usage
    log.call("k1")
    log.result("k1", "one")
    log.answer("There.")
    log.put("response_item", type="message", role="developer", content=[])
    log.user("Sure?")
    values = records(log)
    assert boundaries(values, lambda part: CODEX.find_boundary(part, False)) == [2, 5, 8, 11]
    assert CODEX.continues(values, (), False)
    log.put("event_msg", type="thread_rolled_back", num_turns=1)
    assert not CODEX.continues(records(log), (), False)


def test_codex_not_while_a_call_waits(tmp_path: Path) -> None:
    log = CodexLog(tmp_path, "r1")
    log.user("Where?")
    log.call("k1")
    log.user("Stop!")
    log.result("k1", "one")
    log.user("Go on.")
    assert boundaries(records(log), lambda part: CODEX.find_boundary(part, False)) == [2, 7]
