"""A client as the layers below its connection see it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot
    from nexus_daemon.workspace.folders import Folder


class Client(Protocol):
    """A connected editor, as it is told what changed; `connection` implements it."""

    @property
    def position_encoding(self) -> str: ...

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

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        ...
