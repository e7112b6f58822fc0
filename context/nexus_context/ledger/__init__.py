"""Stores the sessions of all workspaces of one user in a ledger, so that nothing is ever lost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_context.ledger.store import Ledger


def open_ledger(path: str | None = None, *, environ: Mapping[str, str] | None = None) -> "Ledger":
    """Open the ledger at an absolute path, or at its default place if `path` is None. If there is none,
    create it.

    A damaged ledger is set aside, and a new one is created. If nothing can be written, the ledger is in
    memory only. In both cases the ledger's `notice` says so.

    Raises
    ------
    LedgerError
        `ledger-newer` for one that a newer version wrote, `ledger-busy`, `ledger-io`, `ledger-foreign`;
        `ledger-read-only` for a path that is not absolute and does not begin with `~/`.
    """
    # SQLite is loaded when a ledger is opened, not when its records are named
    from nexus_context.ledger.opening import opened

    return opened(path, environ)
