"""Reads contents of Google's Gemini API: lists of contents, request bodies (`contents`) and answers
(`candidates`).

Source: google-genai `types.Content`; keys in camel case, or in snake case as Python programs write them.

1. A content with the role `model` is an answer; any other is the user's. Results of functions in a content
   become messages of their own, before its other parts.
2. Calls without an id get one. A result without an id belongs to the oldest open call of its function.
3. A content without a role is the user's if no other has a role; else it is incomplete.
4. Reasoning and signatures are kept; so is code that Google's server ran.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts.conversation import (
    AnswerParts,
    Conversation,
    Draft,
    FormatReader,
    media_part,
    outcome_of,
    result_text,
)
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.gemini_parts import GEMINI_KEYS, gemini_form
from nexus_context.conversation.parts import SIGNATURE_KEYS

_ROLES = ("user", "model", "function", "system", None)
_WRAPPERS = ("body", "request", "response")
_SERVER_KEYS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


def is_file(values: Sequence[Any]) -> bool:
    """Whether any of the values is a content or a body of this API."""
    return any(map(is_record, values))


def is_record(value: Any) -> bool:
    """Whether a value is a content or a body of this API."""
    return _is_content(value) or _body(value) is not None


def convert(records: Sequence[Record], report: Report, _entire: bool) -> list[Conversation]:
    """Convert each request body to a conversation, and all contents and answers outside of one to another."""
    conversations = []
    loose = Contents(Draft(report), _has_roles(record.value for record in records))
    for record in records:
        body = _body(record.value)
        if body is None:
            loose.add(record, record.value)
        elif "contents" in body:
            conversations.append(_read_request(body, record, report))
        else:
            loose.add_answer(record, body)
    if loose.draft.messages:
        conversations.append(loose.draft.conversation())
    return conversations


class Contents:
    """Reads contents of Google's API into a draft. `has_roles` is true if a content without a role is
    incomplete, because others have one.
    """

    def __init__(self, draft: Draft, has_roles: bool = True) -> None:
        self.draft = draft
        self._has_roles = has_roles
        self._calls = 0
        # function → ids of calls without a result, oldest first
        self._open: dict[str, OrderedDict[str, None]] = {}

    def add(self, record: Record, content: Any) -> None:
        """Read one content into the draft."""
        raw_parts = content.get("parts") if isinstance(content, dict) else None
        parts = (
            [gemini_form(part) for part in raw_parts if isinstance(part, dict)]
            if isinstance(raw_parts, list)
            else []
        )
        if field(content, "role") == "model":
            self._add_answer(record, parts)
            return
        for part in parts:
            if isinstance(part.get("functionResponse"), dict):
                self.draft.add(record, self._result(part["functionResponse"]))
        content_parts = [_convert_part(part) for part in parts if "functionResponse" not in part]
        if content_parts:
            role = field(content, "role") or (None if self._has_roles else "user")
            only = content_parts[0] if len(content_parts) == 1 else {}
            self.draft.add(
                record,
                {"role": role, "content": only["text"] if only.keys() == {"type", "text"} else content_parts},
            )

    def add_answer(self, record: Record, body: dict[str, Any]) -> None:
        """Read the first candidate of an answer of the API."""
        candidate = next(iter(body["candidates"]), None)
        self.draft.model = text_in(body, "modelVersion") or text_in(body, "model_version") or self.draft.model
        self.add(record, {"role": "model"} | (field(candidate, "content") or {}))
        usage = body.get("usageMetadata", body.get("usage_metadata"))
        self.draft.note_outcome(_outcome(usage, candidate))

    def _add_answer(self, record: Record, parts: list[dict[str, Any]]) -> None:
        answer = AnswerParts()
        for part in parts:
            call = part.get("functionCall")
            if not isinstance(call, dict):
                answer.add_part(_convert_part(part))
                continue
            self._calls += 1
            name, call_id = call.get("name"), text_in(call, "id") or f"function-{self._calls}"
            self._open.setdefault(str(name), OrderedDict())[call_id] = None
            answer.add_call(call_id, name, call.get("args") or {}, text_in(part, SIGNATURE_KEYS[0]))
        if answer:
            self.draft.add(record, answer.message())

    def _result(self, response: dict[str, Any]) -> dict[str, Any]:
        name = response.get("name")
        waiting = self._open.get(str(name), OrderedDict[str, None]())
        call_id = text_in(response, "id") or next(iter(waiting), None)
        if call_id is not None:
            waiting.pop(call_id, None)
        value = response.get("response")
        keys = [*value] if isinstance(value, dict) else []
        key = keys[0] if keys in (["output"], ["result"], ["error"]) else ""
        plain = text_in(value, key)
        result = {
            "role": "tool",
            "content": result_text(value) if plain is None else plain,
            "toolCallId": call_id,
            "name": name,
        }
        return result | ({"meta": {"is_error": True}} if keys == ["error"] else {})


def _read_request(body: dict[str, Any], record: Record, report: Report) -> Conversation:
    contents = Contents(Draft(report), _has_roles(body["contents"]))
    for number, content in enumerate(body["contents"], 1):
        contents.add(record._replace(value=content, place=f"{record.place}, content {number}"), content)
    contents.draft.model = text_in(body, "model")
    instruction = body.get("systemInstruction", body.get("system_instruction"))
    parts = field(instruction, "parts")
    texts = [text_in(part, "text") for part in parts] if isinstance(parts, list) else [instruction]
    system = "\n\n".join(text for text in texts if isinstance(text, str) and text)
    groups = body.get("tools")
    declared = [
        tool
        for group in (groups if isinstance(groups, list) else ())
        for tool in field(group, "functionDeclarations") or field(group, "function_declarations") or ()
    ]
    name = text_in(record.value, "key") or text_in(record.value, "custom_id") or ""
    return contents.draft.conversation(name=name, system=system or None, tools=declared)


def _has_roles(contents: Iterable[Any]) -> bool:
    return any(field(content, "role") is not None for content in contents)


def _is_content(value: Any) -> bool:
    if not isinstance(value, dict) or "kind" in value or "content" in value or "info" in value:
        return False
    parts = value.get("parts")
    role = value.get("role")
    if not isinstance(parts, list) or not parts or not (role is None or role in _ROLES):
        return False
    return all(
        isinstance(part, dict) and "type" not in part and not GEMINI_KEYS.isdisjoint(part) for part in parts
    )


def _body(value: Any) -> dict[str, Any] | None:
    """A request or an answer, without what a log put around it."""
    if not isinstance(value, dict) or "role" in value or "messages" in value:
        return None
    for inner in (value, *(value.get(key) for key in _WRAPPERS)):
        if not isinstance(inner, dict):
            continue
        contents, candidates = inner.get("contents"), inner.get("candidates")
        if isinstance(contents, list) and any(map(_is_content, contents)):
            return inner
        if isinstance(candidates, list) and any(
            _is_content(field(candidate, "content")) for candidate in candidates
        ):
            return inner
    return None


def _convert_part(part: dict[str, Any]) -> dict[str, Any]:
    """A part in our form: texts and media by their kind, anything else as Google has it."""
    if part.get("thought") is True or any(key in part for key in _SERVER_KEYS):
        return part
    for key, data_key in (("inlineData", "data"), ("fileData", "url")):
        media = part.get(key)
        if isinstance(media, dict):
            kind = media.get("mimeType", media.get("mime_type"))
            where = media.get("data", media.get("fileUri", media.get("file_uri")))
            return media_part(kind, **{data_key: where})
    if isinstance(part.get("text"), str):
        return {"type": "text"} | part
    return part


def _outcome(usage: Any, candidate: Any) -> Any:
    figures = usage if isinstance(usage, dict) else {}

    def figure(camel: str, snake: str) -> Any:
        return figures.get(camel, figures.get(snake))

    answered = figure("candidatesTokenCount", "candidates_token_count") or 0
    thoughts = figure("thoughtsTokenCount", "thoughts_token_count") or 0
    return outcome_of(
        figure("promptTokenCount", "prompt_token_count"),
        answered + thoughts if type(answered) is int and type(thoughts) is int else None,
        cache_read=figure("cachedContentTokenCount", "cached_content_token_count"),
        includes_cache=True,
        stop_reason=field(candidate, "finishReason") or field(candidate, "finish_reason"),
    )


READER = FormatReader("gemini", is_file, is_record, convert)
