"""Asks a daemon in this process about a folder: commands use the handlers that editors use.

1. The daemon lives as long as its command, and watches no file. It shares the ledger with all running
   daemons, which notice what it writes within a second.
2. `writing` raises LedgerError if the ledger does not persist what is written, or may not be the right one.
   `reading` creates no ledger.
3. No client is connected, unless a command is one: notifications are dropped.
4. A command may run in a daemon on behalf of another process. It then asks a second daemon beside that one,
   with the environment of the other process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_context.disk.files import is_dir
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import MirroredFile
from nexus_daemon import protocol
from nexus_daemon.api import stored_sessions
from nexus_daemon.api.resolve import folder_ledger, snapshot_of
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, load_inputs, place_of, read
from nexus_daemon.cli.open_session import check_settings
from nexus_daemon.lsp import convert
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.windows.connection import Connection
from nexus_daemon.windows.daemon import Daemon
from nexus_daemon.workspace.trusted_folders import is_trusted

if TYPE_CHECKING:  # as in `folder`
    from nexus_context.assistants.sessions.session_types import Place
    from nexus_daemon.providers import Target

P = TypeVar("P", bound=protocol.Params)
R = TypeVar("R", bound=protocol.Wire)
T = TypeVar("T")

GIT_S = 5.0
"""Seconds that git may take: nobody types meanwhile."""


class _NoEditor(NexusServer):
    """The server of a connection without a client."""

    def notify(self, method: str, params: Any = None) -> None:
        pass


class FolderClient:
    """The client of a daemon with one folder. `uri` is the URI of the folder."""

    def __init__(self, runner: asyncio.Runner, connection: Connection, uri: str) -> None:
        self.uri = uri
        self._runner = runner
        self._connection = connection

    def ask(self, handler: Callable[[Connection, P], Awaitable[T]], params: P) -> T:
        """Return the handler's answer. RequestError if the handler raises it."""
        return self._runner.run(_awaited(handler(self._connection, params)))

    def find_session(self, name: str) -> protocol.SessionInfo:
        """Return the session with this name or id, or the one that begins so.

        RequestError for none, and for several.
        """
        return self.ask(stored_sessions.find, protocol.FindParams(self.uri, session=name))

    def check_provider(self, agent: str | None) -> None:
        """Raise RequestError, code no-provider, unless a provider answers the folder's chats."""
        from nexus_daemon.providers.configured import find_target  # only for chats

        folder = self._connection.folders.at(self.uri)
        snapshot = self._runner.run(snapshot_of(self._connection, folder, agent))
        if self._connection.provider is None:
            self._runner.run(find_target(snapshot, self._connection.folders.load_inputs.environ))

    def store_key(self, provider: str, key: str) -> None:
        """Store the key of a provider in the system's keyring, else in a file. An empty key is forgotten."""
        from nexus_daemon.providers.configured import key_name  # only for chats
        from nexus_daemon.servers.token_store import delete_tokens, save_tokens

        environ, name = self._connection.folders.load_inputs.environ, key_name(provider)
        self._runner.run(save_tokens(environ, name, key) if key else _forgotten(delete_tokens(environ, name)))

    def use_provider(self, target: "Target") -> None:
        """Let this provider answer chats, instead of the one in the settings."""
        self._connection.provider = target

    def is_trusted(self) -> bool:
        """Whether programs may run in the folder."""
        return is_trusted(self.snapshot().folder, self._connection.folders.load_inputs)

    def snapshot(self) -> Snapshot:
        """Return the folder as it was read."""
        return self._runner.run(self._connection.folders.at(self.uri).current())

    def place(self) -> "Place":
        """Return where other programs have their sessions, and whether the settings let them be read."""
        return place_of(self.snapshot())

    def mirrored_files(self) -> Mapping[str, MirroredFile]:
        """Return, by path, how far the files of other assistants were read into the ledger."""
        return self._runner.run(folder_ledger(self._connection, self.uri)).store.mirrors.files()

    def tell_notices(self, command: str) -> None:
        """Print what users have to know of the ledger, if a request has opened one.

        `command` is named before each notice.
        """
        store = self._connection.daemon.ledgers.writer.store
        snapshot = self._connection.folders.at(self.uri).snapshot
        if store is None or snapshot is None:
            return
        broken = check_settings(snapshot, writes=False)
        if broken is not None:
            location = store.location or "none"
            output.complain(command, f"{broken} has errors and is ignored; the ledger in use is {location}.")
        if store.location and store.notice is not None:  # without a location there is no ledger yet
            output.complain(command, store.notice)

    def ledger_notice(self) -> str | None:
        """Return the ledger's notice for users, or None. LedgerError if written turns would not persist."""
        store = self._runner.run(folder_ledger(self._connection, self.uri)).store
        if not store.persists:
            raise LedgerError(f"Nothing was done. {store.notice}", code="ledger-read-only")
        return store.notice


@contextmanager
def reading(command: str, folder: Path) -> Iterator[FolderClient]:
    """Open a client of a daemon with the folder for a `with` block, to read what the daemon knows.

    At the end, notices about the ledger are printed in the name of the `command`.
    """
    with _running(folder, creates_ledger=False) as client:
        try:
            yield client
        finally:
            client.tell_notices(command)


def answer(
    command: str, folder: str, handler: Callable[[Connection, P], Awaitable[R]], params: Callable[[str], P]
) -> R:
    """Return the answer of a handler that writes.

    `params` makes the handler's parameters from the URI of `folder`, a path. RequestError if the handler
    raises it, and LedgerError by rule 2 or if there is no such folder. `command` is named in notices.
    """
    if not is_dir(str(absolute(folder))):
        raise LedgerError(f"{folder} is not a folder.", code="unknown-folder")
    with writing(command, folder) as client:
        return client.ask(handler, params(client.uri))


@contextmanager
def writing(command: str, folder: str, editor: NexusServer | None = None) -> Iterator[FolderClient]:
    """Open a client of a daemon with the folder for a `with` block, to change its conversations.

    LedgerError by rule 2. The folder need not exist any more. `command` is named in notices. `editor` takes
    notifications and answers questions; if it is None, nobody does.
    """
    path = absolute(folder)
    check_settings(read(path), writes=True)
    with _running(path, creates_ledger=True, editor=editor) as client:
        notice = client.ledger_notice()
        if notice is not None:
            output.complain(command, notice)
        yield client


@contextmanager
def _running(
    folder: Path, *, creates_ledger: bool, editor: NexusServer | None = None
) -> Iterator[FolderClient]:
    uri = convert.path_to_uri(str(folder))
    with asyncio.Runner() as runner:
        daemon = Daemon(load_inputs(), creates_ledger=creates_ledger, watches=False)
        daemon.git.patience_s = GIT_S
        connection = Connection(editor or _NoEditor(), lambda: daemon)
        if editor is None:
            connection.silence()  # nothing is worked out that only an editor shows
        try:
            runner.run(_join(connection, daemon, uri))
            yield FolderClient(runner, connection, uri)
        finally:
            runner.run(_leave(connection, daemon))


async def _join(connection: Connection, daemon: Daemon, uri: str) -> None:
    connection.start()
    daemon.add_folder(connection, uri, name="", listed=True)


async def _leave(connection: Connection, daemon: Daemon) -> None:
    connection.end()
    await daemon.close()


async def _forgotten(deletion: Awaitable[bool]) -> None:
    if not await deletion:
        raise RequestError("The keyring may still have the key: it did not answer.", code="keyring")


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable
