"""What a client's process may have otherwise than the daemon's: variables, umask and time zone.

1. Whatever depends on an environment variable comes from the client: what settings refer to, where commands
   and git are found, which keys are set, the facts about the host in the prompt.
2. Times that a model is told are in the client's zone: the one that its `TZ` names, without one the system's.
   A `TZ` that names no known zone (POSIX rules, as in `CET-1CEST`) counts only if the daemon has it, too.
3. Nothing depends on the locale: texts are UTF-8 everywhere, no number or date is written as a locale has it,
   and git answers in English.
"""

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo

import msgspec

ZONES = "zoneinfo/"
"""What precedes the name of a zone in a path."""


class ClientProcess(msgspec.Struct, frozen=True):
    """The process of an editor: its environment variables, and its umask; None: the daemon's."""

    environ: Mapping[str, str]
    umask: int | None = None


def zone(environ: Mapping[str, str], own: Mapping[str, str] = os.environ) -> tzinfo | None:
    """Return a process's time zone. None if it equals the zone of this process, with the variables `own`."""
    name = environ.get("TZ")
    if name == own.get("TZ"):
        return None
    if name == "":
        return UTC
    import zoneinfo  # most clients have no zone of their own

    key = "localtime" if name is None else name.removeprefix(":").rpartition(ZONES)[2]
    try:
        return zoneinfo.ZoneInfo(key)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        return None
