"""Reads the parts of a message's content in every format: Anthropic, OpenAI (two formats), Gemini, MCP, plain
text.

1. Each part becomes one of a few kinds: text, refusal, image, document, or a part that only one provider
   knows.
2. The format of an image is detected from its first bytes. If these are unknown, the stated format counts.
   Images in a format that is not in IMAGE_TYPES are not sent.
3. An unknown part keeps its type, for a text that names it.
4. Only known keys are kept: providers reject others.
5. Reasoning and compactions are opaque: nobody can read what their provider encrypted, so the provider gets
   them back unchanged. Gemini signs texts and calls; its signature is a key of the part (`signature_of`).
6. A part `{"type": "tool_call", "id": …}` marks where a call of the message stands among its parts; calls
   without a mark follow the parts. Its `caller` is Anthropic's: the server tool that made the call.
7. `{"type": "reasoning_content", "text": …}` is the reasoning of a model as OpenAI-compatible servers return
   it.
"""

import re
from typing import Any, Literal, NamedTuple

import msgspec

from nexus_context.conversation.gemini_parts import GEMINI_KEYS, TOOL_KEYS, gemini_form

Part = dict[str, Any]

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Image formats that both providers accept."""

PDF = "application/pdf"
AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
SERVER_RESULTS = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_result",
)
"""Blocks that answer a `server_tool_use` or `mcp_tool_use` of Anthropic, in the same message."""

SERVER_ITEMS = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "tool_search_call",
)
"""Items of OpenAI's responses for tools that its server ran."""

CLIENT_CALLS = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "mcp_approval_request": "mcp_approval_response",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
"""Items of OpenAI's responses for tools that the client ran, and those for what it answered."""

OPENAI_ITEMS = frozenset(
    (
        *(*SERVER_ITEMS, *CLIENT_CALLS, *CLIENT_CALLS.values()),
        *("additional_tools", "configuration_update", "program", "program_output"),
    )
)
"""Items of OpenAI's responses that come back as they were."""

_TEXT_TYPES = ("text", "input_text", "output_text")
_SIGNATURES = {  # the first characters of a file in base64
    "/9j/": "image/jpeg",
    "iVBORw0KGg": "image/png",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
_DATA_URL = re.compile(r"data:(?P<type>[\w.+/-]*)(?:;[\w.+-]+=[^;,]*)*;base64,", re.ASCII | re.IGNORECASE)
_WEB = re.compile(r"https?://[^\s/]", re.ASCII | re.IGNORECASE)
_DETAILS = ("auto", "low", "high", "original")


Provider = Literal["anthropic", "openai", "gemini", "openai-compatible"]
PROVIDER_NAMES: dict[Provider, str] = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "gemini": "Google",
    "openai-compatible": "an OpenAI-compatible server",
}
SIGNATURE_KEYS = ("thoughtSignature", "thought_signature")
_THINKING = ("thinking", "signature")
_REDACTED = ("data",)
_COMPACTION = ("content", "encrypted_content", "signature", "tool_changes")
_REASONING = ("id", "summary", "content", "encrypted_content", "status")
_ITEM_IDS = ("id", "call_id", "approval_request_id", "status")


class TextPart(NamedTuple):
    """A text, with Anthropic's citations. `phase` is OpenAI's statement whether the text is an interim remark
    or the answer.
    """

    text: str
    citations: list[Part] | None = None
    phase: str | None = None


class RefusalPart(NamedTuple):
    """An assistant's refusal to answer."""

    text: str


class ImagePart(NamedTuple):
    """An image: base64 data in a format of IMAGE_TYPES, or a URL."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str = ""


class DocumentPart(NamedTuple):
    """A PDF: base64 data, or a URL. `fields` are Anthropic's fields `context` and `citations`."""

    data: str = ""
    url: str = ""
    title: str = ""
    fields: Part = {}  # noqa: RUF012 - never changed


class ThinkingPart(NamedTuple):
    """An assistant's reasoning. `signed` is the part as its provider signed or encrypted it, or None if it
    cannot be sent back.
    """

    provider: Provider
    signed: Part | None


class CompactionPart(NamedTuple):
    """A compaction by a provider's server. `text` is its text if it can be read, else "".

    `part` is None if the compaction failed. Then it replaces nothing.
    """

    provider: Provider
    part: Part | None
    text: str = ""


class CallPart(NamedTuple):
    """Marks the place of a call among the parts of its message. `caller` is Anthropic's field of that
    name.
    """

    id: str
    caller: Part | None = None


