"""Half surrogate pairs, which JavaScript and file names leave in texts: U+FFFD in their place.

No JSON message, file or request can hold one, so a text is made whole where it enters: a message before it is
stored or sent, a stored value of an earlier version when it is read.
"""

from typing import Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.decoding import convert_to

_encode = msgspec.json.Encoder().encode


def without_halves(value: Any) -> Any:
    """A text, or a JSON value with all its texts and names; the same object where nothing is half."""
    if isinstance(value, str):
        return (
            value if is_whole(value) else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {without_halves(name): without_halves(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_halves(item) for item in value]
    return value


def whole_message(message: Message) -> Message:
    """A message whose texts, names and arguments are whole; the same object if they are."""
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
    """Whether a text has no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
