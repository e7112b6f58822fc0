"""Finds and reads sessions of opencode; the tables are those of 1.18.33.

1. The databases are `opencode/opencode.db` in `$XDG_DATA_HOME` (by default `~/.local/share`), and what
   `$OPENCODE_DB` names. They are SQLite in WAL mode, and are read as `read_only_database` says.
2. A row of `session` sums up the tokens and the cost of all requests. If it has a `parent_id`, it is a
   sub-agent's.
3. The usage of the last answer is in the JSON of its row of `message`.
4. A fork begins with copies of its origin's messages. They keep their times, so they are older than their
   session, and its row counts them again. No column says that they are copies, or of what.
"""

from collections.abc import Iterator
from os.path import basename, join
from typing import Any

import apsw

from nexus_context.assistants.reading.record_values import LARGEST_COUNT, count, count_of, decode_object, text
from nexus_context.assistants.sessions.session_types import (
    AssistantSession,
    Folders,
    Place,
    SessionSource,
    Usage,
    is_within,
    subtract_usage,
    utc,
)
from nexus_context.disk import files, read_only_database

NAME = "opencode"
UNPRICED = "requests whose price opencode does not know"
LEAST_COST = 1e-9
"""Dollars below which a sum is a remainder of rounding."""
_PATIENCE_MS = 250
_SESSIONS = """
SELECT id, parent_id, directory, title, version, model, cost, tokens_input, tokens_output, tokens_cache_read,
    tokens_cache_write, time_created, time_updated, {}, time_created >
    (SELECT time_created FROM message WHERE session_id = session.id ORDER BY time_created LIMIT 1)
FROM session"""
_ORIGIN = """
SELECT session.id FROM message AS copy JOIN message ON message.time_created = copy.time_created
    JOIN session ON session.id = message.session_id
WHERE copy.session_id = ?1 AND session.id != ?1 AND copy.time_created < ?2 AND session.time_created < ?2
ORDER BY copy.time_created DESC, message.time_created < session.time_created, session.time_created LIMIT 1"""
"""The session that wrote the last message that a fork copied; if it is gone, the first that has a copy."""
IS_COPY = "time_created IN (SELECT time_created FROM message WHERE session_id = ?2)"
"""Of a message, that the session ?2 has it, too."""
_COPIES = f"SELECT data FROM message WHERE session_id = ?1 AND {IS_COPY}"  # noqa: S608 - of constants
_LATEST = """
SELECT (SELECT max(time_updated) FROM message WHERE session_id = ?),
    (SELECT max(time_updated) FROM part WHERE session_id = ?)"""
_ANSWERS = """
SELECT data FROM message WHERE session_id = ? AND data LIKE '%"assistant"%'
ORDER BY time_created DESC LIMIT 5"""


def sources(place: Place, folder: Folders) -> Iterator[SessionSource]:
    """Yield the databases that exist. Reading one gives its sessions in `folder`; None stands for all
    folders.
    """
    for path in _databases(place):
        stamp = files.file_stamp(path)
        if stamp is not None:
            log = files.file_stamp(path + "-wal") or ()
            yield SessionSource(path, (*stamp, *log), lambda path=path: read(path, folder))  # type: ignore[misc]


def root_of(place: Place) -> str:
    """Return the directory of the database."""
    return join(place.environ.get("XDG_DATA_HOME") or join(place.home, ".local", "share"), "opencode")


def watched(place: Place, _: str) -> tuple[str, ...]:
    """Return the paths of the databases and of their write-ahead logs."""
    return tuple(name for path in _databases(place) for name in (path, f"{path}-wal"))


def _databases(place: Place) -> tuple[str, ...]:
    """The usual database, and that of `OPENCODE_DB`: a path, or one in the usual directory."""
    stated_path = place.environ.get("OPENCODE_DB")
    paths = [join(root_of(place), name) for name in ("opencode.db", *((stated_path,) if stated_path else ()))]
    return tuple(path for path in dict.fromkeys(paths) if basename(path) != ":memory:")


def read(path: str, folder: Folders) -> list[AssistantSession]:
    """Read the sessions of some folders, or of all if `folder` is None. Raise apsw.Error if the database
    cannot be read.
    """
    connection = connect(path)
    try:
        connection.execute("BEGIN")
        rows = [row for row in connection.execute(_sessions(connection)) if is_within(row[2], folder)]
        return [_session(connection, path, row) for row in rows]
    finally:
        connection.close()


