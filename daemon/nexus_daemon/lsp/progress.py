"""Show the client the progress of work that takes long.

1. Work is shown once it has taken DELAY_S, so quick work is never shown.
2. It is shown under the token of its request (`workDoneToken`). Without a token, it is shown under one of the
   daemon if the client declares `window.workDoneProgress`, and else not at all.
3. Work whose begin was sent gets exactly one end, before the reply to its request, however the request ends.
   For a client that does not read, begin and end of the same work cancel each other out (`outgoing`).
4. The client can cancel work that belongs to a request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Literal, Self

import msgspec

from nexus_context.text.decoding import decode_as
from nexus_daemon.lsp.failures import ClientError, DisconnectedError

DELAY_S = 0.5
CREATE_S = 60.0  # for which the client may take to create a token
PROGRESS = "$/progress"
CREATE = "window/workDoneProgress/create"

Token = int | str
logger = logging.getLogger(__name__)


class ProgressValue(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The value of a progress notification: `WorkDoneProgressBegin`, `-Report` or `-End` of LSP."""

    kind: Literal["begin", "report", "end"]
    title: str | None = None
    cancellable: bool | None = None
    message: str | None = None


class ProgressParams(msgspec.Struct, frozen=True):
    """The parameters of `$/progress`."""

    token: Token
    value: ProgressValue


class WorkProgress:
    """One piece of work, which begins when this is created and is shown if it takes long.

    Use it on the event loop.
    """

    def __init__(
        self, progress: "ClientProgress", title: str, token: Token | None, cancel: Callable[[], None] | None
    ) -> None:
        self.token = token
        self.cancel = cancel
        self._title = title
        self._progress = progress
        self._message: str | None = None
        self._is_shown = self._is_ended = False
        self._creation: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(DELAY_S, self._begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def report(self, message: str) -> None:
        """Show what the work does now."""
        self._message = message
        if self._is_shown and not self._is_ended:
            self._send(ProgressValue("report", message=message))

    def end(self) -> None:
        """End the work. Later calls do nothing."""
        if self._is_ended:
            return
        self._is_ended = True
        self._timer.cancel()
        self.cancel = None  # it refers to the task, which refers to this work and to its result: a cycle
        if self._creation is not None:
            self._creation.cancel()
        if self._is_shown:
            self._send(ProgressValue("end"))
        self._progress.forget(self)

    def _begin(self) -> None:
        if self.token is not None:
            self._show()
        elif self._progress.is_supported:
            self._creation = asyncio.get_running_loop().create_task(self._create())

    async def _create(self) -> None:
        """Create a token of ours, which waits for a client that does not read."""
        token = self._progress.new_token()
        try:
            await self._progress.request(CREATE, {"token": token}, timeout_s=CREATE_S)
        except (ClientError, DisconnectedError, TimeoutError) as error:
            logger.info("the client shows no progress: %s", error)
            return
        self.token = token
        self._show()

    def _show(self) -> None:
        self._is_shown = True
        self._progress.show(self)
        cancellable = True if self.cancel is not None else None
        self._send(ProgressValue("begin", self._title, cancellable, self._message))

    def _send(self, value: ProgressValue) -> None:
        if self.token is not None:
            self._progress.notify(PROGRESS, ProgressParams(self.token, value))


class ClientProgress:
    """The progress that one client shows. Use it on the event loop."""

    def __init__(self, notify: Callable[[str, Any], None], request: Callable[..., Awaitable[Any]]) -> None:
        self.is_supported = False
        self.notify = notify
        self._request = request
        self._shown: dict[Token, WorkProgress] = {}
        self._last_number = 0

    def begin(
        self, title: str, *, token: Token | None = None, cancel: Callable[[], None] | None = None
    ) -> WorkProgress:
        """Show work that begins now, if it takes long. `cancel` is called if the user cancels it."""
        return WorkProgress(self, title, token, cancel)

    def cancel(self, token: Token) -> None:
        """Cancel the work that the client shows under a token."""
        work = self._shown.get(token)
        if work is not None and work.cancel is not None:
            work.cancel()

    async def request(self, method: str, params: Any, *, timeout_s: float) -> None:
        await self._request(method, params, Any, timeout_s)

    def new_token(self) -> str:
        self._last_number += 1
        return f"nexus-{self._last_number}"

    def show(self, work: WorkProgress) -> None:
        if work.token is not None:
            self._shown[work.token] = work

    def forget(self, work: WorkProgress) -> None:
        if work.token is not None and self._shown.get(work.token) is work:
            del self._shown[work.token]


_work: ContextVar[WorkProgress | None] = ContextVar("work", default=None)


def set_work(work: WorkProgress) -> None:
    """Make this the work that `report` shows in the current context."""
    _work.set(work)


def report(message: str) -> None:
    """Show what the request of the current task does now, if its client shows progress."""
    work = _work.get()
    if work is not None:
        work.report(message)


class _HasToken(msgspec.Struct):
    work_done_token: Token | None = msgspec.field(name="workDoneToken", default=None)


_NAME = b"workDoneToken"
_LONG = 64 * 1024  # bytes
_END = 512  # of long parameters, whose middle is not searched


def token_of(raw: msgspec.Raw | msgspec.UnsetType) -> Token | None:
    """Return the `workDoneToken` of a request's parameters. None if it is missing or not valid in LSP."""
    if isinstance(raw, msgspec.UnsetType):
        return None
    view = memoryview(raw)
    ends = bytes(view) if len(view) <= _LONG else bytes(view[:_END]) + bytes(view[-_END:])
    if _NAME not in ends:
        return None
    try:
        return decode_as(view, _HasToken).work_done_token
    except msgspec.DecodeError:
        return None