class ProviderPart(NamedTuple):
    """A part that only one provider knows, in that provider's format. `text` is sent to other providers in
    its place.
    """

    provider: Provider
    part: Part
    text: str = ""


class UnknownPart(NamedTuple):
    """A part that cannot be sent. `type` is a description for people."""

    type: str


AnyPart = (
    TextPart
    | RefusalPart
    | ImagePart
    | DocumentPart
    | ThinkingPart
    | CompactionPart
    | CallPart
    | ProviderPart
    | UnknownPart
)


def compaction_in(part: Any) -> CompactionPart | None:
    """Return the compaction that a part represents. Return None if the part is something else, or if the
    compaction failed.
    """
    if part.__class__ is not dict or part.get("type") != "compaction":
        return None
    kind = read_part(part)
    return kind if isinstance(kind, CompactionPart) and kind.part is not None else None


def is_blank(part: Any) -> bool:
    """Whether a content or a part has no text but white space, which providers reject.

    A signed text is never blank: the last part of Gemini's answers often has a signature and no text.
    """
    if isinstance(part, dict) and part.get("type") in _TEXT_TYPES:
        text = part.get("text")
        if isinstance(text, str) and text and not text.isspace():
            return False
        part = None if signature_of(part) is None else part
    return part is None or (isinstance(part, str) and (not part or part.isspace())) or part == []


def read_part(part: Any) -> AnyPart:
    """Return a part as one of the kinds of this module."""
    if not isinstance(part, dict):
        return TextPart(json_text(part))
    kind = part.get("type")
    if part.get("thought") is True:
        return _thought(part)
    if kind in _TEXT_TYPES and isinstance(part.get("text"), str):
        citations = part.get("citations")
        return TextPart(part["text"], citations if citations and isinstance(citations, list) else None)
    if kind is None and not GEMINI_KEYS.isdisjoint(part):
        gemini_part = _gemini(gemini_form(part))
        if gemini_part is not None:
            return gemini_part
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    known_part = reader(part) if reader else None
    if known_part is not None:
        return known_part
    if isinstance(part.get("text"), str):
        return TextPart(part["text"])
    return UnknownPart(kind if isinstance(kind, str) and kind else "unknown")


def signature_of(part: Any) -> str | None:
    """Return Gemini's signature of a text or a call. Return None if the part has none."""
    if not isinstance(part, dict):
        return None
    for key in SIGNATURE_KEYS:
        signature = part.get(key)
        if isinstance(signature, str) and signature:
            return signature
    return None


def item_key(item: Part) -> str:
    """Return the id by which OpenAI pairs an item with its call. Return "" if it has none."""
    keys = (item.get(key) for key in ("call_id", "approval_request_id", "id"))
    return next((str(key) for key in keys if _has_text(key)), "")


def part_name(kind: AnyPart) -> str:
    """Return the kind of a part in a word or two, for people."""
    if isinstance(kind, ProviderPart):
        return str(kind.part.get("type") or next(iter(kind.part)))
    return kind.type if isinstance(kind, UnknownPart) else type(kind).__name__.removesuffix("Part").lower()


def json_text(value: Any) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ---------------------------------------------------------------- images


def _image(part: Part) -> AnyPart | None:
    source = part.get("source")
    if isinstance(source, dict):
        if source.get("type") == "url":
            return _image_at(source.get("url"))
        if source.get("type") == "file" and isinstance(source.get("file_id"), str):
            return ProviderPart("anthropic", {"type": "image", "source": _only(source, "type", "file_id")})
        return _image_of(source.get("media_type"), source.get("data"))
    if isinstance(part.get("data"), str):  # MCP
        return _image_of(part.get("mimeType"), part["data"])
    return _image_at(part.get("url")) or _linked_image(part)


def _linked_image(part: Part) -> AnyPart | None:
    link: Any = part.get("image_url")
    detail = part.get("detail")
    if isinstance(link, dict):
        link, detail = link.get("url"), link.get("detail")
    if link is None and _has_text(part.get("file_id")):
        return ProviderPart(
            "openai", {"type": "input_image"} | _only(part, *{"file_id", "detail"} & part.keys())
        )
    return _image_at(link, detail if detail in _DETAILS else "")


