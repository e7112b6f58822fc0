"""Stores what providers reported about requests. A report is written with a turn, and read for its
conversation or for its family of models.

Only the newest MOST_STORED reports of a family are kept.
"""

import apsw

from nexus_context.ledger import sessions
from nexus_context.ledger.lineage import SHIFT, segments, turn_ranges
from nexus_context.ledger.rows import row
from nexus_context.tokens.accuracy import DatedReport
from nexus_context.tokens.correction import Correction, UsageReport, learned

MOST_STORED = 256
"""Reports of a family. An anchor may be among those that are dropped: then the conversation has none."""

_INSERT = """
INSERT INTO report (family, thread, turn, reported, estimated, shown, anchors, created)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_TRIM = """
DELETE FROM report WHERE family = ? AND id <=
    (SELECT id FROM report WHERE family = ? ORDER BY id DESC LIMIT 1 OFFSET ?)
"""
_FIELDS = "family, reported, estimated, shown, anchors"
_BY_FAMILY = f"SELECT thread, {_FIELDS} FROM report WHERE family = ? ORDER BY id DESC LIMIT ?"  # noqa: S608
_NEWEST = f"""
SELECT {_FIELDS} FROM report WHERE turn >= ? AND turn < ? AND anchors ORDER BY turn DESC, id DESC LIMIT 1
"""  # noqa: S608


def write(connection: apsw.Connection, turn: int, report: UsageReport) -> None:
    """Store a report for the turn with this row number. Only the newest MOST_STORED reports of a family
    stay.
    """
    figures = report.reported, report.estimated, report.shown, int(report.anchors)
    connection.execute(_INSERT, (report.family, turn >> SHIFT, turn, *figures, sessions.now()))
    connection.execute(_TRIM, (report.family, report.family, MOST_STORED))


def anchor(connection: apsw.Connection, workspace: str, session: str) -> UsageReport | None:
    """Return the newest report about a request of a session that its later requests contain. Return None if
    there is none.
    """
    position = sessions.find(connection, workspace, session)
    if position is None:
        return None
    for ids in reversed(turn_ranges(segments(connection, position.thread))):
        columns = row(connection, _NEWEST, *ids)
        if columns is not None:
            return _report(*columns)
    return None


def correction(connection: apsw.Connection, family: str) -> Correction:
    """Return the correction that the stored reports give for a family of models."""
    rows = connection.execute(_BY_FAMILY, (family, MOST_STORED))
    return learned(family, [(thread, _report(*columns)) for thread, *columns in rows])


def list_reports(connection: apsw.Connection) -> list[DatedReport]:
    """Return all stored reports, newest first."""
    rows = connection.execute(f"SELECT thread, created, {_FIELDS} FROM report ORDER BY id DESC")  # noqa: S608
    return [DatedReport(thread, _report(*columns), created) for thread, created, *columns in rows]


def _report(family: str, reported: int, estimated: int, shown: int, anchors: int) -> UsageReport:
    return UsageReport(family, reported=reported, estimated=estimated, shown=shown, anchors=bool(anchors))
