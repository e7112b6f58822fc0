"""Notifications for a client that does not read; their number is bounded.

1. Of two notifications with the same key only the newer one is sent: diagnostics of a file, for example.
2. Diagnostics are never dropped: there is at most one for each file.
3. At most MOST notifications of every other method wait; the oldest are dropped and counted.
"""

import logging
from collections import Counter
from typing import Any

import msgspec

from nexus_daemon.lsp import framing

logger = logging.getLogger(__name__)

MOST = 1_000
"""How many notifications of one method may wait."""

_NEVER_DROPPED = "textDocument/publishDiagnostics"
_KEYS: dict[str, tuple[str, ...]] = {
    _NEVER_DROPPED: ("uri",),
    "nexus/context/didChange": ("workspace_folder", "reason"),
    "nexus/session/didChange": ("workspace_folder", "session", "reason"),
    "nexus/agent/didChange": ("workspace_folder", "agent_id", "reason"),
}
"""The fields of a method's key; for any other method the key is the encoded notification."""


class Outbox:
    """Waiting notifications by method, the newest last; `dropped` counts the dropped ones."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._waiting: dict[str, dict[object, Any]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, method: str, params: Any) -> None:
        """Add a notification in place of an older one with the same key."""
        waiting = self._waiting.setdefault(method, {})
        key = _key(method, params)
        older = waiting.pop(key, None)
        waiting[key] = params if older is None else _merged(method, older, params)
        if len(waiting) > MOST and method != _NEVER_DROPPED:
            del waiting[next(iter(waiting))]
            self.dropped[method] += 1

    def pop(self) -> tuple[str, Any] | None:
        """Return the next method and parameters; when none is left, log the drops and return None."""
        for method, waiting in self._waiting.items():
            params = waiting.pop(next(iter(waiting)))
            if not waiting:
                del self._waiting[method]
            return method, params
        self._log_dropped()
        return None

    def _log_dropped(self) -> None:
        dropped, self.dropped = self.dropped, Counter()
        for method, count in dropped.items():
            logger.warning("dropped %d notifications %s, as the client did not read", count, method)


def _key(method: str, params: Any) -> object:
    fields = _KEYS.get(method)
    return framing.encode(params) if fields is None else tuple(getattr(params, name) for name in fields)


def _merged(method: str, older: Any, newer: Any) -> Any:
    """Merge two notifications: the newer parameters, without `session` if the sessions differ."""
    if method == "nexus/context/didChange" and older.session != newer.session:
        return msgspec.structs.replace(newer, session=None)
    return newer
