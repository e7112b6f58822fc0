"""Turns rows of opencode's database into steps; the tables are those of 1.18.33.

1. A message of the assistant is one request, whose usage and cost are in its row and whose answer is in its
   parts. The results of its calls are in the same parts: they are sent with the next request.
2. Neither the system prompt nor the instruction files are in the database.
3. A compaction is a user's message with a part `compaction`, then an answer with `summary`.
4. Tools of MCP servers are named `<server>_<tool>`. The names do not say which part is the server's.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from nexus_context.assistants.opencode import session_files as opencode
from nexus_context.assistants.reading.record_values import LARGEST_COUNT, text
from nexus_context.assistants.sessions.steps import (
    AssistantRequest,
    SessionCompaction,
    Step,
    ToolOutput,
    ToolUse,
    WindowText,
)
from nexus_context.tokens.estimates import UNITS_PER_TOKEN

IMAGE_UNITS = 1_000 * UNITS_PER_TOKEN
KINDS = frozenset(
    {
        *("text", "file", "compaction", "reasoning", "tool", "step-start", "step-finish", "snapshot"),
        *("patch", "retry", "agent", "subtask"),
    }
)
"""The kinds of parts that are known; the later ones add nothing to the window."""


class MessageParts(msgspec.Struct, frozen=True):
    """A message and its parts, as the database has them. `is_copy` is true if a fork copied it from its
    origin.
    """

    id: str
    data: dict[str, Any]
    parts: Sequence[dict[str, Any]]
    is_copy: bool = False

    @property
    def kinds(self) -> list[str]:
        """The kind of each part, such as "text"."""
        return [str(part.get("type")) for part in self.parts]


def steps_of(rows: Iterable[MessageParts]) -> Iterator[Step]:
    """Yield the steps of a session's messages. `rows` are the messages, oldest first."""
    for row in rows:
        if row.data.get("role") == "assistant":
            yield from _answer(row)
        else:
            yield from _question(row)


def _question(row: MessageParts) -> Iterator[Step]:
    for part in row.parts:
        kind = part.get("type")
        if kind == "text":
            words, is_added = str(part.get("text") or ""), part.get("synthetic") is True
            if is_added:
                yield WindowText("attachments", words, "notes", row.id)
            else:
                yield WindowText("user", words, id=row.id)
        elif kind == "file":
            yield WindowText("attachments", "", "file", id=row.id, units=IMAGE_UNITS)
        elif kind == "compaction":
            trigger = "auto" if part.get("auto") is True else "manual"
            yield SessionCompaction(at=_time(row.data, "created"), trigger=trigger)


def _answer(row: MessageParts) -> Iterator[Step]:
    data, tokens = row.data, row.data.get("tokens")
    is_summary = data.get("summary") is True
    if isinstance(tokens, dict):
        usage = opencode.usage_of(tokens)
        if usage.sent or usage.output:
            yield AssistantRequest(
                key=row.id,
                at=_time(data, "completed") or _time(data, "created"),
                model=text(data.get("modelID")),
                usage=usage,
                is_aside=is_summary,
                cost_usd=opencode.cost_of(data) or None,
                is_inherited=row.is_copy,
            )
    for part in row.parts:
        kind = part.get("type")
        if kind == "text":
            yield WindowText("summary" if is_summary else "answers", str(part.get("text") or ""), id=row.id)
        elif kind == "reasoning":
            yield WindowText("thinking", str(part.get("text") or ""), id=row.id)
        elif kind == "tool":
            yield from _call(part, row.id)


def _call(part: dict[str, Any], record: str) -> Iterator[Step]:
    value = part.get("state")
    state: dict[str, Any] = value if isinstance(value, dict) else {}
    name = str(part.get("callID"))
    yield ToolUse(name, str(part.get("tool")), None, state.get("input"), record=record)
    is_error = state.get("status") == "error"
    output = state.get("error") if is_error else state.get("output")
    if output is not None:
        files = state.get("attachments")
        units = len(files) * IMAGE_UNITS if isinstance(files, list) else 0
        yield ToolOutput(name, str(output), is_error, units, record=record)


def _time(data: dict[str, Any], name: str) -> float:
    time = data.get("time")
    value = time.get(name) if isinstance(time, dict) else None
    return value / 1_000 if isinstance(value, int) and abs(value) <= LARGEST_COUNT else 0.0
