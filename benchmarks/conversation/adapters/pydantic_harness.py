"""pydantic-ai-harness: `SlidingWindowCompaction`, the capability that runs before a request."""

from collections.abc import Sequence
from typing import Any

from benchmarks.conversation.facts import MESSAGE_TOKENS, OpenAIMessage, count
from pydantic_ai import RunContext  # type: ignore[import-not-found]
from pydantic_ai.messages import (  # type: ignore[import-not-found]
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters  # type: ignore[import-not-found]
from pydantic_ai.models.test import TestModel  # type: ignore[import-not-found]
from pydantic_ai.usage import RunUsage  # type: ignore[import-not-found]
from pydantic_ai_harness.compaction import SlidingWindowCompaction  # type: ignore[import-not-found]


class SlidingWindow:
    """Keeps `to` of the budget once the budget is exceeded; what it dropped is gone.

    Its tokenizer adds the overhead of a message to each piece of text, so that its sums are near the truth.
    """

    def __init__(self, budget: int, to: float) -> None:
        self._capability = SlidingWindowCompaction(
            max_tokens=budget,
            keep_tokens=int(budget * to),
            tokenizer=lambda text: count(text) + MESSAGE_TOKENS,
        )
        self._model = TestModel()
        self._context = RunContext(deps=None, model=self._model, usage=RunUsage(), messages=[])
        self._names: dict[str, str] = {}

    def prepare(self, message: OpenAIMessage) -> Any:
        """The parts of a request, or a response."""
        content = message.get("content") or ""
        if message["role"] == "assistant":
            parts = [TextPart(content)] if content else []
            for call in message.get("tool_calls") or ():
                function = call["function"]
                self._names[call["id"]] = function["name"]
                parts.append(ToolCallPart(function["name"], function["arguments"], call["id"]))
            return ModelResponse(parts=parts)
        if message["role"] == "tool":
            answers = message["tool_call_id"]
            return ModelRequest(parts=[ToolReturnPart(self._names[answers], content, answers)])
        part = SystemPromptPart if message["role"] == "system" else UserPromptPart
        return ModelRequest(parts=[part(content)])

    def add(self, prepared: Any) -> None:
        """Appends it; a first user message joins the system prompt, as an agent sends them."""
        messages = self._context.messages
        if len(messages) == 1 and isinstance(messages[0].parts[-1], SystemPromptPart):
            messages[0] = ModelRequest(parts=[*messages[0].parts, *prepared.parts])
        else:
            messages.append(prepared)

    def build(self) -> list[Any]:
        """The messages after the hook that runs before the model. It never waits: no event loop."""
        request = ModelRequestContext(
            model=self._model,
            messages=list(self._context.messages),
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        try:
            self._capability.before_model_request(self._context, request).send(None)
        except StopIteration as done:
            messages: list[Any] = done.value.messages
            return messages
        raise RuntimeError("the hook waits for something")

    def sent(self, built: list[Any]) -> Sequence[OpenAIMessage]:
        """Part by part, in the order in which its OpenAI model sends them."""
        return [message for each in built for message in _openai(each)]

    def encode(self) -> bytes:
        """Its own encoding of a history."""
        encoded: bytes = ModelMessagesTypeAdapter.dump_json(self._context.messages)
        return encoded


def _openai(message: Any) -> list[OpenAIMessage]:
    if isinstance(message, ModelResponse):
        texts = [part.content for part in message.parts if isinstance(part, TextPart)]
        calls = [_call(part) for part in message.parts if isinstance(part, ToolCallPart)]
        sent: OpenAIMessage = {"role": "assistant", "content": "\n\n".join(texts) or None}
        return [sent | {"tool_calls": calls} if calls else sent]
    return [_request_part(part) for part in message.parts]


def _request_part(part: Any) -> OpenAIMessage:
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.content}
    return {"role": "system" if isinstance(part, SystemPromptPart) else "user", "content": part.content}


def _call(part: Any) -> dict[str, Any]:
    function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
    return {"id": part.tool_call_id, "type": "function", "function": function}
