"""Reports fields of parts that no body has, so that nothing is dropped in silence.

1. A part is sent with the keys that its reader knows (`parts`), which CARRIED lists. A part that is sent
   unchanged loses nothing. If a text replaces a part, its repair already says so.
2. Breakpoints for caching are set by Nexus itself, and ids and states of items are the server's bookkeeping.
   Neither is reported as a loss, and neither is a field without a value.
3. Objects inside a part are examined, too, one level deep.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import parts
from nexus_context.conversation.message import Message
from nexus_context.conversation.repair import Repair, RepairLog, lifted_as

_ALWAYS = frozenset(
    (
        *("type", "cache_control", "prompt_cache_breakpoint", "id", "status", "role", "object"),
        *(*parts.SIGNATURE_KEYS, "thought", "_meta"),
    )
)
_TEXT = _ALWAYS | {"text", "phase", "citations"}
_IMAGE = _ALWAYS | {"source", "image_url", "url", "detail", "data", "mimeType", "width", "height"}
_FILE = _ALWAYS | {"file", "filename", "file_data", "file_url", "file_id"}
_GEMINI = frozenset(
    (
        *(*parts.SIGNATURE_KEYS, "text", "thought", "functionCall", "functionResponse", "inlineData"),
        *("fileData", "function_call", "function_response", "inline_data", "file_data"),
    )
)
CARRIED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("text", "input_text", "output_text"), _TEXT),
    **dict.fromkeys(("image", "image_url"), _IMAGE),
    "input_image": _IMAGE | {"file_id"},
    **dict.fromkeys(("file", "input_file"), _FILE),
    **dict.fromkeys(("input_audio", "audio"), _ALWAYS | {"input_audio", "data", "mimeType"}),
    "resource": _ALWAYS | {"resource"},
    "resource_link": _ALWAYS | {"uri", "name", "title", "description", "mimeType", "size"},
    "document": _ALWAYS | {"source", "title", "context", "citations"},
    "search_result": _ALWAYS | {"source", "title", "content", "citations"},
    "thinking": _ALWAYS | {"thinking", "signature"},
    "redacted_thinking": _ALWAYS | {"data"},
    "reasoning": _ALWAYS | {"summary", "content", "encrypted_content"},
    "compaction": _ALWAYS | {"content", "encrypted_content", "signature", "tool_changes"},
    "refusal": _ALWAYS | {"refusal"},
    "message": _ALWAYS | {"content", "phase"},
    "server_tool_use": _ALWAYS | {"name", "input", "caller"},
    "mcp_tool_use": _ALWAYS | {"name", "input", "caller", "server_name"},
    **dict.fromkeys(parts.SERVER_RESULTS, _ALWAYS | {"tool_use_id", "content", "caller", "is_error"}),
    "container_upload": _ALWAYS | {"file_id"},
    "tool_reference": _ALWAYS | {"tool_name"},
    "tool_use": _ALWAYS | {"name", "input", "caller"},
    "tool_result": _ALWAYS | {"tool_use_id", "content", "is_error"},
    "function_call": _ALWAYS | {"call_id", "name", "arguments", "caller"},
    "function_call_output": _ALWAYS | {"call_id", "output"},
}
"""The keys of a part that a body has, or that another repair tells of, by the type of the part."""
_INSIDE: Mapping[str, frozenset[str]] = {
    "source": frozenset(("type", "media_type", "data", "url", "file_id", "content")),
    "image_url": frozenset(("url", "detail")),
    "file": frozenset(("filename", "file_data", "file_id")),
    "input_audio": frozenset(("data", "format")),
    "resource": frozenset(("uri", "mimeType", "text", "blob")),
    **dict.fromkeys(("functionCall", "function_call"), frozenset(("id", "name", "args"))),
    **dict.fromkeys(("functionResponse", "function_response"), frozenset(("id", "name", "response"))),
    **dict.fromkeys(("inlineData", "inline_data"), frozenset(("mimeType", "mime_type", "data"))),
    **dict.fromkeys(("fileData", "file_data"), frozenset(("mimeType", "mime_type", "fileUri", "file_uri"))),
}
_OF_TEXTS = ("message", "search_result", "tool_result", "function_call_output")
_LOOKED_INTO = frozenset((*_OF_TEXTS, "image", "image_url", "input_image"))
_DETAILS = ("low", "high", "original")


def lost_fields(messages: Sequence[Message], form: str) -> list[Repair]:
    """Return a repair for each type of part that has fields which a body of this format does not have."""
    log = RepairLog(())
    for index, message in enumerate(messages):
        content: Any = message.content
        if content.__class__ is list:
            _check(content, index, form, log)
    return log.repairs()


def _check(content: Iterable[Any], index: int, form: str, log: RepairLog) -> None:
    for part in content:
        if part.__class__ is not dict:
            continue
        kind = part.get("type")
        carried = _GEMINI if kind is None else CARRIED.get(kind) if kind.__class__ is str else None
        if carried is None or (kind is None and carried.isdisjoint(part)):
            continue
        if carried.issuperset(part) and kind not in _LOOKED_INTO and _INSIDE.keys().isdisjoint(part):
            continue  # nearly always
        lost = [] if carried.issuperset(part) else [key for key in part if key not in carried and part[key]]
        for key in _INSIDE.keys() & part.keys():
            inner = part[key]
            if inner.__class__ is dict:
                lost += [name for name, value in inner.items() if name not in _INSIDE[key] and value]
                if inner.get("file_data") and inner.get("file_id"):
                    lost.append("file_id")  # the data is sent
        texts = part.get("content")
        if kind == "search_result" and isinstance(texts, list):
            cited = any(text.get("citations") for text in texts if isinstance(text, dict))
            lost += ["citations"] if cited else []
        lost += _lost_detail(part, form)
        if lost and not _is_whole(part):
            text = f"Fields of a part of the type {kind or 'Part'} are left out: {', '.join(sorted(lost))}."
            log.add("fields-left-out", text, index)
        if kind in _OF_TEXTS:
            inner = part.get("output" if kind == "function_call_output" else "content")
            _check(inner if isinstance(inner, list) else (), index, form, log)


def _lost_detail(part: Mapping[str, Any], form: str) -> list[str]:
    """How precisely a model shall look at an image: only OpenAI is told."""
    if form.startswith("openai"):
        return []
    link = part.get("image_url")
    detail = part.get("detail") or (link.get("detail") if isinstance(link, dict) else None)
    return ["detail"] if detail in _DETAILS else []


def _is_whole(part: Any) -> bool:
    """Whether a part is sent as it came, or a text replaces it, which is reported anyway."""
    if lifted_as(part) is not None:
        return False
    kind = parts.read_part(part)
    return isinstance(kind, parts.UnknownPart) or getattr(kind, "part", None) is part
