"""Know which connection the running code works for, so that its log records go to that client.

1. A connection is served while its bytes are handled, and each of its messages until its handler has ended.
2. Code that continues afterwards (a reload, a poll, a task of the daemon) works for no client in particular,
   even if a message of a client caused it. The same holds for threads whose job began without a copy of the
   context.
"""

import itertools
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_daemon.lsp.dispatch import NexusServer

_numbers = itertools.count(1)


class Serving:
    """Work for one connection, until `is_over`. `server` is None before the connection has one.

    `is_pending` says that a task continues the work; the task then sets `is_over`.
    """

    __slots__ = ("is_over", "is_pending", "number", "server")

    def __init__(self, server: "NexusServer | None", number: int) -> None:
        self.server = server
        self.number = number
        self.is_over = self.is_pending = False


served: ContextVar[Serving | None] = ContextVar("served", default=None)


def current() -> Serving | None:
    """Return the connection that the running code works for. None if it works for no client in particular."""
    serving = served.get()
    return None if serving is None or serving.is_over else serving


def current_number() -> int | None:
    """Return the number of the connection that the running code works for, or None."""
    serving = current()
    return None if serving is None else serving.number


class _Message:
    """Serves one message during a block: a class, since each message passes it."""

    __slots__ = ("_token", "_work")

    def __init__(self, work: Serving) -> None:
        self._work = work

    def __enter__(self) -> Serving:
        self._token = served.set(self._work)
        return self._work

    def __exit__(self, *_: object) -> None:
        served.reset(self._token)
        self._work.is_over = not self._work.is_pending


def message_of(connection: Serving) -> _Message:
    """Serve one message of a connection during the block, and after it while `is_pending`."""
    return _Message(Serving(connection.server, connection.number))


def begin_connection() -> Serving:
    """Serve a new connection from now on, in this task and all that it starts. Numbers begin with 1."""
    serving = Serving(None, next(_numbers))
    served.set(serving)
    return serving


def connection_of(server: "NexusServer") -> Serving:
    """Return the connection that this task has begun, and give it `server`.

    If it has none free, begin a new one.
    """
    serving = served.get()
    if serving is None or serving.server is not None:
        serving = Serving(None, next(_numbers))
    serving.server = server
    return serving
