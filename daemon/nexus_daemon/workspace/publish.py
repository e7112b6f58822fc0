"""Publish diagnostics: old findings, new findings → the fewest `publishDiagnostics` notifications for one
client.

1. A file's diagnostics are those of the innermost folder that contains it and reads it. Findings of other
   folders about it are not published. For a file outside all folders, they are the union over the folders
   that read it. If several of these report the same code at the same place, only the first one's diagnostic
   is published.
2. An open document is published again for every version of it, so that a client never shows the diagnostics
   of an older text. It is published once for every opening, also without problems, since a client forgets
   what it showed of a document that it closes. Any other file is published only when its diagnostics changed.
3. A snapshot that was made from an older text of an open document says nothing about the document. The
   rebuild that the newer text requested will. Nothing is said either about a document whose text is unknown.
4. A file without problems that was never published is left alone, unless it is open and read by a folder.
5. If a file is open as several documents, by links or spellings, each of them has its diagnostics.
6. While the check of what assistants read in a folder runs, nothing is published for the folder, and what was
   published stays.
7. Diagnostics are made once for a snapshot and a file. They are reused from the snapshot before if neither
   the file's problems nor its text changed, so an edit costs only what it changes.

`Client` is the interface of a client for the layers below its connection.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nexus_context.config.overridden import overridden_settings
from nexus_context.config.silenced import SETTING, without_silenced
from nexus_context.errors import Problem
from nexus_context.folder.layers.layer_types import Layers
from nexus_context.folder.layers.walk import within
from nexus_daemon.features.diagnostics import diagnostics
from nexus_daemon.lsp import convert, framing
from nexus_daemon.lsp.client_capabilities import ClientCapabilities
from nexus_daemon.lsp.documents import Document, OpenDocuments

if TYPE_CHECKING:
    from nexus_context.folder.snapshot import Snapshot
    from nexus_daemon.workspace.folders import Folder

PUBLISH = "textDocument/publishDiagnostics"

Notify = Callable[[str, Any], None]
Diagnostics = Mapping[bytes, Mapping[str, Any]]
NONE: Diagnostics = {}


class Client(Protocol):
    """A connected editor. `windows.connection.Connection` implements it."""

    @property
    def name(self) -> str:
        """The name that the client gives itself."""
        ...

    @property
    def running(self) -> int:
        """The number of the client's requests under way."""
        ...

    @property
    def unread(self) -> int:
        """The number of bytes that wait for the client to read them."""
        ...

    @property
    def listens(self) -> bool:
        """Whether anything is shown to the client."""
        ...

    @property
    def capabilities(self) -> ClientCapabilities: ...

    @property
    def documents(self) -> "Documents": ...

    def now(self) -> datetime:
        """Return the client's local time, with its zone."""
        ...

    def swap(self, folder: "Folder", snapshot: "Snapshot | None") -> None:
        """Publish the diagnostics of a folder's new snapshot. None means that the folder is removed."""
        ...

    def swap_agent(
        self, folder: "Folder", agent: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]
    ) -> None:
        """Publish the diagnostics of an agent's new snapshot.

        None means that the agent or its folder is gone.
        """
        ...

    def show_work(self, title: str, /) -> AbstractContextManager[object]:
        """Show work that begins now, if it takes long, until the end of the returned context."""
        ...

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        ...

    def refresh_lenses(self) -> None:
        """Make the client request its lenses again, if it shows any."""
        ...

    def refresh_contexts(self, folder: str) -> None:
        """Make the client request the virtual documents of a folder again, if it has any."""
        ...


class Documents(Protocol):
    """The documents of a client. `windows.client_documents.ClientDocuments` implements it."""

    def adopt(self) -> None:
        """Start to check the open documents that no folder reads."""
        ...


class PublishDiagnosticsParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of `textDocument/publishDiagnostics` in LSP 3.17."""

    uri: str
    diagnostics: list[Mapping[str, Any]]
    version: int | None = None


class _Published(msgspec.Struct, frozen=True):
    """The diagnostics of a document or of another file that the client has."""

    version: int | None
    opening: int  # of the document; 0: it is not open
    diagnostics: Diagnostics

    def has(self, other: "_Published") -> bool:
        """Whether the client already has the same version and diagnostics as `other`."""
        has_same_version = (self.version, self.opening) == (other.version, other.opening)
        return has_same_version and self.diagnostics.keys() == other.diagnostics.keys()


class Findings(msgspec.Struct, frozen=True):
    """The problems of the files that a folder reads.

    `layers` have the texts of the files, and `overlays` are the unsaved texts among them. `minders` maps a
    problem to the programs that report it; a problem of Nexus itself is not in it.
    """

    layers: Layers
    problems: Sequence[Problem]
    overlays: Mapping[str, str]
    minders: Mapping[Problem, Sequence[str]] = {}


def without_programs(snapshot: "Snapshot", overlays: Mapping[str, str]) -> Findings:
    """Return the findings of Nexus alone, for a snapshot with these unsaved texts."""
    layers, ignore = snapshot.layers, snapshot.effective.get(SETTING) or ()
    heard = without_silenced(snapshot.problems, layers.texts, ignore, layers.root)
    problems = (*heard.problems, *overridden_settings(snapshot.effective))
    return Findings(layers, problems, overlays)


class _View:
    """One folder's findings and their diagnostics."""

    def __init__(self, findings: Findings, encoding: str, previous_view: "_View | None") -> None:
        self.overlays = findings.overlays
        self.folder = findings.layers.root
        self._minders = findings.minders
        self._texts = findings.layers.texts
        self._locate = convert.Locator(findings.layers, encoding, self.overlays)
        self._problems: dict[str, list[Problem]] = {}
        for problem in findings.problems:
            self._problems.setdefault(problem.path, []).append(problem)
        self.wrong = self._problems.keys()
        self._links = {real: path for real, path in findings.layers.links.items() if path in self._texts}
        self.paths = self._texts.keys() | self._problems.keys() | self._links.keys()
        self._diagnostics: dict[str, Diagnostics] = {}
        if previous_view is not None:
            diagnostics_before = previous_view._diagnostics.items()  # noqa: SLF001 - of its own class
            self._diagnostics = {
                path: diagnostics
                for path, diagnostics in diagnostics_before
                if self._is_same(previous_view, path)
            }

    def diagnostics_of(self, path: str) -> Diagnostics:
        """The diagnostics of a file, by their JSON, in the order of its text."""
        path = path if path in self._texts else self._links.get(path, path)
        problems = self._problems.get(path)
        if not problems:
            return NONE
        by_json = self._diagnostics.get(path)
        if by_json is None:
            converted = diagnostics(problems, self._locate, self._minders)
            by_json = {framing.encode(diagnostic): diagnostic for diagnostic in converted}
            self._diagnostics[path] = by_json
        return by_json

    def _counts_mark(self, path: str) -> bool:
        """Whether the client has a byte order mark in its text."""
        return self.overlays.get(path, "").startswith("\ufeff")

    def _is_same(self, previous_view: "_View", path: str) -> bool:
        """Whether the diagnostics of a file are those of the view before."""
        problems = self._problems.get(path)
        return (
            problems is not None
            and problems == previous_view._problems.get(path)  # noqa: SLF001 - of its own class
            and self._texts.get(path) == previous_view._texts.get(path)  # noqa: SLF001
            and self._counts_mark(path) == previous_view._counts_mark(path)  # noqa: SLF001
            and all(self._minders.get(problem) == previous_view._minders.get(problem) for problem in problems)  # noqa: SLF001
            # places in other files move with their texts
            and not any(problem.related for problem in problems)
        )


