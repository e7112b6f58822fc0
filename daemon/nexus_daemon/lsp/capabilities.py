"""What the server tells a client that it can do: worked out from pygls's feature table.

A feature's options are a dict, or the options class of lsprotocol.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from nexus_daemon.lsp.convert import DEFAULT_ENCODING, ENCODINGS
from nexus_daemon.lsp.lsp_types import InitializeParams

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


def unstructure(options: Any) -> Any:
    """Options as JSON values; lsprotocol is looked at only for options that are made of its classes."""
    if isinstance(options, dict | bool):
        return options
    from nexus_daemon.lsp import standard

    return standard.unstructure(options)


def choose_encoding(client: InitializeParams) -> str:
    """Return the first position encoding on the client's list that we know; utf-16 without such a list."""
    offered = client.capability("general.positionEncodings")
    if not isinstance(offered, list):
        return DEFAULT_ENCODING
    return next((encoding for encoding in offered if encoding in ENCODINGS), DEFAULT_ENCODING)


def server_capabilities(
    features: Iterable[str],
    options: Mapping[str, Any],
    commands: Iterable[str],
    *,
    client: InitializeParams,
    encoding: str,
) -> dict[str, Any]:
    """Return `ServerCapabilities` as JSON values."""
    names = set(features)
    found: dict[str, Any] = {"positionEncoding": encoding, "textDocumentSync": _sync(names, options)}
    for feature, (key, plain) in _PROVIDERS.items():
        if feature in names:
            found[key] = unstructure(options.get(feature, plain))
    for feature, key in _RESOLVERS.items():
        if feature in names and key in found:
            given = found[key] if isinstance(found[key], dict) else {}
            found[key] = {**given, "resolveProvider": True}
    if "textDocument/prepareRename" in names and client.capability("textDocument.rename.prepareSupport"):
        found["renameProvider"] = {"prepareProvider": True}
    if "workspace/diagnostic" in names and "diagnosticProvider" in found:
        found["diagnosticProvider"] = {**found["diagnosticProvider"], "workspaceDiagnostics": True}
    found["executeCommandProvider"] = {"commands": sorted(commands)}
    found["workspace"] = _workspace(names, options)
    return found


def _sync(names: set[str], options: Mapping[str, Any]) -> dict[str, Any]:
    sync: dict[str, Any] = {"openClose": True, "change": _INCREMENTAL}
    if "textDocument/didSave" in names:
        sync["save"] = unstructure(options.get("textDocument/didSave", {"includeText": False}))
    if "textDocument/willSave" in names:
        sync["willSave"] = True
    if "textDocument/willSaveWaitUntil" in names:
        sync["willSaveWaitUntil"] = True
    return sync


def _workspace(names: set[str], options: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"workspaceFolders": {"supported": True, "changeNotifications": True}}
    operations = {
        key: unstructure(options[feature])
        for feature, key in _FILE_OPERATIONS.items()
        if feature in names and feature in options
    }
    if operations:
        found["fileOperations"] = operations
    if "workspace/textDocumentContent" in names:
        found["textDocumentContent"] = unstructure(
            options.get("workspace/textDocumentContent", {"schemes": []})
        )
    return found
