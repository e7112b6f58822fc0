"""Reads rollouts of Codex (`~/.codex/sessions/**/rollout-*.jsonl`) as the messages of a session.

Source: codex-rs `protocol/src/{models,protocol}.rs` and files of several versions.

1. A line is an envelope with `type` and `payload`. Older files have the payloads alone, after a line with
   `id` and `instructions`; the oldest are one object with `session` and `items`.
2. `response_item` is an item of the Responses API (`responses`). Other events repeat what items say, with two
   exceptions: `token_count` has the usage of the last answer, and `thread_rolled_back` takes turns back.
3. `compacted` replaces all items before it with `replacement_history`, or with its summary.
4. Messages in the user's name that Codex wrote, such as the environment, have `isMeta` in their `meta`.
5. What Codex writes for itself (settings of a turn, state, its events) is left out and counted.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts.conversation import Conversation, Draft, FormatReader
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.assistants.transcripts.responses import ItemReader, outcome_of_usage
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.summary import FOREIGN_OPENINGS, SUMMARY_META

_ENVELOPES = (
    "session_meta",
    "response_item",
    "turn_context",
    "event_msg",
    "compacted",
    "world_state",
    "token_usage_record",
)
_CONTEXT = re.compile(r"\s*(?:<[a-z_]+>|# AGENTS\.md instructions)")  # messages that Codex wrote
_OWN = "that Codex wrote for itself: settings, state and events that repeat the messages"
_COMPACTED = "before the last compaction: its summary replaces them"
_ROLLED_BACK = "of turns that were taken back"


def is_file(values: Sequence[Any]) -> bool:
    """Whether values are the lines of a rollout. One line that only Codex writes is enough."""
    return any(
        _is_envelope(value) or _is_header(value) or _is_state(value) or _is_old(value) for value in values
    )


def is_record(value: Any) -> bool:
    """Whether a value may be a line of a rollout."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("type"), str) or _is_header(value) or _is_state(value) or _is_old(value)


def convert(records: Sequence[Record], report: Report, entire: bool) -> list[Conversation]:
    """Convert the records of a rollout to one conversation. With `entire`, the messages before a compaction
    are included.
    """
    rollout = _Rollout(report, entire)
    for record in records:
        for line in _lines(record):
            rollout.read(line)
    return [rollout.conversation()]


class _Rollout:
    """Reads the lines of one rollout."""

    def __init__(self, report: Report, entire: bool) -> None:
        self._report = report
        self._entire = entire
        self._draft = Draft(report)
        self._items = ItemReader(self._draft)
        self._starts: list[int] = []  # where turns begin, among the first `_scanned` messages
        self._scanned = 0
        self._id: str | None = None
        self._system: str | None = None

    def read(self, record: Record) -> None:
        """Read one line."""
        value = record.value
        time = text_in(value, "timestamp")
        if _is_header(value):
            self._id = self._id or text_in(value, "id")
        elif _is_state(value):
            self._report.leave("own", _OWN)
        elif _is_envelope(value):
            self._read_payload(record, value["type"], value["payload"], time)
        else:
            self._read_item(record, value, time)

    def conversation(self) -> Conversation:
        """The session that the lines make."""
        self._items.finish()
        return self._draft.conversation(session_id=self._id, system=self._system)

    def _read_payload(self, record: Record, kind: str, payload: Any, time: str | None) -> None:
        if kind == "response_item":
            self._read_item(record, payload, time)
        elif kind == "session_meta":
            self._id = self._id or text_in(payload, "id")
            self._system = self._system or text_in(payload, "base_instructions", "text")
        elif kind == "compacted":
            self._compact(record, payload, time)
        elif kind == "event_msg" and payload.get("type") == "token_count":
            self._items.finish()
            self._draft.note_outcome(outcome_of_usage(field(payload, "info", "last_token_usage")))
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            self._roll_back(payload.get("num_turns"))
        else:
            self._draft.model = (
                text_in(payload, "model") if kind == "turn_context" else None
            ) or self._draft.model
            self._report.leave("own", _OWN)

    def _read_item(self, record: Record, item: Any, time: str | None) -> None:
        if field(item, "type") in ("ghost_snapshot", "other"):
            self._report.leave("own", _OWN)
            return
        if field(item, "role") == "user" and _CONTEXT.match(_first_text(item)):
            item = item | {"meta": {"isMeta": True}}
        self._items.add(record, item, time)

    def _compact(self, record: Record, payload: dict[str, Any], time: str | None) -> None:
        """What replaces the messages so far; `entire` keeps them and adds the summary."""
        self._items.finish()
        history, summary = payload.get("replacement_history"), text_in(payload, "message")
        items = history if isinstance(history, list) else []
        if not self._entire and (items or summary):
            self._report.leave("compacted", _COMPACTED, self._draft.cut(0), "message")
            self._starts, self._scanned = [], 0
            for item in items:
                is_summary = field(item, "role") == "user" and _first_text(item).startswith(FOREIGN_OPENINGS)
                self._items.add(record, item | {"meta": dict(SUMMARY_META)} if is_summary else item, time)
            self._items.finish()
        if summary and (self._entire or not items):
            self._draft.add(
                record, {"role": "user", "content": summary, "meta": dict(SUMMARY_META), "timestamp": time}
            )
        elif self._entire:
            for item in items:
                if field(item, "type") in ("compaction", "compaction_summary"):
                    self._items.add(record, item, time)

    def _roll_back(self, turns: Any) -> None:
        self._items.finish()
        if type(turns) is not int or turns < 1:
            return
        messages = self._draft.messages
        self._starts += [at for at in range(self._scanned, len(messages)) if _begins_turn(messages[at])]
        if self._starts:
            first_removed = max(len(self._starts) - turns, 0)
            self._report.leave(
                "branch", _ROLLED_BACK, self._draft.cut(self._starts[first_removed]), "message"
            )
            del self._starts[first_removed:]
        self._scanned = len(messages)


def _lines(record: Record) -> Iterator[Record]:
    """The record, or the items of the oldest form."""
    if not _is_old(record.value):
        yield record
        return
    yield record._replace(value={"instructions": None, "timestamp": ""} | record.value["session"])
    for number, item in enumerate(record.value["items"], 1):
        yield record._replace(value=item, place=f"{record.place}, item {number}")


def _first_text(item: dict[str, Any]) -> str:
    content = item.get("content")
    first_part = content[0] if isinstance(content, list) and content else None
    return text_in(first_part, "text") or ""


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and _CONTEXT.match(text_of(message)) is None


def _is_envelope(value: Any) -> bool:
    return field(value, "type") in _ENVELOPES and isinstance(value.get("payload"), dict)


def _is_header(value: Any) -> bool:
    if not isinstance(value, dict) or "type" in value or "role" in value:
        return False
    return "instructions" in value and isinstance(value.get("id"), str) and "timestamp" in value


def _is_state(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("record_type"), str) and "role" not in value


def _is_old(value: Any) -> bool:
    return isinstance(field(value, "session"), dict) and isinstance(value.get("items"), list)


READER = FormatReader("codex", is_file, is_record, convert)
