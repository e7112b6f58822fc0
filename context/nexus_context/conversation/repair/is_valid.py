"""Whether there is anything to repair: one fast pass, since nearly all histories are sound."""

from collections.abc import Iterable
from typing import Any

from nexus_context.conversation.message import Message
from nexus_context.conversation.parts import is_blank
from nexus_context.conversation.repair.values import is_clean, is_clean_call

_SPEAKERS = frozenset(("user", "assistant", "system"))


def sound_part(messages: Iterable[Message]) -> tuple[int, set[str]]:
    """How many messages from the start need no repair, and the ids of their calls.

    The remaining ones begin with a whole group; `Pairing` finds out whether they need one.
    """
    ids: set[str] = set()
    group_ids: set[str] = set()  # the ids of the newest group
    waiting: set[str | None] = set()  # ids whose results are still to come
    start = index = -1
    try:
        for index, message in enumerate(messages):
            content: Any = message.content
            if content.__class__ is not str or not content.isascii():
                content = _sample_text(content)
            if message.role == "tool":
                waiting.remove(message.tool_call_id)
                if message.tool_calls:
                    break
                continue
            if waiting:
                break
            start = index
            if group_ids:
                ids |= group_ids
                group_ids = set()
            if message.role not in _SPEAKERS:
                break
            if message.tool_calls:
                group_ids = _ids(message, ids)
                waiting = set(group_ids)
            elif not content or content.isspace():
                break
        else:
            if not waiting:
                return index + 1, ids
    except (UnicodeEncodeError, RecursionError, TypeError, AttributeError, ValueError, KeyError):
        pass  # KeyError: a result without a call
    return max(start, 0), ids


def _sample_text(content: Any) -> str:
    """Some text of a content, "" if it is blank. ValueError: it may need a repair."""
    if content.__class__ is str:
        content.encode()
        return str(content)
    if not content:
        return ""
    if content.__class__ is not list or not all(map(_is_plain, content)):
        raise ValueError
    return "" if all(map(is_blank, content)) else "parts"


def _ids(message: Message, taken: set[str]) -> set[str]:
    """The ids of a message's calls. ValueError: they may need a repair."""
    if message.role != "assistant":
        raise ValueError
    ids: set[str] = set()
    for call in message.tool_calls:
        if not call.id or call.id in taken or call.id in ids or not is_clean_call(call):
            raise ValueError
        ids.add(call.id)
    return ids


def _is_plain(part: Any) -> bool:
    """Whether a part is neither call nor result, and can be encoded."""
    return (part.__class__ is not dict or part.get("type") not in ("tool_use", "tool_result")) and is_clean(
        part
    )
