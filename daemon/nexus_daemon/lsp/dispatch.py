"""Dispatch the messages of one client: envelope → handler → exactly one reply.

1. Messages are handled in the order of their arrival. A sync handler replies at once; an async one becomes a
   task, whose first step runs before the next message is handled.
2. Every request gets exactly one reply, also after an invalid message, a handler that raises or returns
   something that is not JSON, a cancellation, or the end of the connection.
3. Before `initialize` requests fail with -32002, after `shutdown` with -32600; notifications are dropped.
4. A request without an id cannot be answered: it is ignored, with one line in the log. A notification with an
   id is answered with -32601. Neither reaches a handler.
5. `nexus/*` parameters are decoded from the raw bytes, with all their keys and numbers as sent.
6. Only the event loop's thread writes frames.
7. While the client does not read, replies to its earlier requests are written, notifications wait
   (`outgoing`), and no requests are sent to it.
"""

import asyncio
import contextvars
import inspect
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from nexus_context.errors import Problem
from nexus_daemon.lsp import client_log, failures, framing, lsp_types, serving
from nexus_daemon.lsp.documents import OpenDocuments
from nexus_daemon.lsp.envelope import (
    Error,
    Params,
    Result,
    document_of,
    is_absent,
    is_urgent,
    params_of,
    params_type,
    read_envelope,
    unstructure,
)
from nexus_daemon.lsp.failures import DisconnectedError, RpcError, describe_problem
from nexus_daemon.lsp.initialize import Offer, choose_encoding, initialize_result
from nexus_daemon.lsp.lsp_types import DEFAULT_ENCODING, NOTIFICATIONS, InitializeParams
from nexus_daemon.lsp.outgoing import Outbox, OutgoingRequests
from nexus_daemon.lsp.progress import ClientProgress, WorkProgress, set_work, token_of
from nexus_daemon.lsp.serving import Serving
from nexus_daemon.process import tracing

if TYPE_CHECKING:
    from nexus_daemon.lsp.link import StreamLink

Handler = TypeVar("Handler", bound=Callable[..., Any])

logger = logging.getLogger(__name__)


class _Call(msgspec.Struct):
    """A request whose handler is still running."""

    id: framing.Id
    method: str
    started: float
    serving: Serving
    span: tracing.Span | None = None
    cancelled: bool = False
    progress: WorkProgress | None = None


