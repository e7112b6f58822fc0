"""Method of LSP → what answers it about an open document, in a worker thread."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nexus_daemon.api.documents import completion, hovers, links, renames, structure
from nexus_daemon.api.documents.question import Question, question_of

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

HANDLERS: Mapping[str, Callable[[Question, Any], Any]] = {
    "textDocument/completion": completion.complete,
    "textDocument/definition": links.find_definition,
    "textDocument/documentLink": links.find_document_links,
    "textDocument/documentSymbol": structure.find_symbols,
    "textDocument/foldingRange": structure.find_folds,
    "textDocument/hover": hovers.find_hover,
    "textDocument/inlayHint": structure.find_inlay_hints,
    "textDocument/prepareRename": renames.prepare_rename,
    "textDocument/references": links.find_references,
    "textDocument/rename": renames.rename,
    "textDocument/selectionRange": structure.find_selection_ranges,
}
"""By method, each for the parameters of the method."""


async def answer(client: "Connection", method: str, params: Any) -> Any:
    """The result of a request about a document; None about one that is not open, or of another kind."""
    question = await question_of(client, params.text_document.uri)
    return None if question is None else await client.read(HANDLERS[method], question, params)
