"""Old snapshots, new snapshots → the least set of `publishDiagnostics` notifications for one client.

1. A file's diagnostics are the union over all folders that read it, each shown once.
2. An open document is published again for every version of it, so that a client never shows the
   diagnostics of an older text; any other file only when its diagnostics changed.
3. A snapshot that was made from an older text of an open document says nothing about it: the rebuild
   that the newer text asked for will.
4. A file without problems that was never published is left alone, unless it is open and read by a folder.
5. Of a file behind a symbolic link the open document shows what is wrong, too.
6. Diagnostics are made once for a snapshot and a file, and taken over from the snapshot before where
   neither the file's problems nor its text changed: an edit costs what changed, not what there is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import Problem
from nexus_daemon.features.diagnostics import diagnostics
from nexus_daemon.lsp import convert, framing
from nexus_daemon.lsp.documents import Document, OpenDocuments

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot

PUBLISH = "textDocument/publishDiagnostics"

Notify = Callable[[str, Any], None]
Diagnostics = Mapping[bytes, Mapping[str, Any]]
NONE: Diagnostics = {}


class PublishDiagnosticsParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """As in LSP 3.17."""

    uri: str
    diagnostics: list[Mapping[str, Any]]
    version: int | None = None


class _Told(msgspec.Struct, frozen=True):
    """What the client knows about a file."""

    uri: str
    version: int | None
    found: Diagnostics


class _Reading:
    """What one folder's snapshot says about files; `overlays` are the unsaved texts it was made with."""

    def __init__(
        self, snapshot: "Snapshot", overlays: Mapping[str, str], encoding: str, before: "_Reading | None"
    ) -> None:
        self.overlays = overlays
        self._texts = snapshot.layers.texts
        self._locate = convert.Locator(snapshot.layers, encoding)
        self._problems: dict[str, list[Problem]] = {}
        for problem in snapshot.problems:
            self._problems.setdefault(problem.path, []).append(problem)
        self.wrong = self._problems.keys()
        self._links = {real: path for real, path in snapshot.layers.links.items() if path in self._texts}
        self.paths = self._texts.keys() | self._problems.keys() | self._links.keys()
        self._found: dict[str, Diagnostics] = {}
        if before is not None:
            self._found = {path: found for path, found in before._found.items() if self._same(before, path)}

    def found(self, path: str) -> Diagnostics:
        """The diagnostics of a file, by their JSON, in the order of its text."""
        path = path if path in self._texts else self._links.get(path, path)
        problems = self._problems.get(path)
        if not problems:
            return NONE
        found = self._found.get(path)
        if found is None:
            made = diagnostics(problems, self._locate)
            found = self._found[path] = {framing.encode(one): one for one in made}
        return found

    def _same(self, before: "_Reading", path: str) -> bool:
        """Whether the other reading's diagnostics of a file are this one's, too."""
        problems = self._problems.get(path)
        return (
            problems is not None
            and problems == before._problems.get(path)
            and self._texts.get(path) == before._texts.get(path)
            # places in other files move with their texts
            and not any(problem.related for problem in problems)
        )


class Publisher:
    """What one client was told about each file. Lives on the event loop."""

    def __init__(self, documents: OpenDocuments, encoding: str, notify: Notify) -> None:
        self._documents = documents
        self._encoding = encoding
        self._notify = notify
        self._readings: dict[str, _Reading] = {}
        self._told: dict[str, _Told] = {}

    def swap(self, folder: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]) -> None:
        """A folder has a new snapshot, or None when it is gone: tell the client what changed.

        `overlays` are the unsaved texts that the snapshot was made with.
        """
        old = self._readings.pop(folder, None)
        if snapshot is not None:
            self._readings[folder] = _Reading(snapshot, overlays, self._encoding, old)
        new = self._readings.get(folder)
        known = self._told.keys() | (new.wrong if new else ())
        for path in sorted({path for one in (old, new) if one for path in one.paths}):
            document = self._documents.by_path(path)
            if document is not None or path in known:
                self._publish(path, document)

    def _publish(self, path: str, document: Document | None) -> None:
        reading = [one for one in self._readings.values() if path in one.paths]
        if document is not None:
            current = [one for one in reading if one.overlays.get(path) == document.text]
            if reading and not current:
                return
            reading = current
        found = reading[0].found(path) if len(reading) == 1 else _union(reading, path)
        told = self._told.get(path)
        if told is None and not found and (document is None or not reading):
            return
        version = document.version if document else None
        uri = document.uri if document else convert.path_to_uri(path)
        if told is not None:
            if told.version == version and told.uri == uri and told.found.keys() == found.keys():
                return
            if told.uri != uri and told.found:
                self._notify(PUBLISH, PublishDiagnosticsParams(told.uri, []))
        if found or document is not None:
            self._told[path] = _Told(uri, version, found)
        else:
            del self._told[path]
        self._notify(PUBLISH, PublishDiagnosticsParams(uri, list(found.values()), version))


def _union(readings: Iterable[_Reading], path: str) -> Diagnostics:
    """What several folders say about a file, each diagnostic once."""
    found: dict[bytes, Mapping[str, Any]] = {}
    for reading in readings:
        found.update(reading.found(path))
    return found
