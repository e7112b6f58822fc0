"""Build the reply to `initialize` from a table of features.

It needs only the table. A test compares it with what pygls derives from the same table.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from nexus_daemon.lsp.lsp_types import DEFAULT_ENCODING, ENCODINGS, InitializeParams
from nexus_daemon.process.version import PROTOCOL

_PROVIDERS = {
    "textDocument/codeAction": "codeActionProvider",
    "textDocument/codeLens": "codeLensProvider",
    "textDocument/completion": "completionProvider",
    "textDocument/definition": "definitionProvider",
    "textDocument/diagnostic": "diagnosticProvider",
    "textDocument/documentHighlight": "documentHighlightProvider",
    "textDocument/documentLink": "documentLinkProvider",
    "textDocument/documentSymbol": "documentSymbolProvider",
    "textDocument/foldingRange": "foldingRangeProvider",
    "textDocument/hover": "hoverProvider",
    "textDocument/implementation": "implementationProvider",
    "textDocument/inlayHint": "inlayHintProvider",
    "textDocument/references": "referencesProvider",
    "textDocument/rename": "renameProvider",
    "textDocument/selectionRange": "selectionRangeProvider",
    "textDocument/semanticTokens/full": "semanticTokensProvider",
    "workspace/symbol": "workspaceSymbolProvider",
}
"""Feature → its key in `ServerCapabilities`; the value is the feature's options."""
_INCREMENTAL = 2  # of `TextDocumentSyncKind`
RENAME_FILES = "workspace/willRenameFiles"
CONTENT = "workspace.textDocumentContent"
SCHEME = "nexus-context"
"""The URI scheme of virtual documents, which have the context of a folder."""
SHOW_IN_CONTEXT = "nexus.showInContext"
"""The command of a lens. A client of ours runs it itself."""
SHOW_SERVER = "nexus.showServer"
"""The command of an MCP server's lens. A client of ours runs it itself."""
FOR_PEOPLE = (
    "nexus.context.layers",
    "nexus.context.preview",
    "nexus.context.usage",
    SHOW_IN_CONTEXT,
    SHOW_SERVER,
    "nexus.status",
    "nexus.workspace.init",
)
"""The commands for a client that does not know Nexus: their answers are shown to people."""


class Offer(msgspec.Struct, frozen=True):
    """The name, version, features (method → options or None) and commands that a server offers."""

    name: str
    version: str
    features: Mapping[str, Any]
    commands: tuple[str, ...]


def initialize_result(offer: Offer, client: InitializeParams) -> dict[str, Any]:
    """Return the result of `initialize` as JSON values."""
    providers = {key: offer.features[name] for name, key in _PROVIDERS.items() if name in offer.features}
    if not client.capability("textDocument.rename.prepareSupport") and "renameProvider" in providers:
        providers["renameProvider"] = True  # such a client takes no options
    if not pulls_diagnostics(client):
        providers.pop("diagnosticProvider", None)
    workspace: dict[str, Any] = {"workspaceFolders": {"supported": True, "changeNotifications": True}}
    if client.capability("workspace.fileOperations.willRename") and RENAME_FILES in offer.features:
        workspace["fileOperations"] = {"willRename": offer.features[RENAME_FILES]}
    contents = client.capability(CONTENT)
    if is_ours(client) or not isinstance(contents, dict):  # a client of ours has virtual documents of its own
        providers.pop("implementationProvider", None)
    if isinstance(contents, dict) and contents.get("dynamicRegistration") is not True:
        workspace["textDocumentContent"] = {"schemes": [SCHEME]}
    return {
        "capabilities": {
            "positionEncoding": choose_encoding(client),
            "textDocumentSync": {"openClose": True, "change": _INCREMENTAL},
            **providers,
            "executeCommandProvider": {"commands": sorted(offer.commands if is_ours(client) else FOR_PEOPLE)},
            "workspace": workspace,
            "experimental": {"nexus": {"protocol": PROTOCOL}},
        },
        "serverInfo": {"name": offer.name, "version": offer.version},
    }


def is_ours(client: InitializeParams) -> bool:
    """Whether a client knows Nexus: it sends `nexus/*` requests and runs the commands of our lenses
    itself.
    """
    return isinstance(client.capability("experimental.nexus"), dict)


def pulls_diagnostics(client: InitializeParams) -> bool:
    """Whether a client requests its diagnostics. For any other client they are published.

    A client that can do both would show each problem twice, so it pulls only if its options say so.
    """
    pulls, is_pushed = (
        isinstance(client.capability(f"textDocument.{name}"), dict)
        for name in ("diagnostic", "publishDiagnostics")
    )
    options = client.initialization_options
    return pulls and (not is_pushed or (isinstance(options, dict) and options.get("pullDiagnostics") is True))


def choose_encoding(client: InitializeParams) -> str:
    """Return the first position encoding of the client's list that Nexus supports, else utf-16."""
    encodings = client.capability("general.positionEncodings")
    if not isinstance(encodings, list):
        return DEFAULT_ENCODING
    return next((encoding for encoding in encodings if encoding in ENCODINGS), DEFAULT_ENCODING)
