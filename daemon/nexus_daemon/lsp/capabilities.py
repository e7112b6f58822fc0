"""The result of `initialize`: server capabilities derived from a table of features.

A feature's options are a dict, or the options class of lsprotocol.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from nexus_daemon.lsp.convert import DEFAULT_ENCODING, ENCODINGS
from nexus_daemon.lsp.lsp_types import InitializeParams
from nexus_daemon.protocol.version import PROTOCOL

# feature → (key of ServerCapabilities, value without options)
_PROVIDERS: dict[str, tuple[str, Any]] = {
    "textDocument/codeAction": ("codeActionProvider", True),
    "textDocument/codeLens": ("codeLensProvider", {}),
    "textDocument/completion": ("completionProvider", {}),
    "textDocument/declaration": ("declarationProvider", True),
    "textDocument/definition": ("definitionProvider", True),
    "textDocument/diagnostic": (
        "diagnosticProvider",
        {"interFileDependencies": True, "workspaceDiagnostics": False},
    ),
    "textDocument/documentColor": ("colorProvider", True),
    "textDocument/documentHighlight": ("documentHighlightProvider", True),
    "textDocument/documentLink": ("documentLinkProvider", {}),
    "textDocument/documentSymbol": ("documentSymbolProvider", True),
    "textDocument/foldingRange": ("foldingRangeProvider", True),
    "textDocument/formatting": ("documentFormattingProvider", True),
    "textDocument/hover": ("hoverProvider", True),
    "textDocument/inlayHint": ("inlayHintProvider", {}),
    "textDocument/linkedEditingRange": ("linkedEditingRangeProvider", True),
    "textDocument/onTypeFormatting": ("documentOnTypeFormattingProvider", {"firstTriggerCharacter": "\n"}),
    "textDocument/rangeFormatting": ("documentRangeFormattingProvider", True),
    "textDocument/references": ("referencesProvider", True),
    "textDocument/rename": ("renameProvider", True),
    "textDocument/selectionRange": ("selectionRangeProvider", True),
    "textDocument/semanticTokens/full": ("semanticTokensProvider", {}),
    "textDocument/signatureHelp": ("signatureHelpProvider", {}),
    "workspace/symbol": ("workspaceSymbolProvider", True),
}
_RESOLVERS = {
    "codeAction/resolve": "codeActionProvider",
    "codeLens/resolve": "codeLensProvider",
    "completionItem/resolve": "completionProvider",
    "documentLink/resolve": "documentLinkProvider",
    "inlayHint/resolve": "inlayHintProvider",
    "workspaceSymbol/resolve": "workspaceSymbolProvider",
}
_FILE_OPERATIONS = {
    f"workspace/{when}{what}Files": f"{when}{what}"
    for when in ("will", "did")
    for what in ("Create", "Rename", "Delete")
}
_INCREMENTAL = 2


class Offer(msgspec.Struct, frozen=True):
    """A server's name, version, features (method → options or None) and commands."""

    name: str
    version: str
    features: Mapping[str, Any]
    commands: tuple[str, ...]


def initialize_result(offer: Offer, client: InitializeParams) -> dict[str, Any]:
    """Return the result of `initialize` as JSON values."""
    return {
        "capabilities": server_capabilities(offer, client),
        "serverInfo": {"name": offer.name, "version": offer.version},
    }


def choose_encoding(client: InitializeParams) -> str:
    """Return the first position encoding of the client's list that Nexus supports, else utf-16."""
    offered = client.capability("general.positionEncodings")
    if not isinstance(offered, list):
        return DEFAULT_ENCODING
    return next((encoding for encoding in offered if encoding in ENCODINGS), DEFAULT_ENCODING)


def server_capabilities(offer: Offer, client: InitializeParams) -> dict[str, Any]:
    """Return `ServerCapabilities` as JSON values."""
    features = offer.features
    capabilities: dict[str, Any] = {
        "positionEncoding": choose_encoding(client),
        "textDocumentSync": _document_sync(features),
    }
    for feature, (key, default) in _PROVIDERS.items():
        if feature in features:
            capabilities[key] = _options(features, feature, default)
    for feature, key in _RESOLVERS.items():
        if feature in features and key in capabilities:
            options = capabilities[key] if isinstance(capabilities[key], dict) else {}
            capabilities[key] = {**options, "resolveProvider": True}
    if "textDocument/prepareRename" in features and client.capability("textDocument.rename.prepareSupport"):
        capabilities["renameProvider"] = {"prepareProvider": True}
    if "workspace/diagnostic" in features and "diagnosticProvider" in capabilities:
        capabilities["diagnosticProvider"] = {
            **capabilities["diagnosticProvider"],
            "workspaceDiagnostics": True,
        }
    capabilities["executeCommandProvider"] = {"commands": sorted(offer.commands)}
    capabilities["workspace"] = _workspace(features)
    capabilities["experimental"] = {"nexus": {"protocol": PROTOCOL}}
    return capabilities


def _document_sync(features: Mapping[str, Any]) -> dict[str, Any]:
    sync: dict[str, Any] = {"openClose": True, "change": _INCREMENTAL}
    if "textDocument/didSave" in features:
        sync["save"] = _options(features, "textDocument/didSave", {"includeText": False})
    if "textDocument/willSave" in features:
        sync["willSave"] = True
    if "textDocument/willSaveWaitUntil" in features:
        sync["willSaveWaitUntil"] = True
    return sync


def _workspace(features: Mapping[str, Any]) -> dict[str, Any]:
    workspace: dict[str, Any] = {"workspaceFolders": {"supported": True, "changeNotifications": True}}
    operations = {
        key: _options(features, feature, None)
        for feature, key in _FILE_OPERATIONS.items()
        if features.get(feature) is not None
    }
    if operations:
        workspace["fileOperations"] = operations
    if "workspace/textDocumentContent" in features:
        content = _options(features, "workspace/textDocumentContent", {"schemes": []})
        workspace["textDocumentContent"] = content
    return workspace


def _options(features: Mapping[str, Any], feature: str, default: Any) -> Any:
    """Return a feature's options as JSON values; lsprotocol is imported only for objects of its classes."""
    options = features[feature]
    if options is None:
        return default
    if isinstance(options, dict | bool):
        return options
    from nexus_daemon.lsp import standard

    return standard.unstructure(options)
