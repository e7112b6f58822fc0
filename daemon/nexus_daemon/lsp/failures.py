"""JSON-RPC errors, in both directions.

NexusError
├── RpcError             the error reply to a request
├── ClientError          the client's error reply
└── DisconnectedError    the client left before it replied
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from lsprotocol.types import ErrorCodes, LSPErrorCodes
from pygls.exceptions import JsonRpcException

from nexus_context.errors import NexusError, Problem, RequestError

logger = logging.getLogger(__name__)

PARSE_ERROR = ErrorCodes.ParseError.value
INVALID_REQUEST = ErrorCodes.InvalidRequest.value
METHOD_NOT_FOUND = ErrorCodes.MethodNotFound.value
INVALID_PARAMS = ErrorCodes.InvalidParams.value
INTERNAL_ERROR = ErrorCodes.InternalError.value
NOT_INITIALIZED = ErrorCodes.ServerNotInitialized.value
REQUEST_CANCELLED = LSPErrorCodes.RequestCancelled.value
SERVER_CANCELLED = LSPErrorCodes.ServerCancelled.value
REQUEST_FAILED = LSPErrorCodes.RequestFailed.value

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
    """A JSON-RPC error reply; a handler may raise it when no other exception fits."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


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
    """Return the error reply for an exception of a handler; unexpected ones are logged.

    `by_client`: the client cancelled the request.
    """
    if isinstance(error, asyncio.CancelledError):
        code = REQUEST_CANCELLED if by_client else SERVER_CANCELLED
        return RpcError(code, f"{method} was cancelled.")
    if isinstance(error, RpcError):
        return error
    if isinstance(error, RequestError):
        problems = [describe(problem) for problem in error.problems]
        return RpcError(REQUEST_FAILED, str(error), {"code": error.code, "problems": problems})
    if isinstance(error, JsonRpcException):
        return RpcError(error.code, error.message or method, error.data)
    logger.error("the handler of %s failed", method, exc_info=error)
    return RpcError(INTERNAL_ERROR, f"{method} failed: {type(error).__name__}. See the log.")


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Return a problem for `data.problems`, without its range: the default of a server."""
    return {
        "path": problem.path,
        "severity": int(problem.severity),
        "code": problem.code,
        "message": problem.message,
    }
