"""Answer a client that pulls its diagnostics: what `publish` would have sent it, by URI.

1. The id of a result is a hash of its diagnostics, so it stays the same in the next daemon. If the client's
   result has the same id as the new one, the answer is that it is unchanged.
2. A client is asked to pull again if its results differ from those that it would get now.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.documents import OpenDocuments
from nexus_daemon.workspace.client_refresh import ClientRefresh
from nexus_daemon.workspace.publish import PublishDiagnosticsParams

REFRESH_DIAGNOSTICS = "workspace/diagnostic/refresh"
ID_BYTES = 8


class _Result(msgspec.Struct, frozen=True):
    id: str
    diagnostics: Sequence[Mapping[str, Any]]


def _result(diagnostics: Sequence[Mapping[str, Any]]) -> _Result:
    return _Result(blake2b(framing.encode(diagnostics), digest_size=ID_BYTES).hexdigest(), diagnostics)


_NOTHING = _result(())


class DiagnosticReports:
    """The results of one client, by URI. Use it on the event loop.

    `refresh` sends the request to pull again and waits for its reply.
    """

    def __init__(self, documents: OpenDocuments, refresh: Callable[[], Awaitable[object]]) -> None:
        self.refresh = ClientRefresh(self._refresh_if_outdated)
        self._documents = documents
        self._send_refresh = refresh
        self._results: dict[str, _Result] = {}  # by URI; without those of no diagnostics, as below
        self._pulled: dict[str, str] = {}  # ids of the results that the client has

    def publish(self, _: str, params: PublishDiagnosticsParams) -> None:
        """Store what would be published. A publisher calls it as its `notify`."""
        if params.diagnostics:
            self._results[params.uri] = _result(params.diagnostics)
        else:
            self._results.pop(params.uri, None)
        self.refresh.changed()

    def document_report(self, uri: str, previous: str | None) -> dict[str, Any]:
        """Return the report of a document. `previous` is the id of the result that the client has."""
        result = self._results.get(uri, _NOTHING)
        if result is _NOTHING:
            self._pulled.pop(uri, None)
        else:
            self._pulled[uri] = result.id
        if result.id == previous:
            return {"kind": "unchanged", "resultId": result.id}
        return {"kind": "full", "resultId": result.id, "items": result.diagnostics}

    def workspace_report(self, previous: Mapping[str, str]) -> dict[str, Any]:
        """Return the reports of all files that have diagnostics, or that are in `previous`.

        `previous` maps URIs to the ids of the results that the client has.
        """
        reports = []
        for uri in sorted({*self._results, *previous}):
            document = self._documents.get(uri)
            version = None if document is None else document.version
            report = self.document_report(uri, previous.get(uri))
            reports.append({"uri": uri, "version": version, **report})
        return {"items": reports}

    async def _refresh_if_outdated(self) -> None:
        if {uri: result.id for uri, result in self._results.items()} != self._pulled:
            await self._send_refresh()
