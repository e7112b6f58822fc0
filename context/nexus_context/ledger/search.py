"""Searches messages by text. The best matches come first, and matching words are marked.

1. A query is what people type (`search_query`); an empty one finds nothing.
2. The newest RANKED matches are ranked by BM25, equal ones newest first. Ranking all matches of a word that
   is in every message would take time proportional to their number.
3. The newest message is the last of its session. Of several sessions, it is the last message of the session
   that was created last.
4. A shared message is listed once: in the requested session, else in the one that wrote it.
5. Messages in scripts without spaces between words are matched by parts (`part_index`), in a separate
   index. The matches of both indexes are merged by rank: their scores are not comparable.
6. A search that exceeds DEADLINE is stopped: a short prefix may match every word.
7. Secrets in a snippet are covered, even if the snippet has only a part of them. The ledger itself stores
   them uncovered.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os.path import join
from typing import Any, NamedTuple

import apsw

from nexus_context.disk import cancellation
from nexus_context.ledger import search_query as queries
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import SHIFT, Range, message_ranges, segments, turn_name
from nexus_context.ledger.records import Hit
from nexus_context.ledger.rows import value
from nexus_context.text.redact import redact_message

BEFORE, AFTER = "«", "»"
"""Marks around a match in a snippet."""

RANKED = 2_000
"""Most matches that are ranked."""

SNIPPET = 24
"""Words of a snippet."""

EXCERPT = 120
"""Characters of a snippet of text without spaces."""

AROUND = 2_000
"""Characters on each side of a snippet in which a secret may begin or end."""

LOOKED_AT = 200_000
"""Characters of a message that are searched for a snippet."""

MOST = 1_000
"""Most hits, whatever the limit."""

DEADLINE = 2.0
"""Most seconds of a search."""

_WORD = re.compile(r"[A-Za-z0-9]+")
_STEPS = 1_000  # of SQLite's virtual machine between two checks of the clock

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
_INSIDE = """
 AND (rowid >> 32) IN (
    SELECT thread.id FROM thread JOIN session ON session.id = thread.session
    CROSS JOIN (SELECT ? AS folder, ? AS above)
    WHERE session.workspace = folder OR substr(session.workspace, 1, length(above)) = above
        OR session.workspace IN (SELECT value FROM json_each(?)))
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
SELECT session.workspace, session.name, thread.key, message.turn, message.role, turn.created,
    origin.assistant
FROM message JOIN thread ON thread.id = message.id >> 32 JOIN session ON session.id = thread.session
JOIN turn ON turn.id = (message.id >> 32 << 32) + message.turn
LEFT JOIN origin ON origin.session = session.id
WHERE message.id = ?
"""
_LAST_CALL = f"""
SELECT max(turn.created) FROM (
    SELECT rowid FROM found WHERE found MATCH ?{_IN_WORKSPACE} ORDER BY rowid DESC LIMIT ?) AS hit
