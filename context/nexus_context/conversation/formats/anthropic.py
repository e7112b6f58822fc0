"""Anthropic's form: the body of `POST /v1/messages`.

1. System messages of the history follow the system prompt, at the top.
2. The first message is a user's: a text opens the conversation if an assistant spoke first. Roles alternate.
3. Results are user blocks, and come first in their message. A failed one holds text only, and some.
4. Reasoning goes back as it was signed, but not as the end of a message.
5. A conversation that ends with an assistant's words is for the model to go on with, without white space at
   the end; models that refuse that get a user's text that asks for it.
6. Cache breakpoints are set at the end (`breakpoints`); those that came with the parts are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import breakpoints, parts
from nexus_context.conversation.breakpoints import Cache
from nexus_context.conversation.formats.naming import Naming
from nexus_context.conversation.formats.repair_log import Said
from nexus_context.conversation.formats.tool_definitions import Definition, arguments, definitions
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.parameter_fields import takes_prefill
from nexus_context.conversation.repair import Repair, traced
from nexus_context.conversation.repair.values import clean, is_clean
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
    """The body, and what is sent otherwise than it was given.

    `settings` are `settings.anthropic`. `cache` says what is known of the request's tokens and of
    the next request, for the breakpoints; None: no breakpoints.
    """
    kept, repairs, origins = traced(messages)
    said = Said(repairs)
    defined = definitions(tools, "anthropic", said)
    naming = Naming(said, longest_name=LONGEST_NAME, longest_id=None, any_id=False)
    naming.define(tool.name for tool in defined)
    made = _Rendering(naming, said)
    if not parts.is_blank(system):
        made.systems.append({"type": "text", "text": system if is_clean(system) else clean(system)})
    for message, origin in zip(kept, origins, strict=True):
        made.add(message, origin)
    made.finish(prefill=takes_prefill(model) and "thinking" not in settings)
    body: Body = {"model": model, "messages": made.turns}
    if made.systems:
        body["system"] = made.systems
    if defined:
        body["tools"] = [_tool(tool, naming) for tool in defined]
    if cache is not None:
        body = breakpoints.marked(body, breakpoints.places(body, made.origins, cache))
    return body | dict(settings), said.repairs()


class _Rendering:
    """The messages of a body, one after the other. `origins` has an index for each block of each message."""

    def __init__(self, naming: Naming, said: Said) -> None:
        self.systems: list[Block] = []
        self.turns: list[Body] = []
        self.origins: list[list[int]] = []
        self._naming = naming
        self._said = said

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
        """Bring the end into its right form. `prefill`: the model goes on with an assistant's words."""
        if self.turns and self.turns[-1]["role"] == "assistant":
            self._end_assistant()
        if not self.turns:
            self._said.add("conversation-empty", "The conversation is empty; a text opens it.")
            self._append("user", [_text(texts.text("conversation_start"))], -1)
        if self.turns[-1]["role"] != "assistant":
            return
        if not prefill:
            text = "The model refuses a conversation that an assistant's words end; a text asks it to go on."
            self._said.add("conversation-continued", text)
            self._append("user", [_text(texts.text("conversation_continues"))], -1)
            return
        last = self.turns[-1]["content"][-1]
        if last["type"] == "text" and last["text"] != last["text"].rstrip():
            self._said.add(
                "space-trimmed", "White space at the end of the assistant's last words is left out."
            )
            last["text"] = last["text"].rstrip()

    def _append(self, role: str, blocks: list[Block], origin: int) -> None:
        before = self.turns[-1]["role"] if self.turns else None
        if before == "assistant" and role == "user":
            self._end_assistant()
            before = self.turns[-1]["role"]
        elif before is None and role == "assistant":
            text = "The conversation begins with an assistant's words; a text of a user opens it."
            self._said.add("conversation-opened", text, origin)
            self._append("user", [_text(texts.text("conversation_start"))], -1)
        if before == role:
            self.turns[-1]["content"] += blocks
            self.origins[-1] += [origin] * len(blocks)
        else:
            self.turns.append({"role": role, "content": blocks})
            self.origins.append([origin] * len(blocks))

    def _end_assistant(self) -> None:
        """Leave out reasoning at the end of the assistant's last message: it is refused there."""
        blocks, origins = self.turns[-1]["content"], self.origins[-1]
        while blocks and blocks[-1]["type"] in _REASONING:
            text = "Reasoning at the end of a message is left out: nothing follows it."
            self._said.add("thinking-left-out", text, origins[-1])
            del blocks[-1], origins[-1]
        if not blocks:
            del self.turns[-1], self.origins[-1]

    def _add_system(self, blocks: list[Block], origin: int) -> None:
        if self.turns and blocks:
            text = "A system message in the middle of the history stands with the system prompt, at the top."
            self._said.add("system-moved", text, origin)
        self.systems += blocks

    def _tool_use(self, call: ToolCall) -> Block:
        return {
            "type": "tool_use",
            "id": self._naming.id(call.id),
            "name": self._naming.name(call.name),
            "input": arguments(call, self._said),
        }

    def _result(self, message: Message, origin: int) -> Block:
        made: Block = {"type": "tool_result", "tool_use_id": self._naming.id(message.tool_call_id or "")}
        failed = is_error(message)
        content: Any = message.content
        if content.__class__ is str:
            blocks = [] if not content or content.isspace() else [{"type": "text", "text": content}]
        else:
            blocks = self._blocks(content, "failed" if failed else "tool", origin) if content else []
        if failed:
            made["is_error"] = True
            blocks = blocks or [_text(texts.text("result_empty"))]
        if blocks:
            made["content"] = blocks
        return made

    # ------------------------------------------------------------ parts

    def _blocks(self, content: list[Any], role: str, origin: int) -> list[Block]:
        kinds = [parts.read(part) for part in content if not parts.is_blank(part)]
        if role == "assistant":
            kinds = self._paired(kinds, origin)
        made = [self._block(kind, role, origin) for kind in kinds]
        return [block for block in made if block is not None]

    def _block(self, kind: parts.Kind, role: str, origin: int) -> Block | None:
        visible = role in ("user", "tool")
        match kind:
            case parts.Text(text) | parts.Refusal(text):
                return None if parts.is_blank(text) else _text(text)
            case parts.Thinking(signed):
                if signed is None or role != "assistant":
                    text = "Reasoning is left out: only the provider that signed it takes it."
                    self._said.add("thinking-left-out", text, origin)
                    return None
                return signed
            case parts.Image() if visible and not kind.url.lower().startswith("http:"):
                return {"type": "image", "source": _source(kind.data, kind.url, kind.media_type)}
            case parts.Document() if visible and not kind.url.lower().startswith("http:"):
                source = _source(kind.data, kind.url, parts.PDF)
                titled = {"title": kind.title} if kind.title else {}
                return {"type": "document", "source": source} | titled
            case parts.Own("anthropic", part) if _has_place(part["type"], role):
                return part
            case parts.Own("anthropic", part, text) if text:
                self._said.add("part-as-text", f"A part of the type {part['type']} is sent as text.", origin)
                return _text(text)
        name = parts.name_of(kind)
        text = (
            f"A part of the type {name} cannot stand in a message of the role {role}; a text stands for it."
        )
        self._said.add("part-omitted", text, origin)
        return _text(texts.text("part_omitted").format(kind=name))

    def _paired(self, kinds: list[parts.Kind], origin: int) -> list[parts.Kind]:
        """The parts without calls of the provider's own tools that lack a result, and the other way round."""
        ids = [_server_id(kind) for kind in kinds]
        if not any(ids):
            return kinds
        waiting: dict[str, int] = {}
        halves: set[int] = set()
        for at, found in enumerate(ids):
            if found is None:
                continue
            name, is_result = found
            if is_result and name in waiting:
                halves.discard(waiting.pop(name))
                continue
            halves.add(at)
            if not is_result and name not in waiting:
                waiting[name] = at
        kept = [kind for at, kind in enumerate(kinds) if at not in halves]
        if len(kept) < len(kinds):
            text = "A call of a tool that the provider runs itself lacks its other half; it is left out."
            self._said.add("server-tool-left-out", text, origin)
        return kept


def is_error(message: Message) -> bool:
    """Whether a result says that its tool failed: `meta.is_error`, or MCP's `isError`."""
    meta = message.meta
    return isinstance(meta, dict) and (meta.get("is_error") is True or meta.get("isError") is True)


def _server_id(kind: parts.Kind) -> tuple[str, bool] | None:
    """The id of a call of a tool that the provider runs itself, and whether this is its result."""
    if not isinstance(kind, parts.Own):
        return None
    if kind.part["type"] == "server_tool_use":
        return str(kind.part["id"]), False
    return (str(kind.part["tool_use_id"]), True) if kind.part["type"] in parts.SERVER_RESULTS else None


def _has_place(kind: str, role: str) -> bool:
    """Whether a block that only Anthropic knows may stand in a message of the role."""
    if kind in ("image", "document", "search_result"):
        return role in ("user", "tool")
    return role == ("user" if kind == "container_upload" else "assistant")


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _source(data: str, url: str, media_type: str) -> Block:
    if url:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": media_type, "data": data}


def _tool(tool: Definition, naming: Naming) -> Body:
    if tool.own is not None:
        return tool.own
    made: Body = {"name": naming.name(tool.name), "input_schema": tool.schema}
    if tool.description:
        made["description"] = tool.description
    return made
