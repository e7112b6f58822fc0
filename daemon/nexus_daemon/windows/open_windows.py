"""Keep the windows of a daemon: its clients, their folders, and what is shown to all of them."""

import contextlib
from collections.abc import Iterator

from nexus_daemon.lsp import lsp_types
from nexus_daemon.windows.live_folder import LiveFolder
from nexus_daemon.workspace.folders import FolderTable
from nexus_daemon.workspace.publish import Client


class Windows:
    """The clients of a daemon with their folders, in the order of joining.

    `clients` are the clients to notify. A client that is about to leave is not among them.
    """

    def __init__(self) -> None:
        self.tables: dict[Client, FolderTable[LiveFolder]] = {}
        self.clients: set[Client] = set()

    @property
    def names(self) -> dict[Client, str]:
        """Return the names of the clients in the order of joining. A repeated name gets a number."""
        names: dict[Client, str] = {}
        for client in self.tables:
            namesakes = sum(earlier_client.name == client.name for earlier_client in names)
            names[client] = f"{client.name} ({namesakes + 1})" if namesakes else client.name
        return names

    @property
    def folders(self) -> tuple[LiveFolder, ...]:
        """The folders of all clients."""
        return tuple(folder for table in self.tables.values() for folder in table)

    def of(self, folder: LiveFolder) -> list[LiveFolder]:
        """Return the folders of all clients with the path of `folder`, itself included, in the order of
        joining.
        """
        folders = (table.at_path(folder.path) for table in self.tables.values())
        return [window for window in folders if window is not None]

    @contextlib.contextmanager
    def show_work(self, title: str) -> Iterator[None]:
        """Show in every client that work is under way during the block, if it takes long."""
        with contextlib.ExitStack() as stack:
            for client in self.clients:
                stack.enter_context(client.show_work(title))
            yield

    def show(self, message: lsp_types.ShowMessageParams, folder: LiveFolder | None = None) -> None:
        """Show a message to every user, or only in the windows of a folder."""
        clients = self.clients if folder is None else [window.client for window in self.of(folder)]
        for client in clients:
            client.notify("window/showMessage", message)

    def in_workspace(self, workspace: str) -> Iterator[LiveFolder]:
        """Yield the folders that have this workspace of the ledger."""
        for folder in self.folders:
            if folder.ledger is not None and folder.ledger.workspace == workspace:
                yield folder
