"""Reads Claude's data export (`conversations.json`): each chat becomes one conversation.

Source: exports of several years, as programs that read them describe them.

1. A chat has `chat_messages`; their texts are in `content`, in older exports only in `text`.
2. Messages form a tree if they name their parents. The conversation ends with `current_leaf_message_uuid`,
   else with the last message; other branches are left out and counted.
3. An answer holds the results of its tools; each becomes a message of its own, after the calls before it.
4. Text that was extracted from an attachment precedes the message. Of other files the export has only the
   names.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts.conversation import (
    AnswerParts,
    Conversation,
    Draft,
    FormatReader,
    result_text,
)
from nexus_context.assistants.transcripts.records import Record, Report

_BRANCH = "of abandoned branches of the conversation"
_FILES = "of which the export has only the name"
_BLOCKS = "of answers that no model reads, such as notes of the web page"


def is_file(values: Sequence[Any]) -> bool:
    """Whether any of the values is a chat of an export."""
    return any(map(is_record, values))


def is_record(value: Any) -> bool:
    """Whether a value is a chat of an export."""
    messages = field(value, "chat_messages")
    return isinstance(messages, list) and any(field(message, "sender") is not None for message in messages)


def convert(records: Sequence[Record], report: Report, _entire: bool) -> list[Conversation]:
    """Convert each chat to a conversation."""
    conversations = []
    for record in records:
        chat = record.value
        draft = Draft(report)
        draft.model = text_in(chat, "model")
        for number, message in _branch(chat, report):
            message_record = record._replace(place=f"{record.place}, message {number}")
            if isinstance(message, dict) and message.get("sender") == "assistant":
                _add_answer(draft, message_record, message)
            else:
                _add_message(draft, message_record, message)
        conversations.append(
            draft.conversation(name=text_in(chat, "name") or "", session_id=text_in(chat, "uuid"))
        )
    return conversations


def _branch(chat: dict[str, Any], report: Report) -> list[tuple[int, Any]]:
    """The numbered messages of the branch that ends with the current one."""
    messages = list(enumerate(chat["chat_messages"], 1))
    places = {name: at for at, (_, message) in enumerate(messages) if (name := text_in(message, "uuid"))}
    if not any(text_in(message, "parent_message_uuid") in places for _, message in messages):
        return messages
    at: int | None = places.get(text_in(chat, "current_leaf_message_uuid") or "", len(messages) - 1)
    path: list[int] = []
    visited: set[int] = set()
    while at is not None and at not in visited:
        visited.add(at)
        path.append(at)
        at = places.get(text_in(messages[at][1], "parent_message_uuid") or "")
    report.leave("branch", _BRANCH, len(messages) - len(path), "message")
    return [messages[at] for at in reversed(path)]


def _add_message(draft: Draft, record: Record, message: Any) -> None:
    """A message of the user; its attachments come first."""
    if not isinstance(message, dict):
        draft.add(record, message)
        return
    parts = []
    for attachment in _listed(message, "attachments"):
        text = text_in(attachment, "extracted_content")
        if text is None:
            draft.report.leave("file", _FILES, noun="file")
        else:
            name = text_in(attachment, "file_name")
            parts.append({"type": "text", "text": text if name is None else f"{name}:\n{text}"})
    names = {text_in(file, "file_uuid") or str(at): 1 for at, file in enumerate(_listed(message, "files"))}
    draft.report.leave("file", _FILES, len(names), "file")
    blocks = [block for block in map(_block, _blocks(message)) if block is not None]
    parts += blocks
    content: Any = parts
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        content = parts[0]["text"]
    if parts:
        role = "user" if message.get("sender") == "human" else message.get("sender")
        draft.add(record, {"role": role, "content": content, "timestamp": text_in(message, "created_at")})


def _add_answer(draft: Draft, record: Record, message: dict[str, Any]) -> None:
    """An answer, cut where results of its tools are."""
    stamp = text_in(message, "created_at")
    answer = AnswerParts()
    calls = 0
    waiting_calls: deque[str] = deque()
    for block in _blocks(message):
        kind = field(block, "type")
        if kind == "tool_use":
            calls += 1
            call_id = text_in(block, "id") or f"call-{len(draft.messages)}-{calls}"
            waiting_calls.append(call_id)
            answer.add_call(call_id, block.get("name"), block.get("input") or {})
        elif kind == "tool_result":
            if answer:
                draft.add(record, answer.message(timestamp=stamp))
                answer = AnswerParts()
            oldest_call = waiting_calls.popleft() if waiting_calls else None
            draft.add(record, _result(block, oldest_call, stamp))
        elif (answer_part := _block(block)) is not None:
            answer.add_part(answer_part)
        else:
            draft.report.leave("block", _BLOCKS, noun="block")
    if answer:
        draft.add(record, answer.message(timestamp=stamp))


def _result(block: dict[str, Any], waiting: str | None, stamp: str | None) -> dict[str, Any]:
    content = block.get("content")
    if isinstance(content, list):
        content = [part for part in map(_block, content) if part is not None] or result_text(content)
    elif not isinstance(content, str):
        content = result_text(content)
    result = {"role": "tool", "content": content, "toolCallId": text_in(block, "tool_use_id") or waiting}
    result["timestamp"] = stamp
    return result | ({"meta": {"is_error": True}} if block.get("is_error") is True else {})


def _block(block: Any) -> dict[str, Any] | None:
    """A block without what only the web page reads; None if nothing is left."""
    kind, text = field(block, "type"), field(block, "text")
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        signature = text_in(block, "signature")
        thinking = {"type": "thinking", "thinking": block["thinking"]}
        return thinking if signature is None else thinking | {"signature": signature}
    if isinstance(text, str):
        return {"type": "text", "text": text} if text else None
    return block if kind in ("image", "document") and isinstance(block.get("source"), dict) else None


def _blocks(message: dict[str, Any]) -> list[Any]:
    blocks = _listed(message, "content")
    return blocks if blocks else [{"type": "text", "text": message.get("text")}]


def _listed(message: dict[str, Any], key: str) -> list[Any]:
    value = message.get(key)
    return value if isinstance(value, list) else []


READER = FormatReader("claude-web", is_file, is_record, convert)
