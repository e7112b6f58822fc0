"""Where reading the records of Codex can resume (`record_format`).

1. Records that take turns back may take back what lies before.
"""

from collections.abc import Sequence

from nexus_context.assistant_sessions.record_format import Boundary, RecordFormat, Values
from nexus_context.conversation.transcripts.codex import READER
from nexus_context.conversation.transcripts.conversation import field, text_in


def _find_boundary(values: Values, _: bool) -> Boundary | None:
    """The last boundary after the first record; None if there is none."""
    calls: set[str] = set()
    is_counted = False  # whether the usage of the last answer has come
    boundary: Boundary | None = None
    for at, value in enumerate(values):
        payload = value.get("payload")
        kind = field(payload, "type")
        if value.get("type") == "event_msg":
            is_counted = is_counted or kind == "token_count"
            continue
        if value.get("type") != "response_item":
            continue
        role = field(payload, "role")
        is_result = isinstance(kind, str) and kind.endswith("_output")
        begins = role == "user" or (is_counted and role in (None, "assistant") and not is_result)
        if at and not calls and begins:
            boundary = Boundary(at)
        if isinstance(kind, str) and kind.endswith("_call") and text_in(payload, "call_id"):
            calls.add(str(field(payload, "call_id")))
        elif is_result:
            calls.discard(str(field(payload, "call_id")))
        is_counted = False if not is_result else is_counted
    return boundary


def _continues(values: Values, _: Sequence[str], __: bool) -> bool:
    """Whether records simply continue what was read before them (rule 1)."""
    return not any(field(value, "payload", "type") == "thread_rolled_back" for value in values)


def _find_parent(_: str, values: Values) -> str | None:
    """The thread that started a sub-agent, or that this one is a fork of."""
    payload = values[0].get("payload") if values else None
    spawn = field(field(payload, "source", "subagent"), "thread_spawn", "parent_thread_id")
    return spawn if isinstance(spawn, str) else text_in(payload, "forked_from_id")


FORMAT = RecordFormat(
    reader=READER, find_boundary=_find_boundary, continues=_continues, find_parent=_find_parent
)
