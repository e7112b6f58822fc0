"""Puts a backup in the ledger's place, and reports which turns the backup does not have.

1. The backup stays. A verified copy of it is put in place (`opening.accept`), and the previous ledger is
   moved, whole, beside it. Processes that have the ledger open notice that and reopen it.
2. The numbers of the copy's writes begin beyond the last acknowledged write. So the copy does not look older
   than a witness that another process writes at that moment.
3. Missing turns are found by comparing the copy with the previous ledger, once that is moved and no longer
   written. If the previous ledger was begun anew after damage, the newest ledger that was set aside is
   compared, too. Turns are the same if their sums are. If a ledger cannot be read, its witness says how many
   writes it had.
"""

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from glob import escape, glob
from typing import NamedTuple

import apsw
import msgspec

from nexus_context.ledger import backup, daily_backups, integrity, migrations, opening, witness
from nexus_context.ledger.connections import Patience
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import segments
from nexus_context.ledger.location import place
from nexus_context.ledger.rows import value
from nexus_context.ledger.sqlite_errors import refused

_AHEAD = 1 << 20
"""Writes that processes may acknowledge while a backup is put in place."""

_NUMBER = "SELECT ifnull(max(number), 0) FROM mark"
_SESSIONS = """
SELECT workspace, name, thread, thread.seq FROM session JOIN thread ON thread.id = session.thread
ORDER BY session.changed DESC
"""


class MissingTurns(msgspec.Struct, frozen=True):
    """The turns of a session, from `first` to `last`, that a backup does not have."""

    workspace: str
    session: str
    first: int
    last: int


class Restored(msgspec.Struct, frozen=True):
    """The result of a restore: the backup that was used, and the turns that it does not have.

    `previous` is where the previous ledger was moved to. `unread` are the paths of ledgers that could not be
    compared, each with the number of writes that were acknowledged since the backup, or None if that is
    unknown.
    """

    location: str
    backup: str
    sessions: int
    previous: str | None
    missing: tuple[MissingTurns, ...] = ()
    unread: tuple[tuple[str, int | None], ...] = ()


class _Copied(NamedTuple):
    """The content of a backup: number of sessions, id of the ledger, number of its last write."""

    sessions: int
    identity: object
    written: int


def restore(path: str | None, environ: Mapping[str, str], chosen: str | None = None) -> Restored:
    """Restore a backup. `chosen` is the backup's day or its absolute path; if it is None, the newest intact
    backup is used.

    Raise LedgerError if there is no such backup, it is damaged, or it cannot be put in place. Then nothing
    was changed.
    """
    location = place(path, environ)
    fresh = f"{location}.restoring-{os.getpid()}-{secrets.token_hex(4)}"
    damage: LedgerError | None = None
    try:
        for source in _sources(location, chosen):
            try:
                copied = _copy(source, fresh, location)
            except LedgerError as error:
                if error.code != "ledger-corrupt":
                    raise
                damage = LedgerError(
                    f"The backup {source} is damaged; nothing was changed.", code="ledger-corrupt"
                )
                continue
            set_aside = _set_aside(location, copied.identity)
            _, previous = opening.accept(path, environ, fresh)
            other_paths = [ledger_path for ledger_path in (previous, *set_aside) if ledger_path is not None]
            missing, unread = _compare(location, other_paths, copied)
            return Restored(location, source, copied.sessions, previous, missing=missing, unread=unread)
    except OSError as error:
        raise refused(error, location) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
    raise damage or LedgerError(
        f"There is no backup in {daily_backups.directory_of(location)}.", code="ledger-foreign"
    )


def _sources(location: str, chosen: str | None) -> list[str]:
    backups = daily_backups.list_backups(location)
    if chosen is None:
        return [daily_backup.path for daily_backup in backups]
    for daily_backup in backups:
        if daily_backup.day == chosen:
            return [daily_backup.path]
    if os.path.isabs(chosen) and os.path.isfile(chosen):
        return [chosen]
    days = ", ".join(daily_backup.day for daily_backup in backups) or "none"
    raise LedgerError(f"There is no backup {chosen}. The backups are: {days}.", code="ledger-foreign")


