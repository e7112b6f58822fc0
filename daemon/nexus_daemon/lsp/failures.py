"""Define JSON-RPC errors, in both directions.

NexusError ├── RpcError the error reply to a request ├── ClientError the client's error reply └──
DisconnectedError the client left before it replied
"""

import asyncio
import errno
import logging
from collections.abc import Callable
from typing import Any

from nexus_context.errors import NexusError, Problem, RequestError

logger = logging.getLogger(__name__)

# of JSON-RPC and LSP 3.17
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
SERVER_CANCELLED = -32802
REQUEST_FAILED = -32803

NAMES = {
    PARSE_ERROR: "parse-error",
    INVALID_REQUEST: "invalid-request",
    METHOD_NOT_FOUND: "method-not-found",
    INVALID_PARAMS: "invalid-params",
    INTERNAL_ERROR: "internal-error",
    NOT_INITIALIZED: "not-initialized",
    REQUEST_CANCELLED: "cancelled",
    SERVER_CANCELLED: "cancelled",
}
"""`data.code` of errors that JSON-RPC or LSP define."""


class RpcError(NexusError):
    """A JSON-RPC error reply. A handler may raise it if no other exception fits."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


_PACKAGES = ("nexus_context", "nexus_daemon")


class ClientError(NexusError):
    """The client replied to a request with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class DisconnectedError(NexusError):
    """The client left before it replied to a request."""


def failure_of(
    error: BaseException, method: str, describe: Callable[[Problem], Any], *, by_client: bool = False
) -> RpcError:
    """Return the error reply for an exception of a handler. Unexpected exceptions are logged.

    `by_client` says that the client cancelled the request.
    """
    if isinstance(error, asyncio.CancelledError):
        code = REQUEST_CANCELLED if by_client else SERVER_CANCELLED
        return RpcError(code, f"{method} was cancelled.")
    if isinstance(error, RpcError):
        return error
    if isinstance(error, RequestError):
        problems = [describe(problem) for problem in error.problems]
        return RpcError(REQUEST_FAILED, str(error), {"code": error.code, "problems": problems})
    logger.error("the handler of %s failed", method, exc_info=error)
    cause = cause_of(error) or f"{type(error).__name__}. See the log."
    return RpcError(INTERNAL_ERROR, f"{method} failed: {cause}")


def is_outdated(error: BaseException) -> bool:
    """Whether a module of Nexus is gone, since the package was replaced while this process ran."""
    return isinstance(error, ImportError) and (error.name or "").partition(".")[0] in _PACKAGES


def cause_of(error: BaseException) -> str | None:
    """Say what happened and what to do about it. None if the exception is a bug of the handler."""
    if is_outdated(error):
        return "Nexus was updated while its daemon ran. The daemon ends, and a new one starts: ask again."
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            "too many files are open. Close windows or folders, or raise the limit (`ulimit -n`) where Nexus "
            "is started, and run `nexus stop`."
        )
    return None


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Return the JSON of a problem for `data.problems`, without its range. A server uses it by default."""
    return {
        "path": problem.path,
        "severity": int(problem.severity),
        "code": problem.code,
        "message": problem.message,
    }
