"""Messages found by their text, best first, with what matched marked.

1. A query is what people type (`query`); one that asks for nothing finds nothing.
2. Of the matches the newest RANKED are ranked: by BM25, and equal ones newest first. To rank all matches of a
   word that is in every message would take as long as there are messages.
3. Newest is who was appended last in its session; of several sessions, the one that was begun last.
4. A message that sessions share is found once: in the session that was asked for, else where it was written.
5. Messages in scripts without spaces between words are found by their parts (`spaceless`), in an index of
   their own. What both indexes find is merged by rank: their scores cannot be compared.
6. A search that takes longer than DEADLINE is ended: a beginning may stand for all words that there are.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

from nexus_context.ledger import search_query as queries
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import SHIFT, Range, message_ranges, segments, turn_name
from nexus_context.ledger.records import Hit
from nexus_context.ledger.sql import value

BEFORE, AFTER = "«", "»"
"""What stands around what matched, in a snippet."""

RANKED = 2_000
"""Matches that are ranked."""

SNIPPET = 24
"""Words of a snippet."""

EXCERPT = 120
"""Characters of a snippet of text without spaces."""

LOOKED_AT = 200_000
"""Characters of a message in which a snippet is looked for."""

MOST = 1_000
"""Hits that are given, however many are asked for."""

DEADLINE = 2.0
"""Seconds that a search may take."""

_STEPS = 1_000  # of SQLite's machine between two looks at the clock

# message.id >> 32 is the thread: see schema
_MATCHES = """
SELECT rowid, bm25({index}) FROM {index}
WHERE {index} MATCH ? AND rowid >= ? AND rowid < ?{where} ORDER BY rowid DESC LIMIT ?
"""
_HAS_PARTS = "SELECT EXISTS (SELECT 1 FROM part_docsize)"
_NO_PARTS = " AND rowid NOT IN (SELECT id FROM part_docsize)"
_IN_WORKSPACE = """
 AND (rowid >> 32) IN (
    SELECT thread.id FROM thread JOIN session ON session.id = thread.session WHERE session.workspace = ?)
"""
_THREADS = """
SELECT thread.id, thread.parent FROM thread JOIN session ON session.id = thread.session
WHERE session.name = ? AND session.workspace = ifnull(?, session.workspace) ORDER BY thread.id
"""
_IN_SESSION = """
(rowid >> 32) IN (
    SELECT thread.id FROM thread JOIN session ON session.id = thread.session
    WHERE session.name = ? AND session.workspace = ifnull(?, session.workspace))
"""
# the + keeps SQLite from running the search once for each range
_SHARED = """
+rowid < (
    WITH shared (thread, until) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each(?))
    SELECT until FROM shared WHERE thread = {index}.rowid >> 32)
