"""Reads items of OpenAI's Responses API: lists of items, request bodies (`input`) and responses (`output`).

Source: openai-python `types/responses`; items of Codex: `codex-rs/protocol/src/models.rs`.

1. Consecutive items of the assistant are one message: its texts, reasoning, calls and what the server ran.
   Texts of another `phase` begin a new one.
2. An output is the result of the call with its `call_id`. An older form of it is an object with `content` and
   `success`.
3. Reasoning, compactions and items of tools that the server ran are kept as they are.
4. Messages without a type are read like chat messages.
"""

from collections.abc import Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts.conversation import (
    AnswerParts,
    Conversation,
    Draft,
    FormatReader,
    outcome_of,
    result_text,
)
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.coercion import object_of
from nexus_context.conversation.parts import SERVER_ITEMS

_OPAQUE = ("reasoning", "compaction", *SERVER_ITEMS)
_TEXTS = ("input_text", "output_text")
_WRAPPERS = ("body", "request", "response")
_LEFT_OUT = "outside of the conversation, such as references to stored items"


def is_file(values: Sequence[Any]) -> bool:
    """Whether any of the values is an item or a body of this API."""
    return any(_is_item(value) or _body(value) is not None for value in values)


def is_record(value: Any) -> bool:
    """Whether a value may be an item or a body of this API."""
    if not isinstance(value, dict):
        return False
    if "messages" in value:
        return False
    return "role" in value or isinstance(value.get("type"), str) or _body(value) is not None


def convert(records: Sequence[Record], report: Report, _entire: bool) -> list[Conversation]:
    """Convert each body to a conversation, and all items outside of one to another."""
    conversations = []
    loose = ItemReader(Draft(report))
    bodies = 0
    for record in records:
        body = _body(record.value)
        if body is None:
            loose.add(record, record.value)
            continue
        bodies += 1
        conversations.append(_read_body(body, record, report, text_in(record.value, "custom_id")))
    if bodies < len(records):
        loose.finish()
        conversations.append(loose.draft.conversation())
    return conversations


