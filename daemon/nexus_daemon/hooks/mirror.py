"""Keeps a session of another assistant in the ledger: the one seam to where sessions are mirrored."""

from collections.abc import Mapping

from nexus_context import assembly, files
from nexus_context.ledger import importers, open_ledger, opening
from nexus_context.snapshot import load
from nexus_daemon.workspace.inputs import load_inputs

LARGEST = 256 << 20  # bytes of a transcript


def mirror_session(path: str, folder: str, environ: Mapping[str, str]) -> int:
    """Add what the ledger does not have of a transcript; the number of turns that were written.

    LedgerError if the ledger cannot be written.
    """
    data = files.read_bytes(path, limit=LARGEST).data
    if not data:
        return 0
    contents = importers.read(data, path)
    if not contents.sessions:
        return 0
    snapshot = load(folder, load_inputs(environ))
    ledger = open_ledger(snapshot.effective.get("/ledger/path"), environ=environ)
    try:
        if not ledger.persists:
            return 0
        workspace = opening.workspace_of(folder)
        importer = importers.Importer(ledger, workspace, lambda model: assembly.model_of(snapshot, model)[1])
        return sum(importer.add(session).turns for session in contents.sessions)
    finally:
        ledger.close()
