"""Renders a conversation in OpenAI's format for responses: the body of `POST /v1/responses`.

1. Nothing is stored on the server. Reasoning comes back encrypted and is sent again unchanged, in its place
   among texts and calls. Reasoning after which the assistant says and does nothing is left out, because the
   server rejects it.
2. System messages inside the history are items of the role developer. So is the system prompt for models that
   take cache breakpoints: `instructions` cannot have one.
3. Every text of the assistant and every message of the user is an item of its own, so that an item that was
   sent once does not change.
4. A result holds texts, images and files. It is never empty: a text says that the tool returned nothing.
5. A call id and a tool name have at most 64 characters.
6. The key `phase` in the `meta` of an assistant's message is sent with its texts.
7. Items of tools that the server ran are sent back unchanged. So are items of tools that the client ran, with
   their outputs (`client_items`). A call of a custom tool has the text of its arguments as input.

Sources: the types of the package openai 3.54; the guides on reasoning, compaction and prompt caching.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import parts
from nexus_context.conversation.bodies import client_items
from nexus_context.conversation.bodies.breakpoints import Cache, Markable, mark_openai
from nexus_context.conversation.bodies.openai_chat import LONGEST_CACHE_KEY
from nexus_context.conversation.bodies.parameter_fields import takes_breakpoints
from nexus_context.conversation.bodies.preparation import (
    call_places,
    leave_out_fields,
    leave_out_thinking,
    prepared,
)
from nexus_context.conversation.bodies.server_rules import check_body
from nexus_context.conversation.bodies.tool_definitions import (
    Naming,
    ToolDefinition,
    arguments_text,
    definitions,
)
from nexus_context.conversation.message import Message, ToolCall, type_of
from nexus_context.conversation.repair import Repair, RepairLog, clean, is_clean
from nexus_context.folder.prompt import texts

Body = dict[str, Any]
Item = dict[str, Any]
Part = dict[str, Any]

LONGEST_NAME = 64
LONGEST_ID = 64
PHASES = ("commentary", "final_answer")


def openai_responses(
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

    `settings` come from `parameter_fields.openai_responses`. `cache_key` is a name for the session: the
    provider routes requests with the same name to the servers that cache their prefix. `cache` says what is
    known about the tokens of this request and about the next request, to choose breakpoints; None sets no
    breakpoints.
    """
    sound, repairs, origins = prepared(messages, "openai")
    log = RepairLog(repairs)
    defined = definitions(tools, "openai-responses", log)
    naming = Naming(log, longest_name=LONGEST_NAME, longest_id=LONGEST_ID, any_id=True)
    naming.define(tool.name for tool in defined if tool.is_called)
    marks = cache is not None and takes_breakpoints(model)
    customs = {tool.name for tool in defined if (tool.provider_form or {}).get("type") == "custom"}
    rendering = _Rendering(naming, log, in_parts=marks, customs=customs)
    body: Body = {"model": model}
    if not parts.is_blank(system):
        prompt = system if is_clean(system) else clean(system)
        if marks:
            rendering.add(Message("system", prompt), -1)
        else:
            body["instructions"] = prompt
    for message, origin in zip(client_items.paired(sound, origins, log), origins, strict=True):
        rendering.add(message, origin)
    rendering.end_answer()
    items, places = rendering.items, rendering.places() if marks else []
    body["input"] = items
    if not items:
        log.add("conversation-empty", "The conversation is empty; a text opens it.")
        items.append(_message("user", [_text(texts.text("conversation_start"))]))
    if defined:
        body["tools"] = [_tool(tool, naming) for tool in defined]
    if cache is not None and marks:
        mark_openai(items, places, cache, body.get("tools"))
    body["store"] = False
    check_body("openai-responses", body, log)
    if cache_key:
        body["prompt_cache_key"] = cache_key[:LONGEST_CACHE_KEY]
    return body | dict(settings), log.repairs()


