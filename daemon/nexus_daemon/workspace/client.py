"""A client as the layers below its connection see it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot
    from nexus_daemon.workspace.folders import Folder

T = TypeVar("T")


class Client(Protocol):
    """A connected editor, and the worker threads behind it; `connection` implements it."""

    @property
    def position_encoding(self) -> str: ...

    @property
    def has_model(self) -> bool:
        """Whether it answers `nexus/model/complete`."""
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

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        ...

    async def ask(self, method: str, params: Any, result_type: Any, *, timeout_s: float) -> Any:
        """Send a request and return its result."""
        ...

    async def work(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run a job in a worker thread."""
        ...
