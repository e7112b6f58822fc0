"""Renders a conversation in OpenAI's chat format: the body of `POST /v1/chat/completions`.

1. Messages of system, assistant and tool hold only text (or an assistant's refusal). Images and files of
   results are sent in a user message after the results.
2. A result is never empty: a text says that the tool returned nothing.
3. A call id has at most 40 characters, a tool name at most 64.
4. This format has no place for OpenAI's reasoning: only `openai_responses` returns it. Some models of other
   makers write readable reasoning, and get it back as `reasoning_content`.
5. Messages of different speakers are not joined; each has the `name` of its speaker.
6. For models that take cache breakpoints, every content is a list of parts, so that setting one changes
   nothing else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

from nexus_context.conversation import parts
from nexus_context.conversation.bodies.breakpoints import Cache, Markable, mark_openai
from nexus_context.conversation.bodies.parameter_fields import takes_breakpoints, takes_reasoning_content
from nexus_context.conversation.bodies.preparation import leave_out_fields, leave_out_thinking, prepared
from nexus_context.conversation.bodies.server_rules import check_body
from nexus_context.conversation.bodies.tool_definitions import (
    Naming,
    ToolDefinition,
    arguments_text,
    definitions,
)
from nexus_context.conversation.body_shape import takes_name
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.repair import Repair, RepairLog, clean, is_clean
from nexus_context.folder.prompt import texts

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
    cache: Cache | None = None,
) -> tuple[Body, list[Repair]]:
    """Render the body. Return it with the repairs.

    `settings` come from `parameter_fields.openai`. `cache_key` is a name for the session: the provider routes
    requests with the same name to the servers that cache their prefix. `cache` says what is known about the
    tokens of this request and about the next request, to choose breakpoints; None sets no breakpoints.
    """
    sound, repairs, origins = prepared(messages, None)
    log = RepairLog(repairs)
    defined = definitions(tools, "openai", log)
    naming = Naming(log, longest_name=LONGEST_NAME, longest_id=LONGEST_ID, any_id=True)
    naming.define(tool.name for tool in defined if tool.is_called)
    rendering = _Rendering(
        naming,
        log,
        in_parts=cache is not None and takes_breakpoints(model),
        takes_reasoning=takes_reasoning_content(model),
        customs={tool.name for tool in defined if (tool.provider_form or {}).get("type") == "custom"},
    )
    for message, origin in zip(sound, origins, strict=True):
        rendering.add(message, origin)
    sent_messages, markables = rendering.finished()
    if not parts.is_blank(system):
        prompt = system if is_clean(system) else clean(system)
        sent_messages.insert(
            0, {"role": "system", "content": [_text(prompt)] if rendering.in_parts else prompt}
        )
        markables = [
            Markable(0, 0, -1),
            *(markable._replace(item=markable.item + 1) for markable in markables),
        ]
    if not sent_messages:
        log.add("conversation-empty", "The conversation is empty; a text opens it.")
        sent_messages.append({"role": "user", "content": texts.text("conversation_start")})
    body: Body = {"model": model, "messages": sent_messages}
    if defined:
        body["tools"] = [_tool(tool, naming) for tool in defined]
    if cache is not None and rendering.in_parts:
        mark_openai(sent_messages, markables, cache, body.get("tools"))
    check_body("openai", body, log)
    if cache_key:
        body["prompt_cache_key"] = cache_key[:LONGEST_CACHE_KEY]
    return body | dict(settings), log.repairs()


class _Rendering:
    """Collects the messages of a body. `in_parts`: every content that may have a breakpoint is a list."""

    def __init__(
        self,
        naming: Naming,
        log: RepairLog,
        *,
        in_parts: bool,
        takes_reasoning: bool,
        customs: Collection[str],
    ) -> None:
        self.in_parts = in_parts
        self._customs = customs  # the names of custom tools: their calls have a text, not an object
        self._takes_reasoning = takes_reasoning
        self._naming = naming
        self._log = log
        self._sent: list[Body] = []
        self._origins: list[list[int]] = []  # of each part of each message, if they are in parts
        self._pending: list[Part] = []  # images and files of results, for the user message after them
        self._pending_origin = -1

    def add(self, message: Message, origin: int) -> None:
        content: Any = message.content
        if message.role == "tool":
            self._add_result(message, origin)
            return
        if self._pending:
            self._flush()
        reasoning = self._reasoning(message) if content.__class__ is list else ""
        if content.__class__ is not str:
            content = self._parts(content, message.role, origin) if content else None
        if not content or (content.__class__ is str and content.isspace()):
            content = None
        rendered: Body = {"role": message.role, "content": content}
        if message.name and takes_name("openai", message.name):
            rendered["name"] = message.name
        if reasoning:
            rendered["reasoning_content"] = reasoning
        if message.tool_calls:
            rendered["tool_calls"] = [self._call(call) for call in message.tool_calls]
        elif content is None:
            return
        self._append(rendered, origin)

    def finished(self) -> tuple[list[Body], list[Markable]]:
        """All messages, and the parts that may have a breakpoint; nothing may be added afterwards."""
        self._flush()
        places = [
            Markable(item, part, origin)
            for item, origins in enumerate(self._origins)
            if self._sent[item]["role"] != "assistant"
            for part, origin in enumerate(origins)
        ]
        return self._sent, places

    def _append(self, rendered: Body, origin: int) -> None:
        origins: list[int] = []
        if self.in_parts and rendered["role"] != "assistant":
            content = _as_parts(rendered["content"])
            rendered["content"], origins = content, [origin] * len(content)
        previous = self._sent[-1] if self._sent else None
        is_same = previous is not None and previous["role"] == rendered["role"] != "tool"
        is_same = is_same and previous is not None and previous.get("name") == rendered.get("name")
        if previous is not None and is_same and "tool_calls" not in previous:
            self._sent[-1] = rendered | {"content": _joined(previous["content"], rendered["content"])}
            self._origins[-1] += origins
        else:
            self._sent.append(rendered)
            self._origins.append(origins)

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._append({"role": "user", "content": pending}, self._pending_origin)

    def _reasoning(self, message: Message) -> str:
        """The reasoning of an answer that its model takes back."""
        if not self._takes_reasoning or message.role != "assistant":
            return ""
        kinds = map(parts.read_part, cast("list[Any]", message.content))
        signed = [kind.signed for kind in kinds if _is_in_the_clear(kind)]
        return "\n".join(part["text"] for part in signed if part is not None)

    def _call(self, call: ToolCall) -> Body:
        if call.name in self._customs:
            custom = {"name": self._naming.name(call.name), "input": parts.json_text(call.arguments)}
            return {"id": self._naming.id(call.id), "type": "custom", "custom": custom}
        function = {"name": self._naming.name(call.name), "arguments": arguments_text(call, self._log)}
        return {"id": self._naming.id(call.id), "type": "function", "function": function}

    def _add_result(self, message: Message, origin: int) -> None:
        name = message.tool_call_id or ""
        content: Any = message.content
        if content.__class__ is not str:
            content = self._result_text(content, name, origin) if content else ""
        if not content or content.isspace():
            content = texts.text("result_empty")
            self._log.add("result-empty", "An empty result is sent as a text that says so.", origin)
        self._append({"role": "tool", "tool_call_id": self._naming.id(name), "content": content}, origin)

    def _result_text(self, content: list[Any], name: str, origin: int) -> str:
        rendered = self._parts(content, "user", origin) or []
        media = [part for part in rendered if part["type"] != "text"]
        if media:
            label = texts.text("result_images").format(call=self._naming.id(name))
            self._pending += [_text(label), *media]
            self._pending_origin = origin
            text = "Images and files in a tool result are sent in a user message after it."
            self._log.add("image-moved", text, origin, tool_call_id=name)
        lines = [part["text"] for part in rendered if part["type"] == "text"]
        if not lines and media:
            return label
        return "\n".join(lines)

    def _parts(self, content: list[Any], role: str, origin: int) -> list[Part] | None:
        """The parts of a content in OpenAI's format; None if they are blank."""
        rendered = []
        if any(parts.signature_of(part) is not None for part in content):
            leave_out_thinking(self._log, origin)
        for original in content:
            part = None if parts.is_blank(original) else self._part(parts.read_part(original), role, origin)
            if part is not None:
                rendered.append(part)
        return rendered or None

    def _part(self, kind: parts.AnyPart, role: str, origin: int) -> Part | None:
        leave_out_fields(kind, self._log, origin)
        match kind:
            case parts.TextPart(text):
                return None if parts.is_blank(text) else {"type": "text", "text": text}
            case parts.RefusalPart(text):
                return {"type": "refusal", "refusal": text} if role == "assistant" else _text(text)
            case parts.ImagePart() if role == "user":
                return _image(kind)
            case parts.DocumentPart(data, _, title) if role == "user" and data:
                file = {"filename": title or "document.pdf", "file_data": f"data:{parts.PDF};base64,{data}"}
                return {"type": "file", "file": file}
            case parts.ProviderPart("openai", {"type": "file" | "input_audio"} as part) if role == "user":
                return part
            case parts.CallPart() | parts.ThinkingPart():
                is_returned = self._takes_reasoning and role == "assistant" and _is_in_the_clear(kind)
                if isinstance(kind, parts.ThinkingPart) and not is_returned:
                    leave_out_thinking(self._log, origin)
                return None
            case parts.ProviderPart(_, part, text) if text and part.get("type") != "file":
                self._log.add(
                    "part-as-text", f"A part of the type {parts.part_name(kind)} is sent as text.", origin
                )
                return _text(text)
        return _text(self._omitted(kind, role, origin))

    def _omitted(self, kind: parts.AnyPart, role: str, origin: int) -> str:
        """The text that replaces a part that cannot be sent."""
        name = parts.part_name(kind)
        text = (
            f"A part of the type {name} is not allowed in a message of the role {role}; a text replaces it."
        )
        self._log.add("part-omitted", text, origin)
        return texts.text("part_omitted").format(kind=name)


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _image(image: parts.ImagePart) -> Part:
    url = image.url or f"data:{image.media_type};base64,{image.data}"
    link = {"url": url, "detail": image.detail} if image.detail else {"url": url}
    return {"type": "image_url", "image_url": link}


