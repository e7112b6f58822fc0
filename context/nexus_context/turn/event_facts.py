"""Renders what a turn's event says to the model: its platform, actions, hook data and other facts, depending
on the agent's role.

1. An event is free-form JSON. Some of its fields have a meaning: `timezone` sets the clock of the turn,
   `platform` and `platformActions` say where the user is and what can be done there, `hookData` is what hooks
   add, and `id` is for the ledger alone. If one of these has a wrong type, the error names the field.
2. A worker talks to its manager only, so it sees neither platform nor actions. A unified agent is its own
   manager and sees them.
3. Facts are text for the model: other fields follow as `name: value`, structured values as JSON.
4. An event may have any size. At most MOST_CHARACTERS of it are sent, and a mark shows what is missing. The
   ledger stores all of it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from nexus_context.conversation.shortening import shorten_text
from nexus_context.errors import RequestError
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.blocks import WORKER
from nexus_context.text.decoding import convert_to

MOST_CHARACTERS = 32_768
"""Characters of an event that are sent."""


class _Facts(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of an event that have a meaning."""

    id: Any = None
    timezone: str | None = None
    platform: str | None = None
    platform_actions: tuple[str, ...] = ()
    hook_data: Any = None


_NAMES = frozenset(field.encode_name for field in msgspec.structs.fields(_Facts))


def check_event(event: Mapping[str, Any]) -> None:
    """Raise RequestError if a field that has a meaning has a wrong type, or if the time zone is unknown."""
    zone = _facts(event).timezone
    if zone is not None and not texts.is_zone(zone):
        raise RequestError(
            f"event.timezone is {zone!r}, which is not a known time zone. Use an IANA name such as "
            "`Europe/Berlin`, `UTC` or `local`.",
            code="bad-event",
        )


def event_zone(event: Mapping[str, Any] | None) -> str | None:
    """Return the time zone that the event sets for its turn, or None."""
    return None if event is None else _facts(event).timezone


def event_text(event: Mapping[str, Any], *, role: str, clock: bool) -> str:
    """Return the facts of an event for an agent of this role, one a line. If `clock` is true, the time is
    sent elsewhere, and the time zone is left out.
    """
    facts = _facts(event)
    lines: list[str] = []
    if facts.timezone is not None and not clock:
        lines.append(texts.text("event_timezone").format(timezone=facts.timezone))
    if role != WORKER and facts.platform is not None:
        lines.append(texts.text("event_platform").format(platform=facts.platform))
    if role != WORKER and facts.platform_actions:
        lines.append(texts.text("event_actions").format(actions=", ".join(facts.platform_actions)))
    if facts.hook_data is not None:
        lines.extend(_hook_lines(facts.hook_data))
    lines.extend(f"{name}: {_text(value)}" for name, value in event.items() if name not in _NAMES)
    return shorten_text("\n".join(lines), MOST_CHARACTERS)


def hook_count(event: Mapping[str, Any] | None) -> int:
    """Return how many hooks added data to the event."""
    data = None if event is None else event.get("hookData")
    if data is None:
        return 0
    return len(data) if isinstance(data, Mapping | list | tuple) else 1


def _facts(event: Mapping[str, Any]) -> _Facts:
    try:
        return convert_to({name: event[name] for name in _NAMES if name in event}, _Facts)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        field = f"event{path.rstrip('`')}"
        raise RequestError(f"{field}: {reason}.", code="bad-event") from None


def _hook_lines(data: Any) -> list[str]:
    """The data of hooks: by name, one after the other, or as a text."""
    if isinstance(data, Mapping):
        return [f"{name}: {_text(value)}" for name, value in data.items()]
    return [_text(item) for item in (data if isinstance(data, list | tuple) else (data,))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
