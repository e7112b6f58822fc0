"""Records of Gemini CLI → messages, and where reading can resume (`gemini`, `record_format`).

1. Messages that replace others, and those that the user took back, may change what lies before: reading does
   not resume where such records follow.
2. With `entire`, what a compression dropped stays. A result that the program shortened later is as it was.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.assistant_sessions import gemini
from nexus_context.assistant_sessions.record_format import MOST_PARENTS, Boundary, RecordFormat
from nexus_context.conversation.transcripts.conversation import Conversation, Draft, FormatReader, outcome_of
from nexus_context.conversation.transcripts.gemini import Contents
from nexus_context.conversation.transcripts.records import Record, Report
from nexus_context.session_records.gemini import GeminiRecord
from nexus_context.session_records.values import objects_in, text_in

_COMMAND = "that are commands to Gemini CLI, or what it said itself"


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and any(key in value for key in ("id", "sessionId", "$set", "$rewindTo"))


def _convert(lines: Sequence[Record], report: Report, entire: bool) -> list[Conversation]:
    """The conversation of a session's records."""
    messages: dict[str, Record] = {}
    session = None
    for line in lines:
        record = GeminiRecord(line.value)
        session = record.session or session
        if record.rewinds:
            _rewind(messages, line.value["$rewindTo"])
        elif record.name is not None:
            messages[record.name] = line
        elif record.messages is not None:
            _replace(messages, [line._replace(value=one) for one in record.messages], entire=entire)
    draft = Draft(report)
    contents = Contents(draft)
    for message in messages.values():
        _add(contents, message)
    return [draft.conversation(session_id=session)]


def _rewind(messages: dict[str, Record], name: Any) -> None:
    names = [*messages]
    for each in names[names.index(name) if name in names else 0 :]:
        del messages[each]


def _replace(messages: dict[str, Record], listed: Sequence[Record], *, entire: bool) -> None:
    own = {record.value["id"]: record for record in listed}
    if entire:
        own = {**messages, **{name: one for name, one in own.items() if name not in messages}}
    messages.clear()
    messages.update(own)


def _add(contents: Contents, record: Record) -> None:
    """Add what the model was sent of a message, or answered."""
    value, draft = record.value, contents.draft
    kind, parts = value.get("type"), _parts(value.get("content"))
    if kind == "user" and any(map(_is_sent, parts)):
        contents.add(record, {"role": "user", "parts": [part for part in parts if _is_sent(part)]})
    elif kind == "gemini":
        draft.model = text_in(value, "model") or draft.model
        contents.add(record, {"role": "model", "parts": [*parts, *_calls(value, parts)]})
        draft.note_outcome(_outcome(value.get("tokens")))
        for call in _calls_of(value):
            results = _results(call)
            if results:
                contents.add(record, {"role": "user", "parts": results})
    else:
        draft.report.leave("command", _COMMAND)


def _is_sent(part: dict[str, Any]) -> bool:
    """Whether a part of a message is sent: results are in the answer with their calls."""
    words = part.get("text")
    if isinstance(words, str):
        return bool(words.strip()) and not words.lstrip().startswith(gemini.COMMANDS)
    return "functionResponse" not in part


def _parts(content: Any) -> list[dict[str, Any]]:
    listed = content if isinstance(content, list) else [content]
    parts = ({"text": one} if isinstance(one, str) else one for one in listed)
    return [part for part in parts if isinstance(part, dict) and part.get("text") != ""]


def _calls(value: dict[str, Any], parts: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The calls that are not among the parts already."""
    if any("functionCall" in part for part in parts):
        return
    for call in _calls_of(value):
        yield {"functionCall": {key: call.get(key) for key in ("id", "name", "args")}}


def _calls_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    return objects_in(value.get("toolCalls"))


def _results(call: dict[str, Any]) -> list[dict[str, Any]]:
    result = call.get("result")
    if isinstance(result, str):
        about = {"id": call.get("id"), "name": call.get("name"), "response": {"output": result}}
        return [{"functionResponse": about}]
    return [part for part in (result if isinstance(result, list) else [result]) if isinstance(part, dict)]


def _outcome(tokens: Any) -> Any:
    usage = gemini.usage_of(tokens)
    if usage is None:
        return None
    return outcome_of(usage.sent, usage.output, cache_read=usage.cache_read, includes_cache=True)


def _find_boundary(records: Sequence[GeminiRecord], _: bool) -> Boundary | None:
    if not _is_plain(records):
        return None
    boundary, is_open, names = None, False, list[str]()
    for at, record in enumerate(records):
        if record.name is None:
            continue
        if at and record.value.get("type") == "user" and not is_open:
            boundary = Boundary(at, tuple(names)[-MOST_PARENTS:])
        is_open = any(call.get("result") is None for call in _calls_of(record.value))
        names.append(record.name)
    return boundary


def _continues(records: Sequence[GeminiRecord], parents: Sequence[str], _: bool) -> bool:
    return _is_plain(records) and not any(record.name in parents for record in records)


def _is_plain(records: Sequence[GeminiRecord]) -> bool:
    """Whether records only add messages."""
    return not any(record.rewinds or record.replaces_all for record in records)


FORMAT = RecordFormat(
    record_type=GeminiRecord,
    reader=FormatReader("gemini", lambda _: False, _is_record, _convert),
    find_boundary=_find_boundary,
    continues=_continues,
    find_parent=gemini.parent_of,
    find_folder=gemini.folder_of,
)
