"""Reads files of Gemini CLI (`~/.gemini/tmp/*/chats/*.jsonl`) as the messages of a session.

The format is that of 0.61.0 (`records`).

1. What a record replaces or takes back is left out. So are the program's own texts, and commands to it.
2. With `entire`, what a compression dropped stays. A result that the program shortened later is read as it
   was.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.assistants.gemini.records import COMMANDS, GeminiRecord
from nexus_context.assistants.reading.record_values import field, objects_in, text_in
from nexus_context.assistants.transcripts.conversation import Conversation, Draft, FormatReader, outcome_of
from nexus_context.assistants.transcripts.gemini import Contents
from nexus_context.assistants.transcripts.records import Record, Report

_COMMAND = "that are commands to Gemini CLI, or what it said itself"


def is_record(value: Any) -> bool:
    return isinstance(value, dict) and any(key in value for key in ("id", "sessionId", "$set", "$rewindTo"))


def convert(lines: Sequence[Record], report: Report, entire: bool) -> list[Conversation]:
    """Convert the records of a session to one conversation. With `entire`, what a compression dropped is
    included.
    """
    messages: dict[str, Record] = {}
    session = None
    for line in lines:
        record = GeminiRecord(line.value)
        session = record.session or session
        if record.rewinds:
            names, name = [*messages], line.value["$rewindTo"]
            for removed_name in names[names.index(name) if name in names else 0 :]:
                del messages[removed_name]
        elif record.name is not None:
            messages[record.name] = line
        elif record.messages is not None:
            _replace(messages, [line._replace(value=value) for value in record.messages], entire=entire)
    draft = Draft(report)
    contents = Contents(draft)
    for message in messages.values():
        _add(contents, message)
    return [draft.conversation(session_id=session)]


def _replace(messages: dict[str, Record], listed: Sequence[Record], *, entire: bool) -> None:
    records_by_id = {record.value["id"]: record for record in listed}
    if entire:
        records_by_id = {
            **messages,
            **{name: record for name, record in records_by_id.items() if name not in messages},
        }
    messages.clear()
    messages.update(records_by_id)


def _add(contents: Contents, record: Record) -> None:
    """Add what the model was sent of a message, or what it answered."""
    value, draft = record.value, contents.draft
    kind, parts = value.get("type"), _parts(value.get("content"))
    if kind == "user" and any(map(_is_sent, parts)):
        contents.add(record, {"role": "user", "parts": [part for part in parts if _is_sent(part)]})
    elif kind == "gemini":
        draft.model = text_in(value, "model") or draft.model
        contents.add(record, {"role": "model", "parts": [*parts, *_calls(value, parts)]})
        draft.note_outcome(_outcome(value.get("tokens")))
        for call in calls_of(value):
            results = _results(call)
            if results:
                contents.add(record, {"role": "user", "parts": results})
    else:
        draft.report.leave("command", _COMMAND)


def _is_sent(part: dict[str, Any]) -> bool:
    """Whether a part of a message is sent: results are in the answer with their calls."""
    words = part.get("text")
    if isinstance(words, str):
        return bool(words.strip()) and not words.lstrip().startswith(COMMANDS)
    return "functionResponse" not in part


def _parts(content: Any) -> list[dict[str, Any]]:
    items = content if isinstance(content, list) else [content]
    parts = ({"text": item} if isinstance(item, str) else item for item in items)
    return [part for part in parts if isinstance(part, dict) and part.get("text") != ""]


def _calls(value: dict[str, Any], parts: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The calls that are not among the parts already."""
    if any("functionCall" in part for part in parts):
        return
    for call in calls_of(value):
        yield {"functionCall": {key: call.get(key) for key in ("id", "name", "args")}}


def calls_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    return objects_in(value.get("toolCalls"))


def _results(call: dict[str, Any]) -> list[dict[str, Any]]:
    result = call.get("result")
    if isinstance(result, str):
        function_response = {"id": call.get("id"), "name": call.get("name"), "response": {"output": result}}
        return [{"functionResponse": function_response}]
    return [part for part in (result if isinstance(result, list) else [result]) if isinstance(part, dict)]


def _outcome(tokens: Any) -> Any:
    """What is said about an answer: the output is counted without the thoughts."""
    output, thoughts = field(tokens, "output"), field(tokens, "thoughts")
    answered = sum(count for count in (output, thoughts) if type(count) is int)
    return outcome_of(
        field(tokens, "input"), answered, cache_read=field(tokens, "cached"), includes_cache=True
    )


def is_file(values: Sequence[Any]) -> bool:
    """Whether values are the lines of a session's file. Its first line is enough."""
    return any(text_in(value, "sessionId") is not None and "projectHash" in value for value in values)


READER = FormatReader("gemini-cli", is_file, is_record, convert)
