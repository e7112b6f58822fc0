"""Define the LSP messages of every session, decoded by msgspec.

cattrs takes 3 to 70 ms for the first message of each class; these messages must not wait. Attribute names are
those of `lsprotocol.types`.
"""

from functools import cache
from typing import Any, Literal

import msgspec

from nexus_context.text.decoding import convert_to
from nexus_daemon.lsp import framing
from nexus_daemon.protocol.shapes import Position, Range

Encoding = Literal["utf-8", "utf-16", "utf-32"]
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
DEFAULT_ENCODING: Encoding = "utf-16"


class Value(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the messages below. Unknown fields are ignored."""


class ClientInfo(Value, frozen=True):
    name: str
    version: str | None = None


class WorkspaceFolder(Value, frozen=True):
    """A workspace folder.

    `trusted`, an extension of Nexus, is true or false: whether the user trusts the folder.
    """

    uri: str
    name: str = ""
    trusted: Any = None


class InitializeParams(Value, frozen=True):
    """The client and what it can do. `capabilities` is raw JSON; read it with `capability`."""

    process_id: int | None = None
    client_info: ClientInfo | None = None
    locale: str | None = None
    root_path: str | None = None
    root_uri: str | None = None
    initialization_options: Any = None
    capabilities: dict[str, Any] = {}
    trace: str | None = None
    workspace_folders: tuple[WorkspaceFolder, ...] | None = None

    def capability(self, path: str) -> Any:
        """Return the capability at a dotted path such as `textDocument.rename.prepareSupport`, or None."""
        value: Any = self.capabilities
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value


class TextDocumentItem(Value, frozen=True):
    uri: str
    text: str
    language_id: str = ""
    version: int | None = None


class TextDocumentIdentifier(Value, frozen=True):
    uri: str
    version: int | None = None


class ContentChange(Value, frozen=True):
    """One edit of a document, or the whole new text if `range` is None."""

    text: str
    range: Range | None = None


class DidOpenParams(Value, frozen=True):
    text_document: TextDocumentItem


class DidChangeParams(Value, frozen=True):
    text_document: TextDocumentIdentifier
    content_changes: tuple[ContentChange, ...]


class DidCloseParams(Value, frozen=True):
    text_document: TextDocumentIdentifier


class CodeLensParams(Value, frozen=True):
    text_document: TextDocumentIdentifier


class DocumentParams(Value, frozen=True):
    """The parameters of most requests about a document."""

    text_document: TextDocumentIdentifier


class PositionParams(Value, frozen=True):
    """The parameters of most requests about a position in a document."""

    text_document: TextDocumentIdentifier
    position: Position


class RangeParams(Value, frozen=True):
    text_document: TextDocumentIdentifier
    range: Range


class RenameParams(Value, frozen=True):
    text_document: TextDocumentIdentifier
    position: Position
    new_name: str


class WorkspaceSymbolParams(Value, frozen=True):
    query: str = ""


class TextDocumentContentParams(Value, frozen=True):
    uri: str


class DocumentDiagnosticParams(Value, frozen=True):
    text_document: TextDocumentIdentifier
    previous_result_id: str | None = None


class PreviousResultId(Value, frozen=True):
    uri: str
    value: str


class WorkspaceDiagnosticParams(Value, frozen=True):
    previous_result_ids: tuple[PreviousResultId, ...] = ()


class FileRename(Value, frozen=True):
    old_uri: str
    new_uri: str


class RenameFilesParams(Value, frozen=True):
    files: tuple[FileRename, ...]


class SelectionRangeParams(Value, frozen=True):
    text_document: TextDocumentIdentifier
    positions: tuple[Position, ...]


class CodeActionContext(Value, frozen=True):
    only: tuple[str, ...] | None = None


class CodeActionParams(Value, frozen=True):
    text_document: TextDocumentIdentifier
    range: Range
    context: CodeActionContext


class FoldersEvent(Value, frozen=True):
    added: tuple[WorkspaceFolder, ...] = ()
    removed: tuple[WorkspaceFolder, ...] = ()


class DidChangeWorkspaceFoldersParams(Value, frozen=True):
    event: FoldersEvent


class FileEvent(Value, frozen=True):
    uri: str
    type: int


class DidChangeWatchedFilesParams(Value, frozen=True):
    changes: tuple[FileEvent, ...]


class InitializedParams(Value, frozen=True):
    pass


class SetTraceParams(Value, frozen=True):
    value: str = "off"


class ShowMessageParams(Value, frozen=True):
    """The parameters of `window/showMessage` and `window/logMessage`. `type` is a `MessageType`."""

    type: int
    message: str


class CancelParams(Value, frozen=True):
    id: int | str | float


class ProgressCancelParams(Value, frozen=True):
    token: int | str


class ExecuteCommandParams(Value, frozen=True):
    command: str
    arguments: tuple[msgspec.Raw, ...] = ()


ERROR, WARNING, INFORMATION = 1, 2, 3
"""`MessageType` of LSP."""

HOT: dict[str, type[Value]] = {
    "initialized": InitializedParams,
    "textDocument/didOpen": DidOpenParams,
    "textDocument/didChange": DidChangeParams,
    "textDocument/didClose": DidCloseParams,
    "textDocument/codeAction": CodeActionParams,
    "textDocument/codeLens": CodeLensParams,
    "textDocument/completion": PositionParams,
    "textDocument/definition": PositionParams,
    "textDocument/diagnostic": DocumentDiagnosticParams,
    "textDocument/documentHighlight": PositionParams,
    "textDocument/documentLink": DocumentParams,
    "textDocument/documentSymbol": DocumentParams,
    "textDocument/foldingRange": DocumentParams,
    "textDocument/hover": PositionParams,
    "textDocument/implementation": PositionParams,
    "textDocument/inlayHint": RangeParams,
    "textDocument/prepareRename": PositionParams,
    "textDocument/references": PositionParams,
    "textDocument/rename": RenameParams,
    "textDocument/selectionRange": SelectionRangeParams,
    "textDocument/semanticTokens/full": DocumentParams,
    "workspace/didChangeWorkspaceFolders": DidChangeWorkspaceFoldersParams,
    "workspace/diagnostic": WorkspaceDiagnosticParams,
    "workspace/symbol": WorkspaceSymbolParams,
    "workspace/textDocumentContent": TextDocumentContentParams,
    "workspace/willRenameFiles": RenameFilesParams,
    "workspace/didChangeWatchedFiles": DidChangeWatchedFilesParams,
    "workspace/executeCommand": ExecuteCommandParams,
    "$/setTrace": SetTraceParams,
    "$/cancelRequest": CancelParams,
    "window/workDoneProgress/cancel": ProgressCancelParams,
}

NOTIFICATIONS = frozenset(
    (
        *(
            "initialized",
            "exit",
            "$/cancelRequest",
            "$/logTrace",
            "$/progress",
            "$/setTrace",
            "telemetry/event",
        ),
        *(f"notebookDocument/did{change}" for change in ("Open", "Change", "Close", "Save")),
        *(f"textDocument/did{change}" for change in ("Open", "Change", "Close", "Save")),
        *("textDocument/willSave", "textDocument/publishDiagnostics"),
        *("window/logMessage", "window/showMessage", "window/workDoneProgress/cancel"),
        *("workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles"),
        *("workspace/didChangeWorkspaceFolders",),
        *(f"workspace/did{change}Files" for change in ("Create", "Rename", "Delete")),
    )
)
"""The methods that LSP 3.17 sends without an id, in both directions; a test compares them with lsprotocol."""


def initialize_params(raw: framing.Json) -> InitializeParams:
    """Decode the params of `initialize`. A field of the wrong type counts as absent.

    Raise msgspec.ValidationError if the params are not an object.
    """
    params = framing.decode(raw, dict[str, Any])
    fields: dict[str, Any] = {}
    for name, wire_name, kind in _initialize_fields():
        try:
            fields[name] = convert_to(params[wire_name], kind)
        except (KeyError, msgspec.ValidationError):
            continue
    return InitializeParams(**fields)


@cache
def _initialize_fields() -> tuple[tuple[str, str, Any], ...]:
    names = zip(InitializeParams.__struct_fields__, InitializeParams.__struct_encode_fields__, strict=True)
    return tuple((name, wire_name, InitializeParams.__annotations__[name]) for name, wire_name in names)


def warning(text: str) -> ShowMessageParams:
    """Build a warning for the user."""
    return ShowMessageParams(WARNING, f"Nexus: {text}")
