"""Whether a provider would take a request, and whether the model sees what it is asked. OpenAI's form."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.conversation.facts import calls_of, text_of

HEAD_CHARS = 24  # what a shortened message keeps of its beginning, at least

Sent = Sequence[Mapping[str, Any]]


def has_broken_pair(messages: Sent) -> bool:
    """Whether a call has no result right after it, or a result no call right before it."""
    pending: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                return True
            pending.discard(message["tool_call_id"])
            continue
        if pending:
            return True
        pending = {call.id for call in calls_of(message)}
    return bool(pending)


def has_wrong_start(messages: Sent) -> bool:
    """Whether the first message that is no system message is not a user's. A pinned one may well be it."""
    return next((message["role"] != "user" for message in messages if message["role"] != "system"), True)


def lacks_system(messages: Sent, system: Mapping[str, Any]) -> bool:
    """Whether the system prompt is not at the beginning of what is sent."""
    return not messages or messages[0]["role"] != "system" or text_of(system) not in text_of(messages[0])


def has_newest(messages: Sent, newest: Mapping[str, Any]) -> bool:
    """Whether the newest message is at the end of what is sent: whole, shortened, or within a longer one.

    A tool's result may stand among the results of the same message's other calls, under whatever id: ids that
    occur twice may be changed.
    """
    for message in reversed(messages):
        if message["role"] != newest["role"]:
            return False
        if _says(text_of(message), text_of(newest)):
            return True
        if message["role"] != "tool":
            return False
    return False


def _says(sent: str, newest: str) -> bool:
    shortened = HEAD_CHARS <= len(sent) < len(newest) and sent[:HEAD_CHARS] == newest[:HEAD_CHARS]
    return newest in sent or shortened
