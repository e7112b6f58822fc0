"""Old snapshots, new snapshots → the least set of `publishDiagnostics` notifications for one client.

1. A file's diagnostics are the union over all folders that read it, each shown once.
2. An open document is published again for every version of it, so that a client never shows the
   diagnostics of an older text; any other file only when its diagnostics changed.
3. A snapshot that was made from an older text of an open document says nothing about it: the rebuild
   that the newer text asked for will.
4. A file without problems that was never published is left alone, unless it is open and read by a folder.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_daemon import convert
from nexus_daemon.documents import Document, OpenDocuments
from nexus_daemon.features.diagnostics import diagnostics

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot

PUBLISH = "textDocument/publishDiagnostics"

Notify = Callable[[str, Any], None]


class PublishDiagnosticsParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """As in LSP 3.17."""

    uri: str
    diagnostics: list[dict[str, Any]]
    version: int | None = None


class Publisher:
    """What one client was told about each file. Lives on the event loop."""

    def __init__(self, documents: OpenDocuments, encoding: str, notify: Notify) -> None:
        self._documents = documents
        self._encoding = encoding
        self._notify = notify
        self._snapshots: dict[str, tuple[Snapshot, Mapping[str, str]]] = {}
        self._told: dict[str, PublishDiagnosticsParams] = {}

    def swap(self, folder: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]) -> None:
        """A folder has a new snapshot, or None when it is gone: tell the client what changed.

        `overlays` are the unsaved texts that the snapshot was made with.
        """
        old, _ = self._snapshots.pop(folder, (None, {}))
        if snapshot is not None:
            self._snapshots[folder] = snapshot, overlays
        self.refresh({*_paths(old), *_paths(snapshot)})

    def refresh(self, paths: Iterable[str]) -> None:
        """Tell the client about these files where it does not know it yet."""
        for path in sorted(paths):
            self._publish(path, self._documents.by_path(path))

    def _publish(self, path: str, document: Document | None) -> None:
        reading = [one for one in self._snapshots.values() if path in _paths(one[0])]
        if document is not None:
            current = [one for one in reading if one[1].get(path) == document.text]
            if reading and not current:
                return
            reading = current
        found: list[dict[str, Any]] = []
        for snapshot, _ in reading:
            found += [one for one in diagnostics(snapshot, path, self._encoding) if one not in found]
        uri = document.uri if document else convert.path_to_uri(path)
        params = PublishDiagnosticsParams(uri, found, document.version if document else None)
        told = self._told.get(path)
        if told == params or (told is None and not found and (document is None or not reading)):
            return
        if told is not None and told.uri != uri and told.diagnostics:
            self._notify(PUBLISH, PublishDiagnosticsParams(told.uri, []))
        if found or document is not None:
            self._told[path] = params
        else:
            self._told.pop(path, None)
        self._notify(PUBLISH, params)


def _paths(snapshot: "Snapshot | None") -> set[str]:
    """The files that a snapshot says something about."""
    if snapshot is None:
        return set()
    return {*snapshot.layers.texts, *(problem.path for problem in snapshot.problems)}
