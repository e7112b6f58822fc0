"""An assembled conversation as the body of a provider's request: OpenAI's or Anthropic's.

1. Order: tools, system prompt, history, current message (the order in which providers cache a prefix).
2. Neighbouring messages of one role become one message; those that say nothing are left out.
3. Results stand right after their calls. A call without a result and a result without a call are left out:
   both providers refuse them.
4. Anthropic: results are user blocks; system messages of the history follow the system prompt; the first
   message is a user's, so what an assistant said before that is left out.
5. Text and images are put into the provider's own form; other parts are passed on as they are. OpenAI's tool
   messages hold text only.
6. What is left out of the history is said in words, for the caller to report.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.conversation import parts
from nexus_context.conversation.message import Message, ToolCall, content_of, text_of

Body = dict[str, Any]
Block = dict[str, Any]


def openai(
    model: str,
    system: str,
    messages: Iterable[Message],
    tools: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
) -> tuple[Body, list[str]]:
    """The body of `POST /v1/chat/completions`, and what is left out. `settings` are `settings.openai`."""
    kept, left_out = paired(messages)
    sent: list[Body] = []
    for message in kept:
        made = _openai_message(message)
        if made is None:
            continue
        if message.role == "tool" and any(map(parts.is_image, content_of(message))):
            left_out.append(f"images in the result of tool call {message.tool_call_id}")
        before = sent[-1] if sent else None
        if before is not None and before["role"] == made["role"] != "tool":
            before |= made | {"content": _joined(before["content"], made["content"])}
        else:
            sent.append(made)
    if system:
        sent.insert(0, {"role": "system", "content": system})
    body: Body = {"model": model, "messages": sent}
    if tools:
        body["tools"] = [_openai_tool(tool) for tool in tools]
    return body | dict(settings), left_out


def anthropic(
    model: str,
    system: str,
    messages: Iterable[Message],
    tools: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
) -> tuple[Body, list[str]]:
    """The body of `POST /v1/messages`, and what is left out. `settings` are `settings.anthropic`."""
    kept, left_out = paired(messages)
    systems: list[Block] = []
    if system:
        systems.append({"type": "text", "text": system, "cache_control": {"type": "ephemeral"}})
    turns: list[tuple[str, list[Block]]] = []
    for message in kept:
        role, blocks = _anthropic_blocks(message)
        if message.role == "system":
            systems.extend(blocks)
        elif not turns and message.role != "user":
            left_out.append(f"a message of the role {message.role} before the first of a user")
        elif turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    body: Body = {"model": model, "messages": [{"role": role, "content": blocks} for role, blocks in turns]}
    if systems:
        body["system"] = systems
    if tools:
        body["tools"] = [_anthropic_tool(tool) for tool in tools]
    return body | dict(settings), left_out


def paired(messages: Iterable[Message]) -> tuple[list[Message], list[str]]:
    """The messages with each tool result right after its call, and what has no counterpart, in words."""
    given = list(messages)
    results: dict[
        str, list[int]
    ] = {}  # indexes of the results of a call, and of the messages that call again
    for index, message in enumerate(given):
        for name in {call.id for call in message.tool_calls} | {message.tool_call_id or ""}:
            results.setdefault(name, []).append(index)
    kept: list[Message] = []
    left_out: list[str] = []
    used: set[int] = set()
    for index, message in enumerate(given):
        if message.role == "tool":
            continue
        answers: dict[str, int] = {}
        calls: list[ToolCall] = []
        for call in message.tool_calls:
            following = next((one for one in results[call.id] if one > index), None)
            if following is not None and given[following].role == "tool" and call.id not in answers:
                answers[call.id] = following
                calls.append(call)
            else:
                left_out.append(f"tool call {call.id}, which has no result")
        if len(calls) < len(message.tool_calls):
            message = msgspec.structs.replace(message, tool_calls=tuple(calls))
        kept.append(message)
        kept.extend(given[one] for one in answers.values())
        used.update(answers.values())
    left_out += [
        f"the result of tool call {message.tool_call_id}, which has no call"
        for index, message in enumerate(given)
        if message.role == "tool" and index not in used
    ]
    return kept, left_out


def _openai_message(message: Message) -> Body | None:
    """The message; None when it says nothing."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": text_of(message)}
    content = content_of(message)
    if isinstance(content, list):
        content = [parts.openai(part) for part in content if not parts.is_blank(part)]
    sent: Body = {"role": message.role, "content": None if parts.is_blank(content) else content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": parts.json_text(call.arguments)},
            }
            for call in message.tool_calls
        ]
    elif sent["content"] is None:
        return None
    return sent


def _joined(before: str | list[Any] | None, after: str | list[Any] | None) -> str | list[Any] | None:
    """The contents of two messages of one role as that of one message."""
    if before is None or after is None:
        return after if before is None else before
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    return [*_parts(before), *_parts(after)]


def _parts(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _openai_tool(tool: Mapping[str, Any]) -> Body:
    if "function" in tool:
        return dict(tool)
    function: Body = {"name": tool.get("name", ""), "parameters": _schema(tool)}
    if tool.get("description"):
        function["description"] = tool["description"]
    return {"type": "function", "function": function}


def _anthropic_blocks(message: Message) -> tuple[str, list[Block]]:
    """The role and the blocks; none when the message says nothing."""
    content = content_of(message)
    blocks = [parts.anthropic(part) for part in _parts(content) if not parts.is_blank(part)]
    if message.role == "tool":
        result: Block = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        if blocks:
            result["content"] = blocks
        return "user", [result]
    if message.role == "assistant":
        return "assistant", [*blocks, *map(_tool_use, message.tool_calls)]
    return "user", blocks


def _tool_use(call: ToolCall) -> Block:
    given = call.arguments
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given or "{}")
        except msgspec.DecodeError:
            given = {"arguments": given}
    if not isinstance(given, dict):
        given = {} if given is None else {"arguments": given}  # the input must be an object
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _anthropic_tool(tool: Mapping[str, Any]) -> Body:
    function = tool.get("function")
    source = function if isinstance(function, dict) else tool
    made: Body = {"name": source.get("name", ""), "input_schema": _schema(source)}
    if source.get("description"):
        made["description"] = source["description"]
    return made


def _schema(tool: Mapping[str, Any]) -> Any:
    for key in ("input_schema", "inputSchema", "parameters"):
        if isinstance(tool.get(key), dict):
            return tool[key]
    return {"type": "object", "properties": {}}