def _image_at(url: Any, detail: str = "") -> AnyPart | None:
    if not isinstance(url, str):
        return None
    data = _DATA_URL.match(url)
    if data is not None:
        return _image_of(data["type"], url[data.end() :], detail)
    return ImagePart(url=url, detail=detail) if _WEB.match(url) else UnknownPart("image with an invalid URL")


def _image_of(stated: Any, data: Any, detail: str = "") -> AnyPart | None:
    if not isinstance(data, str) or not data:
        return None
    detected = next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), None)
    named = stated.lower().replace("image/jpg", "image/jpeg") if isinstance(stated, str) else ""
    media_type = detected or (named if named in IMAGE_TYPES else None)
    return ImagePart(media_type, data, detail=detail) if media_type else UnknownPart(named or "image")


# ---------------------------------------------------------------- documents, files, audio


def _document(part: Part) -> AnyPart | None:
    source = part.get("source")
    title = part["title"] if isinstance(part.get("title"), str) else ""
    fields = {
        key: part[key]
        for key, kind in (("context", str), ("citations", dict))
        if part.get(key) and isinstance(part[key], kind)
    }
    if not isinstance(source, dict):
        return None
    match source.get("type"):
        case "base64" if source.get("media_type") == PDF and _has_text(source.get("data")):
            return DocumentPart(data=source["data"], title=title, fields=fields)
        case "text" if _has_text(source.get("data")):
            return _text_document(source["data"], title, fields)
        case "url" if isinstance(source.get("url"), str) and _WEB.match(source["url"]):
            return DocumentPart(url=source["url"], title=title, fields=fields)
        case "file" if isinstance(source.get("file_id"), str):
            block = {"type": "document", "source": _only(source, "type", "file_id")}
            return ProviderPart("anthropic", block | ({"title": title} if title else {}) | fields, title)
        case "content":
            inner = source.get("content")
            items = [read_part(item) for item in inner] if isinstance(inner, list) else [read_part(inner)]
            text = "\n".join(item.text for item in items if isinstance(item, TextPart))
            if isinstance(inner, list) and not all(isinstance(item, TextPart) for item in items):
                blocks = [_without(item, "cache_control") for item in inner if isinstance(item, dict)]
                block = {"type": "document", "source": {"type": "content", "content": blocks}}
                return ProviderPart("anthropic", block | ({"title": title} if title else {}) | fields, text)
            return _text_document(text, title, fields) if text else None
    return None


def _text_document(text: str, title: str, fields: Part) -> AnyPart:
    """A document of plain text: a text, unless Anthropic is told more of it."""
    if not title and not fields:
        return TextPart(text)
    source = {"type": "text", "media_type": "text/plain", "data": text}
    block = {"type": "document", "source": source} | ({"title": title} if title else {}) | fields
    lines = (title, fields.get("context", ""), text)
    return ProviderPart("anthropic", block, "\n".join(line for line in lines if line))


def _file(part: Part) -> AnyPart | None:
    inner = part.get("file")
    source = inner if isinstance(inner, dict) else part  # OpenAI's two forms
    name = source["filename"] if isinstance(source.get("filename"), str) else ""
    data = source.get("file_data")
    if isinstance(data, str):
        data_url = _DATA_URL.match(data)
        if data_url is not None and data_url["type"].lower() in IMAGE_TYPES:
            return _image_at(data)
        if data_url is not None and data_url["type"].lower() != PDF:
            return UnknownPart(data_url["type"] or "file")
        pdf = data[data_url.end() :] if data_url else data
        return DocumentPart(data=pdf, title=name) if pdf.startswith("JVBERi") else UnknownPart(name or "file")
    url = source.get("file_url")
    if isinstance(url, str) and _WEB.match(url):
        return DocumentPart(url=url, title=name)
    if _has_text(source.get("file_id")):
        return ProviderPart("openai", {"type": "file", "file": {"file_id": source["file_id"]}}, name)
    return None


def _audio(part: Part) -> AnyPart | None:
    sound = part.get("input_audio")
    if isinstance(sound, dict):
        data, form = sound.get("data"), sound.get("format")
    else:
        data = part.get("data")  # MCP
        form = AUDIO_FORMATS.get(str(part.get("mimeType")).lower())
    if not _has_text(data) or form not in AUDIO_FORMATS.values():
        return None
    return ProviderPart("openai", {"type": "input_audio", "input_audio": {"data": data, "format": form}})


