"""Reads trajectories of SWE-agent (`*.traj`).

Source: SWE-agent `sweagent/types.py`, `agent/agents.py`, and the trajectories in its repository.

1. `history` has the messages. A message with the role tool answers the call in `tool_call_ids`. If there is
   none, what the environment says is a message of the user.
2. A file whose `history` was cut off is read from `trajectory`: the `query` of each step has all messages
   before it, and the new ones at its end are as they were first sent.
3. Each of the `attempts` is a conversation of its own.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field
from nexus_context.assistants.transcripts.conversation import Conversation, Draft, FormatReader
from nexus_context.assistants.transcripts.records import Record, Report

_MARKS = ("message_type", "agent", "is_demo")
_STEP = ("action", "observation", "response")
_CUT = "at the end, incomplete because the file was cut"


def is_file(values: Sequence[Any]) -> bool:
    """Whether any of the values is a trajectory."""
    return any(map(is_record, values))


def is_record(value: Any) -> bool:
    """Whether a value is a trajectory."""
    if not isinstance(value, dict) or "role" in value:
        return False
    if isinstance(value.get("attempts"), list) and any(_is_run(attempt) for attempt in value["attempts"]):
        return True
    return _is_run(value)


def convert(records: Sequence[Record], report: Report, _entire: bool) -> list[Conversation]:
    """Convert each trajectory, or each of its attempts, to a conversation."""
    conversations = []
    for record in records:
        runs = list(_runs(record.value))
        for number, run in enumerate(runs, 1):
            name = field(record.value, "instance_id")
            named = name if isinstance(name, str) else ""
            if len(runs) > 1:
                named = f"{named} attempt {number}".strip()
            conversations.append(_read_run(run, record, report, named))
    return conversations


def _read_run(run: dict[str, Any], record: Record, report: Report, name: str) -> Conversation:
    draft = Draft(report)
    history = run.get("history")
    items = history if isinstance(history, list) and history else _from_steps(run.get("trajectory"), report)
    for number, item in enumerate(items, 1):
        draft.add(record._replace(place=f"{record.place}, message {number}"), _message(item))
    return draft.conversation(name=name)


def _message(item: Any) -> Any:
    """An item of the history as a message."""
    if not isinstance(item, dict):
        return item
    message = {key: item[key] for key in ("role", "content", "name", "tool_call_id") if key in item}
    call_ids = item.get("tool_call_ids")
    if item.get("role") == "tool" and isinstance(call_ids, list) and call_ids:
        message["toolCallId"] = call_ids[0]
    elif item.get("role") == "assistant" and item.get("tool_calls"):
        message["tool_calls"] = item["tool_calls"]
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [_uncached(part) for part in content]
    thinking = item.get("thinking_blocks")
    if isinstance(thinking, list) and thinking:
        texts = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
        message["content"] = [*thinking, *(message["content"] if isinstance(content, list) else texts)]
    return message


def _uncached(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {key: value for key, value in part.items() if key != "cache_control"}


def _from_steps(steps: Any, report: Report) -> list[Any]:
    """The messages by the steps; older steps have no query, only what was said."""
    listed = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    messages: list[Any] = []
    count = 0
    for step in listed:
        query = step.get("query", step.get("messages"))
        if isinstance(query, list):
            messages += query[count:]
            count = max(count, len(query))
        elif "execution_time" not in step and all(key in step for key in (*_STEP, "state", "thought")):
            messages.append({"role": "assistant", "content": step["response"]})
            messages.append({"role": "user", "content": step["observation"]})
    if count or not messages:
        report.leave("cut", _CUT, noun="step")
    return messages


def _runs(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if _is_run(value):
        yield value
        return
    for attempt in value["attempts"]:
        if _is_run(attempt):
            yield attempt


def _is_run(value: Any) -> bool:
    history, steps = field(value, "history"), field(value, "trajectory")
    if isinstance(history, list) and any(
        isinstance(item, dict) and "role" in item and any(mark in item for mark in _MARKS) for item in history
    ):
        return True
    return isinstance(steps, list) and any(
        isinstance(step, dict) and sum(key in step for key in _STEP) > 1 and "role" not in step
        for step in steps
    )


READER = FormatReader("swe-agent", is_file, is_record, convert)
