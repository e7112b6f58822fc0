"""The last user message: what is true now, then what the user says. Providers never cache it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from nexus_context.assembly.request import Request
from nexus_context.conversation.message import Message, content_of
from nexus_context.prompt import texts
from nexus_context.snapshot import Snapshot


def current_message(snapshot: Snapshot, request: Request, *, now: datetime) -> Message | None:
    """The last user message: what is true now, then what the user says. None when there is neither.

    A message that is not the user's (a tool's result, the beginning of an answer) stays as it is.
    """
    message = request.message
    if message is not None and message.role != "user":
        return message
    if message is None and request.event is None:
        return None
    lines = [*_time_lines(snapshot, now), *_event_lines(request.event or {})]
    head = "\n".join(lines)
    if message is None:
        return Message("user", head)
    if not head:
        return message
    said = content_of(message)
    content = f"{head}\n\n{said}" if isinstance(said, str) else [{"type": "text", "text": head}, *said]
    return msgspec.structs.replace(message, content=content)


def _time_lines(snapshot: Snapshot, now: datetime) -> list[str]:
    settings = snapshot.effective.get("/context/datetime") or {}
    if settings.get("placement", "event") != "event":
        return []
    return [texts.text("event_time").format(**texts.moment(now, settings))]


def _event_lines(event: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in event.items():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        lines.append(f"{key}: {shown}")
    return lines