class _Rendering:
    """Collects the items of a body. `in_parts`: every content that may have a breakpoint is a list.

    `customs` are the names of custom tools: their calls have a text, not an object.
    """

    def __init__(
        self, naming: Naming, log: RepairLog, *, in_parts: bool, customs: Collection[str] = ()
    ) -> None:
        self._customs = customs
        self._custom_calls: set[str] = set()
        self.items: list[Item] = []
        self._origins: list[int] = []  # of each item
        self._naming = naming
        self._log = log
        self._in_parts = in_parts

    def add(self, message: Message, origin: int) -> None:
        content: Any = message.content
        if content.__class__ is str:
            content = [content] if content and not content.isspace() else []
        content = content or []
        if any(parts.signature_of(part) is not None for part in content):
            leave_out_thinking(self._log, origin)
        if message.role == "assistant":
            self._add_answer(message, content, origin)
            return
        self.end_answer()
        if message.role == "tool":
            self._add_result(message, content, origin)
            return
        compaction = parts.read_part(content[0]) if content else None
        if isinstance(compaction, parts.CompactionPart) and compaction.part is not None:
            self._append(compaction.part, origin)
            content = content[1:]
        if message.role == "user" and any(type_of(part) in parts.OPENAI_ITEMS for part in content):
            kinds = [None if parts.is_blank(part) else parts.read_part(part) for part in content]
            for kind in kinds:
                if isinstance(kind, parts.ProviderPart) and _is_item(kind):
                    self._append(kind.part, origin)
            content = [part for part, kind in zip(content, kinds, strict=True) if not _is_item(kind)]
        sent_parts = self._parts(content, message.role, origin)
        if sent_parts:
            self._append(_message("developer" if message.role == "system" else "user", sent_parts), origin)

    def end_answer(self) -> None:
        """Leave out reasoning that nothing of the assistant follows."""
        while self.items and self.items[-1].get("type") == "reasoning":
            text = "Reasoning at the end of an answer is left out: the provider rejects it there."
            self._log.add("thinking-left-out", text, self._origins[-1])
            del self.items[-1], self._origins[-1]

    def places(self) -> list[Markable]:
        """The parts that may have a cache breakpoint."""
        return [
            Markable(at, part, origin)
            for at, (item, origin) in enumerate(zip(self.items, self._origins, strict=True))
            if (item.get("type") == "message" and item["role"] != "assistant")
            or item.get("type") == "function_call_output"
            for part in range(len(item.get("content") or item["output"]))
        ]

    def _append(self, item: Item, origin: int) -> None:
        self.items.append(item)
        self._origins.append(origin)

    def _add_answer(self, message: Message, content: list[Any], origin: int) -> None:
        marked_calls, unmarked_calls = call_places(content, message.tool_calls)
        upcoming_calls = iter(marked_calls)
        phase = message.meta.get("phase") if isinstance(message.meta, dict) else None
        for original in content:
            kind = None if parts.is_blank(original) else parts.read_part(original)
            if kind is not None and not (isinstance(kind, parts.CallPart) and _is_program(kind.caller)):
                leave_out_fields(kind, self._log, origin)
            match kind:
                case None:
                    pass
                case parts.CallPart():
                    call = next(upcoming_calls, None)
                    if call is not None:
                        caller = {"caller": kind.caller} if _is_program(kind.caller) else {}
                        self._append(self._call(call) | caller, origin)
                case parts.CompactionPart(_, part) | parts.ThinkingPart("openai", part) if part is not None:
                    self._append(part, origin)
                case parts.ThinkingPart():
                    leave_out_thinking(self._log, origin)
                case parts.ProviderPart(_, part) if _is_item(kind):
                    self._append(part, origin)
                case _:
                    text = self._answer(kind, origin)
                    own_phase = kind.phase if isinstance(kind, parts.TextPart) else None
                    if not parts.is_blank(text):
                        self._append(_message("assistant", text, own_phase or phase), origin)
        for call in unmarked_calls:
            self._append(self._call(call), origin)

    def _answer(self, kind: parts.AnyPart, origin: int) -> str:
        """A part of what the assistant said, as text."""
        match kind:
            case parts.TextPart(text) | parts.RefusalPart(text):
                return text
            case parts.ProviderPart(_, part, text) if text:
                self._log.add("part-as-text", f"A part of the type {part['type']} is sent as text.", origin)
                return text
        return self._omitted(kind, "assistant", origin)

    def _call(self, call: ToolCall) -> Item:
        if call.name in self._customs:
            self._custom_calls.add(call.id)
            call_id, name = self._naming.id(call.id), self._naming.name(call.name)
            input_text = parts.json_text(call.arguments)
            return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": input_text}
        return {
            "type": "function_call",
            "call_id": self._naming.id(call.id),
            "name": self._naming.name(call.name),
            "arguments": arguments_text(call, self._log),
        }

    def _add_result(self, message: Message, content: list[Any], origin: int) -> None:
        sent_parts = self._parts(content, "tool", origin)
        if not sent_parts:
            sent_parts = [_text(texts.text("result_empty"))]
            self._log.add("result-empty", "An empty result is sent as a text that says so.", origin)
        is_text = len(sent_parts) == 1 and sent_parts[0]["type"] == "input_text" and not self._in_parts
        output = sent_parts[0]["text"] if is_text else sent_parts
        call_id = self._naming.id(message.tool_call_id or "")
        kind = "custom_tool_call" if message.tool_call_id in self._custom_calls else "function_call"
        self._append({"type": f"{kind}_output", "call_id": call_id, "output": output}, origin)

    # ------------------------------------------------------------ parts

    def _parts(self, content: list[Any], role: str, origin: int) -> list[Part]:
        """The parts of a message of the user or the system, or of a result."""
        sent_parts = []
        for original in content:
            part = None if parts.is_blank(original) else self._part(parts.read_part(original), role, origin)
            if part is not None:
                sent_parts.append(part)
        return sent_parts

    def _part(self, kind: parts.AnyPart, role: str, origin: int) -> Part | None:
        visible = role != "system"
        leave_out_fields(kind, self._log, origin)
        match kind:
            case parts.TextPart(text) | parts.RefusalPart(text):
                return None if parts.is_blank(text) else _text(text)
            case parts.CallPart() | parts.ThinkingPart():
                if isinstance(kind, parts.ThinkingPart):
                    leave_out_thinking(self._log, origin)
                return None
            case parts.ImagePart() if visible:
                url = kind.url or f"data:{kind.media_type};base64,{kind.data}"
                return {"type": "input_image", "image_url": url, "detail": kind.detail or "auto"}
            case parts.DocumentPart(data, url, title) if visible:
                if url:
                    return {"type": "input_file", "file_url": url}
                data_url = f"data:{parts.PDF};base64,{data}"
                return {"type": "input_file", "filename": title or "document.pdf", "file_data": data_url}
            case parts.ProviderPart("openai", {"type": "input_image" | "file"} as part) if visible:
                is_file = part["type"] == "file"
                return {"type": "input_file"} | part["file"] if is_file else {"detail": "auto"} | part
            case parts.ProviderPart(_, part, text) if text:
                self._log.add("part-as-text", f"A part of the type {part['type']} is sent as text.", origin)
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


