"""Method → function: the only module that registers LSP methods, for one client at a time.

Every `nexus/*` request is registered as itself and as a command (`/` → `.`), because some editors cannot
send requests of their own.
"""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_context.errors import Span
from nexus_daemon import protocol
from nexus_daemon.features.code_actions import code_actions
from nexus_daemon.lsp import convert, lsp_types
from nexus_daemon.lsp.capabilities import Offer
from nexus_daemon.protocol.version import describe_mismatch
from nexus_daemon.version import __version__
from nexus_daemon.workspace.client import Client, View

if TYPE_CHECKING:
    from nexus_daemon.lsp.server import NexusServer
    from nexus_daemon.state import Daemon

Handler = Callable[[Any], Any]
_WARNING = 2  # of `MessageType`

FEATURES: dict[str, Any] = {
    "initialize": None,
    "initialized": None,
    "shutdown": None,
    "workspace/didChangeWorkspaceFolders": None,
    "workspace/didChangeWatchedFiles": None,
    "textDocument/didOpen": None,
    "textDocument/didChange": None,
    "textDocument/didClose": None,
    "textDocument/codeAction": {"codeActionKinds": ["quickfix"]},
    "textDocument/codeLens": {"resolveProvider": False},
}
"""Every LSP method that is handled here, with its options."""

OFFER = Offer(
    name="nexus",
    version=__version__,
    features=FEATURES | dict.fromkeys(protocol.METHODS),
    commands=tuple(method.replace("/", ".") for method in protocol.METHODS),
)


def build(start: "Callable[[], Daemon]", server: "NexusServer") -> None:
    """Register everything on the server of a new connection. `start` gives the daemon once it is needed."""
    client = Client(server, start)
    server.version = __version__
    server.describe_problem = client.describe_problem
    server.ended = client.end
    for method, handler in {**_lifecycle(client), **_documents(client)}.items():
        server.feature(method, FEATURES[method])(handler)
    for method, (params_type, _) in protocol.METHODS.items():
        server.custom(method, params_type)(partial(_answer, client, method))


def _lifecycle(client: Client) -> dict[str, Handler]:
    def initialize(params: lsp_types.InitializeParams) -> None:
        client.introduced(params)

    def initialized(_: lsp_types.InitializedParams) -> None:
        params = client.server.client
        assert params is not None  # noqa: S101 - no notification comes before `initialize`
        editor = "this editor" if params.client_info is None else params.client_info.name
        message = describe_mismatch(params.capability("experimental.nexus.protocol"), editor)
        if message is not None:
            client.notify("window/showMessage", lsp_types.ShowMessageParams(_WARNING, message))

    def folders_changed(params: lsp_types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.added:
            client.add_folder(folder)
        for folder in params.event.removed:
            client.remove_folder(folder.uri)

    def watched(params: lsp_types.DidChangeWatchedFilesParams) -> None:
        client.files_changed(change.uri for change in params.changes)

    def shutdown(_: None) -> None:
        client.silence()

    return {
        "initialize": initialize,
        "initialized": initialized,
        "workspace/didChangeWorkspaceFolders": folders_changed,
        "workspace/didChangeWatchedFiles": watched,
        "shutdown": shutdown,
    }


def _documents(client: Client) -> dict[str, Handler]:
    def changed(params: lsp_types.DidOpenParams | lsp_types.DidChangeParams) -> None:
        client.document_changed(params.text_document.uri)

    def opened(params: lsp_types.DidOpenParams) -> None:
        changed(params)

    def closed(params: lsp_types.DidCloseParams) -> None:
        client.document_closed(params.text_document.uri)

    async def code_action(params: Any) -> list[dict[str, Any]]:
        uri = params.text_document.uri
        only = params.context.only
        if only is not None and not any(_kind(kind) in ("", "quickfix") for kind in only):
            return []  # fix-on-save asks for source actions
        snapshot, path = await client.snapshot_of(uri)
        if snapshot is None or path is None:
            return []
        encoding = client.position_encoding
        index = convert.Locator(snapshot.layers, encoding).index(path)
        start, end = (
            convert.offset_at(index, position.line, position.character, encoding)
            for position in (params.range.start, params.range.end)
        )
        creates = client.creates_files
        return code_actions(snapshot, path, Span(start, end), uri=uri, encoding=encoding, creates=creates)

    async def code_lens(params: lsp_types.CodeLensParams) -> list[dict[str, Any]]:
        view = await client.view_of(params.text_document.uri)
        if view is None:
            return []
        client.lenses.shown()
        return await client.daemon.work(_lenses, view, client.position_encoding)

    return {
        "textDocument/didOpen": opened,
        "textDocument/didChange": changed,
        "textDocument/didClose": closed,
        "textDocument/codeAction": code_action,
        "textDocument/codeLens": code_lens,
    }


def _lenses(view: View, encoding: str) -> list[dict[str, Any]]:
    """`code_lenses`, in a thread: even its import takes longer than the loop may wait."""
    from nexus_daemon.features.code_lens import code_lenses

    return code_lenses(
        view.snapshot, view.path, encoding, folder=view.folder, agent=view.agent, is_live=view.asked
    )


def _kind(kind: Any) -> str:
    """A code action kind as its text, whether lsprotocol knows it or not."""
    return str(getattr(kind, "value", kind))


async def _answer(client: Client, method: str, params: protocol.Wire) -> protocol.Wire:
    """Answer a request of ours with the function of its name in `requests.handlers`."""
    from nexus_daemon.api import handlers  # 100 ms that the reply to initialize must not wait for

    answer: Callable[[Client, protocol.Wire], Awaitable[protocol.Wire]] = getattr(
        handlers, handler_name(method)
    )
    client.start()
    return await answer(client, params)


def handler_name(method: str) -> str:
    """`nexus/session/undoCompaction` → `session_undo_compaction`."""
    name = method.removeprefix("nexus/").replace("/", "_")
    return re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), name)