class NexusProtocol:
    """Dispatches the messages of one connection, with the handlers of its features and commands by name."""

    def __init__(self, server: "NexusServer") -> None:
        self._server = server
        self.features: dict[str, Callable[[Any], Any]] = {}
        self.feature_options: dict[str, Any] = {}
        self.commands: dict[str, Callable[..., Any]] = {}
        self.custom_types: dict[str, Callable[[], Any]] = {}
        self.titles: dict[str, str] = {}  # of requests that may take long
        self.work_progress = ClientProgress(self.notify, self.request)
        self.state: Literal["new", "ready", "shutdown", "ended"] = "new"
        self._link: StreamLink
        self._loop: asyncio.AbstractEventLoop
        self._thread = 0
        self._trace_value: object = "off"
        self._running: dict[asyncio.Future[Any], _Call] = {}
        self._background: set[asyncio.Future[Any]] = set()
        self._outgoing = OutgoingRequests(self._send)
        self._outbox = Outbox()
        self._requests: dict[str, Callable[[Params], Any]] = {
            "initialize": self._initialize,
            "shutdown": self._shutdown_request,
            "workspace/executeCommand": self._execute_command,
        }
        self._notifications: dict[str, Callable[[Any], None]] = {
            "$/cancelRequest": self._cancel,
            "window/workDoneProgress/cancel": self._cancel_progress,
            "$/setTrace": self._set_trace,
            "textDocument/didOpen": self._did_open,
            "textDocument/didChange": self._did_change,
        }

    def attach(self, link: "StreamLink") -> None:
        """Connect this protocol to a link. Call it on the event loop."""
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._serving = serving.connection_of(self._server)
        client_log.join(self._server)

    # ------------------------------------------------------------ incoming

    @property
    def in_flight(self) -> int:
        """Return the number of requests whose handlers run."""
        return len(self._running)

    @property
    def running(self) -> list[framing.Id]:
        """Return the ids of the requests whose handlers run."""
        return [call.id for call in self._running.values()]

    @property
    def unread(self) -> int:
        """Return the number of bytes that wait for the client to read them; 0 without a client."""
        return self._link.unread if self._thread else 0

    is_urgent = staticmethod(is_urgent)

    def receive(self, body: framing.Body) -> bool:
        """Handle one message.

        Return True if it started a task, whose first step should run before the next message.
        """
        if self.state == "ended":
            return False
        with serving.message_of(self._serving) as work:
            is_pending = self._receive(body, work)
            work.is_pending = is_pending
            return is_pending

    def _receive(self, body: framing.Body, work: Serving) -> bool:
        try:
            message, decoded = read_envelope(body, self.custom_types)
        except RpcError as failure:
            self._send_error(failure.data, RpcError(failure.code, failure.message))
            return False
        if isinstance(message.method, msgspec.UnsetType):
            self._on_response(message)
            return False
        if isinstance(message.id, msgspec.UnsetType):
            with tracing.span("notification", method=message.method, connection=work.number):
                return self._on_notification(message.method, decoded or message.params, work)
        assert message.id is not None  # noqa: S101 - `read_envelope` refuses it
        span = tracing.begin("request", method=message.method, connection=work.number, bytes=len(body))
        call = _Call(message.id, message.method, time.perf_counter(), work, span=span)
        with tracing.within(span):
            return self._on_request(call, message.params, decoded)

    def _refuse(self, body: framing.Body) -> None:
        """Reply to a request that can no longer be handled."""
        try:
            message, _ = read_envelope(body, {})
        except RpcError as failure:
            self._send_error(failure.data, RpcError(failure.code, failure.message))
            return
        if not isinstance(message.method, msgspec.UnsetType) and not isinstance(
            message.id, msgspec.UnsetType | None
        ):
            call = _Call(message.id, message.method, time.perf_counter(), self._serving)
            self._fail(call, asyncio.CancelledError())

    def _on_request(self, call: _Call, raw: Params, decoded: msgspec.Struct | None) -> bool:
        try:
            outcome = self._answer(call.method, raw, decoded)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - every request gets a reply
            self._fail(call, error)
            return False
        if not inspect.isawaitable(outcome):
            self._reply(call, outcome)
            return False
        context = contextvars.copy_context()
        handling = cast("Coroutine[Any, Any, Any]", outcome)
        task = asyncio.get_running_loop().create_task(handling, context=context)
        self._running[task] = call
        task.add_done_callback(self._finished)
        token, title = token_of(raw), self.titles.get(call.method)
        if token is not None or title is not None:
            cancel = partial(self._cancel_call, task)
            call.progress = self.work_progress.begin(title or call.method, token=token, cancel=cancel)
            context.run(set_work, call.progress)
        return True

    def _answer(self, method: str, raw: Params, decoded: msgspec.Struct | None) -> Any:
        if self.state == "new" and method != "initialize":
            raise RpcError(failures.NOT_INITIALIZED, "The first request must be `initialize`.")
        if self.state != "new" and method == "initialize":
            raise RpcError(failures.INVALID_REQUEST, "`initialize` may be sent only once.")
        if self.state == "shutdown":
            raise RpcError(
                failures.INVALID_REQUEST, f"{method} came after `shutdown`; only `exit` may follow."
            )
        builtin = self._requests.get(method)
        if builtin is not None:
            return builtin(raw)
        if method in self._notifications or method in NOTIFICATIONS:
            message = f"There is no request {method}: it is a notification, which has no id."
            raise RpcError(failures.METHOD_NOT_FOUND, message)
        handler = self.features.get(method)
        if handler is None:
            raise RpcError(failures.METHOD_NOT_FOUND, f"There is no method {method}.")
        params = decoded or params_of(raw, self._params_type(method))
        tracing.note(folder=getattr(params, "workspace_folder", None))
        return handler(params)

    def _on_notification(self, method: str, raw: Params | msgspec.Struct, work: Serving) -> bool:
        if method == "exit":
            self._exit()
            return False
        is_handled = method in self._requests or method in self.features
        if is_handled and method not in NOTIFICATIONS:
            logger.warning("ignored %s: it is a request, and came without an id", method)
            return False
        if self.state == "new" or (self.state == "shutdown" and method != "$/cancelRequest"):
            return False
        handler = self.features.get(method)
        builtin = self._notifications.get(method)
        if handler is None and builtin is None and method != "textDocument/didClose":
            if not method.startswith("$/") and method not in lsp_types.HOT:
                logger.info("ignored the notification %s: no such method", method)
            return False
        try:
            params: Any = raw  # decoded already
            if not isinstance(raw, msgspec.Struct):
                params = params_of(raw, self._params_type(method))
            if builtin is not None:
                builtin(params)
            outcome = None if handler is None else handler(params)
            if method == "textDocument/didClose":
                # after the handler, which may need the last text
                self._server.documents.close(params.text_document.uri)
        except RpcError as failure:
            self._ignore(method, raw, failure)
            return False
        except Exception:
            logger.exception("the handler of %s failed", method)
            return False
        if not inspect.isawaitable(outcome):
            return False
        task = asyncio.ensure_future(outcome)
        self._background.add(task)
        task.add_done_callback(lambda done: self._noted(method, done, work))
        return True

    def _ignore(self, method: str, raw: Params | msgspec.Struct, failure: RpcError) -> None:
        """Go on without a notification that cannot be read; after an edit its document is unknown."""
        uri = document_of(raw) if method == "textDocument/didChange" else None
        if uri is not None:
            self._server.documents.lose(uri, failure)
        else:
            logger.warning("ignored the notification %s: %s", method, failure)

    def _params_type(self, method: str) -> Any:
        kind = self.custom_types.get(method)
        return params_type(method) if kind is None else kind()

    # ------------------------------------------------------------ replies

    def _finished(self, task: asyncio.Future[Any]) -> None:
        call = self._running.pop(task, None)
        if call is None:
            # answered at its cancellation; asyncio warns about exceptions that nobody retrieves
            if not task.cancelled():
                task.exception()
        elif task.cancelled():
            self._fail(call, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._fail(call, error)
        else:
            self._reply(call, task.result())
        self._link.wake()

    def _noted(self, method: str, task: asyncio.Future[Any], work: Serving) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the handler of %s failed", method, exc_info=error)
        work.is_over = True

    def _reply(self, call: _Call, result: Any) -> None:
        if call.progress is not None:
            call.progress.end()
        try:
            with tracing.within(call.span), tracing.span("encode"):
                if call.method not in self.custom_types:
                    result = unstructure(result)
                parts = framing.encode_in_parts(result, lambda result: Result("2.0", call.id, result))
        except Exception as error:
            logger.exception("the result of %s is not JSON", call.method)
            message = f"The result of {call.method} is not JSON: {type(error).__name__}. See the log."
            self._send_error(call.id, RpcError(failures.INTERNAL_ERROR, message))
            self._answered(call, "internal-error")
        else:
            with tracing.within(call.span), tracing.span("write"):
                self._write(*parts)
            self._answered(call, "ok")

    def _fail(self, call: _Call, error: BaseException) -> None:
        if call.progress is not None:
            call.progress.end()
        describe = self._server.describe_problem
        failure = failures.failure_of(error, call.method, describe, by_client=call.cancelled)
        self._send_error(call.id, failure)
        if failures.is_outdated(error):
            self._server.outdated()
        self._answered(call, failures.NAMES.get(failure.code, "failed"))

    def _send_error(self, message_id: framing.Id | None, failure: RpcError) -> None:
        plain = {"code": failures.NAMES.get(failure.code, "error"), "problems": []}
        error = {"code": failure.code, "message": failure.message}
        try:
            data = plain if failure.data is None else failure.data
            body = framing.encode(Error("2.0", message_id, {**error, "data": data}))
        except Exception:
            logger.exception("the data of an error is not JSON")
            body = framing.encode(Error("2.0", message_id, {**error, "data": plain}))
        self._write(body)

    def _answered(self, call: _Call, outcome: str) -> None:
        """End a request that has its reply."""
        tracing.end(call.span, outcome=outcome)
        if self._trace_value != "off" or logger.isEnabledFor(logging.DEBUG):
            duration_ms = (time.perf_counter() - call.started) * 1000
            if self._trace_value != "off":
                self.notify("$/logTrace", {"message": f"{call.method} ({call.id}) took {duration_ms:.1f} ms"})
            logger.debug("%s: %s after %.1f ms", call.method, outcome, duration_ms)
        call.serving.is_over = True

    def _send(self, message: msgspec.Struct | dict[str, Any]) -> None:
        self._write(framing.encode(message))

    def _write(self, *parts: framing.Part) -> None:
        if self.state == "ended":
            return
        if threading.get_ident() == self._thread:
            self._link.send(*parts)
        else:
            self._loop.call_soon_threadsafe(self._link.send, *parts)

    # ------------------------------------------------------------ to the client

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification, or let it wait while the client does not read. Any thread may call it."""
        if threading.get_ident() == self._thread:
            self._notify(method, params)
        else:
            self._loop.call_soon_threadsafe(self._notify, method, params)

    def drained(self) -> None:
        """Send waiting notifications as long as the client reads."""
        while not self._link.stalled and (notification := self._outbox.pop()) is not None:
            self._notify(*notification)

    def _notify(self, method: str, params: Any) -> None:
        if self._link.stalled:
            self._outbox.add(method, params)
        elif params is None:
            self._send({"jsonrpc": "2.0", "method": method})
        else:
            self._send({"jsonrpc": "2.0", "method": method, "params": unstructure(params)})

    async def request(self, method: str, params: Any, result_type: Any, timeout_s: float | None) -> Any:
        """Send a request and wait for the reply, as `NexusServer.request` describes."""
        if self.state == "ended":
            raise DisconnectedError(f"{method} was not sent: the client has gone.")
        if self._link.stalled:
            async with asyncio.timeout(timeout_s):
                await self._link.writable()
            return await self.request(method, params, result_type, timeout_s)
        return await self._outgoing.send(method, params, result_type, timeout_s)

    def _on_response(self, message: framing.Envelope) -> None:
        nothing = message.result is msgspec.UNSET and message.error is msgspec.UNSET
        if not self._outgoing.resolve(message) and nothing:
            error = {"code": failures.INVALID_REQUEST, "message": "A message needs a method."}
            message_id = None if isinstance(message.id, msgspec.UnsetType) else message.id
            self._send(Error("2.0", message_id, error))

    # ------------------------------------------------------------ the life of a connection

    def _initialize(self, raw: Params) -> dict[str, Any]:
        server = self._server
        try:
            params = lsp_types.initialize_params(b"null" if isinstance(raw, msgspec.UnsetType) else raw)
        except msgspec.DecodeError as error:
            raise RpcError(failures.INVALID_PARAMS, f"initialize: {error}") from error
        self.adopt(params)
        features = {**dict.fromkeys(self.features), **self.feature_options}
        offer = Offer(server.name, server.version, features, commands=tuple(self.commands))
        return initialize_result(offer, params)

    def adopt(self, params: lsp_types.InitializeParams) -> None:
        """Take over the parameters of an `initialize` whose reply is sent elsewhere."""
        server = self._server
        server.client = params
        server.position_encoding = server.documents.encoding = choose_encoding(params)
        handler = self.features.get("initialize")
        if handler is not None:
            with serving.message_of(self._serving):
                handler(params)
        self.state = "ready"
        self.work_progress.is_supported = params.capability("window.workDoneProgress") is True
        self._use_trace(params.trace)
        client = "a client" if params.client_info is None else params.client_info.name
        logger.info("connection %d: %s", self._serving.number, client)
        if params.process_id is not None:
            self._link.watch(params.process_id)

    def _shutdown_request(self, _: Params) -> Any:
        self.state = "shutdown"
        handler = self.features.get("shutdown")
        outcome = None if handler is None else handler(None)
        return _then_null(outcome) if inspect.isawaitable(outcome) else None

    def _exit(self) -> None:
        clean = self.state == "shutdown"
        self._link.end(0 if clean else 1, "exit" if clean else "exit without shutdown")

    def close(self, waiting_bodies: Iterable[framing.Body] = ()) -> None:
        """Reply to open requests and accept no more messages. The link calls it once.

        `waiting_bodies` are messages that arrived and were not handled yet.
        """
        running, self._running = self._running, {}
        for call in running.values():
            self._fail(call, asyncio.CancelledError())
        for body in waiting_bodies:
            self._refuse(body)
        self.state = "ended"
        for task in (*running, *self._background):
            task.cancel()
        self._outgoing.close()
        self._server.ended()
        client_log.leave(self._server)
        self._serving.is_over = True

    def _execute_command(self, raw: Params) -> Any:
        params = params_of(raw, lsp_types.ExecuteCommandParams)
        handler = self.commands.get(params.command)
        if handler is None:
            raise RpcError(failures.INVALID_PARAMS, f"There is no command {params.command}.")
        kind = self.custom_types.get(params.command)
        if kind is None:
            return handler(*(params_of(argument, Any) for argument in params.arguments))
        if len(params.arguments) > 1:
            raise RpcError(failures.INVALID_PARAMS, f"{params.command} takes one argument, an object.")
        argument = params.arguments[0] if params.arguments else msgspec.UNSET
        decoded = params_of(self._with_folder(argument, kind()), kind())
        show = self._server.show_answer
        return handler(decoded) if show is None else show(params.command, decoded, handler(decoded))

    def _with_folder(self, argument: Params, kind: Any) -> Params:
        """Return the argument of a command. Adds the only open folder if the argument names none."""
        folder, fields = self._server.only_folder(), getattr(kind, "__struct_fields__", ())
        if folder is None or "workspace_folder" not in fields:
            return argument
        with suppress(msgspec.DecodeError):  # `params_of` says what is wrong
            arguments = {} if is_absent(argument) else framing.decode(cast("framing.Json", argument), Any)
            if isinstance(arguments, dict) and arguments.get("workspaceFolder") is not None:
                return argument
            if isinstance(arguments, dict) or arguments == []:  # what a Lua client makes of an empty table
                return msgspec.Raw(framing.encode({**dict(arguments), "workspaceFolder": folder}))
        return argument

    def _cancel(self, params: lsp_types.CancelParams) -> None:
        for task, call in tuple(self._running.items()):
            if call.id == params.id and type(call.id) is type(params.id):
                self._cancel_call(task)

    def _cancel_call(self, task: asyncio.Future[Any]) -> None:
        """Cancel a request for the client, if it is still open."""
        call = self._running.pop(task, None)
        if call is not None:
            call.cancelled = True
            self._fail(call, asyncio.CancelledError())  # its only reply, even if a thread still works on it
            task.cancel()

    def _cancel_progress(self, params: lsp_types.ProgressCancelParams) -> None:
        self.work_progress.cancel(params.token)

    def _set_trace(self, params: lsp_types.SetTraceParams) -> None:
        self._use_trace(params.value)

    def _use_trace(self, value: object) -> None:
        self._trace_value = value if value in ("messages", "verbose") else "off"
        client_log.set_verbose(self._server, is_verbose=value == "verbose")

    def _did_open(self, params: lsp_types.DidOpenParams) -> None:
        self._server.documents.open(params.text_document)

    def _did_change(self, params: lsp_types.DidChangeParams) -> None:
        document = params.text_document
        self._server.documents.change(document.uri, document.version, params.content_changes)


async def _then_null(outcome: Any) -> None:
    await outcome


class NexusServer:
    """The server of one client: features are registered on it, and handlers send messages through it.

    `client` is None until `initialize`. `describe_problem` makes the JSON of each problem in the data of a
    failed request. `ended` is called once, when the connection is over, `outdated` when a module of this
    version is gone. `only_folder` returns the URI of the only folder, or None. `show_answer` takes a command,
    its parameters and its outcome; it shows the outcome and returns it.
    """

    def __init__(self, name: str = "nexus", version: str = "") -> None:
        self.name = name
        self.version = version
        self.protocol = NexusProtocol(self)
        self.client: InitializeParams | None = None
        self.position_encoding: str = DEFAULT_ENCODING
        self.documents = OpenDocuments()
        self.describe_problem: Callable[[Problem], Any] = describe_problem
        self.ended: Callable[[], None] = lambda: None
        self.outdated: Callable[[], None] = lambda: None
        self.only_folder: Callable[[], str | None] = lambda: None
        self.show_answer: Callable[[str, Any, Any], Any] | None = None

    def feature(self, method: str, options: Any = None) -> Callable[[Handler], Handler]:
        """Register a handler for a method of LSP. `options` are JSON values for the server's capabilities."""

        def register(handler: Handler) -> Handler:
            self._add(self.protocol.features, method, handler)
            if options is not None:
                self.protocol.feature_options[method] = options
            return handler

        return register

    def custom(
        self, method: str, params_type: Callable[[], Any], *, title: str | None = None
    ) -> Callable[[Handler], Handler]:
        """Register a handler for a `nexus/*` request, and for the command of its name with `/` → `.`.

        If an answer takes long, the client shows progress with `title`. The handler gets the parameters as
        one `params_type()`, decoded from the raw bytes, and returns anything that msgspec encodes. It may be
        async.
        """

        def register(handler: Handler) -> Handler:
            command = method.replace("/", ".")
            self._add(self.protocol.features, method, handler)
            self.protocol.commands[command] = handler
            self.protocol.custom_types[method] = self.protocol.custom_types[command] = params_type
            if title is not None:
                self.protocol.titles[method] = title
            return handler

        return register

    def command(self, name: str, params_type: Callable[[], Any]) -> Callable[[Handler], Handler]:
        """Register a handler for a command that has no `nexus/*` request.

        Parameters and result are as for `custom`.
        """

        def register(handler: Handler) -> Handler:
            self._add(self.protocol.commands, name, handler)
            self.protocol.custom_types[name] = params_type
            return handler

        return register

    def _add(self, handlers: dict[str, Callable[..., Any]], name: str, handler: Callable[..., Any]) -> None:
        if name in handlers:
            raise ValueError(f"{name} is already registered")
        handlers[name] = handler

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification. Any thread may call it.

        `params` are a struct, JSON values or an lsprotocol object.
        """
        self.protocol.notify(method, params)

    async def request(
        self, method: str, params: Any = None, result_type: Any = Any, *, timeout_s: float | None = None
    ) -> Any:
        """Send a request to the client and return its result as a `result_type`.

        Raise ClientError if the answer is an error or not a `result_type`, DisconnectedError if the client
        left first, and TimeoutError after `timeout_s` seconds. After a cancellation or a timeout, the request
        is cancelled at the client, too.
        """
        return await self.protocol.request(method, params, result_type, timeout_s)
