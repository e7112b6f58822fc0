"""Messages in OpenAI's form as the body of a request to Anthropic, as the user of a library sends them.

The system prompt has a breakpoint, the last block the automatic one. Thinking stands before its answer.
"""

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.conversation.facts import OpenAIMessage, calls_of, text_of

Body = dict[str, Any]

MAX_TOKENS = 1_024
_MARK = {"type": "ephemeral"}


def anthropic_body(model: str, messages: Sequence[OpenAIMessage], thinking: Sequence[Sequence[Body]]) -> Body:
    """The body; `thinking` has the blocks given with each message. Messages without content are left out."""
    system = "\n\n".join(text_of(message) for message in messages if message["role"] == "system")
    turns = [_turn(*pair) for pair in zip(messages, thinking, strict=True) if pair[0]["role"] != "system"]
    said = [turn for turn in turns if turn["content"]]
    body: Body = {"model": model, "max_tokens": MAX_TOKENS, "messages": said, "cache_control": _MARK}
    return body | ({"system": [_text(system) | {"cache_control": _MARK}]} if system else {})


def _turn(message: OpenAIMessage, thinking: Sequence[Body]) -> Body:
    text = text_of(message)
    if message["role"] == "tool":
        content = [_text(text)] if text.strip() else []
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return {"role": "user", "content": [result]}
    if message["role"] == "user":
        return {"role": "user", "content": [_text(text)]}
    blocks = [*thinking, *([_text(text)] if text.strip() else [])]
    for call in calls_of(message):
        arguments = json.loads(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return {"role": "assistant", "content": blocks}


def _text(text: str) -> Body:
    return {"type": "text", "text": text}
