"""Reads exports of opencode (`opencode export`), and lists of its messages.

Source: opencode `cli/cmd/export.ts`, `session/message-v2.ts`, and the types of its SDK.

1. A message has `info` and `parts`. An answer consists of steps; each becomes a message, followed by the
   results of its tools, and has the usage of its `step-finish`.
2. A tool that did not end counts as failed; opencode tells the model so.
3. A compaction is a user's message with a part `compaction`, then an answer with `summary`. What precedes
   these is no longer sent.
4. Messages from `revert` on were taken back. Plain text files are left out, because opencode adds their text
   itself.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts.conversation import (
    AnswerParts,
    Conversation,
    Draft,
    FormatReader,
    outcome_of,
    result_text,
    url_part,
)
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.agent_result import TurnOutcome
from nexus_context.conversation.summary import SUMMARY_META

_INLINED = ("text/plain", "application/x-directory")
_SILENT = ("step-start", "step-finish", "snapshot", "patch", "agent", "retry")
_INTERRUPTED = "[Tool execution was interrupted]"
_QUESTION = "What did we do so far?"
_SUBTASK = "The following tool was executed by the user"
_OWN = "that opencode keeps for itself: ignored texts, inlined files and the like"
_UNREAD = "without the facts that belong to it"
_FAILED = "of answers that failed before the model said anything"
_REVERTED = "of turns that were taken back"
_COMPACTED = "before the last compaction: its summary replaces them"


def is_file(values: Sequence[Any]) -> bool:
    """Whether any of the values is a session or a message of opencode."""
    return any(map(is_record, values))


def is_record(value: Any) -> bool:
    """Whether a value is a session or a message of opencode."""
    messages = field(value, "messages")
    if isinstance(field(value, "info"), dict) and isinstance(messages, list):
        return any(isinstance(field(message, "info"), dict) for message in messages)
    return _is_message(value)


def convert(records: Sequence[Record], report: Report, entire: bool) -> list[Conversation]:
    """Convert each session to a conversation, and all messages without a session to another. With `entire`,
    the messages before a compaction are included.
    """
    conversations = []
    loose = []
    for record in records:
        if _is_message(record.value):
            loose.append(record)
            continue
        messages = [
            record._replace(value=message, place=f"{record.place}, message {number}")
            for number, message in enumerate(record.value["messages"], 1)
            if isinstance(field(message, "info"), dict)
        ]
        report.leave("unread", _UNREAD, len(record.value["messages"]) - len(messages), "message")
        conversations.append(_read(messages, record.value["info"], report, entire))
    if loose:
        conversations.append(_read(loose, {}, report, entire))
    return conversations


def _read(records: Sequence[Record], info: dict[str, Any], report: Report, entire: bool) -> Conversation:
    draft = Draft(report)
    for record in _live(records, info, report, entire):
        message = record.value["info"]
        parts = [part for part in _listed(record.value.get("parts")) if isinstance(part, dict)]
        if message.get("role") == "assistant":
            model = text_in(message, "modelID")
            draft.model = model or draft.model
            _add_answer(draft, record, message, parts)
        else:
            _add_message(draft, record, message, parts)
    parent = text_in(info, "parentID")
    session = text_in(info, "id")
    return draft.conversation(
        name=text_in(info, "title") or "", session_id=session, agent=session if parent is not None else None
    )


def _live(records: Sequence[Record], info: dict[str, Any], report: Report, entire: bool) -> Sequence[Record]:
    """The messages that were not taken back; unless `entire`, those since the last compaction."""
    reverted = text_in(info, "revert", "messageID")
    ids = [text_in(record.value, "info", "id") for record in records]
    end = ids.index(reverted) if reverted in ids and reverted is not None else len(records)
    report.leave("branch", _REVERTED, len(records) - end, "message")
    start = 0
    for at in range(1, end) if not entire else ():
        question = records[at - 1].value.get("parts")
        asks = any(field(part, "type") == "compaction" for part in _listed(question))
        if asks and field(records[at].value, "info", "summary") is True:
            start = at - 1
    report.leave("compacted", _COMPACTED, start, "message")
    return records[start:end]


def _add_message(draft: Draft, record: Record, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    content_parts: list[dict[str, Any]] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text" and part.get("ignored") is not True and isinstance(part.get("text"), str):
            content_parts.append({"type": "text", "text": part["text"]})
        elif kind == "file" and part.get("mime") not in _INLINED:
            content_parts.append(url_part(part.get("mime"), part.get("url")))
        elif kind in ("compaction", "subtask"):
            content_parts.append({"type": "text", "text": _QUESTION if kind == "compaction" else _SUBTASK})
        elif kind not in _SILENT:
            draft.report.leave("own", _OWN, noun="part")
    content: Any = content_parts
    if len(content_parts) == 1 and content_parts[0]["type"] == "text":
        content = content_parts[0]["text"]
    if content_parts:
        draft.add(record, {"role": info.get("role"), "content": content, "timestamp": _time(info)})


def _add_answer(draft: Draft, record: Record, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    """The steps of an answer, each with the results of its tools."""
    meta = dict(SUMMARY_META) if info.get("summary") is True else None
    count_before = len(draft.messages)
    step = _Step(draft, record, _time(info), meta)
    for part in parts:
        kind = part.get("type")
        if kind == "step-start":
            step.finish(None)
        elif kind == "step-finish":
            step.finish(_outcome(part, part.get("reason")))
        elif not step.add(part):
            draft.report.leave("own", _OWN, noun="part")
    step.finish(_outcome(info, info.get("finish")))
    if len(draft.messages) == count_before and isinstance(info.get("error"), dict):
        draft.report.leave("error", _FAILED, noun="message")


class _Step:
    """One request to the model: what it answered, and the results of its tools."""

    def __init__(self, draft: Draft, record: Record, time: Any, meta: Any) -> None:
        self._draft = draft
        self._record = record
        self._fields = {"timestamp": time, "meta": meta}
        self._answer = AnswerParts()
        self._results: list[dict[str, Any]] = []

    def add(self, part: dict[str, Any]) -> bool:
        """Add a part; False if it is not part of what the model reads or writes."""
        kind = part.get("type")
        if kind == "text" and part.get("ignored") is not True:
            self._answer.add_text(part.get("text"))
        elif kind == "reasoning":
            self._answer.add_part(_reasoning(part))
        elif kind == "tool":
            call_id, state = text_in(part, "callID") or "", part.get("state")
            self._answer.add_call(call_id, part.get("tool"), field(state, "input") or {})
            self._results.append(_result(state, call_id, part.get("tool")))
        else:
            return kind in _SILENT
        return True

    def finish(self, outcome: TurnOutcome | None) -> None:
        """End the step."""
        if self._answer:
            self._draft.add(self._record, self._answer.message(**self._fields), outcome)
            for result in self._results:
                self._draft.add(self._record, result)
        self._answer, self._results = AnswerParts(), []


def _result(state: Any, call_id: str, name: Any) -> dict[str, Any]:
    """The result of a tool, as the model is told it."""
    status, output = field(state, "status"), field(state, "output")
    result: dict[str, Any] = {"role": "tool", "toolCallId": call_id, "name": name}
    if status == "completed":
        files = [part for part in _listed(field(state, "attachments")) if isinstance(part, dict)]
        media = [url_part(part.get("mime"), part.get("url")) for part in files]
        text = result_text(output)
        return result | {"content": [{"type": "text", "text": text}, *media] if media else text}
    partial = field(state, "metadata", "output")
    if status == "error" and field(state, "metadata", "interrupted") is True and isinstance(partial, str):
        return result | {"content": partial}
    text = result_text(field(state, "error")) if status == "error" else _INTERRUPTED
    return result | {"content": text, "meta": {"is_error": True}}


def _reasoning(part: dict[str, Any]) -> dict[str, Any]:
    """Reasoning in the form of the provider that signed it."""
    text = part["text"] if isinstance(part.get("text"), str) else ""
    metadata = part.get("metadata")
    item = text_in(metadata, "openai", "itemId")
    if item is not None:
        summary = [{"type": "summary_text", "text": text}] if text else []
        encrypted = text_in(metadata, "openai", "reasoningEncryptedContent")
        reasoning = {"type": "reasoning", "id": item, "summary": summary}
        return reasoning | ({} if encrypted is None else {"encrypted_content": encrypted})
    google = text_in(metadata, "google", "thoughtSignature")
    if google is not None:
        return {"text": text, "thought": True, "thoughtSignature": google}
    redacted = text_in(metadata, "anthropic", "redactedData")
    if redacted is not None:
        return {"type": "redacted_thinking", "data": redacted}
    signature = text_in(metadata, "anthropic", "signature")
    return {"type": "thinking", "thinking": text} | ({} if signature is None else {"signature": signature})


def _outcome(source: dict[str, Any], reason: Any) -> TurnOutcome | None:
    """Usage of a step; newer versions count the reasoning apart from the output, and say a total."""
    tokens = source.get("tokens")
    taken, answered = field(tokens, "input"), field(tokens, "output")
    read, written = field(tokens, "cache", "read"), field(tokens, "cache", "write")
    total = field(tokens, "total")
    figures = (total, taken, read, written, answered)
    if all(type(figure) is int for figure in figures):
        answered = max(total - taken - read - written, answered)
    return outcome_of(
        taken, answered, cache_read=read, cache_write=written, includes_cache=False, stop_reason=reason
    )


def _is_message(value: Any) -> bool:
    return (
        field(value, "info", "role") in ("user", "assistant")
        and isinstance(value.get("parts"), list)
        and isinstance(field(value, "info", "id"), str)
    )


def _time(info: dict[str, Any]) -> str | None:
    """When a message was created, as ISO 8601; the file has milliseconds."""
    created = field(info, "time", "created")
    try:
        moment = datetime.fromtimestamp(created / 1_000, UTC) if type(created) is int else None
    except (ValueError, OverflowError, OSError):
        return None
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


READER = FormatReader("opencode", is_file, is_record, convert)
