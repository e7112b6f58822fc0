"""Reads the task lists of agents' tools, and determines which tasks are open.

1. A whole list replaces the list before it. Such lists come from TodoWrite, update_plan, write_todos,
   manage_todo_list and other tools that take a list of objects with a text and a status. With `merge`, the
   list changes only the tasks that it names.
2. A list as text (`- [ ] …`, or a plan of numbered steps) is a whole list, too.
3. There are tools for one task. TaskCreate and similar tools add a task, under the number in their result.
   TaskUpdate and similar tools change the status or the text of the task with the number that they name.
"""

import re
from typing import Any, NamedTuple

from nexus_context.conversation.message import ToolCall

MOST_STEPS = 40
"""Tasks of a list that are read."""


class ListedTask(NamedTuple):
    """A task of a list. `number` is the tool's identifier of it, or "" if the task has only a text."""

    number: str
    text: str
    done: bool


class TaskLists:
    """The tasks that are open after the calls that were read so far, oldest first."""

    def __init__(self) -> None:
        self.open: dict[str, ListedTask] = {}
        """By number, else by text."""
        self._created = 0

    def carry(self, item: str) -> None:
        """Add an open task of an earlier summary, as `line_of` wrote it."""
        match = _NUMBERED.match(item)
        number = match[1] if match is not None else ""
        text = item[match.end() :] if match is not None else item
        self.open[number or _key(text)] = ListedTask(number, text, done=False)
        if number.isdigit() and len(number) < _LONGEST_NUMBER:
            self._created = max(self._created, int(number))

    def apply(self, call: ToolCall, arguments: Any, result: str) -> bool:
        """Read a call with its result. Return whether the call was about tasks."""
        if not isinstance(arguments, dict):
            return False
        tasks = _listed(arguments)
        if tasks:
            if arguments.get("merge") is not True:
                self.open.clear()
            for task in tasks[:MOST_STEPS]:
                self._set(task)
            return True
        if _CREATES.search(call.name):
            return self._create(arguments, result)
        if _UPDATES.search(call.name):
            return self._update(arguments, done=_COMPLETES.search(call.name) is not None)
        return False

    def _create(self, arguments: dict[str, Any], result: str) -> bool:
        text = _text(arguments)
        if not text:
            return False
        self._created += 1
        match = _RESULT_NUMBER.search(result[:400])
        number = match[1] if match is not None else str(self._created)
        if number.isdigit() and len(number) < _LONGEST_NUMBER:
            self._created = max(self._created, int(number))
        self._set(ListedTask(number, text, _is_done(arguments)))
        return True

    def _update(self, arguments: dict[str, Any], *, done: bool) -> bool:
        number = next((str(arguments[key]) for key in _NUMBER_KEYS if key in arguments), "")
        task = self.open.get(number)
        if task is None:
            return bool(number)
        text = _text(arguments) or task.text
        self._set(ListedTask(number, text, done or _is_done(arguments)))
        return True

    def _set(self, task: ListedTask) -> None:
        key = task.number or _key(task.text)
        if task.done:
            self.open.pop(key, None)
        else:
            text = task.text or (self.open[key].text if key in self.open else "")
            if text:
                self.open[key] = task._replace(text=text)


def line_of(task: ListedTask) -> str:
    """Return an open task as a line of a summary."""
    return f"[ ] #{task.number} {task.text}" if task.number else f"[ ] {task.text}"


def _listed(arguments: dict[str, Any]) -> list[ListedTask]:
    """The tasks of a whole list."""
    for name in _LIST_KEYS:
        value = arguments.get(name)
        if isinstance(value, str):
            tasks = _written(value)
            if tasks:
                return tasks
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            tasks = [
                ListedTask(
                    str(item["id"]) if merges(arguments) and "id" in item else "", _text(item), _is_done(item)
                )
                for item in value
                if _text(item) or "id" in item
            ]
            if tasks and all(any(key in item for key in _STATUS_KEYS) for item in value):
                return tasks
    return []


def merges(arguments: dict[str, Any]) -> bool:
    """Whether a list of tasks may contain only changes, which name tasks by their numbers."""
    return "merge" in arguments


def _written(text: str) -> list[ListedTask]:
    """The tasks of a list as text: its boxes, else its numbered steps."""
    text = text[:_MOST_READ]
    boxes = [ListedTask("", match[2].strip(), match[1] in "xX") for match in _BOX.finditer(text)]
    return boxes or [ListedTask("", match[1].strip(), done=False) for match in _STEP.finditer(text)]


def _text(item: dict[str, Any]) -> str:
    texts = (item[key] for key in _TEXT_KEYS if isinstance(item.get(key), str))
    return " ".join(next(texts, "").split())[:_LONGEST]


def _is_done(item: dict[str, Any]) -> bool:
    if item.get("done") is True or item.get("completed") is True:
        return True
    return any(str(item.get(key)).casefold() in _DONE for key in _STATUS_KEYS)


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


_LONGEST = 400  # characters of a task
_MOST_READ = 20_000  # characters of a list as text
_LONGEST_NUMBER = 10
_LIST_KEYS = (
    "todos",
    "plan",
    "tasks",
    "items",
    "todoList",
    "todo_list",
    "task_progress",
    "checklist",
    "steps",
)
_TEXT_KEYS = ("content", "step", "subject", "title", "task", "text", "description", "name")
_STATUS_KEYS = ("status", "state", "done", "completed")
_NUMBER_KEYS = ("taskId", "task_id", "todoId", "todo_id", "id", "number")
_DONE = ("completed", "done", "complete", "cancelled", "canceled", "skipped", "deleted", "closed", "finished")
_CREATES = re.compile(
    r"(?i)^(?:mcp__\w+__)?(?:(?:create|add|new)_?(?:task|todo)|(?:task|todo)_?(?:create|add))"
)
_UPDATES = re.compile(
    r"(?i)^(?:mcp__\w+__)?(?:(?:update|edit|complete|finish|close|delete|remove)_?(?:task|todo)"
    r"|(?:task|todo)_?(?:update|edit|complete|finish|close|delete|remove))"
)
_COMPLETES = re.compile(r"(?i)complete|finish|close|delete|remove")
_RESULT_NUMBER = re.compile(r"(?:#|\bid[\"']?[: ]{1,3}[\"']?)([\w-]{1,40})")
_NUMBERED = re.compile(r"#([\w-]{1,40}) ")
_BOX = re.compile(r"^[ \t]{0,12}[-*+] \[([ xX])\] ([^\n]{1,400})$", re.MULTILINE)
_STEP = re.compile(r"^[ \t]{0,3}\d{1,3}[.)] ([^\n]{1,400})$", re.MULTILINE)