def _resource(part: Part) -> AnyPart | None:
    resource = part.get("resource")
    if not isinstance(resource, dict):
        return None
    if isinstance(resource.get("text"), str):
        return TextPart(resource["text"])
    blob, kind = resource.get("blob"), str(resource.get("mimeType")).lower()
    if kind == PDF and _has_text(blob):
        return DocumentPart(data=str(blob), title=str(resource.get("uri") or ""))
    return _image_of(kind, blob)


def _resource_link(part: Part) -> AnyPart | None:
    uri, name = part.get("uri"), part.get("name")
    if not _has_text(uri):
        return None
    return TextPart(f"[{name}]({uri})" if _has_text(name) else str(uri))


# ---------------------------------------------------------------- parts of one provider


def _thinking(part: Part) -> AnyPart:
    """Anthropic's reasoning. The text may be empty: then the signature holds all of it."""
    keys = _THINKING if part["type"] == "thinking" else _REDACTED
    if not all(isinstance(part.get(key), str) for key in keys) or not part[keys[-1]]:
        return ThinkingPart("anthropic", None)
    return ThinkingPart("anthropic", _as_received(part, keys))


def _reasoning(part: Part) -> AnyPart:
    """OpenAI's reasoning. Without its encrypted content, only a server that stored it could find it."""
    is_whole = isinstance(part.get("summary"), list) and _has_text(part.get("id"))
    if not is_whole or not _has_text(part.get("encrypted_content")):
        return ThinkingPart("openai", None)
    return ThinkingPart("openai", _as_received(part, _REASONING))


def _thought(part: Part) -> AnyPart:
    """Gemini's reasoning: the summary of a thought, or only its signature."""
    signature, text = signature_of(part), part.get("text")
    if not (isinstance(text, str) and text) and signature is None:
        return ThinkingPart("gemini", None)
    thought_part: Part = {"text": text if isinstance(text, str) else "", "thought": True}
    return ThinkingPart(
        "gemini", thought_part if signature is None else thought_part | {SIGNATURE_KEYS[0]: signature}
    )


def _gemini(part: Part) -> AnyPart | None:
    """A file within a part, or what Google's server ran."""
    for key in TOOL_KEYS:
        value = part.get(key)
        if isinstance(value, dict) and (not key.startswith("tool") or "toolType" in value):
            return ProviderPart("gemini", part)
    inline = part.get("inlineData")
    if isinstance(inline, dict) and _has_text(inline.get("data")):
        kind = str(inline.get("mimeType")).lower()
        if kind == PDF:
            return DocumentPart(data=inline["data"], title=str(inline.get("displayName") or ""))
        source = {"mimeType": kind, "data": inline["data"]}
        media = _image(source) if kind.startswith("image/") else _audio(source)
        return ProviderPart("gemini", part) if media is None or isinstance(media, UnknownPart) else media
    location = part.get("fileData")
    if isinstance(location, dict) and _has_text(location.get("fileUri")):
        return ProviderPart("gemini", part, location["fileUri"])
    return None


def _compaction(part: Part) -> AnyPart:
    """Anthropic's block has a text, a signature or both; OpenAI's item only its encrypted content."""
    content, encrypted = part.get("content"), part.get("encrypted_content")
    if "content" in part or "signature" in part:
        if not _has_text(content) and not _has_text(encrypted):
            return CompactionPart("anthropic", None)
        text = content if isinstance(content, str) else ""
        return CompactionPart("anthropic", _as_received(part, _COMPACTION), text)
    if not _has_text(encrypted):
        return CompactionPart("openai", None)
    return CompactionPart("openai", _as_received(part, ("id", "encrypted_content")))


def _call(part: Part) -> AnyPart | None:
    caller = part.get("caller")
    if not isinstance(caller, dict) or not _has_text(caller.get("type")):
        caller = None
    return CallPart(part["id"], caller) if isinstance(part.get("id"), str) else None


def _tool_reference(part: Part) -> AnyPart | None:
    name = part.get("tool_name")
    if not isinstance(name, str) or is_blank(name):
        return None
    return ProviderPart("anthropic", {"type": "tool_reference", "tool_name": name}, f"Tool: {name}")


def _reasoning_content(part: Part) -> AnyPart:
    """Reasoning in the clear."""
    text = part.get("text")
    return ThinkingPart("openai-compatible", {"text": text} if _has_text(text) else None)


def _as_received(part: Part, keys: tuple[str, ...]) -> Part:
    """The part with only these of its fields that have values; the same object if it has no others."""
    if all(key == "type" or (key in keys and value is not None) for key, value in part.items()):
        return part
    return {key: value for key, value in part.items() if key == "type" or (key in keys and value is not None)}