def _is_in_the_clear(kind: parts.AnyPart) -> TypeGuard[parts.ThinkingPart]:
    """Whether a part is reasoning of a model that takes it back as `reasoning_content`."""
    return isinstance(kind, parts.ThinkingPart) and kind.provider == "openai-compatible" and bool(kind.signed)


def _joined(before: Any, after: Any) -> Any:
    """The joined contents of two messages of one role."""
    if before is None or after is None:
        return after if before is None else before
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    return [*_as_parts(before), *_as_parts(after)]


def _as_parts(content: Any) -> list[Part]:
    return [_text(content)] if isinstance(content, str) else content


def _tool(tool: ToolDefinition, naming: Naming) -> Body:
    if tool.provider_form is not None:
        return _custom_tool(tool.provider_form)
    function: Body = {"name": naming.name(tool.name), "parameters": tool.schema}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function | dict(tool.fields)}


def _custom_tool(tool: Body) -> Body:
    """A custom tool in its nested form; responses have a flat one."""
    if "custom" in tool:
        return tool
    custom = {key: value for key, value in tool.items() if key != "type"}
    form = custom.get("format")
    if isinstance(form, dict) and form.get("type") == "grammar" and "grammar" not in form:
        grammar = {key: value for key, value in form.items() if key != "type"}
        custom["format"] = {"type": "grammar", "grammar": grammar}
    return {"type": "custom", "custom": custom}
