"""Copies to another ledger what SQLite can still read of a damaged ledger.

1. The damaged file is copied, and only the copy is read. So the damaged file is not written, and the target
   may be the same ledger.
2. A session whose chain is intact is copied whole. Of any other session, those turns are copied whose
   messages are unchanged. If turns are lost, the session's compactions are left out, because they count
   messages that are missing.
3. A fork is copied with the turns that it shares. The turns of a session from before it was cleared become a
   session of their own.
4. A session is copied in one transaction. If its name is taken, it gets another name.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import apsw
import msgspec

from nexus_context.ledger import (
    chain,
    direct_messages,
    integrity,
    migrations,
    opening,
    read_history,
    sessions,
)
from nexus_context.ledger.lineage import segments
from nexus_context.ledger.location import NAME
from nexus_context.ledger.records import DirectMessage, Turn
from nexus_context.ledger.sqlite_errors import failure, is_corrupt, refused
from nexus_context.ledger.store import Ledger

_UNREADABLE = (apsw.Error, ValueError, LookupError, TypeError)
"""What reading damaged rows raises."""

_UNKNOWN = chain.ChainBreak(1, "where it ends cannot be read")

_PER_PAGE = 100
"""Most turns of a page: a damaged length of a session is no length of a loop."""

# a thread that only forks still need is copied with them
_THREADS = """
SELECT session.workspace, session.name, thread.id, thread.seq, thread.id = session.thread
FROM session NOT INDEXED JOIN thread NOT INDEXED ON thread.session = session.id
WHERE thread.id = session.thread OR (thread.seq > 0 AND NOT EXISTS (
    SELECT 1 FROM thread AS fork NOT INDEXED WHERE fork.parent = thread.id AND fork.base_seq >= thread.seq))
ORDER BY session.changed, thread.id DESC
"""


class SalvagedSession(msgspec.Struct, frozen=True):
    """A session that was copied from a damaged ledger.

    `name` is its name in the target. `turns` is the number of copied turns, and `lost` the number of turns
    that could not be read. `broken` is the first turn that differs from what was written.
    """

    workspace: str
    session: str
    name: str
    turns: int
    lost: int = 0
    broken: chain.ChainBreak | None = None


class Salvaged(msgspec.Struct, frozen=True):
    """The copied sessions, and the number of direct messages that still wait for their agents."""

    sessions: tuple[SalvagedSession, ...] = ()
    direct: int = 0


def salvage(
    broken: str,
    target: Ledger,
    *,
    only: Collection[tuple[str, str]] | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Salvaged:
    """Copy what can be read of the ledger at the path `broken`. `on_progress` is called with the number of
    turns of the present session that have been copied.

    If `only` is set, only these sessions are copied, given by workspace and name. Then `target` may be the
    ledger at `broken` itself. Raise LedgerError if the file is of a newer version or of another program, or
    cannot be read.
    """
    beside = os.path.dirname(target.location) or None  # what people said stays where it was
    with tempfile.TemporaryDirectory(prefix="nexus-", dir=beside) as directory:
        copy = os.path.join(directory, NAME)
        try:
            in_use = os.path.exists(target.location) and os.path.samefile(broken, target.location)
            _copy(broken, copy, in_use=in_use)
            connection = _opened(copy)
        except OSError as error:
            raise refused(error, broken) from error
        except apsw.Error as error:
            if is_corrupt(error):
                return Salvaged()
            raise failure(error, broken, "it was not read") or error from error
        try:
            return _copy_sessions(connection, target, only, on_progress)
        finally:
            connection.close()


def _copy(broken: str, copy: str, *, in_use: bool) -> None:
    if in_use:
        database = apsw.Connection(copy)
        try:
            opening.copy_database(broken, database)
        finally:
            database.close()
        return
    shutil.copyfile(broken, copy)
    if os.path.getsize(copy) and os.path.exists(f"{broken}-wal"):  # beside an empty file SQLite removes it
        shutil.copyfile(f"{broken}-wal", f"{copy}-wal")


def _opened(copy: str) -> apsw.Connection:
    """A connection to a copy, brought to our version. apsw.Error if it is not a database."""
    integrity.check_header(copy)
    connection = apsw.Connection(copy)
    try:
        connection.pragma("writable_schema", True)  # also reads a file whose end is missing
        migrations.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _copy_sessions(
    connection: apsw.Connection,
    target: Ledger,
    only: Collection[tuple[str, str]] | None,
    on_progress: Callable[[int], None],
) -> Salvaged:
    breaks: dict[int, chain.ChainBreak | None] = {}
    with suppress(apsw.Error):
        breaks = chain.find_breaks(connection, unreadable=apsw.Error)
    max_turns = int(connection.pragma("page_count")) * _PER_PAGE
    copied: list[SalvagedSession] = []
    threads: list[tuple[Any, ...]] = []
    with suppress(apsw.Error):  # not even its sessions can be listed
        threads = connection.execute(_THREADS).fetchall()
    for workspace, session, thread, last_seq, is_current in threads:
        if only is not None and (workspace, session) not in only:
            continue
        name = _free_name(target, workspace, session if is_current else f"{session} (cleared)")
        broken = breaks.get(thread, _UNKNOWN)
        turns: list[Turn] = []
        parameters: dict[str, Any] = {}
        with suppress(*_UNREADABLE):
            turns = _read_turns(connection, thread, min(last_seq, max_turns), is_intact=broken is None)
            parameters = sessions.read_parameters(connection, workspace, session)
        lost = last_seq - len(turns)
        if lost:
            turns = [turn for turn in turns if turn.type == "query"]
        if turns or broken is None:
            target.import_turns(workspace, name, turns, parameters=parameters, on_progress=on_progress)
        copied.append(SalvagedSession(workspace, session, name, len(turns), lost=lost, broken=broken))
    waiting: Sequence[DirectMessage] = ()
    if only is None:
        with suppress(*_UNREADABLE):
            waiting = direct_messages.since(connection, 0, limit=-1)
    for message in waiting:
        target.messages.send(message)
    return Salvaged(tuple(copied), len(waiting))


def _read_turns(connection: apsw.Connection, thread: int, last_seq: int, *, is_intact: bool) -> list[Turn]:
    """The turns of a thread; of a damaged one those whose messages are what was written."""
    lineage = segments(connection, thread)
    if is_intact:
        with suppress(*_UNREADABLE):
            return read_history.turns(connection, lineage, 0, last_seq)
    turns: list[Turn] = []
    for seq in range(1, last_seq + 1):
        with suppress(*_UNREADABLE):
            turns += read_history.turns(connection, lineage, seq - 1, seq)
    return turns


def _free_name(target: Ledger, workspace: str, name: str) -> str:
    free_name, number = sessions.fitting(name), 1
    while target.find(workspace, free_name) is not None:
        number += 1
        end = " (salvaged)" if number == 2 else f" (salvaged {number - 1})"
        free_name = sessions.fitting(name, end)
    return free_name
