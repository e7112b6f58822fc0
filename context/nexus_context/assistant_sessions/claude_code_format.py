"""Where reading the records of Claude Code can resume (`record_format`).

1. The first record that follows has its parent among those with which the conversation ends before it
   (`parents`), the others have theirs among those that follow. Otherwise the user went back.
"""

from collections.abc import Sequence
from typing import Any

from nexus_context.assistant_sessions.record_format import MOST_PARENTS, Boundary, RecordFormat, Values
from nexus_context.conversation.transcripts.claude_code import READER, has_message
from nexus_context.conversation.transcripts.conversation import field, text_in


def _find_boundary(values: Values, is_agent: bool) -> Boundary | None:
    """The last boundary after the first record; None if there is none."""
    exchange = _Exchange(is_agent)
    boundary: Boundary | None = None
    for at, value in enumerate(values):
        if at and exchange.can_end_before(value):
            boundary = Boundary(at, tuple(exchange.uuids)[-MOST_PARENTS:])
        exchange.add(value)
    return boundary


def _continues(values: Values, parents: Sequence[str], is_agent: bool) -> bool:
    """Whether records simply continue what was read before them (rule 1)."""
    uuids = {text_in(value, "uuid") for value in values}
    is_first = True
    for value in values:
        if not is_agent and _is_sidechain(value):
            if not text_in(value, "agentId"):
                return False
            continue
        if "parentUuid" not in value:
            continue
        parent = _parent(value)
        if parent is None:
            if not _is_compaction(value):
                return False
        elif parent not in uuids and not (is_first and parent in parents):
            return False
        is_first = False
    return True


def _list_waiting(values: Values) -> list[int]:
    """The records of the user's texts that still wait in the queue."""
    waiting: list[int] = []
    for at, value in enumerate(values):
        if value.get("type") != "queue-operation":
            continue
        match value.get("operation"):
            case "enqueue":
                waiting.append(at)
            case "dequeue" | "remove":
                texts = [values[place].get("content") for place in waiting]
                text = value.get("content")
                if waiting:
                    del waiting[texts.index(text) if text in texts else 0]
            case "popAll":
                waiting.clear()
    return waiting


class _Exchange:
    """What is open while records of Claude Code are read."""

    def __init__(self, is_agent: bool) -> None:
        self.uuids: dict[str, None] = {}  # of the last message and what follows it
        self._is_agent = is_agent
        self._calls: set[str] = set()
        self._waiting = 0
        self._answer: str | None = None

    def can_end_before(self, value: dict[str, Any]) -> bool:
        """Whether reading can resume with a record."""
        if self._calls or self._waiting or self._is_aside(value):
            return False
        kind = value.get("type")
        if kind == "assistant":
            return _message_id(value) != self._answer
        return kind == "user" and isinstance(value.get("message"), dict) and not _results(value)

    def add(self, value: dict[str, Any]) -> None:
        """Read a record."""
        kind = value.get("type")
        for block in _blocks(value):
            if kind == "assistant" and block.get("type") == "tool_use":
                self._calls.add(str(block.get("id")))
        self._calls.difference_update(_results(value))
        if kind == "queue-operation":
            operation = value.get("operation")
            self._waiting = (
                0 if operation == "popAll" else self._waiting + (1 if operation == "enqueue" else -1)
            )
            self._waiting = max(self._waiting, 0)
        if self._is_aside(value):
            return
        is_same_answer = kind == "assistant" and _message_id(value) == self._answer
        if has_message(value) and not _results(value) and not is_same_answer:
            self.uuids.clear()
        elif not self._follows(value):
            return
        if kind == "assistant":
            self._answer = _message_id(value)
        uuid = text_in(value, "uuid")
        if uuid is not None:
            self.uuids[uuid] = None

    def _follows(self, value: dict[str, Any]) -> bool:
        """Whether a record follows the last message, rather than one that the conversation may have left."""
        parent = _parent(value)
        return "parentUuid" not in value or parent in self.uuids or (parent is None and _is_compaction(value))

    def _is_aside(self, value: dict[str, Any]) -> bool:
        return not self._is_agent and _is_sidechain(value)


def _parent(value: dict[str, Any]) -> str | None:
    """The uuid of the record that a record follows; a compaction names it apart."""
    return text_in(value, "logicalParentUuid" if _is_compaction(value) else "parentUuid")


def _is_compaction(value: dict[str, Any]) -> bool:
    return value.get("parentUuid") is None and field(value, "subtype") == "compact_boundary"


def _is_sidechain(value: dict[str, Any]) -> bool:
    return value.get("isSidechain") is True or bool(value.get("parent_tool_use_id"))


def _message_id(value: dict[str, Any]) -> str | None:
    return text_in(value, "message", "id") or text_in(value, "uuid")


def _blocks(value: dict[str, Any]) -> list[dict[str, Any]]:
    content = field(value, "message", "content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _results(value: dict[str, Any]) -> list[str]:
    return [str(block.get("tool_use_id")) for block in _blocks(value) if block.get("type") == "tool_result"]


FORMAT = RecordFormat(
    reader=READER,
    find_boundary=_find_boundary,
    continues=_continues,
    list_waiting=_list_waiting,
    is_named_by_file=True,
)