def connect(path: str) -> apsw.Connection:
    """Open a database for reading only (rule 1). Raise apsw.Error if it cannot be read."""
    return read_only_database.connect(path, owner="opencode", patience_ms=_PATIENCE_MS)


def read_session(
    connection: apsw.Connection, path: str, name: str
) -> tuple[tuple[Any, ...] | None, AssistantSession | None]:
    """Read the session with the id `name`, and values that change whenever it does. Both are None if there is
    no such session.
    """
    row = connection.execute(f"{_sessions(connection)} WHERE id = ?", (name,)).fetchone()
    if row is None:
        return None, None
    latest = connection.execute(_LATEST, (name, name)).fetchone() or ()
    return (*row, *latest), _session(connection, path, row)


def find_origin(connection: apsw.Connection, name: str, created: int) -> str | None:
    """Return the id of the session that `name` was forked from, None if it is not a fork. `created` is when
    it was created, in milliseconds since 1970.
    """
    origin, *_ = connection.execute(_ORIGIN, (name, created)).fetchone() or (None,)
    return origin


def _sessions(connection: apsw.Connection) -> str:
    """The query of sessions; early versions count no tokens of reasoning apart."""
    names = {row[1] for row in connection.execute("PRAGMA table_info(session)")}
    return _SESSIONS.format("tokens_reasoning" if "tokens_reasoning" in names else "0")


def _session(connection: apsw.Connection, path: str, row: tuple[Any, ...]) -> AssistantSession:
    name, parent, directory, title, version, model, stated_cost, *remaining_columns = row
    *sums, has_copies = remaining_columns
    # a column may hold a value of any type
    fresh, output, read_, write, created, updated, reasoning = map(count_of, sums)
    cost = cost_of({"cost": stated_cost})
    total = Usage(fresh=fresh, cache_read=read_, cache_write=write, output=output + reasoning)
    origin = find_origin(connection, name, created) if has_copies else None
    for (data,) in connection.execute(_COPIES, (name, origin)) if origin is not None else ():
        copy = decode_object(data)
        total = subtract_usage(total, usage_of(copy.get("tokens")))
        cost -= cost_of(copy)
    answers = [decode_object(data) for (data,) in connection.execute(_ANSWERS, (name,))]
    last_tokens = next(
        (answer["tokens"] for answer in answers if isinstance(answer.get("tokens"), dict)), None
    )
    decoded_model = decode_object(model)
    has_cost = cost > LEAST_COST
    return AssistantSession(
        assistant=NAME,
        id=name,
        path=path,
        folder=text(directory),
        prompt=text(title),
        model=decoded_model.get("id") if isinstance(decoded_model.get("id"), str) else None,
        version=text(version),
        started=utc(created * 1_000_000),
        changed=utc(updated * 1_000_000),
        last=None if last_tokens is None else usage_of(last_tokens),
        total=total if last_tokens is None or any((fresh, output, read_, write)) else None,
        cost_usd=cost if has_cost else None,  # 0 for a model without prices
        parent=parent,
        fork_of=origin,
        lacks=(UNPRICED,) if has_cost and any(map(is_unpriced, answers)) else (),
    )


def cost_of(message: dict[str, Any]) -> float:
    """Return what an answer cost in US dollars, 0 if the message does not say."""
    cost = message.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return 0.0
    return float(cost) if 0 <= cost <= LARGEST_COUNT else 0.0


def is_unpriced(message: dict[str, Any]) -> bool:
    """Whether opencode knows no price of an answer: it states tokens, but no cost."""
    usage = usage_of(message.get("tokens"))
    return bool(usage.sent or usage.output) and not cost_of(message)


def usage_of(value: Any) -> Usage:
    """Read the token counts of an answer."""
    tokens = value if isinstance(value, dict) else {}
    cache = tokens.get("cache")
    cached = cache if isinstance(cache, dict) else {}
    return Usage(
        fresh=count(tokens, "input"),
        cache_read=count(cached, "read"),
        cache_write=count(cached, "write"),
        output=count(tokens, "output") + count(tokens, "reasoning"),
    )
