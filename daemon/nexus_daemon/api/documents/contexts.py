"""Serve virtual documents: what a model will see of a folder, under a URI of its own.

1. The URI is `nexus-context:`, the path of the folder as in its own URI, and the name of a text. `nexus.md`
   is the system prompt, `claude-code.md` and the like are what another assistant sends of the folder's files,
   and `next-request.md` is the next request of a conversation.
2. `?agent=NAME` selects a live agent of Nexus, `?session=NAME` the conversation, by default `main`.
3. Links and definitions are those of the text that the client was sent last. A document that this daemon has
   not sent yet, for example after a restart, is read again.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import msgspec

from nexus_daemon import protocol
from nexus_daemon.api import context
from nexus_daemon.api.documents.request_text import request_text
from nexus_daemon.features.context_links import context_definition, context_links
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.initialize import SCHEME
from nexus_daemon.workspace.context_documents import PROMPT, SUFFIX, ContextDocument, is_virtual

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

NEXT_REQUEST = "next-request"


class TextDocumentContent(msgspec.Struct, frozen=True):
    """The result of `workspace/textDocumentContent` in LSP 3.18."""

    text: str


async def find_content(
    client: "Connection", params: lsp_types.TextDocumentContentParams
) -> TextDocumentContent:
    """Return the text of a virtual document. RequestError if the document does not exist."""
    return TextDocumentContent((await _read(client, params.uri)).text)


async def find_context_links(client: "Connection", params: lsp_types.DocumentParams) -> list[dict[str, Any]]:
    """Return the links from the text of a virtual document to the files that its parts come from."""
    preview = await _preview_of(client, params.text_document.uri)
    return await client.read(context_links, preview, client.capabilities.position_encoding)


async def find_context_definition(
    client: "Connection", params: lsp_types.PositionParams
) -> list[protocol.Location]:
    """Return the source of the text at a position of a virtual document."""
    return context_definition(await _preview_of(client, params.text_document.uri), params.position)


async def _preview_of(client: "Connection", uri: str) -> protocol.Preview:
    document = client.contexts.get(uri)
    preview = None if document is None else document.preview
    return await _read(client, uri) if preview is None else preview


async def _read(client: "Connection", uri: str) -> protocol.Preview:
    """Read the text of a URI again and record that the client has it."""
    path, _, query = (uri if is_virtual(uri) else "").partition("?")
    folder_path, _, name = path.removeprefix(f"{SCHEME}:").rpartition("/")
    name = unquote(name).removesuffix(SUFFIX)
    # some clients escape the whole query
    options = {key: values[-1] for key, values in parse_qs(unquote(query)).items()}
    folder, agent = client.folders.at(f"file:{folder_path}").uri, options.get("agent")
    client.contexts.put(uri, ContextDocument(folder))  # it may change while it is read
    if name == NEXT_REQUEST:
        turn = protocol.AssembleParams(
            folder, session=options.get("session"), agent=agent, dry_run=protocol.DryRun()
        )
        preview = await client.read(request_text, await context.assemble(client, turn))
    else:
        assistant = None if name == PROMPT else name
        view = protocol.PreviewParams(folder, agent=agent, assistant=assistant)
        preview = await context.preview(client, view)
    client.contexts.put(uri, ContextDocument(folder, preview))
    return preview
