"""OpenAI's form: the body of `POST /v1/chat/completions`.

1. Only text may stand in the messages of system, assistant (or a refusal) and tool. Images and files in a
   result follow in a user's message behind the results.
2. A result says something: what a tool returned nothing for says so.
3. An id of a call has at most 40 characters, a name of a tool at most 64.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import parts
from nexus_context.conversation.formats.naming import Naming
from nexus_context.conversation.formats.repair_log import Said
from nexus_context.conversation.formats.tool_definitions import Definition, arguments_text, definitions
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.repair import Repair, traced
from nexus_context.conversation.repair.values import clean, is_clean
from nexus_context.prompt import texts

Body = dict[str, Any]
Part = dict[str, Any]

LONGEST_NAME = 64
LONGEST_ID = 40
LONGEST_CACHE_KEY = 64


def openai(
    model: str,
    system: str,
    messages: Iterable[Message],
    tools: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    *,
    cache_key: str | None = None,
) -> tuple[Body, list[Repair]]:
    """The body, and what is sent otherwise than it was given.

    `settings` are `settings.openai`. `cache_key` names the session: requests of one are answered where its
    prefix is cached.
    """
    kept, repairs, origins = traced(messages)
    said = Said(repairs)
    defined = definitions(tools, "openai", said)
    naming = Naming(said, longest_name=LONGEST_NAME, longest_id=LONGEST_ID, any_id=True)
    naming.define(tool.name for tool in defined)
    made = _Rendering(naming, said)
    for message, origin in zip(kept, origins, strict=True):
        made.add(message, origin)
    sent = made.finished()
    if not parts.is_blank(system):
        sent.insert(0, {"role": "system", "content": system if is_clean(system) else clean(system)})
    if not sent:
        said.add("conversation-empty", "The conversation is empty; a text opens it.")
        sent.append({"role": "user", "content": texts.text("conversation_start")})
    body: Body = {"model": model, "messages": sent}
    if defined:
        body["tools"] = [_tool(tool, naming) for tool in defined]
    if cache_key:
        body["prompt_cache_key"] = cache_key[:LONGEST_CACHE_KEY]
    return body | dict(settings), said.repairs()


class _Rendering:
    """The messages of a body, one after the other."""

    def __init__(self, naming: Naming, said: Said) -> None:
        self._naming = naming
        self._said = said
        self._sent: list[Body] = []
        self._pending: list[Part] = []  # images and files of results, for the user's message behind them

    def add(self, message: Message, origin: int) -> None:
        content: Any = message.content
        if message.role == "tool":
            self._add_result(message, origin)
            return
        if self._pending:
            self._flush()
        if content.__class__ is not str:
            content = self._parts(content, message.role, origin) if content else None
        if not content or (content.__class__ is str and content.isspace()):
            content = None
        made: Body = {"role": message.role, "content": content}
        if message.tool_calls:
            made["tool_calls"] = [self._call(call) for call in message.tool_calls]
        elif content is None:
            return
        self._append(made)

    def finished(self) -> list[Body]:
        """All messages; nothing may be added any more."""
        self._flush()
        return self._sent

    def _append(self, made: Body) -> None:
        before = self._sent[-1] if self._sent else None
        if before is not None and before["role"] == made["role"] and "tool_calls" not in before:
            self._sent[-1] = made | {"content": _joined(before["content"], made["content"])}
        else:
            self._sent.append(made)

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._append({"role": "user", "content": pending})

    def _call(self, call: ToolCall) -> Body:
        function = {"name": self._naming.name(call.name), "arguments": arguments_text(call, self._said)}
        return {"id": self._naming.id(call.id), "type": "function", "function": function}

    def _add_result(self, message: Message, origin: int) -> None:
        name = message.tool_call_id or ""
        content: Any = message.content
        if content.__class__ is not str:
            content = self._result_text(content, name, origin) if content else ""
        if not content or content.isspace():
            content = texts.text("result_empty")
            self._said.add("result-empty", "A result that is empty is sent as a text that says so.", origin)
        self._sent.append({"role": "tool", "tool_call_id": self._naming.id(name), "content": content})

    def _result_text(self, content: list[Any], name: str, origin: int) -> str:
        made = self._parts(content, "user", origin) or []
        others = [part for part in made if part["type"] != "text"]
        if others:
            label = texts.text("result_images").format(call=self._naming.id(name))
            self._pending += [{"type": "text", "text": label}, *others]
            text = "Images and files in a tool's result are sent in a user's message behind it."
            self._said.add("image-moved", text, origin, tool_call_id=name)
        said = [part["text"] for part in made if part["type"] == "text"]
        if not said and others:
            return label
        return "\n".join(said)

    def _parts(self, content: list[Any], role: str, origin: int) -> list[Part] | None:
        """The parts of a content in OpenAI's form; None when they say nothing."""
        made = []
        for given in content:
            part = None if parts.is_blank(given) else self._part(parts.read(given), role, origin)
            if part is not None:
                made.append(part)
        return made or None

    def _part(self, kind: parts.Kind, role: str, origin: int) -> Part | None:
        match kind:
            case parts.Text(text):
                return None if parts.is_blank(text) else {"type": "text", "text": text}
            case parts.Refusal(text):
                return {"type": "refusal", "refusal": text} if role == "assistant" else _text(text)
            case parts.Image() if role == "user":
                return _image(kind)
            case parts.Document(data, _, title) if role == "user" and data:
                file = {"filename": title or "document.pdf", "file_data": f"data:{parts.PDF};base64,{data}"}
                return {"type": "file", "file": file}
            case parts.Own("openai", part) if role == "user":
                return part
            case parts.Thinking():
                text = "Reasoning is left out: only the provider that signed it takes it."
                self._said.add("thinking-left-out", text, origin)
                return None
            case parts.Own("anthropic", part, text) if text:
                self._said.add("part-as-text", f"A part of the type {part['type']} is sent as text.", origin)
                return _text(text)
        return _text(self._omitted(kind, role, origin))

    def _omitted(self, kind: parts.Kind, role: str, origin: int) -> str:
        """What stands for a part that cannot be sent."""
        name = parts.name_of(kind)
        text = (
            f"A part of the type {name} cannot stand in a message of the role {role}; a text stands for it."
        )
        self._said.add("part-omitted", text, origin)
        return texts.text("part_omitted").format(kind=name)


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _image(image: parts.Image) -> Part:
    url = image.url or f"data:{image.media_type};base64,{image.data}"
    link = {"url": url, "detail": image.detail} if image.detail else {"url": url}
    return {"type": "image_url", "image_url": link}


def _joined(before: Any, after: Any) -> Any:
    """The contents of two messages of one role as that of one message."""
    if before is None or after is None:
        return after if before is None else before
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    return [*_as_parts(before), *_as_parts(after)]


def _as_parts(content: Any) -> list[Part]:
    return [_text(content)] if isinstance(content, str) else content


def _tool(tool: Definition, naming: Naming) -> Body:
    if tool.own is not None:
        return tool.own
    function: Body = {"name": naming.name(tool.name), "parameters": tool.schema}
    if tool.description:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}
