"""Old snapshots, new snapshots → the least set of `publishDiagnostics` notifications for one client.

1. A file's diagnostics are the union over all folders that read it, each shown once.
2. An open document is published again for every version of it, so that a client never shows the
   diagnostics of an older text; any other file only when its diagnostics changed.
3. A snapshot that was made from an older text of an open document says nothing about it: the rebuild
   that the newer text asked for will.
4. A file without problems that was never published is left alone, unless it is open and read by a folder.
5. A document that is open under a symbolic link has the diagnostics of the file, too.
6. Diagnostics are made once for a snapshot and a file, and reused from the snapshot before where neither the
   file's problems nor its text changed: an edit costs what it changes.

`Client` is the interface of a client for the layers below its connection.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nexus_context.errors import Problem
from nexus_daemon.features.diagnostics import diagnostics
from nexus_daemon.lsp import convert, framing
from nexus_daemon.lsp.documents import Document, OpenDocuments

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot
    from nexus_daemon.lsp.progress import WorkProgress
    from nexus_daemon.workspace.folders import Folder

PUBLISH = "textDocument/publishDiagnostics"

Notify = Callable[[str, Any], None]
Diagnostics = Mapping[bytes, Mapping[str, Any]]
NONE: Diagnostics = {}


class Client(Protocol):
    """A connected editor; `connection` implements it."""

    @property
    def name(self) -> str:
        """What the client calls itself."""
        ...

    @property
    def running(self) -> int:
        """The number of its requests under way."""
        ...

    @property
    def unread(self) -> int:
        """The bytes that wait until it reads."""
        ...

    @property
    def position_encoding(self) -> str: ...

    @property
    def wants_assistant_sessions(self) -> bool:
        """Whether to notify it of changed sessions of other assistants."""
        ...

    def now(self) -> datetime:
        """The client's local time, with its zone."""
        ...

    def swap(self, folder: "Folder", snapshot: "Snapshot | None") -> None:
        """Publish the diagnostics of a folder's new snapshot; None: the folder is removed."""
        ...

    def swap_agent(
        self, folder: "Folder", agent: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]
    ) -> None:
        """As `swap`, for the snapshot of an agent of the folder."""
        ...

    def adopt(self) -> None:
        """Check open documents that no folder reads any more, or stop checking them."""
        ...

    def show_work(self, title: str) -> "WorkProgress":
        """Show work that begins now, if it takes long, until its `end`."""
        ...

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        ...


class PublishDiagnosticsParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """As in LSP 3.17."""

    uri: str
    diagnostics: list[Mapping[str, Any]]
    version: int | None = None


class _Published(msgspec.Struct, frozen=True):
    """The diagnostics of a file that the client has."""

    uri: str
    version: int | None
    diagnostics: Diagnostics


class _View:
    """One folder's snapshot and its diagnostics; `overlays` are the unsaved texts it was made with."""

    def __init__(
        self, snapshot: "Snapshot", overlays: Mapping[str, str], encoding: str, before: "_View | None"
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
        self._diagnostics: dict[str, Diagnostics] = {}
        if before is not None:
            diagnostics_before = before._diagnostics.items()  # noqa: SLF001 - of its own class
            self._diagnostics = {
                path: diagnostics for path, diagnostics in diagnostics_before if self._is_same(before, path)
            }

    def diagnostics_of(self, path: str) -> Diagnostics:
        """The diagnostics of a file, by their JSON, in the order of its text."""
        path = path if path in self._texts else self._links.get(path, path)
        problems = self._problems.get(path)
        if not problems:
            return NONE
        by_json = self._diagnostics.get(path)
        if by_json is None:
            by_json = {framing.encode(one): one for one in diagnostics(problems, self._locate)}
            self._diagnostics[path] = by_json
        return by_json

    def _is_same(self, before: "_View", path: str) -> bool:
        """Whether the diagnostics of a file are those of the view before."""
        problems = self._problems.get(path)
        return (
            problems is not None
            and problems == before._problems.get(path)  # noqa: SLF001 - of its own class
            and self._texts.get(path) == before._texts.get(path)  # noqa: SLF001
            # places in other files move with their texts
            and not any(problem.related for problem in problems)
        )


class Publisher:
    """The diagnostics that one client has of each file. Lives on the event loop."""

    def __init__(self, documents: OpenDocuments, encoding: str, notify: Notify) -> None:
        self._documents = documents
        self._encoding = encoding
        self._notify = notify
        self._views: dict[str, _View] = {}
        self._published: dict[str, _Published] = {}

    def swap(self, folder: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]) -> None:
        """Publish what changed with a folder's new snapshot; None: the folder is removed.

        `overlays` are the unsaved texts that the snapshot was made with.
        """
        old = self._views.pop(folder, None)
        if snapshot is not None:
            self._views[folder] = _View(snapshot, overlays, self._encoding, old)
        new = self._views.get(folder)
        paths = self._published.keys() | (new.wrong if new else ())
        for path in sorted({path for one in (old, new) if one for path in one.paths}):
            document = self._documents.by_path(path)
            if document is not None or path in paths:
                self._publish(path, document)

    def _publish(self, path: str, document: Document | None) -> None:
        views = [view for view in self._views.values() if path in view.paths]
        if document is not None:
            current = [view for view in views if view.overlays.get(path) == document.text]
            if views and not current:
                return
            views = current
        new = views[0].diagnostics_of(path) if len(views) == 1 else _union(views, path)
        old = self._published.get(path)
        if old is None and not new and (document is None or not views):
            return
        version = document.version if document else None
        uri = document.uri if document else convert.path_to_uri(path)
        if old is not None:
            if old.version == version and old.uri == uri and old.diagnostics.keys() == new.keys():
                return
            if old.uri != uri and old.diagnostics:
                self._notify(PUBLISH, PublishDiagnosticsParams(old.uri, []))
        if new or document is not None:
            self._published[path] = _Published(uri, version, new)
        else:
            del self._published[path]
        self._notify(PUBLISH, PublishDiagnosticsParams(uri, list(new.values()), version))


def _union(views: Iterable[_View], path: str) -> Diagnostics:
    """The diagnostics of a file from several views, each once."""
    union: dict[bytes, Mapping[str, Any]] = {}
    for view in views:
        union.update(view.diagnostics_of(path))
    return union
