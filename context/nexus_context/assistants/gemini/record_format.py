"""Says where reading the records of Gemini CLI can resume (see `sessions.record_format`).

1. Messages that replace others, or that the user took back, may change what was read before. Reading does not
   resume where such records follow.
"""

from collections.abc import Sequence

from nexus_context.assistants.gemini import session_files as gemini
from nexus_context.assistants.gemini.messages import READER, calls_of
from nexus_context.assistants.gemini.records import GeminiRecord
from nexus_context.assistants.sessions.record_format import MOST_PARENTS, Boundary, RecordFormat


def _find_boundary(records: Sequence[GeminiRecord], _: bool) -> Boundary | None:
    if not _is_plain(records):
        return None
    boundary, is_open, names = None, False, list[str]()
    for at, record in enumerate(records):
        if record.name is None:
            continue
        if at and record.value.get("type") == "user" and not is_open:
            boundary = Boundary(at, tuple(names)[-MOST_PARENTS:])
        is_open = any(call.get("result") is None for call in calls_of(record.value))
        names.append(record.name)
    return boundary


def _continues(records: Sequence[GeminiRecord], parents: Sequence[str], _: bool) -> bool:
    return _is_plain(records) and not any(record.name in parents for record in records)


def _is_plain(records: Sequence[GeminiRecord]) -> bool:
    """Whether records only add messages."""
    return not any(record.rewinds or record.replaces_all for record in records)


FORMAT = RecordFormat(
    record_type=GeminiRecord,
    reader=READER,
    find_boundary=_find_boundary,
    continues=_continues,
    find_parent=gemini.parent_of,
    find_folder=gemini.folder_of,
)
