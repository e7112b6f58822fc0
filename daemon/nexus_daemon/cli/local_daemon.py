"""Answer one request of the protocol in this process: commands use the handlers that editors use.

1. The daemon of the command lives as long as its request. It shares the ledger with all running daemons,
   which notice what it writes within a second.
2. It never writes to a ledger that does not persist, or that may not be the right one: LedgerError.
3. No client is connected: notifications are dropped, and a compaction's summary is extracted.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nexus_context.files import is_dir
from nexus_context.ledger.errors import LedgerError
from nexus_daemon import protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, load_inputs, read
from nexus_daemon.cli.sessions.open_session import check_settings
from nexus_daemon.connection import Connection
from nexus_daemon.lsp import convert
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.state import Daemon

P = TypeVar("P", bound=protocol.FolderParams)
R = TypeVar("R", bound=protocol.Wire)


class _NoEditor(NexusServer):
    """The server of a connection without a client."""

    def notify(self, method: str, params: Any = None) -> None:
        pass


def answer(
    command: str, folder: str, handler: Callable[[Connection, P], Awaitable[R]], params: Callable[[str], P]
) -> R:
    """The handler's answer. `params` makes the parameters from the URI of `folder`, which is a path.

    RequestError as the handler raises it, and LedgerError by rule 2. `command` is named in notices.
    """
    path = absolute(folder)
    if not is_dir(str(path)):
        raise LedgerError(f"{folder} is not a folder.", code="unknown-folder")
    check_settings(read(path), writes=True)
    uri = convert.path_to_uri(str(path))
    return asyncio.run(_answer(command, uri, handler, params(uri)))


async def _answer(command: str, uri: str, handler: Callable[[Connection, P], Awaitable[R]], params: P) -> R:
    daemon = Daemon(load_inputs())
    connection = Connection(_NoEditor(), lambda: daemon)
    try:
        connection.start()
        daemon.add_folder(connection, uri, name="", listed=True)
        folder = connection.folders.at(uri)
        ledger = (await daemon.ledgers.of(await folder.current(), folder)).store
        if not ledger.persists:
            raise LedgerError(f"Nothing was done. {ledger.notice}", code="ledger-read-only")
        if ledger.notice is not None:
            output.complain(command, ledger.notice)
        return await handler(connection, params)
    finally:
        connection.end()
        await daemon.close()