JOIN message ON message.id = hit.rowid JOIN turn ON turn.id = (message.id >> 32 << 32) + message.turn
WHERE message.role = 'assistant' AND instr(message.data, ?)
"""  # noqa: S608 - of constants
_ALL = Range(0, (1 << 63) - 1)
_MARKS = frozenset((BEFORE, AFTER))


def search(
    connection: apsw.Connection,
    query: str,
    *,
    workspace: str | None = None,
    inside: bool = False,
    parents: Sequence[str] = (),
    session: str | None = None,
    limit: int = 20,
) -> list[Hit]:
    """Return the messages in which all words of a query occur, best first. `SessionPages.search` describes
    the parameters.

    The cost is that of reading the newest RANKED matches, and a few nanoseconds for every other match. A
    session that does not exist has no messages. Raise LedgerError, code `search-too-broad`, after DEADLINE
    seconds.
    """
    expression = queries.expression(query)
    limit = min(limit, MOST)
    if expression is None or limit < 1:
        return []
    scope = _search_scope(connection, workspace, session, inside=inside, parents=parents)
    if scope is None:
        return []
    with _limited(connection):
        if not value(connection, _HAS_PARTS):
            best = _best_matches(connection, "found", expression, scope)[:limit]
            marked = _snippets(connection, expression, best)
        else:
            word_matches = _best_matches(connection, "found", expression, scope, condition=_NO_PARTS)[:limit]
            part_matches = _best_matches(
                connection, "part", queries.part_expression(query) or expression, scope
            )[:limit]
            ranked = sorted(
                (rank, -number)
                for matches in (word_matches, part_matches)
                for rank, number in enumerate(matches)
            )
            best = [-number for _, number in ranked[:limit]]
            marked = _snippets(connection, expression, [number for number in word_matches if number in best])
            marked |= _excerpts(connection, query, [number for number in part_matches if number in best])
    return [_hit(connection, number, marked[number], session) for number in best]


def last_call(connection: apsw.Connection, workspace: str, prefix: str) -> str | None:
    """Return when an assistant last called a tool whose name begins with `prefix`, as
    `SessionPages.last_call` describes.
    """
    phrase = " ".join(_WORD.findall(prefix))
    named = f'"name":{json.dumps(prefix)[:-1]}'
    with _limited(connection):
        parameters = (f'"{phrase}"', workspace, RANKED, named)
        created: str | None = value(connection, _LAST_CALL, *parameters)
    return created


def _best_matches(
    connection: apsw.Connection, index: str, expression: str, scope: "_SearchScope", *, condition: str = ""
) -> list[int]:
    """The ids of the matching messages in an index, best first."""
    statement = _MATCHES.format(index=index, where=scope.where.format(index=index) + condition)
    parameters = (expression, scope.first, scope.end, *scope.values, RANKED)
    return [
        -number
        for _, number in sorted(
            (score, -number) for number, score in connection.execute(statement, parameters)
        )
    ]


@contextmanager
def _limited(connection: apsw.Connection) -> Iterator[None]:
    """Stop reading at the DEADLINE."""
    until = time.monotonic() + DEADLINE
    connection.set_progress_handler(lambda: time.monotonic() > until or cancellation.is_cancelled(), _STEPS)
    try:
        yield
    except apsw.InterruptError as error:
        cancellation.check()
        raise LedgerError(
            f"The search was stopped after {DEADLINE:g} seconds because too many messages match; "
            "use longer or rarer words.",
            code="search-too-broad",
        ) from error
    finally:
        connection.set_progress_handler(None)


def _snippets(connection: apsw.Connection, sought: str, best: list[int]) -> dict[int, str]:
    """The snippet of each message: one search per thread, whose ids are close together.

    Starting a prefix search costs more than skipping matches, so there is only one for a query with a prefix.
    """
    threads: dict[int, list[int]] = {}
    for number in best:
        threads.setdefault(0 if queries.has_prefix(sought) else number >> SHIFT, []).append(number)
    snippets: dict[int, str] = {}
    for ids in threads.values():
        ids_json = f"[{','.join(map(str, ids))}]"
        parameters = (BEFORE, AFTER, SNIPPET, sought, min(ids), max(ids), ids_json)
        snippets.update(connection.execute(_SNIPPETS, parameters))
    return snippets


def _excerpts(connection: apsw.Connection, query: str, numbers: list[int]) -> dict[int, str]:
    """As `_snippets`, for messages that were matched by parts."""
    texts = sorted((term.text for term in queries.terms(query) if not term.excluded), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, texts)), re.IGNORECASE)
    excerpts: dict[int, str] = {}
    for number in numbers:
        content = value(connection, "SELECT substr(said, 1, ?) FROM message WHERE id = ?", LOOKED_AT, number)
        match = pattern.search(content)
        start = max(0, (match.start() if match else 0) - EXCERPT // 3)
        text = pattern.sub(
            lambda occurrence: f"{BEFORE}{occurrence[0]}{AFTER}", content[start : start + EXCERPT]
        )
        excerpts[number] = ("…" if start else "") + text + ("…" if len(content) > start + EXCERPT else "")
    return excerpts


class _SearchScope(NamedTuple):
    """The messages to search: a range of ids, and a condition on the ids in it."""

    first: int
    end: int
    where: str = ""
    values: tuple[str | int | None, ...] = ()


def _search_scope(
    connection: apsw.Connection,
    workspace: str | None,
    session: str | None,
    *,
    inside: bool,
    parents: Sequence[str],
) -> _SearchScope | None:
    """Decide what to search; None if there is nothing."""
    if session is None and workspace is not None and inside:
        return _SearchScope(*_ALL, _INSIDE, (workspace, join(workspace, ""), json.dumps(parents)))
    if session is None:
        return _SearchScope(*_ALL) if workspace is None else _SearchScope(*_ALL, _IN_WORKSPACE, (workspace,))
    threads, forked = [], []
    for thread, parent in connection.execute(_THREADS, (session, workspace)):
        threads.append(thread)
        if parent is not None:
            forked.append(thread)
    if not threads:
        return None
    shared: dict[int, Range] = {}  # the longest part of each thread: all begin where the thread does
    shared_segments = (
        segment
        for thread in forked
        for segment in segments(connection, thread)
        if segment.thread not in threads
    )
    for ids in message_ranges(list(shared_segments)):
        thread = ids.first >> SHIFT
        shared[thread] = max(ids, shared.get(thread, ids))
    first_id = min(threads[0] << SHIFT, *(ids.first for ids in shared.values()), _ALL.end)
    end_id = (threads[-1] + 1) << SHIFT
    if len(threads) == 1 and not shared:
        return _SearchScope(first_id, end_id)
    ends = json.dumps([(thread, ids.end) for thread, ids in shared.items()])
    return _SearchScope(first_id, end_id, f" AND ({_IN_SESSION} OR {_SHARED})", (session, workspace, ends))


def _without_secrets(connection: apsw.Connection, number: int, snippet: str) -> str:
    """A snippet with the secrets of its message covered; the marks stay."""
    marks = [at for at, char in enumerate(snippet) if char in _MARKS]
    text = "".join(char for char in snippet if char not in _MARKS)
    content: str = value(connection, "SELECT said FROM message WHERE id = ?", number)
    inner = text.removeprefix("…").removesuffix("…")
    start = content.find(inner)
    if start < 0:  # it has marks of its own
        return redact_message(snippet)
    window_start = max(start - AROUND, 0)
    window = redact_message(content[window_start : start + len(inner) + AROUND])
    covered = text.replace(inner, window[start - window_start : start - window_start + len(inner)], 1)
    for at in marks:  # in ascending order: the marks before are in place already
        covered = covered[:at] + snippet[at] + covered[at:]
    return covered


def _hit(connection: apsw.Connection, number: int, snippet: str, session: str | None) -> Hit:
    about: tuple[Any, ...] = connection.execute(_ABOUT, (number,)).fetchall()[0]
    workspace, owner, key, seq, role, created, assistant = about
    return Hit(
        workspace=workspace,
        session=owner if session is None else session,
        turn=turn_name(key, seq),
        seq=seq,
        position=number & ((1 << SHIFT) - 1),
        role=role,
        snippet=_without_secrets(connection, number, snippet),
        created=created,
        assistant=assistant,
    )
