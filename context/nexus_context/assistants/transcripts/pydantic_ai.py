"""Reads messages of pydantic-ai (`ModelMessagesTypeAdapter`, `all_messages_json()`).

Source: pydantic-ai `messages.py`, `usage.py`.

1. A request holds system prompts, the user's prompts and results of tools; each becomes a message.
2. A retry that names a tool is the tool's result, as an error. Any other retry is a message of the user.
3. `instructions` of a request are the system prompt of that request only, so the last ones count.
4. Tools that Anthropic ran for the model are kept; those of other providers are left out and counted.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

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
from nexus_context.conversation.coercion import object_of
from nexus_context.conversation.parts import SERVER_RESULTS

_LEFT_OUT = "that only the provider or pydantic-ai reads"


def is_file(values: Sequence[Any]) -> bool:
    """Whether any of the values is a message of pydantic-ai."""
    return any(map(is_record, values))


def is_record(value: Any) -> bool:
    """Whether a value is a message of pydantic-ai."""
    parts = field(value, "parts")
    return (
        field(value, "kind") in ("request", "response")
        and isinstance(parts, list)
        and all(isinstance(field(part, "part_kind"), str) for part in parts)
    )


def convert(records: Sequence[Record], report: Report, _entire: bool) -> list[Conversation]:
    """Convert all messages to one conversation."""
    draft = Draft(report)
    instructions = None
    for record in records:
        value = record.value
        instructions = text_in(value, "instructions") or instructions
        if value["kind"] == "request":
            for part in value["parts"]:
                _add_request_part(draft, record, part)
        else:
            _add_response(draft, record, value)
    conversation = draft.conversation()
    prompts = [text for text in (conversation.system, instructions) if text]
    return [msgspec.structs.replace(conversation, system="\n\n".join(prompts) or None)]


def _add_request_part(draft: Draft, record: Record, part: dict[str, Any]) -> None:
    stamp = {"timestamp": part["timestamp"]} if isinstance(part.get("timestamp"), str) else {}
    content, call_id, name = part.get("content"), part.get("tool_call_id"), text_in(part, "tool_name")
    match part["part_kind"]:
        case "system-prompt":
            draft.add(record, {"role": "system", "content": content} | stamp)
        case "user-prompt":
            draft.add(record, {"role": "user", "content": _user_content(content)} | stamp)
        case "tool-return":
            failed = part.get("outcome", "success") != "success"
            draft.add(record, _result(_result_content(content), call_id, name, failed) | stamp)
        case "retry-prompt" if name is not None:
            draft.add(record, _result(result_text(content), call_id, name, True) | stamp)
        case "retry-prompt" | "retry-feedback":
            draft.add(record, {"role": "user", "content": result_text(content)} | stamp)
        case _:
            draft.report.leave("part", _LEFT_OUT, noun="part")


def _add_response(draft: Draft, record: Record, value: dict[str, Any]) -> None:
    answer = AnswerParts()
    for part in value["parts"]:
        if part["part_kind"] == "tool-call":
            arguments = part.get("args")
            answer.add_call(
                text_in(part, "tool_call_id") or "",
                part.get("tool_name"),
                object_of(arguments) if isinstance(arguments, str) else (arguments or {}),
            )
            continue
        response_part = _response_part(part)
        if response_part is None:
            draft.report.leave("part", _LEFT_OUT, noun="part")
        elif response_part.get("text") != "":
            answer.add_part(response_part)
    draft.model = text_in(value, "model_name") or draft.model
    if answer:
        usage = value.get("usage")
        draft.add(
            record,
            answer.message(timestamp=text_in(value, "timestamp")),
            outcome_of(
                field(usage, "input_tokens") or field(usage, "request_tokens"),
                field(usage, "output_tokens") or field(usage, "response_tokens"),
                cache_read=field(usage, "cache_read_tokens"),
                cache_write=field(usage, "cache_write_tokens"),
                includes_cache=True,
                stop_reason=value.get("finish_reason"),
            ),
        )


def _response_part(part: dict[str, Any]) -> dict[str, Any] | None:
    """A part of an answer in its provider's form; None if it is not kept."""
    provider, content = part.get("provider_name"), part.get("content")
    match part["part_kind"]:
        case "text":
            return {"type": "text", "text": content if isinstance(content, str) else ""}
        case "thinking":
            return _thinking(part, provider)
        case "builtin-tool-call" if provider == "anthropic":
            arguments = part.get("args")
            tool_input = object_of(arguments) if isinstance(arguments, str) else (arguments or {})
            name, call_id = part.get("tool_name"), part.get("tool_call_id")
            return {"type": "server_tool_use", "id": call_id, "name": name, "input": tool_input}
        case "builtin-tool-return" if f"{part.get('tool_name')}_tool_result" in SERVER_RESULTS:
            kind, call_id = f"{part['tool_name']}_tool_result", part.get("tool_call_id")
            return {"type": kind, "tool_use_id": call_id, "content": content}
        case "file":
            return _media(content)
        case "compaction" if provider == "anthropic" and isinstance(content, str):
            return {"type": "compaction", "content": content}
    return None


def _thinking(part: dict[str, Any], provider: Any) -> dict[str, Any]:
    """Reasoning in the form of its provider."""
    text, signature = part.get("content") or "", text_in(part, "signature")
    if provider == "openai" and text_in(part, "id"):
        summary = [{"type": "summary_text", "text": text}] if text else []
        reasoning = {"type": "reasoning", "id": part["id"], "summary": summary}
        return reasoning | ({} if signature is None else {"encrypted_content": signature})
    if isinstance(provider, str) and provider.startswith("google"):
        thought = {"text": text, "thought": True}
        return thought | ({} if signature is None else {"thoughtSignature": signature})
    if part.get("id") == "redacted_thinking" and signature is not None:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": text} | ({} if signature is None else {"signature": signature})


def _user_content(content: Any) -> Any:
    """What the user said: text, or texts and media."""
    if not isinstance(content, list):
        return content
    parts = []
    for item in content:
        if isinstance(item, str):
            parts.append({"type": "text", "text": item})
        elif isinstance(field(item, "content"), str):
            parts.append({"type": "text", "text": item["content"]})
        else:
            parts.append(_media(item) or item)
    return parts


def _result_content(content: Any) -> Any:
    """A result of a tool: text or JSON; parts if media are in it."""
    items = content if isinstance(content, list) else [content]
    if not any(_media(item) for item in items):
        return result_text(content)
    return [_media(item) or {"type": "text", "text": result_text(item)} for item in items]


def _media(item: Any) -> dict[str, Any] | None:
    kind = field(item, "kind")
    if kind == "binary" and isinstance(item.get("data"), str):
        return media_part(item.get("media_type"), data=item["data"])
    if kind in ("image-url", "document-url") and isinstance(item.get("url"), str):
        return media_part("image/" if kind == "image-url" else "", url=item["url"])
    return None


def _result(content: Any, call_id: Any, name: str | None, failed: bool) -> dict[str, Any]:
    result = {"role": "tool", "content": content, "toolCallId": call_id, "name": name}
    return result | ({"meta": {"is_error": True}} if failed else {})


READER = FormatReader("pydantic-ai", is_file, is_record, convert)
