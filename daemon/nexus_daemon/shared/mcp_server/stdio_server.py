"""Speak the Model Context Protocol on standard input and output: one JSON message per line.

1. VERSIONS are the versions with a handshake (`initialize`): the client's version is used if it is one of
   them, else the newest. In the versions of MODERN each request carries version and client
   (`server/discover`).
2. Requests are answered in any order: calls of tools run in threads, everything else is answered at once. At
   most RUNNING calls run, and at most WAITING wait.
3. A message that is not a request is answered with a JSON-RPC error without an id, and so is a list of
   messages (batch). Neither ends the connection.
4. A cancelled call gets no answer. At the end of the input, calls that run have LEAVE_S to be answered.
5. Only messages reach standard output. Nothing slow is imported here, since an assistant waits for its
   servers.
"""

import json
import threading

from nexus_daemon.process.version import __version__
from nexus_daemon.shared.mcp_server import definitions
from nexus_daemon.shared.mcp_server.line_reader import LONGEST_LINE, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nexus_daemon.shared.mcp_server.workspace_folders import WorkspaceFolders

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
RUNNING = 4
WAITING = 64
LEAVE_S = 5.0
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION = -32022
SERVER = {"name": "nexus", "title": "Nexus", "version": __version__}
ROOTS_ID = "nexus-roots"
_META = "io.modelcontextprotocol/"
_LONGEST_NAME = 200  # characters of what a client calls itself


