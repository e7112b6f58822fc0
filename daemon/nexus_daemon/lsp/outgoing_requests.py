"""Requests to the client and its replies."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec

from nexus_daemon.lsp import failures, framing, standard
from nexus_daemon.lsp.envelope import is_absent
from nexus_daemon.lsp.failures import ClientError, DisconnectedError


class OutgoingRequests:
    """Requests that the client has not answered yet. Lives on the event loop."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._waiting: dict[int, tuple[asyncio.Future[Any], Any]] = {}
        self._last_id = 0

    async def send(self, method: str, params: Any, result_type: Any, timeout_s: float | None) -> Any:
        """Send a request and wait for the reply; see `NexusServer.request`."""
        self._last_id += 1
        message_id = self._last_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[message_id] = (future, result_type)
        try:
            message = {"jsonrpc": "2.0", "id": message_id, "method": method}
            self._send(message if params is None else {**message, "params": standard.unstructure(params)})
            async with asyncio.timeout(timeout_s):
                return await future
        except (TimeoutError, asyncio.CancelledError):
            self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": message_id}})
            raise
        finally:
            self._waiting.pop(message_id, None)

    def resolve(self, message: framing.Envelope) -> bool:
        """Resolve the request that a reply belongs to; False if there is none."""
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
                future.set_result(standard.structure(raw, kind))
        except msgspec.DecodeError as error:
            future.set_exception(ClientError(failures.INVALID_REQUEST, f"The client's reply: {error}"))
        return True

    def close(self) -> None:
        """Fail every open request: the client is gone."""
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(DisconnectedError("The client has gone."))
