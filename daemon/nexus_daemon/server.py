"""Method → function: the only module that registers LSP methods, for one client at a time.

Every `nexus/*` request is registered as itself and as a command (`/` → `.`), because some editors cannot
send requests of their own.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_context.errors import Span
from nexus_daemon import convert, messages, protocol
from nexus_daemon.client import Client
from nexus_daemon.connection.server import NexusServer
from nexus_daemon.features.code_actions import code_actions
from nexus_daemon.version import __version__

if TYPE_CHECKING:
    from nexus_daemon.daemon import Daemon

CODE_ACTION = {"codeActionKinds": ["quickfix"]}


def build(start: Callable[[], "Daemon"], server: NexusServer) -> None:
    """Register everything on the server of a new connection. `start` gives the daemon once it is needed."""
    client = Client(server, start)
    server.version = __version__
    server.describe_problem = client.describe_problem
    _register_lifecycle(server, client)
    _register_documents(server, client)
    _register_requests(server, client)


def _register_lifecycle(server: NexusServer, client: Client) -> None:
    @server.feature("initialize")
    def initialize(params: messages.InitializeParams) -> None:
        client.introduced(params)

    @server.feature("workspace/didChangeWorkspaceFolders")
    def folders_changed(params: messages.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.added:
            client.add_folder(folder.uri, folder.name)
        for folder in params.event.removed:
            client.remove_folder(folder.uri)

    @server.feature("shutdown")
    def shutdown(_: None) -> None:
        client.end()


def _register_documents(server: NexusServer, client: Client) -> None:
    @server.feature("textDocument/didOpen")
    def opened(params: messages.DidOpenParams) -> None:
        client.document_changed(params.text_document.uri)

    @server.feature("textDocument/didChange")
    def changed(params: messages.DidChangeParams) -> None:
        client.document_changed(params.text_document.uri)

    @server.feature("textDocument/didClose")
    def closed(params: messages.DidCloseParams) -> None:
        client.document_closed(params.text_document.uri)

    @server.feature("workspace/didChangeWatchedFiles")
    def watched(params: messages.DidChangeWatchedFilesParams) -> None:
        client.files_changed(change.uri for change in params.changes)

    @server.feature("textDocument/codeAction", CODE_ACTION)
    async def code_action(params: Any) -> list[dict[str, Any]]:
        uri = params.text_document.uri
        snapshot, path = await client.snapshot_of(uri)
        if snapshot is None or path is None:
            return []
        index = convert.Locator(snapshot.layers, client.position_encoding).index(path)
        start, end = (
            convert.offset_at(index, position.line, position.character, client.position_encoding)
            for position in (params.range.start, params.range.end)
        )
        return code_actions(snapshot, path, uri, Span(start, end), client.position_encoding)


def _register_requests(server: NexusServer, client: Client) -> None:
    for method, (params_type, _) in protocol.METHODS.items():
        server.custom(method, params_type)(partial(_answer, client, method))


async def _answer(client: Client, method: str, params: protocol.Wire) -> protocol.Wire:
    """Answer a request of ours with the function of its name in `requests.handlers`."""
    from nexus_daemon.requests import handlers  # 100 ms that the reply to initialize must not wait for

    answer: Callable[[Client, protocol.Wire], Awaitable[protocol.Wire]] = getattr(
        handlers, handler_name(method)
    )
    return await answer(client, params)


def handler_name(method: str) -> str:
    """`nexus/context/assemble` → `context_assemble`."""
    return method.removeprefix("nexus/").replace("/", "_")
