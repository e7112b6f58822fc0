"""JSON values that every encoder takes: text that UTF-8 can encode, and no more than MOST_DEPTH levels."""

from typing import Any

import msgspec

from nexus_context.conversation.message import ToolCall

MOST_DEPTH = 200
"""Levels of JSON in arguments and parts. Decoders and encoders give up at about a thousand."""


_encode = msgspec.json.Encoder().encode


def is_clean_call(call: ToolCall) -> bool:
    """Whether a call can be sent as JSON unchanged."""
    if not (call.id.isascii() and call.name.isascii()):
        return is_clean(call.id) and is_clean(call.name) and is_clean(call.arguments)
    try:
        encoded = _encode(call.arguments)
    except (UnicodeEncodeError, RecursionError, TypeError):
        return False
    levels = encoded.count(b"[") + encoded.count(b"{")
    return levels <= MOST_DEPTH or is_clean(call.arguments)


def is_clean(value: Any, depth: int = 0) -> bool:
    """Whether a value can be sent as JSON unchanged. `depth` is the number of levels around it."""
    kind = value.__class__
    if kind is str:
        return bool(value.isascii()) or _is_encodable(value)
    if value is None or kind is int or kind is float or kind is bool:
        return True
    if depth >= MOST_DEPTH:
        return False
    if kind is dict:
        return all(
            key.__class__ is str and is_clean(key) and is_clean(item, depth + 1)
            for key, item in value.items()
        )
    return kind is list and all(is_clean(item, depth + 1) for item in value)


def clean(value: Any, depth: int = 0) -> Any:
    """The nearest value that can be sent as JSON: null if nested too deeply, text if it is not JSON."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, dict | list | tuple) and depth >= MOST_DEPTH:
        return None
    if isinstance(value, dict):
        return {clean(str(key)): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    return clean(str(value))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
