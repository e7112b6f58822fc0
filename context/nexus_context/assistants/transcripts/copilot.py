"""Reads chats of GitHub Copilot: what VS Code exports (`Chat: Export Chat…`), and events of Copilot CLI.

1. VS Code: `requests` has what the user wrote (`message.text`) and the parts of the answer (`response`). A
   part with a `value` and without a kind is text; the others are VS Code's own and are left out.
2. Copilot CLI (`~/.copilot/session-state/…/events.jsonl`): an event has `type` and `data`. Messages and
   results of tools are read; the other events hold nothing that was sent to the model.
"""

from collections.abc import Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field, objects_in, text_in
from nexus_context.assistants.transcripts.conversation import AnswerParts, Conversation, Draft, FormatReader
from nexus_context.assistants.transcripts.records import Record, Report

_OWN = "that the program keeps for itself"
_EVENTS = ("session.", "user.message", "assistant.", "tool.")


def _is_chat(value: Any) -> bool:
    requests = objects_in(field(value, "requests"))
    return any(isinstance(field(request, "message"), dict) and "response" in request for request in requests)


def _is_event(value: Any) -> bool:
    return (text_in(value, "type") or "").startswith(_EVENTS) and isinstance(field(value, "data"), dict)


def _convert_chats(records: Sequence[Record], report: Report, _: bool) -> list[Conversation]:
    conversations = []
    for record in records:
        draft = Draft(report)
        for request in objects_in(record.value["requests"]):
            draft.model = text_in(request, "modelId") or draft.model
            draft.add(record, {"role": "user", "content": text_in(request, "message", "text") or ""})
            parts, texts = objects_in(request.get("response")), AnswerParts()
            for part in parts:
                if "kind" not in part or part["kind"] == "markdownContent":
                    words = part.get("value", field(part, "content", "value"))
                    texts.add_text(words if isinstance(words, str) else field(words, "value"))
            report.leave("own", _OWN, len(parts) - len(texts.parts), "part of an answer")
            if texts:
                draft.add(record, texts.message())
        conversations.append(draft.conversation(session_id=text_in(record.value, "sessionId")))
    return conversations


def _convert_events(records: Sequence[Record], report: Report, _: bool) -> list[Conversation]:
    draft, session = Draft(report), None
    for record in records:
        kind, data = record.value["type"], record.value["data"]
        session = session or text_in(data, "sessionId")
        draft.model = text_in(data, "model") or draft.model
        time = text_in(record.value, "timestamp")
        if kind == "user.message":
            draft.add(record, {"role": "user", "content": text_in(data, "content") or "", "timestamp": time})
        elif kind == "assistant.message":
            answer = AnswerParts()
            answer.add_text(data.get("content"))
            for call in objects_in(data.get("toolRequests")):
                answer.add_call(str(call.get("toolCallId")), call.get("name"), call.get("arguments"))
            if answer:
                draft.add(record, answer.message(timestamp=time))
        elif kind == "tool.execution_complete":
            content = text_in(data, "result", "content") or text_in(data, "error", "message") or ""
            call_id = str(data.get("toolCallId"))
            draft.add(record, {"role": "tool", "toolCallId": call_id, "content": content, "timestamp": time})
        else:
            report.leave("own", _OWN)
    return [draft.conversation(session_id=session)]


CHATS = FormatReader("vscode-chat", lambda values: any(map(_is_chat, values)), _is_chat, _convert_chats)
EVENTS = FormatReader("copilot-cli", lambda values: any(map(_is_event, values)), _is_event, _convert_events)
