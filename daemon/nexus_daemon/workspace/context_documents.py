"""Know which contexts of folders a client shows as documents, and ask it to read them again when they change.

1. A client has a document from when it reads it, or is shown it, until it closes it. For a client that never
   closes documents, the last MOST_DOCUMENTS count.
2. Several changes of a folder in a row lead to one request for each of its virtual documents, once they
   pause. A temporary file stays as it is.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from nexus_context.errors import NexusError
from nexus_daemon.lsp.initialize import SCHEME
from nexus_daemon.workspace.client_refresh import PAUSE_S
from nexus_daemon.workspace.queue import TaskQueue

if TYPE_CHECKING:
    from nexus_daemon.protocol.context import Preview

CONTENT_METHOD = "workspace/textDocumentContent"
REFRESH_CONTENT = f"{CONTENT_METHOD}/refresh"
SUFFIX = ".md"
PROMPT = "nexus"
"""The file name of the system prompt. Another assistant's text has the assistant's name."""
MOST_DOCUMENTS = 20


class ContextDocument(msgspec.Struct, frozen=True):
    """A document of the folder with this URI.

    `preview` is what the client was sent; None means nothing yet.
    """

    folder: str
    preview: "Preview | None" = None


def context_uri(folder: str, *, assistant: str | None = None, agent: str | None = None) -> str:
    """Build the URI of the prompt of a folder, of one of its agents, or of what another assistant sends.

    `folder` is the URI of the folder.
    """
    query = "" if agent is None else f"?agent={quote(agent, safe='')}"
    folder_path = folder.removeprefix("file:")
    folder_path = folder_path.removeprefix("//") if folder_path.startswith("///") else folder_path
    return f"{SCHEME}:{folder_path}/{assistant or PROMPT}{SUFFIX}{query}"


def is_virtual(uri: str) -> bool:
    """Whether a document is virtual: not a file, but a text whose content the client requests."""
    return uri.startswith(f"{SCHEME}:")


class ContextDocuments:
    """The documents of one client, by URI. Use it on the event loop.

    `refresh` sends the request for a URI and waits for its reply. `is_supported` says that the client takes
    such requests.
    """

    def __init__(self, refresh: Callable[[str], Awaitable[object]]) -> None:
        self.is_supported = False
        self._refresh = refresh
        self._documents: dict[str, ContextDocument] = {}
        self._queue: TaskQueue[frozenset[str]] = TaskQueue(self._send, frozenset.union, quiet_s=PAUSE_S)

    def get(self, uri: str) -> ContextDocument | None:
        return self._documents.get(uri)

    def put(self, uri: str, document: ContextDocument) -> None:
        """Take note that the client has this document now."""
        self._documents.pop(uri, None)
        self._documents[uri] = document
        if len(self._documents) > MOST_DOCUMENTS:
            del self._documents[next(iter(self._documents))]

    def closed(self, uri: str) -> None:
        self._documents.pop(uri, None)

    def folder_changed(self, folder: str) -> None:
        """Ask the client to read the virtual documents of the folder with this URI again."""
        uris = [
            uri for uri, document in self._documents.items() if document.folder == folder and is_virtual(uri)
        ]
        if uris and self.is_supported:
            self._queue.request(frozenset(uris))

    def end(self) -> None:
        """Send nothing more."""
        self._queue.stop()

    async def _send(self, uris: frozenset[str]) -> None:
        for uri in sorted(uris & self._documents.keys()):
            with contextlib.suppress(NexusError, TimeoutError):
                await self._refresh(uri)