def _copy(source: str, fresh: str, location: str) -> _Copied:
    """Copy and verify a backup."""
    newest, backed_up = _newest_write(location), []

    def prepare(copy: apsw.Connection) -> None:
        migrations.migrate(copy)
        identity, written = value(copy, "SELECT id FROM ledger"), int(value(copy, _NUMBER))
        backed_up.append((identity, written))
        number = max(newest, written) + _AHEAD + secrets.randbelow(_AHEAD)
        copy.execute(
            "INSERT OR REPLACE INTO mark VALUES (?, ?, ?)",
            (number % witness.SLOTS, number, secrets.randbits(63)),
        )

    try:
        integrity.check_header(source)
        with closing(daily_backups.open_backup(source)) as connection:
            return _Copied(backup.write(connection, fresh, prepare), *backed_up[-1])
    except apsw.Error as error:
        raise LedgerError(f"{source} is damaged ({error}).", code="ledger-corrupt") from error


def _newest_write(location: str) -> int:
    """The number of the newest write to the ledger in place, as far as it or its witness says."""
    claim = witness.claim(location)
    number = 0 if claim is None else claim.mark.number
    if not witness.emptied(location):
        with suppress(apsw.Error, LedgerError):
            flags = apsw.SQLITE_OPEN_READONLY
            with closing(apsw.Connection(location, flags=flags)) as connection:
                connection.set_busy_handler(Patience(location))
                number = max(number, int(value(connection, _NUMBER)))
    return number


# ---------------------------------------------------------------- what is missing


def _compare(
    location: str, other_paths: Iterable[str], copied: _Copied
) -> tuple[tuple[MissingTurns, ...], tuple[tuple[str, int | None], ...]]:
    """Compare other ledgers with the restored one.

    Returns the turns that only they have, and the ledgers that could not be compared.
    """
    missing: dict[MissingTurns, None] = {}
    unread: list[tuple[str, int | None]] = []
    for path in other_paths:
        try:
            with closing(apsw.Connection("")) as other, closing(_open_restored(location)) as restored:
                if os.path.getsize(path):
                    opening.copy_database(path, other)
                missing |= dict.fromkeys(_missing(other, restored))
        except (apsw.Error, LedgerError, OSError, ValueError, LookupError, TypeError):
            claim = witness.claim(path)
            of_it = claim is not None and claim.ledger == copied.identity
            unread.append((path, max(0, claim.mark.number - copied.written) if claim and of_it else None))
    return tuple(missing), tuple(unread)


def _open_restored(location: str) -> apsw.Connection:
    """A connection that reads one moment of the restored ledger, which others may write to already."""
    connection = apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_handler(Patience(location))
    connection.execute("BEGIN")
    return connection


def _set_aside(location: str, identity: object) -> list[str]:
    """The newest ledger set aside whose witness has the id of the backup's ledger."""
    paths = sorted(glob(f"{escape(location)}.broken-*{witness.END}"), reverse=True)
    claims = [
        (path.removesuffix(witness.END), witness.claim(path.removesuffix(witness.END))) for path in paths
    ]
    return [path for path, claim in claims if claim is not None and claim.ledger == identity][:1]


def _missing(other: apsw.Connection, restored: apsw.Connection) -> Iterator[MissingTurns]:
    """The turns of another ledger that the restored one does not have."""
    rows = other.execute(_SESSIONS).fetchall()
    for workspace, session, thread, last_seq in rows:
        reached = _reached(other, restored, int(str(thread)))
        if reached < int(str(last_seq)):
            yield MissingTurns(str(workspace), str(session), reached + 1, int(str(last_seq)))


def _reached(other: apsw.Connection, restored: apsw.Connection, thread: int) -> int:
    """The last turn of another ledger's thread that the restored ledger has, too."""
    reached = 0
    for segment in segments(other, thread):
        sql = "SELECT seq FROM thread WHERE key = ?"
        restored_seq = min(value(restored, sql, segment.key) or segment.base_seq, segment.end_seq)
        while restored_seq > segment.base_seq and not _is_same_turn(
            other, restored, segment.key, seq=restored_seq
        ):
            restored_seq -= 1  # the last turn was extended since
        reached = restored_seq
        if restored_seq < segment.end_seq:
            break
    return reached


def _is_same_turn(other: apsw.Connection, restored: apsw.Connection, key: str, *, seq: int) -> bool:
    sql = "SELECT turn.sum FROM thread JOIN turn ON turn.id = (thread.id << 32) + ? WHERE thread.key = ?"
    sum_there = value(restored, sql, seq, key)
    return bool(sum_there is None or sum_there == value(other, sql, seq, key))
