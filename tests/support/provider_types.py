"""Requests checked by the providers' own types: those of their Python packages.

1. The types are TypedDicts, which pydantic reads; a key that they do not name is refused here, too.
2. What they call an Iterable is checked only while it is read, so all of it is read.
3. Anthropic's message also takes the blocks of a response, which allow any key, so each block is
   checked by itself. A compaction is a block of the beta.
4. Google's types are models with the SDK's names; the body of a request has the same in camel case, and its
   parameters in an object of their own.
"""

import functools
import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import is_typeddict


def check_openai_types(body: Any) -> None:
    """Raises pydantic's ValidationError for a body that is none of chat completions."""
    _read(_openai().validate_python(body, strict=True))


def check_responses_types(body: Any) -> None:
    """Raises pydantic's ValidationError for a body that is none of responses."""
    _read(_responses().validate_python(body, strict=True))
    for item in body["input"]:
        _read(_responses_item().validate_python(item, strict=True))


def check_gemini_types(body: Any) -> None:
    """Raises pydantic's ValidationError for a body that is none of `generateContent`."""
    from google.genai import types

    assert body.keys() <= {"contents", "systemInstruction", "tools", "generationConfig"}
    for content in (*body["contents"], *([body["systemInstruction"]] if "systemInstruction" in body else [])):
        types.Content.model_validate_json(json.dumps(content))
    for tool in body.get("tools", []):
        types.Tool.model_validate_json(json.dumps(tool))
    types.GenerationConfig.model_validate_json(json.dumps(body.get("generationConfig", {})))


def check_anthropic_types(body: Any) -> None:
    """Raises pydantic's ValidationError for a body that is none of messages. It needs `max_tokens`."""
    body = {**body, "messages": [_without_beta(message) for message in body["messages"]]}
    _read(_anthropic().validate_python(body, strict=True))
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            _read(_anthropic_block().validate_python(block, strict=True))


@functools.cache
def _openai() -> TypeAdapter[Any]:
    _forbid_unknown_keys("openai.types.chat", "openai.types.shared_params")
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    return TypeAdapter(CompletionCreateParamsNonStreaming)


@functools.cache
def _responses() -> TypeAdapter[Any]:
    _forbid_unknown_keys("openai.types.responses", "openai.types.shared_params")
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    return TypeAdapter(ResponseCreateParamsNonStreaming)


@functools.cache
def _responses_item() -> TypeAdapter[Any]:
    from openai.types.responses import ResponseInputItemParam

    return TypeAdapter(ResponseInputItemParam)


def _without_beta(message: Any) -> Any:
    """The message without blocks of the beta, which are checked by their own types."""
    if not isinstance(message.get("content"), list):
        return message
    beta = _anthropic_beta()
    rest = []
    for block in message["content"]:
        if block.get("type") in beta:
            _read(beta[block["type"]].validate_python(block, strict=True))
        else:
            rest.append(block)
    return (
        {**message, "content": rest or [{"type": "text", "text": "x"}]}
        if rest != message["content"]
        else message
    )


@functools.cache
def _anthropic_beta() -> dict[str, TypeAdapter[Any]]:
    from anthropic.types import beta

    types = {
        "compaction": beta.BetaCompactionBlockParam,
        "fallback": beta.BetaFallbackBlockParam,
        "mcp_tool_use": beta.BetaMCPToolUseBlockParam,
        "mcp_tool_result": beta.BetaRequestMCPToolResultBlockParam,
    }
    beta.BetaCompactionBlockParam.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return {name: TypeAdapter(type_) for name, type_ in types.items()}


@functools.cache
def _anthropic() -> TypeAdapter[Any]:
    _forbid_unknown_keys("anthropic.types")
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

    return TypeAdapter(MessageCreateParamsNonStreaming)


@functools.cache
def _anthropic_block() -> TypeAdapter[Any]:
    from anthropic.types import ContentBlockParam

    return TypeAdapter(ContentBlockParam)


def _forbid_unknown_keys(*packages: str) -> None:
    for name in packages:
        package = importlib.import_module(name)
        for found in pkgutil.iter_modules(package.__path__, f"{name}."):
            if found.ispkg:
                continue
            for value in vars(importlib.import_module(found.name)).values():
                if is_typeddict(value):
                    own = getattr(value, "__pydantic_config__", {})
                    value.__pydantic_config__ = {"extra": "forbid"} | own


def _read(value: Any) -> None:
    """Read every value, which checks those that are read lazily."""
    if isinstance(value, dict):
        for item in value.values():
            _read(item)
    elif isinstance(value, list | tuple | Iterator):
        for item in value:
            _read(item)
