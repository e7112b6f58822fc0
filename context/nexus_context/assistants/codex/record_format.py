"""Says where reading the records of Codex can resume (see `sessions.record_format`).

1. Records that take turns back may take back what was read before them, so reading does not resume before
   these.
"""

from collections.abc import Sequence

from nexus_context.assistants.codex.messages import READER
from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.sessions.record_format import Boundary, RecordFormat

Records = Sequence[CodexRecord]


def _find_boundary(records: Records, _: bool) -> Boundary | None:
    """The last boundary after the first record; None if there is none."""
    calls: set[str] = set()
    is_counted = False  # whether the usage of the last answer has come
    boundary: Boundary | None = None
    for at, record in enumerate(records):
        kind, call = record.payload_kind or "", text_in(record.payload, "call_id")
        if record.kind == "event_msg":
            is_counted = is_counted or kind == "token_count"
        if record.kind != "response_item":
            continue
        role, is_result = field(record.payload, "role"), kind.endswith("_output")
        begins = role == "user" or (is_counted and role in (None, "assistant") and not is_result)
        if at and not calls and begins:
            boundary = Boundary(at)
        if is_result:
            calls.discard(call or "")
            continue
        is_counted = False
        if kind.endswith("_call") and call is not None:
            calls.add(call)
    return boundary


def _continues(records: Records, _: Sequence[str], __: bool) -> bool:
    """Whether records simply continue what was read before them (rule 1)."""
    return not any(record.payload_kind == "thread_rolled_back" for record in records)


FORMAT = RecordFormat(
    record_type=CodexRecord, reader=READER, find_boundary=_find_boundary, continues=_continues
)
