"""The ledger and the session that a command line speaks of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from nexus_context.layers.model import GLOBAL
from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Session
from nexus_context.ledger.store import Ledger
from nexus_context.snapshot import Snapshot
from nexus_daemon.cli import output
from nexus_daemon.cli.check import absolute, read

MOST_NAMED = 5


@contextmanager
def ledger_for(snapshot: Snapshot, *, writes: bool = False) -> Iterator[Ledger]:
    """The ledger that the global configuration names; what the user should know of it is said.

    With `writes` LedgerError where it is not sure that what is written stays, or that the ledger is the one
    that is meant.
    """
    broken = _check_settings(snapshot, writes=writes)
    ledger = open_ledger(snapshot.effective.get("/ledger/path"), environ=os.environ)
    try:
        if writes and not ledger.persists:
            raise LedgerError(f"Nothing was done. {ledger.notice}", code="ledger-read-only")
        if broken is not None:
            say(f"{broken} could not be read without errors; the ledger used is {ledger.location}.")
        if ledger.notice is not None:
            say(ledger.notice)
        yield ledger
    finally:
        ledger.close()


def accept(snapshot: Snapshot, replacement: str | None) -> tuple[str, str | None]:
    """Take the ledger for complete as it is, or put another file there; see `ledger.opening.accept`."""
    from nexus_context.ledger import opening

    _check_settings(snapshot, writes=True)
    return opening.accept(snapshot.effective.get("/ledger/path"), os.environ, replacement)


def _check_settings(snapshot: Snapshot, *, writes: bool) -> str | None:
    """Path of a global config.json that does not count; LedgerError where it must."""
    broken = _broken_settings(snapshot)
    if broken is not None and writes:
        raise LedgerError(
            f"Nothing was done: {broken} could not be read without errors, and it may name another ledger "
            "(ledger.path). Fix it first; nexus check shows what is wrong.",
            code="ledger-io",
        )
    if snapshot.effective.get("/ledger/url") is not None:
        raise LedgerError(
            "A ledger on a server (ledger.url) is not possible yet. Remove it from the global config.json, "
            "or name a file there (ledger.path).",
            code="ledger-url",
        )
    return broken


def _broken_settings(snapshot: Snapshot) -> str | None:
    """Path of the global config.json if it is there and does not count."""
    found = (file for layer in snapshot.layers.layers if layer.name == GLOBAL for file in layer.files)
    unread = (file for file in found if file.kind == "config" and file.status not in ("loaded", "missing"))
    return next((file.path for file in unread), None)


def folder(path: str) -> Snapshot:
    """The folder with its settings; one that is not there any more may still have sessions."""
    return read(absolute(path))


def workspace_of(path: str) -> str:
    """What the ledger calls a folder; LedgerError for a path that none can have."""
    from nexus_context.ledger import opening  # SQLite, which opening the ledger loads as well

    try:
        return opening.workspace_of(str(absolute(path)))
    except ValueError:
        raise LedgerError(f"{path!r} cannot be a folder.", code="unknown-session") from None


def there(ledger: Ledger, workspace: str, name: str) -> Session:
    """The session of a name; LedgerError that lists those it may have been meant to be."""
    found = ledger.find(workspace, name)
    if found is not None:
        return found
    raise LedgerError(
        f"There is no session {name!r} in {workspace}. {_near(ledger, workspace, name)}",
        code="unknown-session",
    )


def say(text: str) -> None:
    """A line for the person, beside the output."""
    output.complain("sessions", text)


def _near(ledger: Ledger, workspace: str, name: str) -> str:
    from difflib import get_close_matches

    names = [session.name for session in ledger.sessions(workspace)]
    if not names:
        return "It has none; nexus sessions list --all lists those of all folders."
    folded = {one.casefold(): one for one in reversed(names)}
    near = [folded[one] for one in get_close_matches(name.casefold(), folded, MOST_NAMED, 0.5)]
    near += [one for one in names if name.casefold() in one.casefold() and one not in near]
    if near:
        return f"Did you mean {' or '.join(map(repr, near[:MOST_NAMED]))}?"
    listed = ", ".join(map(repr, names[:MOST_NAMED]))
    more = len(names) - MOST_NAMED
    return f"It has {listed}" + (f" and {more:,} more: see nexus sessions list." if more > 0 else ".")
