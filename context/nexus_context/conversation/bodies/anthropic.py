"""Renders a conversation in Anthropic's format: the body of `POST /v1/messages`.

1. System messages at the start follow the system prompt at the top. If the model takes later ones, each is
   sent after the user message that it follows or precedes, before the assistant's answer. Otherwise, or if no
   user message stands there, a later one is sent as a marked text of the user.
2. The first message is a user message, unless the conversation begins with a compaction. If an assistant
   spoke first, a text of the user opens the conversation. Roles alternate.
3. Results are blocks of a user message and come first in it. A failed result holds text only, and always has
   some.
4. Reasoning is returned as it was signed, in its place among texts and calls. It is left out at the end of a
   message, and if the messages that it is bound to have changed. With a thinking budget, the assistant's last
   message with calls must begin with reasoning. If it does not, the model is not told to think.
5. If the conversation ends with an assistant message, the model continues that message, and its trailing
   white space is removed. Models that reject this get a user text that asks them to continue. A paused answer
   stays the last message, unchanged (`server_tools`).
6. Cache breakpoints are set last (`breakpoints`). Breakpoints in the stored parts and tools are left out.

Sources: "Mid-conversation system messages", "Preserved thinking", "Compaction on demand" and "Extended
thinking" in the documentation of the Claude API.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import parts
from nexus_context.conversation.bodies import breakpoints, server_tools
from nexus_context.conversation.bodies.breakpoints import Cache
from nexus_context.conversation.bodies.parameter_fields import takes_prefill, takes_system_messages
from nexus_context.conversation.bodies.preparation import call_places, leave_out_thinking, prepared
from nexus_context.conversation.bodies.server_rules import check_body
from nexus_context.conversation.bodies.tool_definitions import Naming, ToolDefinition, arguments, definitions
from nexus_context.conversation.message import Message, ToolCall, is_error
from nexus_context.conversation.repair import Repair, RepairLog, clean, is_clean
from nexus_context.folder.prompt import texts

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
    lapsed: Collection[int] = (),
) -> tuple[Body, list[Repair]]:
    """Render the body. Return it with the repairs.

    `settings` come from `parameter_fields.anthropic`. `cache` says what is known about the tokens of this
    request and about the next request, to choose breakpoints; None sets no breakpoints. `lapsed` are the
    indexes of messages whose reasoning must not be sent, because the messages that it is bound to have
    changed.
    """
    sound, repairs, origins = prepared(messages, "anthropic")
    log = RepairLog(repairs)
    defined = definitions(tools, "anthropic", log)
    naming = Naming(log, longest_name=LONGEST_NAME, longest_id=None, any_id=False)
    naming.define(tool.name for tool in defined if tool.is_called)
    rendering = _Rendering(
        naming,
        log,
        tools={tool.name: tool.renamed for tool in defined},
        takes_systems=takes_system_messages(model),
        lapsed=frozenset(lapsed),
    )
    if not parts.is_blank(system):
        rendering.systems.append({"type": "text", "text": system if is_clean(system) else clean(system)})
    paired = server_tools.paired(sound, origins, log)
    for message, origin in zip(paired, origins, strict=True):
        rendering.add(message, origin)
    settings = rendering.thinkable(settings)
    if not (server_tools.is_paused(paired) and rendering.is_answer_last()):
        rendering.finish(prefill=takes_prefill(model) and "thinking" not in settings)
    body: Body = {"model": model, "messages": rendering.turns}
    if rendering.systems:
        body["system"] = rendering.systems
    if defined:
        body["tools"] = [_tool(tool, naming) for tool in defined]
    if cache is not None:
        chosen = breakpoints.choose_breakpoints(body, rendering.origins, cache)
        body = breakpoints.mark_breakpoints(body, chosen, cache.ttl)
    check_body("anthropic", body, log, model=model)
    return body | dict(settings), log.repairs()


class _Rendering:
    """Collects the messages of a body. `origins` has the stored index of each block of each message.

    `tools` has, by the name of a tool, the keys of its arguments that are sent differently.
    """

    def __init__(
        self,
        naming: Naming,
        log: RepairLog,
        *,
        tools: Mapping[str, Mapping[str, str]],
        takes_systems: bool,
        lapsed: frozenset[int],
    ) -> None:
        self.systems: list[Block] = []
        self.turns: list[Body] = []
        self.origins: list[list[int]] = []
        self._naming = naming
        self._log = log
        self._takes_systems = takes_systems
        self._lapsed = lapsed
        self._tools = tools
        self._running: set[str] = set()  # ids of server tools so far, which may call tools of the client
        self._waiting: list[tuple[int, list[Block]]] = []  # system messages, until the user's turn ends

    def add(self, message: Message, origin: int) -> None:
        role = message.role
        if role == "tool":
            self._append("user", [self._result(message, origin)], origin)
            return
        content: Any = message.content
        if content.__class__ is str:
            blocks = [] if not content or content.isspace() else [{"type": "text", "text": content}]
            blocks += map(self._tool_use, message.tool_calls)
        else:
            blocks = self._blocks(content or [], role, origin, message.tool_calls)
        if not blocks:
            return
        if role != "system":
            self._append(role, blocks, origin)
        elif not self.turns:
            self.systems += blocks
        elif self._takes_systems:
            self._waiting.append((origin, blocks))
        else:
            self._add_note(blocks, origin)

    def thinkable(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """The settings, without thinking if the assistant's last message forbids it (rule 4)."""
        if settings.get("thinking", {}).get("type") != "enabled":
            return settings
        last_content = next(
            (turn["content"] for turn in reversed(self.turns) if turn["role"] == "assistant"), None
        )
        if (
            last_content is None
            or last_content[0]["type"] in _REASONING
            or all(block["type"] != "tool_use" for block in last_content)
        ):
            return settings
        text = "The model is not told to think: its last message with calls does not begin with reasoning."
        self._log.add("thinking-off", text)
        return {name: value for name, value in settings.items() if name != "thinking"}

    def is_answer_last(self) -> bool:
        """Whether the last message is the assistant's."""
        return bool(self.turns) and self.turns[-1]["role"] == "assistant"

    def finish(self, *, prefill: bool) -> None:
        """Complete the last message. `prefill`: the model continues an assistant message."""
        self._end_user()
        if self.turns and self.turns[-1]["role"] == "assistant":
            self._end_assistant()
            self._end_user()
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
        last_block = self.turns[-1]["content"][-1]
        if last_block["type"] == "text" and last_block["text"] != last_block["text"].rstrip():
            self._log.add("space-trimmed", "Trailing white space of the last assistant message is left out.")
            last_block["text"] = last_block["text"].rstrip()

    def _append(self, role: str, blocks: list[Block], origin: int) -> None:
        if role == "assistant" and self._waiting:
            self._end_user()
        previous_role = self.turns[-1]["role"] if self.turns else None
        if previous_role == "assistant" and role == "user":
            self._end_assistant()
            previous_role = self.turns[-1]["role"] if self.turns else None
        elif previous_role is None and role == "assistant" and blocks[0]["type"] != "compaction":
            text = "The conversation begins with an assistant message; a user text opens it."
            self._log.add("conversation-opened", text, origin)
            self._append("user", [_text(texts.text("conversation_start"))], -1)
        if previous_role == role:
            self.turns[-1]["content"] += blocks
            self.origins[-1] += [origin] * len(blocks)
        else:
            self.turns.append({"role": role, "content": blocks})
            self.origins.append([origin] * len(blocks))

    def _end_assistant(self) -> None:
        """Leave out reasoning at the end of the last assistant message, and the message if it was all."""
        self._leave_out_end(self.turns[-1]["content"], self.origins[-1])
        if not self.turns[-1]["content"]:
            del self.turns[-1], self.origins[-1]
            if self.turns and self.turns[-1]["role"] == "system":  # what follows may be the user's
                blocks, origins = self.turns.pop()["content"], self.origins.pop()
                self._waiting.insert(0, (origins[0], blocks))

    def _leave_out_end(self, blocks: list[Block], origins: list[int]) -> None:
        while blocks and blocks[-1]["type"] in _REASONING:
            text = "Reasoning at the end of a message is left out: the provider rejects it there."
            self._log.add("thinking-left-out", text, origins[-1])
            del blocks[-1], origins[-1]

    def _add_note(self, blocks: list[Block], origin: int) -> None:
        """Add a system message as a marked text of the user."""
        text = "A system message inside the history is sent as a marked text of the user."
        self._log.add("system-as-user", text, origin)
        form = texts.text("system_note")
        notes = [_text(form.format(text=block["text"])) for block in blocks]
        self._append("user", notes, origin)

    def _end_user(self) -> None:
        """Add the system messages that wait for the end of the user's turn, as one message."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if not self.turns or self.turns[-1]["role"] != "user":
            for origin, blocks in waiting:
                self._add_note(blocks, origin)
            return
        self.turns.append({"role": "system", "content": [block for _, blocks in waiting for block in blocks]})
        self.origins.append([origin for origin, blocks in waiting for _ in blocks])

    def _tool_use(self, call: ToolCall, caller: Block | None = None) -> Block:
        values, renamed = arguments(call, self._log), self._tools.get(call.name)
        use = {
            "type": "tool_use",
            "id": self._naming.id(call.id),
            "name": self._naming.name(call.name),
            "input": {renamed.get(key, key): value for key, value in values.items()} if renamed else values,
        }
        return use if caller is None else use | {"caller": caller}

    def _caller(self, kind: parts.CallPart, origin: int) -> Block | None:
        """What called a tool, if the server tool that did is sent."""
        if kind.caller is None or kind.caller["type"] == "direct":
            return kind.caller
        if kind.caller.get("tool_id") in self._running:
            return kind.caller
        text = "What called a tool is left out: the request lacks it."
        self._log.add("caller-left-out", text, origin)
        return None

    def _result(self, message: Message, origin: int) -> Block:
        result: Block = {"type": "tool_result", "tool_use_id": self._naming.id(message.tool_call_id or "")}
        failed = is_error(message)
        content: Any = message.content
        if content.__class__ is str:
            blocks = [] if not content or content.isspace() else [{"type": "text", "text": content}]
        else:
            blocks = self._blocks(content or [], "failed" if failed else "tool", origin)
        if failed:
            result["is_error"] = True
            blocks = blocks or [_text(texts.text("result_empty"))]
        if blocks:
            result["content"] = blocks
        return result

    # ------------------------------------------------------------ parts

    def _blocks(
        self, content: list[Any], role: str, origin: int, calls: Sequence[ToolCall] = ()
    ) -> list[Block]:
        marked_calls, unmarked_calls = call_places(content, calls)
        upcoming_calls = iter(marked_calls)
        kinds = [parts.read_part(part) for part in content if not parts.is_blank(part)]
        self._running |= {
            kind.part["id"]
            for kind in kinds
            if isinstance(kind, parts.ProviderPart) and kind.part.get("type") in server_tools.CALLS
        }
        if any(parts.signature_of(part) is not None for part in content):
            leave_out_thinking(self._log, origin)
        blocks: list[Block | None] = []
        for kind in kinds:
            if isinstance(kind, parts.CallPart):
                call = next(upcoming_calls, None)
                use = None if call is None else self._tool_use(call, self._caller(kind, origin))
                blocks.append(use)
            else:
                blocks.append(self._block(kind, role, origin))
        sent_blocks = [block for block in blocks if block is not None]
        if marked_calls:
            if not unmarked_calls:
                self._leave_out_end(sent_blocks, [origin] * len(sent_blocks))
            if not _thinks_between_calls(sent_blocks):
                sent_blocks.sort(key=lambda block: block["type"] == "tool_use")
        return [*sent_blocks, *map(self._tool_use, unmarked_calls)]

    def _block(self, kind: parts.AnyPart, role: str, origin: int) -> Block | None:
        visible = role in ("user", "tool")
        match kind:
            case parts.TextPart(text) | parts.RefusalPart(text):
                block = _text(text)
                if isinstance(kind, parts.TextPart) and kind.citations:
                    if role == "assistant":
                        block["citations"] = kind.citations
                    else:
                        text = "The citations of a text are left out: only an assistant has them."
                        self._log.add("citations-left-out", text, origin)
                return None if parts.is_blank(text) else block
            case parts.ThinkingPart():
                return self._reasoning(kind, role, origin)
            case parts.CompactionPart(_, block):
                return block
            case parts.ImagePart() if visible and not kind.url.lower().startswith("http:"):
                return {"type": "image", "source": _source(kind.data, kind.url, kind.media_type)}
            case parts.DocumentPart() if visible and not kind.url.lower().startswith("http:"):
                source = _source(kind.data, kind.url, parts.PDF)
                titled = {"title": kind.title} if kind.title else {}
                return {"type": "document", "source": source} | titled | kind.fields
            case parts.ProviderPart("anthropic", part) if self._takes(part, role):
                name = part.get("tool_name")
                return part if name is None else part | {"tool_name": self._naming.name(name)}
            case parts.ProviderPart(_, part, text) if text and part.get("type") != "file":
                self._log.add(
                    "part-as-text", f"A part of the type {parts.part_name(kind)} is sent as text.", origin
                )
                return _text(text)
        name = parts.part_name(kind)
        text = (
            f"A part of the type {name} is not allowed in a message of the role {role}; a text replaces it."
        )
        self._log.add("part-omitted", text, origin)
        return _text(texts.text("part_omitted").format(kind=name))

    def _takes(self, part: Block, role: str) -> bool:
        """Whether a message of the role may hold a block that only Anthropic knows."""
        kind = part["type"]
        if kind == "tool_reference":  # to a tool that the request defines
            return role == "tool" and part["tool_name"] in self._tools
        if kind in ("image", "document", "search_result"):
            return role in ("user", "tool")
        return role == ("user" if kind == "container_upload" else "assistant")

    def _reasoning(self, kind: parts.ThinkingPart, role: str, origin: int) -> Block | None:
        if kind.signed is None or kind.provider != "anthropic" or role != "assistant":
            leave_out_thinking(self._log, origin)
            return None
        if origin in self._lapsed:
            text = "Reasoning is left out where messages before it have changed since."
            self._log.add("thinking-left-out", text, origin)
            return None
        return kind.signed


def _thinks_between_calls(blocks: list[Block]) -> bool:
    """Whether reasoning follows a call in the same message."""
    kinds = iter(block["type"] for block in blocks)
    return any(kind == "tool_use" for kind in kinds) and any(kind in _REASONING for kind in kinds)


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
    return definition | dict(tool.fields)