"""
_SNIPPETS = """
SELECT rowid, snippet(found, 0, ?, ?, '…', ?) FROM found
WHERE found MATCH ? AND rowid >= ? AND rowid <= ? AND +rowid IN (SELECT value FROM json_each(?))
"""
_ABOUT = """
SELECT session.workspace, session.name, thread.key, message.turn, message.role, turn.created
FROM message JOIN thread ON thread.id = message.id >> 32 JOIN session ON session.id = thread.session
JOIN turn ON turn.id = (message.id >> 32 << 32) + message.turn
WHERE message.id = ?
"""
_ALL = Range(0, (1 << 63) - 1)


def search(
    connection: apsw.Connection,
    query: str,
    *,
    workspace: str | None = None,
    session: str | None = None,
    limit: int = 20,
) -> list[Hit]:
    """The messages in which all words of a query occur, best first; see `Ledger.search`.

    Costs what the newest RANKED matches cost, and a few nanoseconds for each other one. A session that is not
    there has no messages. LedgerError `search-too-broad` after DEADLINE.
    """
    sought = queries.expression(query)
    limit = min(limit, MOST)
    if sought is None or limit < 1:
        return []
    place = _place(connection, workspace, session)
    if place is None:
        return []
    with _limited(connection):
        if not value(connection, _HAS_PARTS):
            best = _best(connection, "found", sought, place)[:limit]
            marked = _snippets(connection, sought, best)
        else:
            whole = _best(connection, "found", sought, place, _NO_PARTS)[:limit]
            parts = _best(connection, "part", queries.part_expression(query) or sought, place)[:limit]
            ranked = sorted((at, -number) for each in (whole, parts) for at, number in enumerate(each))
            best = [-number for _, number in ranked[:limit]]
            marked = _snippets(connection, sought, [number for number in whole if number in best])
            marked |= _excerpts(connection, query, [number for number in parts if number in best])
    return [_hit(connection, found, marked[found], session) for found in best]


def _best(
    connection: apsw.Connection, index: str, sought: str, place: "_Place", other: str = ""
) -> list[int]:
    """The ids of the messages that an index finds, best first."""
    statement = _MATCHES.format(index=index, where=place.where.format(index=index) + other)
    parameters = (sought, place.first, place.end, *place.values, RANKED)
    return [
        -number
        for _, number in sorted(
            (score, -number) for number, score in connection.execute(statement, parameters)
        )
    ]


@contextmanager
def _limited(connection: apsw.Connection) -> Iterator[None]:
    """What is read here ends at the DEADLINE."""
    until = time.monotonic() + DEADLINE
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        yield
    except apsw.InterruptError as error:
        raise LedgerError(
            f"This search was ended after {DEADLINE:g} seconds: too much is like what it looks for; "
            "use longer or rarer words.",
            code="search-too-broad",
        ) from error
    finally:
        connection.set_progress_handler(None)


def _snippets(connection: apsw.Connection, sought: str, best: list[int]) -> dict[int, str]:
    """The snippet of each: one search for each thread, as little lies between the ids there.

    To begin a search for a beginning takes longer than to pass by all matches, so there is only one.
    """
    threads: dict[int, list[int]] = {}
    for found in best:
        threads.setdefault(0 if queries.has_prefix(sought) else found >> SHIFT, []).append(found)
    snippets: dict[int, str] = {}
    for ids in threads.values():
        wanted = f"[{','.join(map(str, ids))}]"
        parameters = (BEFORE, AFTER, SNIPPET, sought, min(ids), max(ids), wanted)
        snippets.update(connection.execute(_SNIPPETS, parameters))
    return snippets


def _excerpts(connection: apsw.Connection, query: str, numbers: list[int]) -> dict[int, str]:
    """As `_snippets`, for messages that were found by their parts."""
    texts = sorted((term.text for term in queries.terms(query) if not term.excluded), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, texts)), re.IGNORECASE)
    excerpts: dict[int, str] = {}
    for number in numbers:
        said = value(connection, "SELECT substr(said, 1, ?) FROM message WHERE id = ?", LOOKED_AT, number)
        match = pattern.search(said)
        start = max(0, (match.start() if match else 0) - EXCERPT // 3)
        text = pattern.sub(lambda part: f"{BEFORE}{part[0]}{AFTER}", said[start : start + EXCERPT])
        excerpts[number] = ("…" if start else "") + text + ("…" if len(said) > start + EXCERPT else "")
    return excerpts


class _Place(NamedTuple):
    """Where to look: between two ids, and a condition for what lies between them."""

    first: int
    end: int
    where: str = ""
    values: tuple[str | int | None, ...] = ()


def _place(connection: apsw.Connection, workspace: str | None, session: str | None) -> _Place | None:
    """Where to look; None where there is nothing."""
    if session is None:
        return _Place(*_ALL) if workspace is None else _Place(*_ALL, _IN_WORKSPACE, (workspace,))
    own, forked = [], []
    for thread, parent in connection.execute(_THREADS, (session, workspace)):
        own.append(thread)
        if parent is not None:
            forked.append(thread)
    if not own:
        return None
    shared: dict[int, Range] = {}  # of each thread the longest part: all begin where the thread does
    parts = (part for thread in forked for part in segments(connection, thread) if part.thread not in own)
    for each in message_ranges(list(parts)):
        thread = each.first >> SHIFT
        shared[thread] = max(each, shared.get(thread, each))
    first = min(own[0] << SHIFT, *(each.first for each in shared.values()), _ALL.end)
    end = (own[-1] + 1) << SHIFT
    if len(own) == 1 and not shared:
        return _Place(first, end)
    ends = json.dumps([(thread, each.end) for thread, each in shared.items()])
    return _Place(first, end, f" AND ({_IN_SESSION} OR {_SHARED})", (session, workspace, ends))


def _hit(connection: apsw.Connection, found: int, snippet: str, session: str | None) -> Hit:
    about: tuple[Any, ...] = connection.execute(_ABOUT, (found,)).fetchall()[0]
    workspace, owner, key, seq, role, created = about
    return Hit(
        workspace=workspace,
        session=owner if session is None else session,
        turn=turn_name(key, seq),
        seq=seq,
        position=found & ((1 << SHIFT) - 1),
        role=role,
        snippet=snippet,
        created=created,
    )
