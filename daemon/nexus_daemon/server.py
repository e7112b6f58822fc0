"""Map each method to its function: the only module that registers LSP methods, for one client at a time.

Every `nexus/*` request is registered as itself and as a command (`/` → `.`), because some editors cannot send
requests of their own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_context.errors import Problem
from nexus_daemon import api, features
from nexus_daemon.api.methods import DOCUMENT_FEATURES, FEATURES, METHODS, Handler, Method
from nexus_daemon.lsp import convert, lsp_types
from nexus_daemon.lsp.initialize import FOR_PEOPLE, SHOW_IN_CONTEXT, SHOW_SERVER
from nexus_daemon.process.version import __version__, describe_mismatch
from nexus_daemon.protocol.shapes import Wire
from nexus_daemon.windows.connection import Connection
from nexus_daemon.workspace.fair_threads import WorkOwner, work_for

if TYPE_CHECKING:
    from nexus_daemon.lsp.dispatch import NexusServer
    from nexus_daemon.process.client_process import ClientProcess
    from nexus_daemon.windows.daemon import Daemon

_TITLES = {
    "nexus/context/assemble": "Preparing the next request",
    "nexus/context": "Reading the context",
    "nexus/config": "Reading the settings",
    "nexus/session/compact": "Summarizing the conversation",
    "nexus/session/export": "Exporting the conversation",
    "nexus/session/search": "Searching conversations",
    "nexus/session": "Reading the conversation",
    "nexus/chat": "Waiting for the model",
    "nexus/model": "Changing the model",
    "nexus/explain": "Looking at permissions",
    "nexus/view": "Looking at assistants",
    "nexus/mcp/start": "Starting an MCP server",
    "nexus/mcp/call": "Calling a tool of an MCP server",
    "nexus/mcp/login": "Waiting for you to sign in",
    "nexus/mcp": "Looking at MCP servers",
    "nexus/memory": "Searching the memory",
    "nexus/knowledge": "Searching the knowledge base",
    "nexus/skill": "Reading a skill",
    "nexus/agent": "Directing agents",
    "nexus/assistant/session": "Reading a session of an assistant",
    "nexus/assistant/sessions": "Reading sessions of assistants",
    "nexus/assistant": "Reading what an assistant reads",
    "nexus/conversation": "Reading conversations",
    "nexus/event": "Reading events",
    "nexus/tokens": "Counting tokens",
    "nexus/workspace": "Creating files",
    "nexus/debug": "Recording a trace",
    "nexus/status": "Reading the status",
}
"""What the user sees while a request, or one of such a group, takes long."""
_LENS_COMMANDS = (SHOW_IN_CONTEXT, SHOW_SERVER)  # they show what they do themselves


def title_of(method: str) -> str:
    """Return the title that the user sees during a long request of this method."""
    title = _TITLES.get(method) or _TITLES.get(method.rpartition("/")[0])
    return f"Nexus: {title or 'Working'}"


def build(
    start: "Callable[[], Daemon]", server: "NexusServer", process: "ClientProcess | None" = None
) -> None:
    """Register everything on the server of a new connection. `start` returns the daemon once it is needed.

    `process` describes the client's process. None means that it is the daemon's own, as on standard input.
    """
    connection = Connection(server, start, process)
    server.version = __version__
    server.describe_problem = partial(_describe_problem, connection)
    server.ended = connection.end
    handlers = {**_lifecycle(connection, server), **_documents(connection), **_diagnostics(connection)}
    for name, handler in handlers.items():
        server.feature(name, FEATURES[name])(handler)
    imports = _Imports(connection)
    server.only_folder = partial(_only_folder, connection)
    server.show_answer = partial(_show_answer, connection)
    server.command(SHOW_IN_CONTEXT, lambda: api.editor_answers.LensTarget)(
        partial(_show_in_context, connection)
    )
    server.command(SHOW_SERVER, lambda: api.server_answers.ServerTarget)(partial(_show_server, connection))
    for name, method in METHODS.items():
        custom = server.custom(name, partial(getattr, method, "params"), title=title_of(name))
        custom(partial(_answer, imports, name, method))


def _describe_problem(connection: Connection, problem: Problem) -> Any:
    """A problem in the data of a failed request, in the client's positions."""
    read_by = (folder.snapshot for folder in connection.folders.reading(problem.path))
    snapshot = next((snapshot for snapshot in read_by if snapshot is not None), None)
    texts: convert.HasTexts = convert.Texts() if snapshot is None else snapshot.layers
    from nexus_daemon.sessions import results  # most requests succeed

    locate = convert.Locator(texts, connection.capabilities.position_encoding)
    return results.problems(locate, [problem])[0]


