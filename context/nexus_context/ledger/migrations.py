"""Brings ledgers to the newest version of the schema: `schema/NNNN.sql` changes a ledger from the version
before to NNNN.

A ledger's version is its `PRAGMA user_version`. All steps that are missing are one transaction.
"""

from pathlib import Path

import apsw

from nexus_context.disk.files import PROMPT_LIMIT, read_text

VERSION = 11
"""The newest version that this program supports."""

APPLICATION = 0x4E58554C  # "NXUL": distinguishes a ledger from another program's database

_DIRECTORY = Path(__file__).parent / "schema"


def version_of(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def migrate(connection: apsw.Connection) -> bool:
    """Bring a ledger to VERSION. Return whether it was older, even if another process has brought it there
    meanwhile.
    """
    if version_of(connection) >= VERSION:
        return False
    connection.create_scalar_function("casefold", _casefold, 1)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(version_of(connection) + 1, VERSION + 1):
            connection.execute(_step(version))
            connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _casefold(*values: object) -> str:
    """The SQL function `casefold` of the steps."""
    return str(values[0]).casefold()


def _step(version: int) -> str:
    path = str(_DIRECTORY / f"{version:04}.sql")
    text = read_text(path, limit=PROMPT_LIMIT).text
    if text is None:
        raise FileNotFoundError(
            f"the installation is incomplete: {path} cannot be read; install nexusd again"
        )
    return text
