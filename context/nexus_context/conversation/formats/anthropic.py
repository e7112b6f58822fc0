"""Anthropic's format: the body of `POST /v1/messages`.

1. System messages inside the history follow the system prompt at the top.
2. The first message is a user message: if an assistant spoke first, a text opens the conversation. Roles
   alternate.
3. Results are blocks of a user message and come first in it. A failed result holds text only, never none.
4. Reasoning is returned as it was signed, but not at the end of a message.
5. If the conversation ends with an assistant message, the model continues it; trailing white space is
   removed. Models that reject this get a user text that asks them to continue.
6. Cache breakpoints are set last (`breakpoints`); those in the stored parts are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import breakpoints, parts
from nexus_context.conversation.breakpoints import Cache
from nexus_context.conversation.formats.tool_definitions import Naming, ToolDefinition, arguments, definitions
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.parameter_fields import takes_prefill
from nexus_context.conversation.repair import Repair, RepairLog, clean, is_clean, traced
from nexus_context.prompt import texts

Body = dict[str, Any]
Block = dict[str, Any]

LONGEST_NAME = 128
_REASONING = ("thinking", "redacted_thinking")


def anthropic(
    model: str,
    system: str,
    messages: Iterable[Message],
    tools: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    *,
    cache: Cache | None = Cache(),  # noqa: B008  # frozen
) -> tuple[Body, list[Repair]]:
    """The body, and the repairs.

    `settings` come from `parameter_fields.anthropic`. `cache` has what is known about the tokens of this
    request and about the next one, for the breakpoints; None: no breakpoints.
    """
    sound, repairs, origins = traced(messages)
    log = RepairLog(repairs)
    defined = definitions(tools, "anthropic", log)
    naming = Naming(log, longest_name=LONGEST_NAME, longest_id=None, any_id=False)
    naming.define(tool.name for tool in defined)
    rendering = _Rendering(naming, log)
    if not parts.is_blank(system):
        rendering.systems.append({"type": "text", "text": system if is_clean(system) else clean(system)})
    for message, origin in zip(sound, origins, strict=True):
        rendering.add(message, origin)
    rendering.finish(prefill=takes_prefill(model) and "thinking" not in settings)
    body: Body = {"model": model, "messages": rendering.turns}
    if rendering.systems:
        body["system"] = rendering.systems
    if defined:
        body["tools"] = [_tool(tool, naming) for tool in defined]
    if cache is not None:
        body = breakpoints.mark_breakpoints(
            body, breakpoints.choose_breakpoints(body, rendering.origins, cache)
        )
    return body | dict(settings), log.repairs()


class _Rendering:
    """Collects the messages of a body. `origins` has the stored index of each block of each message."""

    def __init__(self, naming: Naming, log: RepairLog) -> None:
        self.systems: list[Block] = []
        self.turns: list[Body] = []
        self.origins: list[list[int]] = []
        self._naming = naming
        self._log = log

    def add(self, message: Message, origin: int) -> None:
        role = message.role
        if role == "tool":
            self._append("user", [self._result(message, origin)], origin)
            return
        content: Any = message.content
        if content.__class__ is str:
            blocks = [] if not content or content.isspace() else [{"type": "text", "text": content}]
        else:
            blocks = self._blocks(content, role, origin) if content else []
        if role == "system":
            self._add_system(blocks, origin)
            return
        if message.tool_calls:
            blocks += [self._tool_use(call) for call in message.tool_calls]
        if blocks:
            self._append(role, blocks, origin)

    def finish(self, *, prefill: bool) -> None:
        """Complete the last message. `prefill`: the model continues an assistant message."""
        if self.turns and self.turns[-1]["role"] == "assistant":
            self._end_assistant()
        if not self.turns:
            self._log.add("conversation-empty", "The conversation is empty; a text opens it.")
            self._append("user", [_text(texts.text("conversation_start"))], -1)
        if self.turns[-1]["role"] != "assistant":
            return
        if not prefill:
            text = "The model rejects a final assistant message; a text asks it to continue."
            self._log.add("conversation-continued", text)
            self._append("user", [_text(texts.text("conversation_continues"))], -1)
            return
        last = self.turns[-1]["content"][-1]
        if last["type"] == "text" and last["text"] != last["text"].rstrip():
            self._log.add("space-trimmed", "Trailing white space of the last assistant message is left out.")
            last["text"] = last["text"].rstrip()

    def _append(self, role: str, blocks: list[Block], origin: int) -> None:
        before = self.turns[-1]["role"] if self.turns else None
        if before == "assistant" and role == "user":
            self._end_assistant()
            before = self.turns[-1]["role"]
        elif before is None and role == "assistant":
            text = "The conversation begins with an assistant message; a user text opens it."
            self._log.add("conversation-opened", text, origin)
            self._append("user", [_text(texts.text("conversation_start"))], -1)
        if before == role:
            self.turns[-1]["content"] += blocks
            self.origins[-1] += [origin] * len(blocks)
        else:
            self.turns.append({"role": role, "content": blocks})
            self.origins.append([origin] * len(blocks))

    def _end_assistant(self) -> None:
        """Leave out reasoning at the end of the last assistant message: it is rejected there."""
        blocks, origins = self.turns[-1]["content"], self.origins[-1]
        while blocks and blocks[-1]["type"] in _REASONING:
            text = "Reasoning at the end of a message is left out: the provider rejects it there."
            self._log.add("thinking-left-out", text, origins[-1])
            del blocks[-1], origins[-1]
        if not blocks:
            del self.turns[-1], self.origins[-1]

    def _add_system(self, blocks: list[Block], origin: int) -> None:
        if self.turns and blocks:
            text = "A system message inside the history is moved to the system prompt."
            self._log.add("system-moved", text, origin)
        self.systems += blocks

    def _tool_use(self, call: ToolCall) -> Block:
        return {
            "type": "tool_use",
            "id": self._naming.id(call.id),
            "name": self._naming.name(call.name),
            "input": arguments(call, self._log),
        }

    def _result(self, message: Message, origin: int) -> Block:
        result: Block = {"type": "tool_result", "tool_use_id": self._naming.id(message.tool_call_id or "")}
        failed = is_error(message)
        content: Any = message.content
        if content.__class__ is str:
            blocks = [] if not content or content.isspace() else [{"type": "text", "text": content}]
        else:
            blocks = self._blocks(content, "failed" if failed else "tool", origin) if content else []
        if failed:
            result["is_error"] = True
            blocks = blocks or [_text(texts.text("result_empty"))]
        if blocks:
            result["content"] = blocks
        return result

    # ------------------------------------------------------------ parts

    def _blocks(self, content: list[Any], role: str, origin: int) -> list[Block]:
        kinds = [parts.read_part(part) for part in content if not parts.is_blank(part)]
        if role == "assistant":
            kinds = self._paired(kinds, origin)
        blocks = [self._block(kind, role, origin) for kind in kinds]
        return [block for block in blocks if block is not None]

    def _block(self, kind: parts.AnyPart, role: str, origin: int) -> Block | None:
        visible = role in ("user", "tool")
        match kind:
            case parts.TextPart(text) | parts.RefusalPart(text):
                return None if parts.is_blank(text) else _text(text)
            case parts.ThinkingPart(signed):
                if signed is None or role != "assistant":
                    text = "Reasoning is left out: only the provider that signed it accepts it."
                    self._log.add("thinking-left-out", text, origin)
                    return None
                return signed
            case parts.ImagePart() if visible and not kind.url.lower().startswith("http:"):
                return {"type": "image", "source": _source(kind.data, kind.url, kind.media_type)}
            case parts.DocumentPart() if visible and not kind.url.lower().startswith("http:"):
                source = _source(kind.data, kind.url, parts.PDF)
                titled = {"title": kind.title} if kind.title else {}
                return {"type": "document", "source": source} | titled
            case parts.ProviderPart("anthropic", part) if _has_place(part["type"], role):
                return part
            case parts.ProviderPart("anthropic", part, text) if text:
                self._log.add("part-as-text", f"A part of the type {part['type']} is sent as text.", origin)
                return _text(text)
        name = parts.part_name(kind)
        text = (
            f"A part of the type {name} is not allowed in a message of the role {role}; a text replaces it."
        )
        self._log.add("part-omitted", text, origin)
        return _text(texts.text("part_omitted").format(kind=name))

    def _paired(self, kinds: list[parts.AnyPart], origin: int) -> list[parts.AnyPart]:
        """The parts without server tool calls that lack a result and results that lack a call."""
        ids = [_server_id(kind) for kind in kinds]
        if not any(ids):
            return kinds
        waiting: dict[str, int] = {}
        halves: set[int] = set()
        for at, server_id in enumerate(ids):
            if server_id is None:
                continue
            name, is_result = server_id
            if is_result and name in waiting:
                halves.discard(waiting.pop(name))
                continue
            halves.add(at)
            if not is_result and name not in waiting:
                waiting[name] = at
        paired = [kind for at, kind in enumerate(kinds) if at not in halves]
        if len(paired) < len(kinds):
            text = "A server tool call without a result, or a result without its call, is left out."
            self._log.add("server-tool-left-out", text, origin)
        return paired


def is_error(message: Message) -> bool:
    """Whether a result says that its tool failed: `meta.is_error`, or MCP's `isError`."""
    meta = message.meta
    return isinstance(meta, dict) and (meta.get("is_error") is True or meta.get("isError") is True)


def _server_id(kind: parts.AnyPart) -> tuple[str, bool] | None:
    """The id of a server tool call, and whether this is its result."""
    if not isinstance(kind, parts.ProviderPart):
        return None
    if kind.part["type"] == "server_tool_use":
        return str(kind.part["id"]), False
    return (str(kind.part["tool_use_id"]), True) if kind.part["type"] in parts.SERVER_RESULTS else None


def _has_place(kind: str, role: str) -> bool:
    """Whether a message of the role may hold a block that only Anthropic knows."""
    if kind in ("image", "document", "search_result"):
        return role in ("user", "tool")
    return role == ("user" if kind == "container_upload" else "assistant")


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _source(data: str, url: str, media_type: str) -> Block:
    if url:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": media_type, "data": data}


def _tool(tool: ToolDefinition, naming: Naming) -> Body:
    if tool.provider_form is not None:
        return tool.provider_form
    definition: Body = {"name": naming.name(tool.name), "input_schema": tool.schema}
    if tool.description:
        definition["description"] = tool.description
    return definition
