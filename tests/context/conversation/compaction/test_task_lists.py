"""The open tasks after the calls of every common tool for tasks."""

from typing import Any

import pytest

from nexus_context.conversation.compaction.extract_facts import extract_facts
from nexus_context.conversation.compaction.extractive import summary
from nexus_context.conversation.compaction.task_lists import TaskLists, line_of
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import create_summary_message
from nexus_context.tokens import TiktokenCounter

Step = tuple[str, Any, str]


TODO = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]
CASES: dict[str, tuple[list[Step], list[str]]] = {
    "TodoWrite": ([("TodoWrite", {"todos": TODO}, "")], ["[ ] b"]),
    "the last list counts": (
        [
            ("TodoWrite", {"todos": TODO}, ""),
            ("TodoWrite", {"todos": [{"content": "c", "status": "pending"}]}, ""),
        ],
        ["[ ] c"],
    ),
    "update_plan": (
        [
            (
                "update_plan",
                {"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"}]},
                "",
            )
        ],
        ["[ ] b"],
    ),
    "manage_todo_list": (
        [("manage_todo_list", {"todoList": [{"id": 1, "title": "a", "status": "not-started"}]}, "")],
        ["[ ] a"],
    ),
    "TaskCreate and TaskUpdate": (
        [
            ("TaskCreate", {"subject": "a", "description": "x"}, "Task #7 created successfully: a"),
            ("TaskCreate", {"subject": "b", "description": "x"}, "Task #8 created successfully: b"),
            ("TaskUpdate", {"taskId": "7", "status": "completed"}, "Updated task #7 status"),
            ("TaskUpdate", {"taskId": "8", "subject": "b and c"}, "Updated task #8 subject"),
        ],
        ["[ ] #8 b and c"],
    ),
    "a number that the result lacks": (
        [
            ("create_task", {"title": "a"}, "ok"),
            ("complete_task", {"id": 1}, "ok"),
            ("add_todo", {"text": "b"}, ""),
        ],
        ["[ ] #2 b"],
    ),
    "a merge by ids": (
        [
            (
                "todo_write",
                {
                    "merge": False,
                    "todos": [
                        {"id": "x", "content": "a", "status": "pending"},
                        {"id": "y", "content": "b", "status": "pending"},
                    ],
                },
                "",
            ),
            ("todo_write", {"merge": True, "todos": [{"id": "x", "status": "completed"}]}, ""),
        ],
        ["[ ] #y b"],
    ),
    "boxes as text": ([("update_todo_list", {"todos": "- [x] a\n- [ ] b"}, "")], ["[ ] b"]),
    "a plan as text": ([("ExitPlanMode", {"plan": "# Plan\n1. a\n2. b"}, "")], ["[ ] a", "[ ] b"]),
    "no tasks": (
        [("bash", {"command": "ls"}, ""), ("get", {"items": [{"name": "a"}]}, ""), ("x", "", "")],
        [],
    ),
}


@pytest.mark.parametrize(("steps", "expected"), CASES.values(), ids=CASES)
def test_open_tasks(steps: list[Step], expected: list[str]) -> None:
    """The lines of the open tasks after calls with their arguments and results."""
    tasks = TaskLists()
    for tool, arguments, result in steps:
        tasks.apply(ToolCall("1", tool, arguments), arguments, result)
    assert [line_of(task) for task in tasks.open.values()] == expected


def test_a_list_goes_on_after_a_compaction() -> None:
    created = ToolCall("1", "TaskCreate", {"subject": "write the docs"})
    talk = [Message("assistant", None, (created,)), Message("tool", "Task #3 created", tool_call_id="1")]
    first = summary(talk, TiktokenCounter(), limit=400)
    assert "- [ ] #3 write the docs" in first
    done = ToolCall("2", "TaskUpdate", {"taskId": "3", "status": "completed"})
    later = [create_summary_message(first), Message("assistant", None, (done,))]
    assert extract_facts(later).of("tasks") == ()
