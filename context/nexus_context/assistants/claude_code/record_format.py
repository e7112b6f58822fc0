"""Says where reading the records of Claude Code can resume (see `sessions.record_format`).

1. Records simply continue what was read if the first one has its parent among the records with which the
   conversation ended (`parents`), and the others have theirs among the new records. Otherwise the user went
   back.
"""

from collections.abc import Sequence

from nexus_context.assistants.claude_code.forks import find_origin
from nexus_context.assistants.claude_code.messages import READER
from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.claude_code.session_files import choose_folder
from nexus_context.assistants.sessions.record_format import MOST_PARENTS, Boundary, RecordFormat

Records = Sequence[ClaudeCodeRecord]


def _find_boundary(records: Records, is_agent: bool) -> Boundary | None:
    """The last boundary after the first record; None if there is none."""
    exchange = _Exchange(is_agent)
    boundary: Boundary | None = None
    for at, record in enumerate(records):
        if at and exchange.can_end_before(record):
            boundary = Boundary(at, tuple(exchange.uuids)[-MOST_PARENTS:])
        exchange.add(record)
    return boundary


def _continues(records: Records, parents: Sequence[str], is_agent: bool) -> bool:
    """Whether records simply continue what was read before them (rule 1)."""
    uuids = {record.uuid for record in records}
    is_first = True
    for record in records:
        if not is_agent and record.is_sidechain:
            if record.value.get("agentId") is None:
                return False
            continue
        if "parentUuid" not in record.value:
            continue
        parent = record.parent
        if parent is None:
            if not record.is_root_compaction:
                return False
        elif parent not in uuids and not (is_first and parent in parents):
            return False
        is_first = False
    return True


def _list_waiting(records: Records) -> list[int]:
    """The indexes of the records whose texts still wait in the queue."""
    waiting: list[int] = []
    for at, record in enumerate(records):
        match record.queue_operation:
            case "enqueue":
                waiting.append(at)
            case "dequeue" | "remove":
                texts = [records[index].value.get("content") for index in waiting]
                text = record.value.get("content")
                if waiting:
                    del waiting[texts.index(text) if text in texts else 0]
            case "popAll":
                waiting.clear()
    return waiting


class _Exchange:
    """What is open while records are read."""

    def __init__(self, is_agent: bool) -> None:
        self.uuids: dict[str, None] = {}  # of the last message and what follows it
        self._is_agent = is_agent
        self._calls: set[str] = set()
        self._waiting = 0
        self._answer: str | None = None

    def can_end_before(self, record: ClaudeCodeRecord) -> bool:
        """Whether reading can resume with a record."""
        if self._calls or self._waiting or self._is_aside(record):
            return False
        if record.kind == "assistant":
            return record.message_id != self._answer
        return record.kind == "user" and record.message is not None and not record.results

    def add(self, record: ClaudeCodeRecord) -> None:
        """Read a record."""
        self._calls.update(record.calls)
        self._calls.difference_update(record.results)
        operation = record.queue_operation
        if operation is not None:
            self._waiting += 1 if operation == "enqueue" else -1
            self._waiting = 0 if operation == "popAll" else max(self._waiting, 0)
        if self._is_aside(record):
            return
        is_same_answer = record.kind == "assistant" and record.message_id == self._answer
        if record.has_message and not record.results and not is_same_answer:
            self.uuids.clear()
        elif not self._follows(record):
            return
        if record.kind == "assistant":
            self._answer = record.message_id
        if record.uuid is not None:
            self.uuids[record.uuid] = None

    def _follows(self, record: ClaudeCodeRecord) -> bool:
        """Whether a record continues the conversation, rather than a message that it may have left."""
        parent = record.parent
        return (
            "parentUuid" not in record.value
            or parent in self.uuids
            or (parent is None and record.is_root_compaction)
        )

    def _is_aside(self, record: ClaudeCodeRecord) -> bool:
        return not self._is_agent and record.is_sidechain


FORMAT = RecordFormat(
    record_type=ClaudeCodeRecord,
    reader=READER,
    find_boundary=_find_boundary,
    continues=_continues,
    list_waiting=_list_waiting,
    is_named_by_file=True,
    choose_folder=choose_folder,
    find_origin=find_origin,
)