class ItemReader:
    """Reads items into a draft. Call `finish` after the last item."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._answer = AnswerParts()
        self._phase: str | None = None
        self._first: Record | None = None  # of the answer
        self._time: str | None = None

    def add(self, record: Record, item: Any, time: str | None = None) -> None:
        """Read one item. `time` is when it was written."""
        kind = field(item, "type")
        kind = kind if isinstance(kind, str) else "message"
        if kind == "message" and field(item, "role") == "assistant" and _parts(item) is not None:
            self._add_texts(record, item, time)
        elif kind == "message" or not isinstance(item, dict):
            self.finish()
            self.draft.add(record, _stamped(_plain(item), time))
        elif kind in _OPAQUE or kind == "compaction_summary":
            self._begin(record, time)
            self._answer.add_part(item if kind in _OPAQUE else item | {"type": "compaction"})
        elif kind.endswith("_call_output"):
            self.finish()
            self.draft.add(record, _stamped(_result(item), time))
        elif kind.endswith("_call"):
            self._begin(record, time)
            self._add_call(item, kind)
        else:
            self.draft.report.leave("item", _LEFT_OUT)

    def finish(self) -> None:
        """Add the answer that is being read to the draft."""
        if self._answer and self._first is not None:
            meta = None if self._phase is None else {"phase": self._phase}
            self.draft.add(self._first, self._answer.message(meta=meta, timestamp=self._time))
        self._answer, self._phase, self._first, self._time = AnswerParts(), None, None, None

    def _begin(self, record: Record, time: str | None) -> None:
        if self._first is None:
            self._first, self._time = record, time

    def _add_texts(self, record: Record, item: dict[str, Any], time: str | None) -> None:
        phase = text_in(item, "phase")
        if phase != self._phase and any("text" in part for part in self._answer.parts):
            self.finish()
        self._begin(record, time)
        self._phase = phase or self._phase
        for part in _parts(item) or ():
            if field(part, "type") in _TEXTS and not part.get("annotations"):
                self._answer.add_text(part.get("text"))
            elif isinstance(part, dict):
                self._answer.add_part(part)

    def _add_call(self, item: dict[str, Any], kind: str) -> None:
        arguments = item.get("arguments", item.get("input", item.get("action", {})))
        name = text_in(item, "name") or kind.removesuffix("_call")
        call_id = text_in(item, "call_id") or text_in(item, "id") or ""
        self._answer.add_call(
            call_id, name, object_of(arguments) if isinstance(arguments, str) else arguments
        )


def outcome_of_usage(usage: Any, stop_reason: Any = None) -> Any:
    """Return what a response or a rollout says about the tokens of an answer, None if that is nothing."""
    details = field(usage, "input_tokens_details")
    read, written = field(details, "cached_tokens"), field(details, "cache_write_tokens")
    return outcome_of(
        field(usage, "input_tokens"),
        field(usage, "output_tokens"),
        cache_read=field(usage, "cached_input_tokens") if read is None else read,
        cache_write=field(usage, "cache_write_input_tokens") if written is None else written,
        includes_cache=True,
        stop_reason=stop_reason,
    )


def _read_body(body: dict[str, Any], record: Record, report: Report, name: str | None) -> Conversation:
    draft = Draft(report)
    reader = ItemReader(draft)
    items = body.get("input", body.get("output"))
    listed = [{"role": "user", "content": items}] if isinstance(items, str) else items or []
    for number, item in enumerate(listed, 1):
        reader.add(record._replace(value=item, place=f"{record.place}, item {number}"), item)
    reader.finish()
    draft.model = text_in(body, "model")
    reason = field(body, "incomplete_details", "reason") or body.get("status")
    draft.note_outcome(outcome_of_usage(body.get("usage"), reason) if "usage" in body else None)
    named = name or text_in(body, "id") or ""
    return draft.conversation(name=named, system=text_in(body, "instructions"), tools=body.get("tools"))


def _body(value: Any) -> dict[str, Any] | None:
    """A request or a response, without what a log put around it."""
    if not isinstance(value, dict) or "role" in value or "messages" in value:
        return None
    for inner in (value, *(value.get(key) for key in _WRAPPERS)):
        if not isinstance(inner, dict) or "messages" in inner:
            continue
        if inner.get("object") == "response" and isinstance(inner.get("output"), list):
            return inner
        items = inner.get("input")
        if isinstance(inner.get("model"), str) and (
            isinstance(items, str)
            or (isinstance(items, list) and all(isinstance(item, dict) for item in items))
        ):
            return inner
    return None


def _is_item(value: Any) -> bool:
    """Whether a value is an item that no other format has."""
    kind = field(value, "type")
    if not isinstance(kind, str):
        return False
    if kind == "message":
        return any(field(part, "type") in _TEXTS for part in _parts(value) or ())
    if kind == "reasoning":
        return isinstance(value.get("summary"), list)
    if kind in _OPAQUE:
        return isinstance(value.get("id"), str)
    return kind.endswith(("_call", "_call_output")) and isinstance(value.get("call_id"), str)


def _parts(item: Any) -> list[Any] | None:
    content = field(item, "content")
    return content if isinstance(content, list) else None


def _plain(item: Any) -> Any:
    """A message without the fields of an item."""
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if key not in ("type", "id", "status", "phase")}


def _result(item: dict[str, Any]) -> dict[str, Any]:
    output = item.get("output")
    failed = False
    if isinstance(output, dict) and ("content" in output or "success" in output):
        failed = output.get("success") is False
        output = output.get("content")
    content = output if isinstance(output, list) else result_text(output)
    result: dict[str, Any] = {"role": "tool", "content": content, "toolCallId": item.get("call_id")}
    return result | ({"meta": {"is_error": True}} if failed else {})


def _stamped(message: Any, time: str | None) -> Any:
    return message if time is None or not isinstance(message, dict) else message | {"timestamp": time}


READER = FormatReader("responses", is_file, is_record, convert)
