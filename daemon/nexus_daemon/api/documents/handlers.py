"""Map each method of LSP about an open document to the function that answers it in a worker thread."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_daemon.api.documents import (
    actions,
    completion,
    contexts,
    hovers,
    links,
    renames,
    structure,
)
from nexus_daemon.api.documents.question import Question, question_of
from nexus_daemon.api.documents.workspace_symbols import find_workspace_symbols
from nexus_daemon.workspace.context_documents import is_virtual

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

HANDLERS: Mapping[str, Callable[[Question, Any], Any]] = {
    "textDocument/codeAction": actions.find_actions,
    "textDocument/completion": completion.complete,
    "textDocument/definition": links.find_definition,
    "textDocument/documentHighlight": links.find_highlights,
    "textDocument/documentLink": links.find_document_links,
    "textDocument/documentSymbol": structure.find_symbols,
    "textDocument/foldingRange": structure.find_folds,
    "textDocument/hover": hovers.find_hover,
    "textDocument/implementation": links.find_landings,
    "textDocument/inlayHint": structure.find_inlay_hints,
    "textDocument/prepareRename": renames.prepare_rename,
    "textDocument/references": links.find_references,
    "textDocument/rename": renames.rename,
    "textDocument/selectionRange": structure.find_selection_ranges,
    "textDocument/semanticTokens/full": links.find_semantic_tokens,
}
"""Method → the function that answers it, given a question and the parameters."""


FRESH = frozenset(
    (
        "textDocument/definition",
        "textDocument/hover",
        "textDocument/implementation",
        "textDocument/references",
    )
)
"""Methods whose answer says which file decides. They wait until the last edit is read."""
WORKSPACE_HANDLERS: "Mapping[str, Callable[[Connection, Any], Awaitable[Any]]]" = {
    "workspace/symbol": find_workspace_symbols,
    "workspace/textDocumentContent": contexts.find_content,
    "workspace/willRenameFiles": renames.rename_files,
}
CONTEXT_HANDLERS: "Mapping[str, Callable[[Connection, Any], Awaitable[Any]]]" = {
    "textDocument/definition": contexts.find_context_definition,
    "textDocument/documentLink": contexts.find_context_links,
}
"""Method → its handler in a virtual document, which has the context of a folder."""


def handler_of(method: str) -> "Callable[[Connection, Any], Awaitable[Any]]":
    """Return the handler of a method.

    The handler answers None if the document is not open or is of another kind.
    """
    handler = WORKSPACE_HANDLERS.get(method)
    return partial(_answer, method) if handler is None else handler


async def _answer(method: str, client: "Connection", params: Any) -> Any:
    uri = params.text_document.uri
    if client.contexts.get(uri) is not None or is_virtual(uri):
        find = CONTEXT_HANDLERS.get(method)
        return None if find is None else await find(client, params)
    question = await question_of(client, uri, is_fresh=method in FRESH)
    return None if question is None else await client.read(HANDLERS[method], question, params)