class Publisher:
    """Publishes diagnostics, and knows those that one client has of each file. Use it on the event loop."""

    def __init__(self, documents: OpenDocuments, encoding: str, notify: Notify) -> None:
        self._documents = documents
        self._encoding = encoding
        self._notify = notify
        self._views: dict[str, _View] = {}
        self._open: dict[str, _Published] = {}  # by URI, of open documents
        self._files: dict[str, _Published] = {}  # by path, of other files

    def swap(self, folder: str, findings: Findings | None) -> None:
        """Publish the differences that a folder's new findings make.

        None means that the folder is removed.
        """
        old_view = self._views.get(folder)
        if findings is None:
            self._views.pop(folder, None)
        else:
            self._views[folder] = _View(findings, self._encoding, old_view)
        new_view = self._views.get(folder)
        self._take_closed()
        paths_with_problems = self._files.keys() | (new_view.wrong if new_view else ())
        documents: dict[str, Document] = {}
        for path in sorted({path for view in (old_view, new_view) if view for path in view.paths}):
            file_documents = self._documents.of_file(path)
            documents.update((document.uri, document) for document in file_documents)
            if not any(document.path == path for document in file_documents) and path in paths_with_problems:
                self._publish_file(path)
        for document in documents.values():
            self._publish_document(document)

    def _take_closed(self) -> None:
        """Count what was published of closed documents as published of their files, if those are read."""
        for uri in [uri for uri in self._open if self._documents.get(uri) is None]:
            published = self._open.pop(uri)
            path = convert.uri_to_path(uri) or ""
            if any(path in view.paths for view in self._views.values()) and convert.path_to_uri(path) == uri:
                self._files[path] = published
            elif published.diagnostics:
                self._notify(PUBLISH, PublishDiagnosticsParams(uri, []))

    def _publish_file(self, path: str) -> None:
        """Publish a file that is not open."""
        published = _Published(None, 0, _union(self._views.values(), (path,)))
        previously_published = self._files.get(path)
        if not published.diagnostics:
            self._files.pop(path, None)
        else:
            self._files[path] = published
        if previously_published is None and not published.diagnostics:
            return
        if previously_published is None or not previously_published.has(published):
            items = list(published.diagnostics.values())
            self._notify(PUBLISH, PublishDiagnosticsParams(convert.path_to_uri(path), items))

    def _publish_document(self, document: Document) -> None:
        """Publish an open document, unless all that reads it is older than its text."""
        assert document.path is not None and document.real is not None  # noqa: S101 - it is a file's
        paths = tuple({document.path: None, document.real: None})
        views = [view for view in self._views.values() if not view.paths.isdisjoint(paths)]
        current = [view for view in views if any(view.overlays.get(path) == document.text for path in paths)]
        if views and (not current or not document.is_known):
            return
        published = _Published(document.version, document.opening, _union(current, paths))
        file = self._files.pop(document.path, None)
        previously_published = self._open.get(document.uri) or file
        if previously_published is None and not views:
            return
        self._open[document.uri] = published
        if file is not None and file.diagnostics and convert.path_to_uri(document.path) != document.uri:
            self._notify(PUBLISH, PublishDiagnosticsParams(convert.path_to_uri(document.path), []))
        if previously_published is None or not previously_published.has(published):
            items = list(published.diagnostics.values())
            self._notify(PUBLISH, PublishDiagnosticsParams(document.uri, items, document.version))


def _innermost(views: Iterable[_View], path: str) -> list[_View]:
    """Select the views of the innermost folder that contains and reads a path, else all that read it."""
    reading = [view for view in views if path in view.paths]
    depth = max((len(view.folder) for view in reading if within(path, view.folder)), default=0)
    if not depth:
        return reading
    return [view for view in reading if len(view.folder) == depth and within(path, view.folder)]


def _union(views: Collection[_View], paths: Iterable[str]) -> Diagnostics:
    """Merge a file's diagnostics from its views. For equal code and range, the first view's win."""
    union: list[Diagnostics] = [
        view.diagnostics_of(path) for path in paths for view in _innermost(views, path)
    ]
    if len(union) == 1:
        return union[0]
    merged: dict[bytes, Mapping[str, Any]] = {}
    places: set[bytes] = set()
    for by_json in union:
        own_places = {
            json: framing.encode((diagnostic["code"], diagnostic["range"]))
            for json, diagnostic in by_json.items()
        }
        merged |= {json: diagnostic for json, diagnostic in by_json.items() if own_places[json] not in places}
        places.update(own_places.values())
    return merged