def _only_folder(connection: Connection) -> str | None:
    """Return the URI of the client's only listed folder, or without any, of its only lone file's folder."""
    connection.start()
    folders = list(connection.folders)
    listed_folders = [folder for folder in folders if folder.is_listed] or folders
    return listed_folders[0].uri if len(listed_folders) == 1 else None


def _show_answer(connection: Connection, command: str, params: Any, outcome: Any) -> Any:
    """The outcome of a command; where the client would do nothing with it, it is shown, too."""
    is_shown = command in FOR_PEOPLE and command not in _LENS_COMMANDS and not connection.capabilities.is_ours
    return _and_show(connection, params, outcome) if is_shown else outcome


async def _and_show(connection: Connection, params: Any, outcome: Any) -> Any:
    result = await outcome
    await api.editor_answers.show_answer(connection, params, result)
    return result


async def _show_in_context(connection: Connection, target: Any) -> Any:
    connection.start()
    return await api.editor_answers.show_in_context(connection, target)


async def _show_server(connection: Connection, target: Any) -> Any:
    connection.start()
    return await api.server_answers.show_server(connection, target)


async def _answer(imports: "_Imports", name: str, method: Method, params: Wire) -> Wire:
    """Answer a request of ours."""
    connection = imports.connection
    connection.start()
    work_for(WorkOwner(connection, getattr(params, "workspace_folder", None)))
    handler = _handlers.get(name)
    if handler is None or imports.is_busy:
        handler = await imports.handler(name, method)
    result: Wire = await handler(connection, params)
    return result


_handlers: dict[str, Handler[Any, Any]] = {}
"""The handlers that are imported, by method."""


class _Imports:
    """Imports the handlers of a connection when they are first needed, in a thread: 200 ms for some.

    Requests that arrive meanwhile wait, so that handlers begin in the order of the requests.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._last: asyncio.Future[None] | None = None  # done when the last request has its handler

    @property
    def is_busy(self) -> bool:
        return self._last is not None

    async def handler(self, name: str, method: Method) -> Handler[Any, Any]:
        """The handler of a method, after all earlier requests have theirs."""
        previous_import, own_import = self._last, asyncio.get_running_loop().create_future()
        self._last = own_import
        try:
            if previous_import is not None:
                await asyncio.wait([previous_import])
            if name not in _handlers:
                from nexus_daemon.process import tracing  # not before the reply to `initialize`

                with tracing.phase("import"):
                    _handlers[name] = await self.connection.work(method.handler)
            return _handlers[name]
        finally:
            if previous_import is None or previous_import.done():
                self._finish(own_import)
            else:  # cancelled
                previous_import.add_done_callback(lambda _: self._finish(own_import))

    def _finish(self, finished_import: "asyncio.Future[None]") -> None:
        finished_import.set_result(None)
        if self._last is finished_import:
            self._last = None


def _lifecycle(connection: Connection, server: "NexusServer") -> dict[str, Callable[[Any], Any]]:
    def initialize(params: lsp_types.InitializeParams) -> None:
        connection.initialize(params)

    def initialized(_: lsp_types.InitializedParams) -> Awaitable[None] | None:
        params = server.client
        assert params is not None  # noqa: S101 - no notification comes before `initialize`
        editor = "this editor" if params.client_info is None else params.client_info.name
        message = describe_mismatch(params.capability("experimental.nexus.protocol"), editor)
        if message is not None:
            connection.notify("window/showMessage", lsp_types.ShowMessageParams(lsp_types.WARNING, message))
        return connection.register_contents() if connection.capabilities.registers_contents else None

    def folders_changed(params: lsp_types.DidChangeWorkspaceFoldersParams) -> None:
        connection.change_folders(params.event)

    def watched(params: lsp_types.DidChangeWatchedFilesParams) -> None:
        """Take in what the client's file watcher saw; ours does not see changes on every file system."""
        paths = [path for change in params.changes if (path := convert.uri_to_path(change.uri)) is not None]
        connection.start()
        connection.folders.changed(paths)

    def shutdown(_: None) -> None:
        connection.silence()

    return {
        "initialize": initialize,
        "initialized": initialized,
        "workspace/didChangeWorkspaceFolders": folders_changed,
        "workspace/didChangeWatchedFiles": watched,
        "shutdown": shutdown,
    }


