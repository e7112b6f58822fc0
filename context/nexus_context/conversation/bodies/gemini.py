"""Renders a conversation in Google's format: the body of `POST /v1beta/models/MODEL:generateContent`. The
model is in the address.

1. System messages at the start follow the system prompt in `systemInstruction`. Later ones are sent as marked
   texts of the user.
2. The first and the last content are the user's. If an assistant spoke first or last, a text of the user
   opens the conversation or asks the model to continue. Roles alternate.
3. Results come first in the user's content, one for each call of the content before it. A result has the
   call's name, and the call's id if the call came with one: models before Gemini 3 give none. From Gemini 3
   on, results hold images and documents themselves. For older models these follow the results.
4. Thoughts and the signatures of texts and calls are sent back unchanged, in their place. From Gemini 3 on,
   the first call of each content must be signed. A call that Gemini did not make gets the signature that
   skips the check.
5. A tool name has at most 64 characters and starts with a letter or an underscore.
6. Nothing marks what to cache: Gemini caches prefixes by itself.

Sources: the types of the package google-genai 3.4; "Thought signatures", "Function calling" and "File input
methods" in the documentation of the Gemini API.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import parts
from nexus_context.conversation.bodies.parameter_fields import gemini_version
from nexus_context.conversation.bodies.preparation import (
    call_places,
    leave_out_fields,
    leave_out_thinking,
    prepared,
)
from nexus_context.conversation.bodies.server_rules import check_body
from nexus_context.conversation.bodies.tool_definitions import Naming, ToolDefinition, arguments, definitions
from nexus_context.conversation.message import Message, ToolCall, is_error
from nexus_context.conversation.repair import Repair, RepairLog, clean, is_clean
from nexus_context.folder.prompt import texts

Body = dict[str, Any]
Part = dict[str, Any]

LONGEST_NAME = 64
UNSIGNED = "skip_thought_signature_validator"
"""The signature of a call that Gemini did not make, by its documentation."""

_OUTER_LEVELS = 20  # of JSON around arguments: the provider counts the levels of the whole body
_FILES = frozenset(("inlineData", "fileData"))
IMAGE_TYPES = ("image/jpeg", "image/png", "image/webp")
_EXTENSION = re.compile(r"https?://[^?#]+\.(jpe?g|png|webp|pdf)(?:[?#].*)?$", re.ASCII | re.IGNORECASE)
_TYPES = {
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "pdf": parts.PDF,
}


def gemini(
    model: str,
    system: str,
    messages: Iterable[Message],
    tools: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    *,
    unnamed: Collection[str] = (),
) -> tuple[Body, list[Repair]]:
    """Render the body. Return it with the repairs.

    `settings` come from `parameter_fields.gemini`. `unnamed` are the ids that a repair gave to calls that
    came without an id.
    """
    sound, repairs, origins = prepared(messages, "gemini")
    unnamed = {*unnamed, *unnamed_calls(repairs)}
    log = RepairLog(without_naming(repairs, unnamed))
    defined = definitions(tools, "gemini", log)
    naming = Naming(log, longest_name=LONGEST_NAME, longest_id=None, any_id=True, letter_first=True)
    naming.define(tool.name for tool in defined if tool.is_called)
    is_strict = (gemini_version(model) or (0, 0)) >= (3, 0)
    rendering = _Rendering(naming, log, is_strict=is_strict, unnamed=unnamed)
    if not parts.is_blank(system):
        rendering.systems.append({"text": system if is_clean(system) else clean(system)})
    for message, origin in zip(sound, origins, strict=True):
        rendering.add(message, origin)
    rendering.finish()
    body: Body = {"contents": rendering.contents}
    if rendering.systems:
        body["systemInstruction"] = {"parts": rendering.systems}
    functions = [_declaration(tool, naming) for tool in defined if tool.provider_form is None]
    own_tools = [tool.provider_form for tool in defined if tool.provider_form is not None]
    if defined:
        body["tools"] = [*([{"functionDeclarations": functions}] if functions else []), *own_tools]
    check_body("gemini", body, log)
    return body | dict(settings), log.repairs()


class _Rendering:
    """Collects the contents of a body. `is_strict`: Gemini 3 or later."""

    def __init__(self, naming: Naming, log: RepairLog, *, is_strict: bool, unnamed: Collection[str]) -> None:
        self._unnamed = unnamed
        self.systems: list[Part] = []
        self.contents: list[Body] = []
        self._naming = naming
        self._log = log
        self._is_strict = is_strict
        self._names: dict[str, str] = {}  # of the tools, by call
        self._pending: list[Part] = []  # images and documents of results, for after the last of them

    def add(self, message: Message, origin: int) -> None:
        content: Any = message.content
        if content.__class__ is str:
            content = [content] if content and not content.isspace() else []
        content = content or []
        if message.role == "tool":
            self._append("user", [self._result(message, content, origin)], origin)
            return
        if self._pending:
            self._flush(origin)
        if message.role == "assistant":
            self._append("model", self._answer(message, content, origin), origin)
            return
        sent_parts = self._parts(content, message.role, origin)
        if message.role == "user":
            self._append("user", sent_parts, origin)
        elif not self.contents:
            self.systems += sent_parts
        elif sent_parts:
            text = "A system message inside the history is sent as a marked text of the user."
            self._log.add("system-as-user", text, origin)
            form = texts.text("system_note")
            self._append("user", [{"text": form.format(text=part["text"])} for part in sent_parts], origin)

    def finish(self) -> None:
        """Complete the contents; nothing may be added afterwards."""
        self._flush(-1)
        if not self.contents:
            self._log.add("conversation-empty", "The conversation is empty; a text opens it.")
            self._append("user", [{"text": texts.text("conversation_start")}], -1)
        if self.contents[-1]["role"] == "model":
            text = "The model rejects a final assistant message; a text asks it to continue."
            self._log.add("conversation-continued", text)
            self._append("user", [{"text": texts.text("conversation_continues")}], -1)
        if self._is_strict:
            for content in self.contents:
                self._sign(content["parts"])

    def _append(self, role: str, sent_parts: list[Part], origin: int) -> None:
        if not sent_parts:
            return
        if role == "model" and not self.contents:
            text = "The conversation begins with an assistant message; a user text opens it."
            self._log.add("conversation-opened", text, origin)
            self._append("user", [{"text": texts.text("conversation_start")}], -1)
        if self.contents and self.contents[-1]["role"] == role:
            self.contents[-1]["parts"] += sent_parts
        else:
            self.contents.append({"role": role, "parts": sent_parts})

    def _flush(self, origin: int) -> None:
        pending, self._pending = self._pending, []
        self._append("user", pending, origin)

    def _sign(self, sent_parts: list[Part]) -> None:
        """Sign the first call of a content if Gemini did not."""
        first_call = next((part for part in sent_parts if "functionCall" in part), None)
        if first_call is not None and parts.SIGNATURE_KEYS[0] not in first_call:
            first_call[parts.SIGNATURE_KEYS[0]] = UNSIGNED
            text = "Calls that Gemini did not sign are sent with the signature that skips its check."
            self._log.add("signature-added", text)

    # ------------------------------------------------------------ calls and results

    def _answer(self, message: Message, content: list[Any], origin: int) -> list[Part]:
        marked_calls, unmarked_calls = call_places(content, message.tool_calls)
        upcoming_calls = iter(marked_calls)
        sent_parts: list[Part] = []
        for original in content:
            kind = None if parts.is_blank(original) else parts.read_part(original)
            if isinstance(kind, parts.CallPart):
                leave_out_fields(kind, self._log, origin)
                call = next(upcoming_calls, None)
                part = None if call is None else self._call(call)
            else:
                part = None if kind is None else self._part(kind, "assistant", origin)
            signature = parts.signature_of(original)
            if part is None and signature is not None and isinstance(kind, parts.TextPart):
                part = {"text": ""}
            if part is not None:
                sent_parts.append(part if signature is None else part | {parts.SIGNATURE_KEYS[0]: signature})
        return [*sent_parts, *map(self._call, unmarked_calls)]

    def _call(self, call: ToolCall) -> Part:
        self._names[call.id] = call.name
        values = arguments(call, self._log)
        if not is_clean(values, _OUTER_LEVELS):
            text = "Values in call arguments that are nested too deeply for the provider are sent as null."
            self._log.add("arguments-cut", text, tool_call_id=call.id)
            values = clean(values, _OUTER_LEVELS)
        return {"functionCall": self._id(call.id) | {"name": self._naming.name(call.name), "args": values}}

    def _id(self, call_id: str) -> Body:
        """The id of a call, unless it came without one."""
        return {} if call_id in self._unnamed else {"id": self._naming.id(call_id)}

    def _result(self, message: Message, content: list[Any], origin: int) -> Part:
        call_id = message.tool_call_id or ""
        sent_parts = self._parts(content, "tool", origin)
        text = "\n".join(part["text"] for part in sent_parts if "text" in part)
        media = [part for part in sent_parts if "text" not in part]
        response: Body = self._id(call_id) | {
            "name": self._naming.name(self._names.get(call_id, "")),
            "response": {"error" if is_error(message) else "output": text},
        }
        if media and self._is_strict:
            response["parts"] = media
        elif media:
            label = texts.text("result_images").format(call=self._naming.id(call_id))
            self._pending += [{"text": label}, *media]
            reason = "Images and files in a tool result are sent after it."
            self._log.add("image-moved", reason, origin, tool_call_id=call_id)
        return {"functionResponse": response}

    # ------------------------------------------------------------ parts

    def _parts(self, content: list[Any], role: str, origin: int) -> list[Part]:
        """The parts of a message of the user or the system, or of a result."""
        if any(parts.signature_of(part) is not None for part in content):
            leave_out_thinking(self._log, origin)
        kinds = (parts.read_part(part) for part in content if not parts.is_blank(part))
        rendered = (self._part(kind, role, origin) for kind in kinds)
        return [part for part in rendered if part is not None]

    def _part(self, kind: parts.AnyPart, role: str, origin: int) -> Part | None:
        leave_out_fields(kind, self._log, origin)
        match kind:
            case parts.TextPart(text) | parts.RefusalPart(text):
                return None if parts.is_blank(text) else {"text": text}
            case parts.ThinkingPart("gemini", signed) if signed is not None and role == "assistant":
                return signed
            case parts.ProviderPart("gemini", part) if role == "assistant" or not _FILES.isdisjoint(part):
                return part
            case parts.CallPart() | parts.ThinkingPart():
                if isinstance(kind, parts.ThinkingPart):
                    leave_out_thinking(self._log, origin)
                return None
        media = _media(kind) if role in ("user", "tool") else None
        if media is not None:
            return media
        if isinstance(kind, parts.ProviderPart) and kind.text:
            text = f"A part of the type {parts.part_name(kind)} is sent as text."
            self._log.add("part-as-text", text, origin)
            return {"text": kind.text}
        name = parts.part_name(kind)
        text = (
            f"A part of the type {name} is not allowed in a message of the role {role}; a text replaces it."
        )
        self._log.add("part-omitted", text, origin)
        return {"text": texts.text("part_omitted").format(kind=name)}


def unnamed_calls(repairs: Iterable[Repair]) -> set[str]:
    """Return the ids that a repair gave to calls that came without an id, as calls of older Gemini
    models do.
    """
    return {repair.sent or "" for repair in repairs if repair.kind == "call-renamed" and not repair.given}


def without_naming(repairs: Iterable[Repair], unnamed: Collection[str]) -> list[Repair]:
    """Return the repairs without those that gave ids to the calls `unnamed` and their results, because these
    are sent without an id.
    """
    kinds = ("call-renamed", "result-unnamed")
    return [repair for repair in repairs if repair.kind not in kinds or repair.tool_call_id not in unnamed]


def _media(kind: parts.AnyPart) -> Part | None:
    """An image, a document or a sound; None if Gemini does not take it."""
    match kind:
        case parts.ImagePart(media_type, data) if data:
            return _inline(media_type, data) if media_type in IMAGE_TYPES else None
        case parts.DocumentPart(data) if data:
            return _inline(parts.PDF, data)
        case parts.ImagePart(url=url) | parts.DocumentPart(url=url):
            match = _EXTENSION.match(url)
            media_type = _TYPES[match[1].lower()] if match else ""
            is_image = isinstance(kind, parts.ImagePart)
            if not media_type or is_image != (media_type in IMAGE_TYPES):
                return None
            return {"fileData": {"mimeType": media_type, "fileUri": url}}
        case parts.ProviderPart("openai", {"input_audio": {"data": data, "format": form}}):
            return _inline(f"audio/{form}", data)
    return None


def _inline(media_type: str, data: str) -> Part:
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _declaration(tool: ToolDefinition, naming: Naming) -> Body:
    declaration: Body = {"name": naming.name(tool.name), "parametersJsonSchema": tool.schema}
    if tool.description:
        declaration["description"] = tool.description
    return declaration | dict(tool.fields)
