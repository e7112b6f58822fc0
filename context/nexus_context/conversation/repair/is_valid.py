"""Is there anything to repair? One quick pass: every request asks, and nearly all histories are sound."""

from collections.abc import Iterable
from typing import Any

from nexus_context.conversation.message import Message
from nexus_context.conversation.parts import is_blank
from nexus_context.conversation.repair.values import is_clean, is_clean_call

_SPEAKERS = frozenset(("user", "assistant", "system"))


def sound_part(messages: Iterable[Message]) -> tuple[int, set[str]]:
    """How many messages from the start need no repair, and the ids of their calls.

    The others begin with a whole group, and only a closer look can tell whether they need one.
    """
    ids: set[str] = set()
    own: set[str] = set()  # the ids of the newest group
    waiting: set[str | None] = set()  # those whose results are still to come
    start = index = -1
    try:
        for index, message in enumerate(messages):
            content: Any = message.content
            if content.__class__ is not str or not content.isascii():
                content = _shown(content)
            if message.role == "tool":
                waiting.remove(message.tool_call_id)
                if message.tool_calls:
                    break
                continue
            if waiting:
                break
            start = index
            if own:
                ids |= own
                own = set()
            if message.role not in _SPEAKERS:
                break
            if message.tool_calls:
                own = _ids(message, ids)
                waiting = set(own)
            elif not content or content.isspace():
                break
        else:
            if not waiting:
                return index + 1, ids
    except (UnicodeEncodeError, RecursionError, TypeError, AttributeError, ValueError, KeyError):
        pass  # KeyError: a result that no call waits for
    return max(start, 0), ids


def _shown(content: Any) -> str:
    """Some text of a content, "" where it says nothing; ValueError where only a closer look can tell."""
    if content.__class__ is str:
        content.encode()
        return str(content)
    if not content:
        return ""
    if content.__class__ is not list or not all(map(_is_plain, content)):
        raise ValueError
    return "" if all(map(is_blank, content)) else "parts"


def _ids(message: Message, taken: set[str]) -> set[str]:
    """The ids of a message's calls; ValueError where only a closer look can tell."""
    if message.role != "assistant":
        raise ValueError
    own: set[str] = set()
    for call in message.tool_calls:
        if not call.id or call.id in taken or call.id in own or not is_clean_call(call):
            raise ValueError
        own.add(call.id)
    return own


def _is_plain(part: Any) -> bool:
    """Whether a part is neither a call nor a result, and can be encoded."""
    return (part.__class__ is not dict or part.get("type") not in ("tool_use", "tool_result")) and is_clean(
        part
    )