def _documents(connection: Connection) -> dict[str, Callable[[Any], Any]]:
    def changed(params: lsp_types.DidOpenParams | lsp_types.DidChangeParams) -> None:
        connection.documents.changed(params.text_document.uri)

    def opened(params: lsp_types.DidOpenParams) -> None:
        changed(params)

    def closed(params: lsp_types.DidCloseParams) -> None:
        connection.documents.closed(params.text_document.uri)
        connection.contexts.closed(params.text_document.uri)

    async def answer_document(method: str, params: Any) -> Any:
        connection.start()
        handler = _handlers.get(method)
        if handler is None:  # its import takes long
            handler = await connection.work(lambda: api.documents.handlers.handler_of(method))
            _handlers[method] = handler
        return await handler(connection, params)

    async def code_action(params: lsp_types.CodeActionParams) -> list[dict[str, Any]]:
        only = params.context.only
        has_fixes = only is None or any(kind in ("", "quickfix") for kind in only)
        if not has_fixes and not any(kind.startswith("refactor") for kind in only or ()):
            return []  # fix-on-save asks for source actions
        actions = await _quick_fixes(connection, params) if has_fixes else []
        actions += await answer_document("textDocument/codeAction", params) or []
        edits = [action["edit"] for action in actions]
        return [action for number, action in enumerate(actions) if action["edit"] not in edits[:number]]

    async def code_lens(params: lsp_types.CodeLensParams) -> list[dict[str, Any]]:
        uri = params.text_document.uri
        view = await connection.documents.lens_view(uri)
        if view is None:
            return []
        connection.lenses.requested()
        work_for(WorkOwner(connection, view.folder))
        lenses_of = await connection.work(lambda: api.lenses.lenses_of)  # its import takes long
        return await lenses_of(connection, view)

    return {
        "textDocument/didOpen": opened,
        "textDocument/didChange": changed,
        "textDocument/didClose": closed,
        "textDocument/codeAction": code_action,
        "textDocument/codeLens": code_lens,
        **{method: partial(answer_document, method) for method in DOCUMENT_FEATURES},
    }


async def _quick_fixes(connection: Connection, params: lsp_types.CodeActionParams) -> list[dict[str, Any]]:
    """The fixes of problems at a place."""
    uri = params.text_document.uri
    view = await connection.documents.view_of(uri)
    program_check = await connection.documents.program_check(uri)
    encoding, overlays = connection.capabilities.position_encoding, connection.folders.overlays
    editing, actions = connection.documents.editing(), list[dict[str, Any]]()
    if view is not None:
        locate = convert.Locator(view.snapshot.layers, encoding, overlays)
        span = locate.span(view.path, params.range)
        # with all layers, which are imported by now
        code_actions = features.code_actions.code_actions
        actions += code_actions(view.snapshot, view.path, span, locate=locate, editing=editing)
    if program_check is not None:
        path, check = program_check
        locate = convert.Locator(check.layers, encoding, overlays)
        actions += features.code_actions.fix_actions(
            check.problems,
            path,
            locate.span(path, params.range),
            locate=locate,
            editing=editing,
            minders=check.minders,
        )
    return actions


def _diagnostics(connection: Connection) -> dict[str, Callable[[Any], Any]]:
    async def document_diagnostic(params: lsp_types.DocumentDiagnosticParams) -> dict[str, Any]:
        uri = params.text_document.uri
        await connection.documents.settled(uri)
        return connection.reports.document_report(uri, params.previous_result_id)

    async def workspace_diagnostic(params: lsp_types.WorkspaceDiagnosticParams) -> dict[str, Any]:
        await connection.documents.settled()
        previous = {result_id.uri: result_id.value for result_id in params.previous_result_ids}
        return connection.reports.workspace_report(previous)

    return {"textDocument/diagnostic": document_diagnostic, "workspace/diagnostic": workspace_diagnostic}
