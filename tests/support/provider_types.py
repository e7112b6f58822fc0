"""Requests checked by the providers' own types: those of their Python packages.

1. The types are TypedDicts, which pydantic reads; a key that they do not name is refused here, too.
2. What they call an Iterable is checked only while it is read, so all of it is read.
3. Anthropic's message also takes the blocks of a response, which allow any key, so each block is
   checked by itself.
"""

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import is_typeddict


def check_openai_types(body: Any) -> None:
    """Raises pydantic's ValidationError for a body that is none of chat completions."""
    _read(_openai().validate_python(body, strict=True))


def check_anthropic_types(body: Any) -> None:
    """Raises pydantic's ValidationError for a body that is none of messages. It needs `max_tokens`."""
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
