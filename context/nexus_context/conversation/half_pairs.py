"""Replaces half surrogate pairs, which JavaScript and file names leave in texts, by U+FFFD.

No JSON message, file or request can hold a half surrogate pair. So it is replaced where a text enters: in a
message before it is stored or sent, and in a value that an earlier version stored, when it is read.
"""

from typing import Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.text.decoding import convert_to

_encode = msgspec.json.Encoder().encode


def without_halves(value: Any) -> Any:
    """Replace half surrogate pairs in a text, or in all texts and names of a JSON value of any depth.

    A value without half pairs is equal to the result.
    """
    if not isinstance(value, dict | list | tuple):
        return _whole_text(value)
    repaired = _emptied(value)
    waiting: list[tuple[Any, Any]] = [(value, repaired)]
    while waiting:
        container, copy = waiting.pop()
        is_object = isinstance(container, dict)
        for name, item in container.items() if is_object else enumerate(container):
            is_nested = isinstance(item, dict | list | tuple)
            member = _emptied(item) if is_nested else _whole_text(item)
            if is_nested:
                waiting.append((item, member))
            if is_object:
                copy[_whole_text(name)] = member
            else:
                copy.append(member)
    return repaired


def _emptied(container: Any) -> Any:
    return {} if isinstance(container, dict) else []


def _whole_text(value: Any) -> Any:
    if not isinstance(value, str) or is_whole(value):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_message(message: Message) -> Message:
    """Return a message without half surrogate pairs in its texts, names and arguments. It is the same object
    if it has none.
    """
    content = message.content
    if isinstance(content, str) and is_whole(content) and message == Message(message.role, content):
        return message
    try:
        _encode(message)
    except UnicodeEncodeError:
        return convert_to(without_halves(msgspec.to_builtins(message)), Message)
    except (TypeError, ValueError, RecursionError):  # what it is not is said where it is checked
        pass
    return message


def is_whole(text: str) -> bool:
    """Whether a text has no half surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
