"""Notifications that wait for a client that does not read, so that they stay few.

1. Of two with the same key only the newer one is sent: diagnostics of one file, what became of one session.
2. Diagnostics are never dropped: they are as many as the files that have some.
3. Of every other method at most MOST wait; the oldest are dropped and counted.
"""

import logging
from collections import Counter
from typing import Any

import msgspec

from nexus_daemon.lsp import framing

logger = logging.getLogger(__name__)

MOST = 1_000
"""Notifications of one method that wait."""

_NEVER_DROPPED = "textDocument/publishDiagnostics"
_KEYS: dict[str, tuple[str, ...]] = {
    _NEVER_DROPPED: ("uri",),
    "nexus/context/didChange": ("workspace_folder", "reason"),
    "nexus/session/didChange": ("workspace_folder", "session", "reason"),
    "nexus/agent/didChange": ("workspace_folder", "agent_id", "reason"),
}
"""The fields that make up the key; of any other method notifications with the same text have the same."""


class Outbox:
    """What waits, method by method, the newest of each last; `dropped` counts what was left out."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._waiting: dict[str, dict[object, Any]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, method: str, params: Any) -> None:
        """Let a notification wait; an older one with its key is left out."""
        waiting = self._waiting.setdefault(method, {})
        key = _key(method, params)
        older = waiting.pop(key, None)
        waiting[key] = params if older is None else _merged(method, older, params)
        if len(waiting) > MOST and method != _NEVER_DROPPED:
            del waiting[next(iter(waiting))]
            self.dropped[method] += 1

    def pop(self) -> tuple[str, Any] | None:
        """The method and the parameters of the next notification; None when nothing waits, and what was
        dropped is logged.
        """
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
    """The newer parameters; a context that several sessions changed names none of them."""
    if method == "nexus/context/didChange" and older.session != newer.session:
        return msgspec.structs.replace(newer, session=None)
    return newer