def _refusal(part: Part) -> AnyPart | None:
    return RefusalPart(part["refusal"]) if _has_text(part.get("refusal")) else None


def _search_result(part: Part) -> AnyPart | None:
    content, title, source = part.get("content"), part.get("title"), part.get("source")
    if not (isinstance(content, list) and isinstance(title, str) and _has_text(source)):
        return None
    blocks_text = [
        item.text
        for item in map(read_part, content)
        if isinstance(item, TextPart) and not is_blank(item.text)
    ]
    if not blocks_text:
        return None
    blocks = [{"type": "text", "text": text} for text in blocks_text]
    block = {"type": "search_result", "source": source, "title": title, "content": blocks}
    if isinstance(part.get("citations"), dict):
        block["citations"] = part["citations"]
    return ProviderPart("anthropic", block, "\n".join([f"[{title}]({source})", *blocks_text]))


def _server_tool(part: Part) -> AnyPart | None:
    fields = (part.get("id"), part.get("name"))
    if not all(map(_has_text, fields)) or not isinstance(part.get("input"), dict):
        return None
    if part["type"] == "mcp_tool_use" and not _has_text(part.get("server_name")):
        return None
    return ProviderPart("anthropic", _as_received(part, ("id", "name", "input", "caller", "server_name")))


def _server_result(part: Part) -> AnyPart | None:
    if not _has_text(part.get("tool_use_id")) or not isinstance(part.get("content"), dict | list):
        return None
    return ProviderPart("anthropic", _as_received(part, ("tool_use_id", "content", "caller", "is_error")))


def _server_item(part: Part) -> AnyPart | None:
    return ProviderPart("openai", part) if _has_text(part.get("id")) else None


def _client_item(part: Part) -> AnyPart | None:
    """An item of a tool that the client ran; its text is what it says, without ids. A screenshot has none."""
    if part["type"].startswith(("additional", "configuration")):
        return ProviderPart("openai", part)
    if not item_key(part):
        return None
    output = part.get("output")
    is_seen = not isinstance(output, dict) or "image_url" not in output
    fields = {key: value for key, value in part.items() if key not in _ITEM_IDS and value is not None}
    return ProviderPart("openai", part, json_text(fields) if is_seen else "")


def _boundary(part: Part) -> AnyPart | None:
    """A block of Anthropic that no model sees, but that its server needs to check the reasoning around it."""
    return ThinkingPart("anthropic", {key: value for key, value in part.items() if key != "cache_control"})


def _message_item(part: Part) -> AnyPart | None:
    """A message of OpenAI's responses: its texts."""
    content, phase = part.get("content"), part.get("phase")
    kinds = map(read_part, content) if isinstance(content, list) else [TextPart(json_text(content))]
    part_texts = [kind.text for kind in kinds if isinstance(kind, TextPart | RefusalPart)]
    return TextPart("\n".join(part_texts), phase=phase if isinstance(phase, str) else None)


def _upload(part: Part) -> AnyPart | None:
    return (
        ProviderPart("anthropic", _only(part, "type", "file_id")) if _has_text(part.get("file_id")) else None
    )


def _only(part: Part, *keys: str) -> Part:
    return {key: part[key] for key in keys}


def _without(part: Part, key: str) -> Part:
    return {name: value for name, value in part.items() if name != key}


def _has_text(value: Any) -> bool:
    return isinstance(value, str) and not is_blank(value)


_READERS = {
    "image": _image,
    "image_url": _linked_image,
    "input_image": _linked_image,
    "document": _document,
    "file": _file,
    "input_file": _file,
    "input_audio": _audio,
    "audio": _audio,
    "resource": _resource,
    "resource_link": _resource_link,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "reasoning": _reasoning,
    "compaction": _compaction,
    "tool_call": _call,
    "tool_reference": _tool_reference,
    "reasoning_content": _reasoning_content,
    "refusal": _refusal,
    "search_result": _search_result,
    "server_tool_use": _server_tool,
    "mcp_tool_use": _server_tool,
    "fallback": _boundary,
    "mcp_tool_listing": _boundary,
    "message": _message_item,
    **dict.fromkeys(OPENAI_ITEMS, _client_item),
    **dict.fromkeys(SERVER_ITEMS, _server_item),
    **dict.fromkeys(SERVER_RESULTS, _server_result),
    "container_upload": _upload,
}