def _is_item(kind: Any) -> bool:
    """Whether a part is an item of its own that comes back as it was."""
    is_openai = isinstance(kind, parts.ProviderPart) and kind.provider == "openai"
    return is_openai and kind.part.get("type") in parts.OPENAI_ITEMS


def _is_program(caller: Part | None) -> bool:
    """Whether OpenAI's server called a tool, by code that it ran."""
    return caller is not None and caller["type"] == "program"


def _text(text: str) -> Part:
    return {"type": "input_text", "text": text}


def _message(role: str, content: str | list[Part], phase: Any = None) -> Item:
    message: Item = {"type": "message", "role": role, "content": content}
    return message | {"phase": phase} if phase in PHASES else message


def _tool(tool: ToolDefinition, naming: Naming) -> Body:
    if tool.provider_form is not None:
        return _custom_tool(tool.provider_form)
    definition: Body = {"type": "function", "name": naming.name(tool.name), "parameters": tool.schema}
    if tool.description:
        definition["description"] = tool.description
    return definition | {"strict": False} | dict(tool.fields)  # else the server takes every schema for strict


def _custom_tool(tool: Body) -> Body:
    """A tool of the provider; a custom tool of chat completions in the flat form of responses."""
    if "custom" not in tool:
        return tool
    custom = dict(tool["custom"])
    form = custom.get("format")
    if isinstance(form, dict) and isinstance(form.get("grammar"), dict):
        custom["format"] = {"type": "grammar"} | form["grammar"]
    return {"type": "custom"} | custom
