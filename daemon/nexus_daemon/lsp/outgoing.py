"""Keep what goes to the client: open requests, and the notifications for a client that does not read.

The notifications that wait are bounded:

1. Of two notifications with the same key, such as diagnostics of one file, only the newer one is sent.
2. Diagnostics are never dropped: there is at most one notification for each file.
3. At most one progress notification of each piece of work waits. If the client has not seen its begin, begin
   and end cancel each other out; an end is never dropped. Partial results are joined.
4. At most MOST notifications of every other method wait; the oldest are dropped and counted.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import msgspec

from nexus_daemon.lsp import failures, framing
from nexus_daemon.lsp.envelope import is_absent, structure, unstructure
from nexus_daemon.lsp.failures import ClientError, DisconnectedError
from nexus_daemon.lsp.progress import PROGRESS

logger = logging.getLogger(__name__)

MOST = 1_000
"""How many notifications of one method may wait."""

_DIAGNOSTICS = "textDocument/publishDiagnostics"
_NEVER_DROPPED = (_DIAGNOSTICS, PROGRESS)
_KEYS: dict[str, tuple[str, ...]] = {
    _DIAGNOSTICS: ("uri",),
    PROGRESS: ("token",),
    "nexus/context/didChange": ("workspace_folder", "reason"),
    "nexus/session/didChange": ("workspace_folder", "session", "reason"),
    "nexus/agent/didChange": ("workspace_folder", "agent_id", "reason"),
    "nexus/assistant/didChange": ("workspace_folder", "assistant", "id", "reason"),
    "nexus/event/published": ("workspace_folder",),
}
"""The fields of a method's key; for any other method the key is the encoded notification."""


class OutgoingRequests:
    """The requests that the client has not answered yet. Use it on the event loop."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._waiting: dict[int, tuple[asyncio.Future[Any], Any]] = {}
        self._last_id = 0

    async def send(self, method: str, params: Any, result_type: Any, timeout_s: float | None) -> Any:
        """Send a request and wait for the reply, as `NexusServer.request` describes."""
        self._last_id += 1
        message_id = self._last_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[message_id] = (future, result_type)
        try:
            message = {"jsonrpc": "2.0", "id": message_id, "method": method}
            self._send(message if params is None else {**message, "params": unstructure(params)})
            async with asyncio.timeout(timeout_s):
                return await future
        except (TimeoutError, asyncio.CancelledError):
            self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": message_id}})
            raise
        finally:
            self._waiting.pop(message_id, None)

    def resolve(self, message: framing.Envelope) -> bool:
        """Resolve the request that a reply belongs to. Return False if there is no such request."""
        future, kind = self._waiting.pop(cast("int", message.id), (None, None))
        if future is None:
            return False
        if future.done():  # after a timeout or a cancellation
            return True
        try:
            if not is_absent(message.error):
                reply_error = framing.decode(cast("msgspec.Raw", message.error), dict[str, Any])
                code = reply_error.get("code")
                code = code if isinstance(code, int) else failures.INTERNAL_ERROR
                text = str(reply_error.get("message", ""))
                future.set_exception(ClientError(code, text, reply_error.get("data")))
            else:
                raw = b"null" if isinstance(message.result, msgspec.UnsetType) else message.result
                future.set_result(structure(raw, kind))
        except msgspec.DecodeError as error:
            future.set_exception(ClientError(failures.INVALID_REQUEST, f"The client's reply: {error}"))
        return True

    def close(self) -> None:
        """Fail every open request, since the client is gone."""
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(DisconnectedError("The client has gone."))


class Outbox:
    """The notifications that wait, by method, the newest last. `dropped` counts the dropped ones."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._waiting: dict[str, dict[object, Any]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, method: str, params: Any) -> None:
        """Add a notification in place of an older one with the same key."""
        waiting_params = self._waiting.setdefault(method, {})
        key = _key(method, params)
        older = waiting_params.pop(key, None)
        kinds = _kinds(older, params) if method == PROGRESS else ()
        if kinds == ("begin", "end"):
            # work began and ended while the client did not read: it need not know
            if not waiting_params:
                del self._waiting[method]
            return
        waiting_params[key] = params if older is None else _merged(method, older, params)
        if len(waiting_params) > MOST and method not in _NEVER_DROPPED:
            del waiting_params[next(iter(waiting_params))]
            self.dropped[method] += 1

    def pop(self) -> tuple[str, Any] | None:
        """Return the next (method, parameters). If none is left, log what was dropped and return None."""
        for method, waiting_params in self._waiting.items():
            params = waiting_params.pop(next(iter(waiting_params)))
            if not waiting_params:
                del self._waiting[method]
            return method, params
        dropped, self.dropped = self.dropped, Counter()
        for method, count in dropped.items():
            logger.warning("dropped %d notifications %s, as the client did not read", count, method)
        return None


def _key(method: str, params: Any) -> object:
    fields = _KEYS.get(method)
    return framing.encode(params) if fields is None else tuple(getattr(params, name) for name in fields)


def _kinds(older: Any, newer: Any) -> tuple[str, ...]:
    """What two progresses of the same work say; nothing of partial results, which are lists."""
    return () if older is None or isinstance(older.value, list) else (older.value.kind, newer.value.kind)


def _merged(method: str, older: Any, newer: Any) -> Any:
    """Merge two notifications: the newer parameters, without `session` if the sessions differ."""
    if method == "nexus/context/didChange" and older.session != newer.session:
        return msgspec.structs.replace(newer, session=None)
    if method == PROGRESS and isinstance(older.value, list):
        return msgspec.structs.replace(older, value=[*older.value, *newer.value])
    if method == PROGRESS and older.value.kind == "begin":
        value = msgspec.structs.replace(older.value, message=newer.value.message)
        return msgspec.structs.replace(older, value=value)
    return newer
