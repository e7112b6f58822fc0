"""Merge a `didOpen` and the edits after it into one `didOpen`, by the rules by which the daemon edits."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from nexus_daemon.lsp import framing, lsp_types
from nexus_daemon.lsp.documents import OpenDocuments
from nexus_daemon.lsp.envelope import params_of, params_type
from nexus_daemon.lsp.failures import RpcError
from nexus_daemon.lsp.initialize import choose_encoding


def merge_edits(
    initialize: bytes, opened: bytes, edits: Iterable[bytes]
) -> tuple[dict[str, Any], bytes | None]:
    """Return the message that opens a document as it is after the edits.

    All arguments are bodies of messages.

    The second result is None, or an edit that cannot be applied and that no whole text follows. The next
    daemon must get it, too, so that it does not know the text either. RpcError if `opened` opens no document.
    """
    raw = framing.decode(initialize, framing.Envelope).params
    client = None if isinstance(raw, msgspec.UnsetType) else lsp_types.initialize_params(raw)
    documents = OpenDocuments() if client is None else OpenDocuments(choose_encoding(client))
    message = json.loads(opened)
    item = params_of(_params(opened), params_type("textDocument/didOpen")).text_document
    document, failed = documents.open(item), None
    for edit in edits:
        try:
            params = params_of(_params(edit), params_type("textDocument/didChange"))
        except (RpcError, msgspec.DecodeError) as error:
            documents.lose(item.uri, error)
            failed = edit
            continue
        changed = params.text_document
        document = documents.change(item.uri, changed.version, params.content_changes) or document
    merged = {"version": document.version, "text": document.text}
    params = {**message["params"], "textDocument": {**message["params"]["textDocument"], **merged}}
    return {**message, "params": params}, None if document.is_known else failed


def _params(body: bytes) -> msgspec.Raw:
    params = framing.decode(body, framing.Envelope).params
    return msgspec.Raw(b"{}") if isinstance(params, msgspec.UnsetType) else params
