"""Read what a client says about itself in `initialize`, as far as Nexus depends on it."""

import msgspec

from nexus_daemon.lsp.initialize import CONTENT, choose_encoding, is_ours, pulls_diagnostics
from nexus_daemon.lsp.lsp_types import DEFAULT_ENCODING, InitializeParams


class ClientCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a client can do and wants. By default, it can do nothing beyond what LSP requires.

    `has_model`: it answers `nexus/model/complete`. `wants_assistant_sessions`: it takes
    `nexus/assistant/didChange`. `is_ours`: it knows Nexus, and shows the answers of our commands itself.
    `shows_documents`: it opens a document when the daemon asks. `creates_files` and `renames_files`: it takes
    edits that create or rename files. `takes_versions`: it takes edits that name the versions of documents.
    `asks_about_edits`: it asks the user before an edit that says so. `refreshes_lenses` and
    `refreshes_diagnostics`: it requests its lenses or its diagnostics again when the daemon asks.
    `shows_markdown`: its hovers show Markdown. `takes_snippets`: its completion takes snippets.
    `reads_contents`: it requests the content of virtual documents. `registers_contents`: it does so once the
    daemon registers it. `pulls_diagnostics`: it requests diagnostics, so none are published.
    """

    position_encoding: str = DEFAULT_ENCODING
    has_model: bool = False
    wants_assistant_sessions: bool = False
    is_ours: bool = False
    shows_documents: bool = False
    creates_files: bool = False
    renames_files: bool = False
    takes_versions: bool = False
    refreshes_lenses: bool = False
    shows_markdown: bool = False
    takes_snippets: bool = False
    asks_about_edits: bool = False
    reads_contents: bool = False
    registers_contents: bool = False
    pulls_diagnostics: bool = False
    refreshes_diagnostics: bool = False


def capabilities_of(client: InitializeParams) -> ClientCapabilities:
    """Read the capabilities that a client declares."""
    operations = _texts(client.capability("workspace.workspaceEdit.resourceOperations"))
    return ClientCapabilities(
        position_encoding=choose_encoding(client),
        has_model=client.capability("experimental.nexus.modelComplete") is True,
        wants_assistant_sessions=client.capability("experimental.nexus.assistantSessions") is True,
        is_ours=is_ours(client),
        shows_documents=client.capability("window.showDocument.support") is True,
        creates_files="create" in operations,
        renames_files="rename" in operations,
        takes_versions=client.capability("workspace.workspaceEdit.documentChanges") is True,
        asks_about_edits=isinstance(
            client.capability("workspace.workspaceEdit.changeAnnotationSupport"), dict
        ),
        takes_snippets=client.capability("textDocument.completion.completionItem.snippetSupport") is True,
        shows_markdown="markdown" in _texts(client.capability("textDocument.hover.contentFormat")),
        reads_contents=isinstance(client.capability(CONTENT), dict),
        registers_contents=client.capability(f"{CONTENT}.dynamicRegistration") is True,
        pulls_diagnostics=pulls_diagnostics(client),
        refreshes_diagnostics=client.capability("workspace.diagnostics.refreshSupport") is True,
        refreshes_lenses=client.capability("workspace.codeLens.refreshSupport") is True,
    )


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []
