"""An assembled conversation as the body of a provider's request: OpenAI's or Anthropic's.

1. Order: tools, system prompt, history, current message (the order in which providers cache a prefix).
2. Neighbouring messages that become one role become one message; empty ones are left out.
3. Anthropic: tool results are user blocks right after the call's message; the first message is a user's.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.conversation.message import Message, content_of, text_of

Body = dict[str, Any]
Block = dict[str, Any]


def openai(
    model: str,
    system: str,
    messages: Iterable[Message],
    tools: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any],
) -> Body:
    """The body of `POST /v1/chat/completions`."""
    sent: list[Body] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        made = _openai_message(message)
        if made is None:
            continue
        if sent and made["role"] == sent[-1]["role"] == "user":
            sent[-1]["content"] = _joined(sent[-1]["content"], made["content"])
        else:
            sent.append(made)
    body: Body = {"model": model, "messages": sent}
    if tools:
        body["tools"] = [_openai_tool(tool) for tool in tools]
    for name, ours in (
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("max_completion_tokens", "max_tokens"),
    ):
        if parameters.get(ours) is not None:
            body[name] = parameters[ours]
    return body


def anthropic(
    model: str,
    system: str,
    messages: Iterable[Message],
    tools: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any],
    *,
    max_output: int,
) -> Body:
    """The body of `POST /v1/messages`. `max_output` is sent where no `max_tokens` is set: it is required."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        role, blocks = _anthropic_blocks(message)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    body: Body = {
        "model": model,
        "max_tokens": parameters.get("max_tokens") or max_output,
        "messages": [{"role": role, "content": blocks} for role, blocks in turns],
    }
    if system:
        body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    if tools:
        body["tools"] = [_anthropic_tool(tool) for tool in tools]
    for name in ("temperature", "top_p", "top_k"):
        if parameters.get(name) is not None:
            body[name] = parameters[name]
    return body


def _openai_message(message: Message) -> Body | None:
    """The message; None when it says nothing."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": text_of(message)}
    content = content_of(message)
    sent: Body = {"role": message.role, "content": content or None}
    if message.tool_calls:
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _text(call.arguments)},
            }
            for call in message.tool_calls
        ]
    elif not content:
        return None
    return sent


def _joined(before: str | list[Any], after: str | list[Any]) -> str | list[Any]:
    """The contents of two messages of one role as that of one message."""
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
    content = _content_blocks(message)
    if message.role == "tool":
        result: Block = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        if content:
            result["content"] = content
        return "user", [result]
    if message.role == "assistant":
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
            for call in message.tool_calls
        ]
        return "assistant", content + calls
    return "user", content


def _content_blocks(message: Message) -> list[Block]:
    content = content_of(message)
    if isinstance(content, list):
        return [part for part in content if isinstance(part, dict) and part.get("text") != ""]
    return [{"type": "text", "text": content}] if content.strip() else []


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


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
