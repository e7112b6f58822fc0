"""Builds the last user message: a preamble of present facts and memory, followed by the user's text.

The message is stored with the preamble, and later requests send it again. So each request begins with the
bytes of the one before.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from nexus_context.conversation.message import Message, Preamble
from nexus_context.folder.prompt import texts
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.event_facts import event_text, event_zone
from nexus_context.turn.git import lines
from nexus_context.turn.request import Request


class Note(NamedTuple):
    """A text about what changed since system prompt and tools were sent, or "" if nothing is told. `number`
    is that of the frozen state that it is about (`frozen`).
    """

    text: str = ""
    number: int = 0


NO_NOTE = Note()


def current_message(
    snapshot: Snapshot,
    request: Request,
    *,
    now: datetime,
    memory: str = "",
    items: Sequence[str] = (),
    note: Note = NO_NOTE,
) -> Message | None:
    """Return the last user message, with present facts, `memory` and the `note` as its preamble. Return None
    if the request has neither a message nor an event.

    A message of another role (a tool's result, the beginning of an answer) is returned unchanged. `items` are
    the hashes of the memory items that `memory` has in full.
    """
    message = request.message
    if not takes_memory(request):
        return message
    preamble = Preamble(head(snapshot, request, now=now), memory, tuple(items), *note)
    if not preamble.text:
        return message or Message("user", "")
    return msgspec.structs.replace(message or Message("user"), preamble=preamble)


def takes_memory(request: Request) -> bool:
    """Whether the request has a user's message, or has no message but an event that becomes one."""
    message = request.message
    return request.event is not None if message is None else message.role == "user"


def head(snapshot: Snapshot, request: Request, *, now: datetime) -> str:
    """Return the present facts: the time, the event's facts (platform, actions, hook data), and last the
    state of git.
    """
    event = request.event or {}
    time = _time_text(snapshot, event_zone(event), now)
    parts = [time, event_text(event, role=snapshot.role, clock=bool(time)), git_text(snapshot, request)]
    return "\n".join(part for part in parts if part)


def git_text(snapshot: Snapshot, request: Request) -> str:
    """Return the text about git that ends the present facts (`head`). It is empty if `context.git` is false,
    if the state is unknown, or if the turn's event has a field `git`.
    """
    state = request.git
    if state is None or not snapshot.effective.get("/context/git") or "git" in (request.event or {}):
        return ""
    return "\n".join(lines(state))


def _time_text(snapshot: Snapshot, zone: str | None, now: datetime) -> str:
    settings = snapshot.effective.get("/context/datetime") or {}
    if settings.get("placement", "event") != "event":
        return ""
    return texts.text("event_time").format(**texts.moment(now, settings, zone=zone))
