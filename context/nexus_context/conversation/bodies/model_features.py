"""Replaces what a model cannot take by texts: images, documents, tool calls and their results. Reasoning is
left out.

1. A part that the model cannot read becomes a text that says so. Reasoning is left out without such a text.
2. For a model without tools, a call becomes a text of its message, and a result becomes a text of the user.
3. Every replacement is reported as a `Repair`. A message that needs none stays the same object.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nexus_context.config.features import Feature
from nexus_context.conversation import parts
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.conversation.repair import Repair, RepairLog
from nexus_context.folder.prompt import texts

_PART_FEATURES: dict[str, Feature] = {
    "image": "vision",
    "image_url": "vision",
    "input_image": "vision",
    "document": "documents",
    "file": "documents",
    "container_upload": "documents",
}


def adapted(
    messages: Sequence[Message], lacking: Iterable[Feature], model: str
) -> tuple[Sequence[Message], list[Repair]]:
    """Return the messages in a form for a model that lacks these features, and the repairs."""
    missing = frozenset(lacking)
    if missing.isdisjoint(("tools", "vision", "documents", "thinking")):
        return messages, []
    log = RepairLog(())
    adapter = _Adapter(missing, model, log)
    return [adapter.message(index, message) for index, message in enumerate(messages)], log.repairs()


def feature_of(part: Any) -> Feature | None:
    """Return the feature that a model needs to take a part of a content. Return None if every model takes the
    part.
    """
    match parts.read_part(part):
        case parts.ImagePart():
            return "vision"
        case parts.DocumentPart():
            return "documents"
        case parts.ThinkingPart():
            return "thinking"
        case parts.ProviderPart(_, {"source": {"type": "text"}}):
            return None  # a text that its provider is told more about
        case parts.ProviderPart(_, original):
            return _PART_FEATURES.get(original.get("type", ""))
    return None


class _Adapter:
    def __init__(self, missing: frozenset[Feature], model: str, log: RepairLog) -> None:
        self._missing = missing
        self._model = model
        self._log = log
        self._names: dict[str, str] = {}  # of the tools, by call

    def message(self, index: int, message: Message) -> Message:
        content: Any = message.content
        if isinstance(content, list):
            adapted_parts = [self._part(index, part) for part in content]
            if any(
                adapted_part is not original
                for adapted_part, original in zip(adapted_parts, content, strict=True)
            ):
                taken = [part for part in adapted_parts if part is not None]
                message = msgspec.structs.replace(message, content=taken)
        if "tools" in self._missing and (message.tool_calls or message.role == "tool"):
            return self._without_tools(index, message)
        return message

    def _part(self, index: int, part: Any) -> Any:
        feature = feature_of(part)
        if feature is None or feature not in self._missing:
            return part
        if feature == "thinking":
            text = f"{self._model} has no thinking: reasoning is left out."
            self._log.add("thinking-unsupported", text, index)
            return None
        kind = "image" if feature == "vision" else "document"
        text = f"{self._model} has no {feature}: a part of the type {kind} is left out; a text replaces it."
        self._log.add(f"{feature}-unsupported", text, index)
        return _text(texts.text("feature_missing").format(kind=kind))

    def _without_tools(self, index: int, message: Message) -> Message:
        forms = dict(zip(("call", "result"), texts.text("tool_as_text").splitlines(), strict=True))
        text = f"{self._model} has no tools: calls and their results are sent as texts."
        self._log.add("tools-unsupported", text, index)
        content = content_of(message)
        if message.role == "tool":
            name = message.name or self._names.get(message.tool_call_id or "") or "tool"
            return Message("user", _joined([forms["result"].format(name=name)], content))
        lines = [self._line(call, forms["call"]) for call in message.tool_calls]
        self._names.update((call.id, call.name) for call in message.tool_calls)
        return Message(message.role, _joined([], content, lines), name=message.name)

    def _line(self, call: ToolCall, form: str) -> str:
        return form.format(name=call.name, arguments=parts.json_text(call.arguments))


def _joined(
    lines_before: list[str], content: str | list[Any], lines_after: Sequence[str] = ()
) -> str | list[Any]:
    """A content between lines; blank text counts as none."""
    if isinstance(content, str):
        return "\n".join([*lines_before, *([] if parts.is_blank(content) else [content]), *lines_after])
    return [*map(_text, lines_before), *content, *map(_text, lines_after)]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
