"""Where a place of an open document leads: its links and definitions.

Their text is what the editor has: an instruction file is read by some program, if not by Nexus.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nexus_context.disk.files import file_stamp
from nexus_daemon.features import import_links
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import Locator, Texts, uri_to_path

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

INSTRUCTIONS = (".md", ".mdc", ".mdx", ".markdown", ".txt")


async def document_links(client: "Connection", params: lsp_types.DocumentLinkParams) -> list[dict[str, Any]]:
    """The links of a document."""
    document = _find_document(client, params.text_document.uri)
    if document is None:
        return []
    path, locate, about = document
    return await client.read(import_links.document_links, locate, path, **about)


async def definition(client: "Connection", params: lsp_types.DefinitionParams) -> list[dict[str, Any]]:
    """Where a position of a document leads."""
    document = _find_document(client, params.text_document.uri)
    if document is None:
        return []
    path, locate, about = document
    offset = locate.offset(path, params.position)
    return await client.read(import_links.definition, locate, path, offset, **about)


def _find_document(client: "Connection", uri: str) -> tuple[str, Locator, dict[str, Any]] | None:
    """The path of an open instruction file, its text, and what its imports depend on; None for others."""
    path, overlays = uri_to_path(uri), client.folders.overlays
    if path is None or path not in overlays or not path.endswith(INSTRUCTIONS):
        return None
    text, encoding = overlays[path], client.capabilities.position_encoding
    locate = Locator(Texts({path: text.removeprefix("\ufeff")}), encoding, {path: text})
    home = str(client.folders.load_inputs.user_home)
    return path, locate, {"user_home": home, "is_file": _file_finder(client)}


def _file_finder(client: "Connection") -> Callable[[str], bool]:
    """Tells whether there is a file, also one that is not saved yet."""
    unsaved = frozenset(client.folders.overlays)
    return lambda path: path in unsaved or file_stamp(path) is not None
