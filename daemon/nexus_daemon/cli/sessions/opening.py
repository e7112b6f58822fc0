"""The ledger and the session that a command line speaks of."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nexus_context import files
from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Session
from nexus_context.ledger.store import Ledger
from nexus_context.snapshot import Snapshot
from nexus_daemon.cli.check import absolute, read

MOST_NAMED = 5


@contextmanager
def ledger_for(snapshot: Snapshot) -> Iterator[Ledger]:
    """The ledger that the global configuration names; what the user should know of it is said."""
    if snapshot.effective.get("/ledger/url") is not None:
        raise LedgerError(
            "A ledger on a server (ledger.url) is not possible yet. Remove it from the global config.json, "
            "or name a file there (ledger.path).",
            code="ledger-url",
        )
    ledger = open_ledger(snapshot.effective.get("/ledger/path"), environ=os.environ)
    try:
        if ledger.notice is not None:
            say(ledger.notice)
        yield ledger
    finally:
        ledger.close()


def folder(path: str) -> Snapshot:
    """The folder with its settings; one that is not there any more may still have sessions."""
    return read(absolute(path))


def workspace_of(path: str) -> str:
    """What the ledger calls a folder; LedgerError for a path that none can have."""
    try:
        return files.real_path(str(absolute(path)))
    except ValueError:
        raise LedgerError(f"{path!r} can be no folder.", code="unknown-session") from None


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
    sys.stderr.write(f"nexus sessions: {text}\n")


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
