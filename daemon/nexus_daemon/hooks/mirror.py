"""Keeps a session of another assistant in the ledger, as `nexus sessions keep` does."""

import logging
from collections.abc import Mapping

from nexus_context.ledger import open_ledger
from nexus_context.mirror import mirror_session
from nexus_context.snapshot import load
from nexus_daemon.workspace.inputs import load_inputs

logger = logging.getLogger(__name__)


def keep_session(path: str, assistant: str, folder: str, environ: Mapping[str, str]) -> int:
    """Mirror what the ledger does not have of a transcript; the number of turns that were written.

    The ledger is that of the folder's settings. LedgerError if it cannot be written.
    """
    snapshot = load(folder, load_inputs(environ))
    ledger = open_ledger(snapshot.effective.get("/ledger/path"), environ=environ)
    try:
        if not ledger.persists:
            return 0
        summary = mirror_session(ledger, path, assistant)
    finally:
        ledger.close()
    for file in summary.files:
        if file.failure is not None:
            logger.warning("a transcript of %s cannot be kept: %s", assistant, file.failure)
    return int(summary.total("turns"))
