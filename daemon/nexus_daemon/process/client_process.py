"""Handle what a client's process may have otherwise than the daemon's: variables, umask and time zone.

1. Whatever depends on an environment variable comes from the client: variables in settings, where commands
   and git are found, which keys are set, the facts about the host in the prompt.
2. Times in the text for a model are in the client's zone: the one that its `TZ` names, or without `TZ` the
   system's. A `TZ` that names no known zone (POSIX rules, as in `CET-1CEST`) counts only if the daemon has
   the same value.
3. Nothing depends on the locale: texts are UTF-8 everywhere, numbers and dates are never written as a locale
   has them, and git answers in English.
"""

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo

import msgspec

ZONES = "zoneinfo/"
"""The directory before the name of a zone in a path."""


class ClientProcess(msgspec.Struct, frozen=True):
    """The process of an editor: its environment variables, and its umask.

    A umask of None means the daemon's.
    """

    environ: Mapping[str, str]
    umask: int | None = None


def zone(environ: Mapping[str, str], own: Mapping[str, str] = os.environ) -> tzinfo | None:
    """Return the time zone of a process with the variables `environ`.

    None if it is the zone of this process, whose variables are `own`, or if the zone is not known.
    """
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