class ProtocolError(Exception):
    """The request is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: "Any" = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class RunningCall:
    """A call of a tool that runs.

    Its thread may set `abort`, a function that ends what the thread waits for.
    """

    __slots__ = ("_lock", "abort", "is_cancelled")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_cancelled = False
        self.abort: Callable[[], None] | None = None

    def cancel(self) -> None:
        """End the call soon. It gets no answer."""
        with self._lock:
            self.is_cancelled = True
            abort = self.abort
        if abort is not None:
            abort()

    def use_abort(self, abort: "Callable[[], None] | None") -> bool:
        """Set the function that ends what the thread waits for. Return false if the call was cancelled."""
        with self._lock:
            self.abort = abort
            return not self.is_cancelled


class ToolRequest:
    """The call of a tool: its arguments, its folders and its client."""

    __slots__ = ("arguments", "client", "folders", "name")

    def __init__(
        self, name: str, arguments: "dict[str, Any]", *, folders: tuple[str, ...], client: str
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.folders = folders
        self.client = client


class StdioServer:
    """The MCP server of one client."""

    def __init__(
        self,
        *,
        folders: "WorkspaceFolders",
        writes: bool,
        execute: "Callable[[ToolRequest, RunningCall], dict[str, Any]]",
        write: "Callable[[bytes], None]",
    ) -> None:
        """`execute` runs a call in a thread and returns its result. `write` writes all bytes, or raises
        OSError.
        """
        self._folders = folders
        self._writes = writes
        self._execute = execute
        self._write = write
        self._writing = threading.Lock()
        self._places = threading.BoundedSemaphore(RUNNING)
        self._calls: dict[str | int, RunningCall] = {}
        self._unanswered = 0  # calls whose threads run
        self._changed = threading.Condition()  # guards both
        self._client = ""
        self._has_roots = False

    def serve(self, read: "Callable[[int], bytes]") -> None:
        """Answer messages until the client ends the input. OSError if the client no longer reads."""
        for line in read_lines(read):
            if line is None:
                text = f"The message is longer than {LONGEST_LINE >> 20} MiB. Send a shorter one."
                self._send_error(None, ProtocolError(INVALID_REQUEST, text))
            elif line.strip():
                self._take(line)
        with self._changed:
            self._changed.wait_for(lambda: not self._unanswered, LEAVE_S)

    # ------------------------------------------------------------ messages

    def _take(self, line: bytes) -> None:
        message_id: Any = None
        try:
            message = _parse(line)
            message_id = _id_of(message)
            method = message.get("method")
            if "method" not in message and ("result" in message or "error" in message):
                if message_id == ROOTS_ID:
                    self._folders.set_roots(message.get("result"))
            elif not isinstance(method, str):
                raise ProtocolError(INVALID_REQUEST, "The message has no `method` that is a string.")
            elif "id" not in message:
                self._notified(method, message.get("params"))
            else:
                self._requested(message_id, method, message.get("params"))
        except ProtocolError as error:
            self._send_error(message_id, error)

    def _notified(self, method: str, params: "Any") -> None:
        if method == "notifications/cancelled":
            key = params.get("requestId") if isinstance(params, dict) else None
            with self._changed:
                call = self._calls.get(key) if isinstance(key, str | int) else None
            if call is not None:
                call.cancel()
        elif method in ("notifications/initialized", "notifications/roots/list_changed"):
            self._ask_for_roots()

    def _ask_for_roots(self) -> None:
        if self._has_roots and self._folders.takes_roots:
            self._folders.expect_roots()
            self._send({"jsonrpc": "2.0", "id": ROOTS_ID, "method": "roots/list"})

    def _requested(self, message_id: str | int, method: str, params: "Any") -> None:
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise ProtocolError(BAD_PARAMS, "`params` must be an object.")
        version = _modern_version(params)
        if method == "tools/call":
            self._begin_call(message_id, params, version)
        else:
            self._send_result(message_id, self._answer(method, params, version), version)

    def _answer(self, method: str, params: "dict[str, Any]", version: str | None) -> "dict[str, Any]":
        if method == "initialize":
            return self._initialize(params)
        if method == "ping":
            return {}
        if method == "tools/list":
            tools = definitions.definitions(writes=self._writes)
            return {"tools": tools, **_cached(version)}
        if method == "server/discover":
            server_info = {"capabilities": {"tools": {}}, "instructions": definitions.instructions()}
            return {"supportedVersions": [MODERN], **server_info, **_cached(MODERN)}
        raise ProtocolError(NO_METHOD, f"There is no method {method[:_LONGEST_NAME]!r}.")

    def _initialize(self, params: "dict[str, Any]") -> "dict[str, Any]":
        self._client = _client_name(params.get("clientInfo"))
        capabilities = params.get("capabilities")
        self._has_roots = isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)
        version = params.get("protocolVersion")
        return {
            "protocolVersion": version if version in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": SERVER,
            "instructions": definitions.instructions(),
        }

    # ------------------------------------------------------------ calls

    def _begin_call(self, message_id: str | int, params: "dict[str, Any]", version: str | None) -> None:
        name, arguments = params.get("name"), params.get("arguments")
        names = definitions.NAMES if self._writes else definitions.READING
        if not isinstance(name, str) or name not in names:
            raise ProtocolError(BAD_PARAMS, _no_tool(name, names))
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise ProtocolError(BAD_PARAMS, "`arguments` must be an object.")
        arguments = _without_half_pairs(arguments)
        client = self._client if version is None else _client_name(params["_meta"].get(f"{_META}clientInfo"))
        call = RunningCall()
        with self._changed:
            if message_id in self._calls:
                raise ProtocolError(INVALID_REQUEST, f"A request with the id {message_id!r:.50} still runs.")
            if self._unanswered >= WAITING:
                raise ProtocolError(INVALID_REQUEST, f"{WAITING} calls wait already. Call again later.")
            self._calls[message_id] = call
            self._unanswered += 1

        def run() -> None:
            try:
                self._run_call(
                    message_id, call, ToolRequest(name, arguments, folders=(), client=client), version
                )
            except OSError:
                pass  # the client no longer reads; the next message to it ends the server
            finally:
                with self._changed:
                    self._unanswered -= 1
                    self._changed.notify_all()

        threading.Thread(target=run, name="call", daemon=True).start()

    def _run_call(
        self, message_id: str | int, call: RunningCall, tool_call: ToolRequest, version: str | None
    ) -> None:
        result = None
        with self._places:
            if not call.is_cancelled:
                tool_call.folders = self._folders.current()
                try:
                    result = self._execute(tool_call, call)
                except Exception as error:  # noqa: BLE001 - the client waits for an answer, whatever happened
                    result = _failed(error)
        with self._changed:
            del self._calls[message_id]  # the client may use the id again once it has the answer
        if result is not None and not call.is_cancelled:
            self._send_result(message_id, result, version)

    # ------------------------------------------------------------ sending

    def _send_result(self, message_id: str | int, result: "dict[str, Any]", version: str | None) -> None:
        if version is not None:
            result = {"resultType": "complete", **result, "_meta": {f"{_META}serverInfo": SERVER}}
        self._send({"jsonrpc": "2.0", "id": message_id, "result": result})

    def _send_error(self, message_id: str | int | None, error: ProtocolError) -> None:
        described: dict[str, Any] = {"code": error.code, "message": str(error)}
        if error.data is not None:
            described["data"] = error.data
        self._send({"jsonrpc": "2.0", "id": message_id, "error": described})

    def _send(self, message: "dict[str, Any]") -> None:
        data = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        with self._writing:
            self._write(data)


def _failed(error: Exception) -> "dict[str, Any]":
    """The result of a call that met a bug of Nexus; what happened is on standard error."""
    import traceback

    traceback.print_exception(error)
    text = f"Nexus failed: {type(error).__name__}. What happened is in the log of this MCP server."
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _parse(line: bytes) -> "dict[str, Any]":
    """The message of a line; ProtocolError if it is none."""
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except ValueError as error:
        raise ProtocolError(PARSE_ERROR, f"The line is not JSON in UTF-8: {str(error)[:200]}.") from None
    except RecursionError:
        raise ProtocolError(PARSE_ERROR, "The JSON is nested too deeply.") from None
    if isinstance(message, list):
        raise ProtocolError(
            INVALID_REQUEST, "Batches are not supported: send each message in a line of its own."
        )
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "The message is not a JSON object.")
    return message


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def _id_of(message: "dict[str, Any]") -> "Any":
    """The id of a message, None if it has none."""
    if "id" not in message:
        return None
    message_id = message["id"]
    if isinstance(message_id, bool) or not isinstance(message_id, str | int):
        raise ProtocolError(INVALID_REQUEST, "The `id` must be a string or a whole number.")
    return message_id


def _modern_version(params: "dict[str, Any]") -> str | None:
    """The version that the request itself names; None for requests after a handshake."""
    meta = params.get("_meta")
    version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if version is None or version in VERSIONS:
        return None
    if version != MODERN:
        data = {"supported": [*VERSIONS, MODERN], "requested": str(version)[:_LONGEST_NAME]}
        raise ProtocolError(UNSUPPORTED_VERSION, "This version of the protocol is not supported.", data)
    return MODERN


def _cached(version: str | None) -> "dict[str, Any]":
    """Return the caching fields of a result, which clients of MODERN get."""
    return {} if version is None else {"ttlMs": 0, "cacheScope": "private"}


def _client_name(client: "Any") -> str:
    name = client.get("name") if isinstance(client, dict) else None
    return name[:_LONGEST_NAME] if isinstance(name, str) else ""


def _no_tool(name: "Any", names: "Sequence[str]") -> str:
    if name in definitions.WRITING:
        return f"{name} writes, and this server only reads. The user can start it as `nexus mcp --write`."
    return f"There is no tool {str(name)[:_LONGEST_NAME]!r}. There are: {', '.join(names)}."


def _without_half_pairs(arguments: "dict[str, Any]") -> "dict[str, Any]":
    """Arguments without half surrogate pairs, which no path and no message can have."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        from nexus_context.conversation.half_pairs import without_halves  # rarely needed

        return dict(without_halves(arguments))
    return arguments
