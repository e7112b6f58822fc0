"""Finds, lists, creates, renames, forks, clears and deletes sessions, and stores their options.

1. A session has one current thread; it keeps its threads from before it was cleared.
2. A fork is a new thread that continues from a turn of another: nothing is copied.
3. Turns that a deleted session shares with others stay and then belong to one of them.
4. The name of a session is checked only here, when it is set.
5. The options of a session are the picked model and what is sent beside the conversation. The options of a
   workspace are those that one of its sessions used last. They apply to sessions without options, including
   new ones. A fork inherits the options of its session. A session that is cleared or renamed keeps its own.
"""

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import apsw

from nexus_context.config.picked_model import ModelChoice
from nexus_context.ledger import direct_messages
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import (
    PER_THREAD,
    SHIFT,
    Range,
    Segment,
    message_ranges,
    segments,
    turn_name,
    turn_ranges,
)
from nexus_context.ledger.records import Head, Session, SessionOptions, SessionOrigin
from nexus_context.ledger.rows import optional_json, optional_value, row, value, value_of

PURGED = 200
"""Pages of the index written per step: other writers wait no longer than that."""

LONGEST_NAME = 200
"""Most characters of the name of a new session."""
# control characters, line ends, and marks that change the text direction
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_PLACE = """
SELECT session.id, session.name, thread.id, thread.key, thread.seq, thread.messages, thread.tokens,
    owner.id, owner.key
FROM session JOIN thread ON thread.id = session.thread
LEFT JOIN thread AS owner ON owner.id = iif(thread.seq > thread.base_seq, thread.id, thread.parent)
"""

_SESSION = """
SELECT session.workspace, session.name, session.created, session.updated, session.agent, given.parameters,
    origin.name, thread.key, owner.key, thread.seq, thread.messages, thread.tokens, thread.id,
    last.in_force, last.undone, last.created,
    source.assistant, source.id, source.path, source.parent, (
        SELECT above.name FROM mirror JOIN session AS above ON above.id = mirror.session
        WHERE mirror.assistant = source.assistant AND mirror.id = source.parent)
FROM session JOIN thread ON thread.id = session.thread
LEFT JOIN thread AS owner ON owner.id = iif(thread.seq > thread.base_seq, thread.id, thread.parent)
LEFT JOIN turn AS last ON last.id = (owner.id << 32) + thread.seq
LEFT JOIN session AS origin ON origin.id = session.forked_from
LEFT JOIN session_parameters AS given ON given.session = session.id
LEFT JOIN origin AS source ON source.session = session.id
"""


_INHERIT = """
INSERT INTO session_options SELECT ?, model, max_tokens, besides FROM session_options WHERE session = ?
"""
_PARAMETERS = """
SELECT parameters FROM session_parameters JOIN session ON session.id = session_parameters.session
WHERE session.workspace = ? AND session.name = ?
"""
_INHERIT_PARAMETERS = """
INSERT INTO session_parameters SELECT ?, parameters FROM session_parameters WHERE session = ?
"""
_SUMMARIES = "SELECT count(*), ifnull(sum(tokens), 0) FROM compaction WHERE turn >= ? AND turn < ?"
_COMPACTION = "SELECT turn.first, turn.before, kept FROM turn JOIN compaction ON turn = id WHERE id = ?"
_TOKENS = "SELECT ifnull(sum(tokens), 0) FROM message WHERE id >= ? AND id < ?"
_COUNTERS = """
SELECT name FROM counter
WHERE EXISTS (SELECT 1 FROM message WHERE message.counter = counter.id AND message.id >= ? AND message.id < ?)
"""
_THERE = "SELECT 1 FROM session NOT INDEXED WHERE workspace = ? AND name = ?"
_NAMED = " WHERE session.workspace = ? AND session.name = ?"

_OF_SESSIONS = """
SELECT session.name, model, max_tokens, besides FROM session_options
JOIN session ON session.id = session_options.session WHERE session.workspace = ?
"""
_OF_WORKSPACE = "SELECT NULL, model, max_tokens, besides FROM workspace_options WHERE workspace = ?"


class SessionPosition(NamedTuple):
    """The end of a session: its rows, its thread, and its numbers of turns, messages and tokens.

    `owner` and `owner_key` are those of the thread that holds the last turn. They are None if there is no
    turn.
    """

    session: int
    name: str
    thread: int
    key: str
    seq: int
    messages: int
    tokens: int
    owner: int | None
    owner_key: str | None

    @property
    def turn(self) -> int | None:
        """The row number of the last turn, or None if there is no turn."""
        return None if self.owner is None else (self.owner << SHIFT) + self.seq

    @property
    def head(self) -> Head:
        head_turn = None if self.owner_key is None else turn_name(self.owner_key, self.seq)
        return Head(thread=self.key, turn=head_turn, seq=self.seq, messages=self.messages, tokens=self.tokens)


def find(connection: apsw.Connection, workspace: str, session: str) -> SessionPosition | None:
    columns = row(connection, _PLACE + _NAMED, workspace, session)
    if columns is not None:
        return SessionPosition(*columns)
    # a damaged index must not let a session be created twice; there are few sessions
    if row(connection, _THERE, workspace, session):
        raise apsw.CorruptError("the index of sessions misses one")
    return None


def require(connection: apsw.Connection, workspace: str, session: str) -> SessionPosition:
    """Return the position of a session. Raise LedgerError if there is no such session."""
    position = find(connection, workspace, session)
    if position is None:
        raise LedgerError(f"There is no session {session!r} in {workspace}.", code="unknown-session")
    return position


def read_session(connection: apsw.Connection, workspace: str, session: str) -> Session | None:
    position = find(connection, workspace, session)
    return None if position is None else read_existing(connection, workspace, session)


def read_existing(connection: apsw.Connection, workspace: str, session: str) -> Session:
    """Return a session that is known to exist."""
    return _session(connection, row(connection, _SESSION + _NAMED, workspace, session))


def list_sessions(connection: apsw.Connection, workspace: str | None) -> list[Session]:
    """Return the sessions of a workspace, or of all workspaces if it is None. The one that changed last comes
    first.
    """
    sql = _SESSION + ("" if workspace is None else " WHERE session.workspace = ?")
    values = () if workspace is None else (workspace,)
    rows = list(connection.execute(sql + " ORDER BY session.changed DESC", values))
    return [_session(connection, columns) for columns in rows]


def count_summaries(connection: apsw.Connection, lineage: list[Segment], after: int) -> tuple[int, int]:
    """Return the number of compactions after the turn `after`, and the tokens of their summaries."""
    count = tokens = 0
    for ids in turn_ranges(lineage, after):
        of_range = row(connection, _SUMMARIES, *ids)
        count, tokens = count + of_range[0], tokens + of_range[1]
    return count, tokens


def agent_of(connection: apsw.Connection, position: SessionPosition) -> str | None:
    agent: str | None = value(connection, "SELECT agent FROM session WHERE id = ?", position.session)
    return agent


def begin(
    connection: apsw.Connection,
    workspace: str,
    session: str,
    *,
    agent: str | None = None,
    origin: int | None = None,
    base: "Base | None" = None,
    parameters: Mapping[str, Any] | None = None,
) -> SessionPosition:
    """Create a session with an empty thread, or with one that continues from `base`. Raise LedgerError if the
    session exists.
    """
    if find(connection, workspace, session) is not None:
        raise LedgerError(
            f"A session {session!r} already exists in {workspace}; choose another name.",
            code="session-exists",
        )
    _check_name(session)
    thread = _new_thread(connection, 0, base)
    moment = now()
    connection.execute(
        "INSERT INTO session (workspace, name, thread, agent, forked_from, created, updated, changed)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, (SELECT ifnull(max(changed), 0) + 1 FROM session))",
        (workspace, session, thread, agent, origin, moment, moment),
    )
    number = connection.last_insert_rowid()
    connection.execute("UPDATE thread SET session = ? WHERE id = ?", (number, thread))
    if origin is not None:
        connection.execute(_INHERIT, (number, origin))
        connection.execute(_INHERIT_PARAMETERS, (number, origin))
    elif parameters:
        _write_parameters(connection, number, parameters)
    return SessionPosition(*row(connection, _PLACE + " WHERE session.id = ?", number))


def read_parameters(connection: apsw.Connection, workspace: str, session: str) -> dict[str, Any]:
    """Return the model parameters of a session. The result is empty if the session does not exist."""
    return optional_value(value(connection, _PARAMETERS, workspace, session)) or {}


def set_parameters(
    connection: apsw.Connection, workspace: str, session: str, parameters: Mapping[str, Any]
) -> None:
    """Change these model parameters of a session; a value of None removes one. A missing session is
    created.
    """
    position = find(connection, workspace, session) or begin(connection, workspace, session)
    stored_parameters = read_parameters(connection, workspace, session)
    connection.execute("DELETE FROM session_parameters WHERE session = ?", (position.session,))
    _write_parameters(connection, position.session, {**stored_parameters, **parameters})
    touch(connection, position.session, now())


def _write_parameters(connection: apsw.Connection, number: int, parameters: Mapping[str, Any]) -> None:
    stored_parameters = {name: value for name, value in parameters.items() if value is not None}
    if stored_parameters:
        connection.execute(
            "INSERT INTO session_parameters VALUES (?, ?)", (number, optional_json(stored_parameters))
        )


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or _UNFIT.search(name):
        raise LedgerError(
            f"{name[:40]!r} is not a valid session name; use 1 to {LONGEST_NAME} characters on one line, "
            "not only blanks and no control characters.",
            code="bad-session-name",
        )


def fitting(name: str, end: str = "") -> str:
    """Make a valid session name of any name: remove invalid characters, and cut it so that `end` fits after
    it.
    """
    stem = _UNFIT.sub("", name)[: LONGEST_NAME - len(end)]
    return (stem if stem.strip() else "session") + end


def touch(connection: apsw.Connection, session: int, moment: str) -> None:
    """Mark a session as changed, so that it comes first in lists."""
    connection.execute(
        "UPDATE session SET updated = ?, changed = (SELECT max(changed) + 1 FROM session) WHERE id = ?",
        (moment, session),
    )


def rename(connection: apsw.Connection, workspace: str, session: str, to: str) -> None:
    position = require(connection, workspace, session)
    if session == to:
        return
    if find(connection, workspace, to) is not None:
        raise LedgerError(
            f"A session {to!r} already exists in {workspace}; choose another name.", code="session-exists"
        )
    _check_name(to)
    connection.execute("UPDATE session SET name = ? WHERE id = ?", (to, position.session))
    connection.execute(
        "UPDATE direct SET session = ? WHERE workspace = ? AND session = ?", (to, workspace, session)
    )
    touch(connection, position.session, now())


def clear(connection: apsw.Connection, workspace: str, session: str) -> None:
    position = require(connection, workspace, session)
    thread = _new_thread(connection, position.session, None)
    connection.execute("UPDATE session SET thread = ? WHERE id = ?", (thread, position.session))
    connection.execute("DELETE FROM key WHERE session = ?", (position.session,))
    touch(connection, position.session, now())


# ---------------------------------------------------------------- threads


class Base(NamedTuple):
    """A turn from which a thread continues. `thread` holds the turn; `messages` and `tokens` are the numbers
    up to it.
    """

    thread: int
    seq: int
    messages: int
    tokens: int


def threads_of(connection: apsw.Connection, position: SessionPosition) -> list[int]:
    """Return the threads of a session, newest first."""
    rows = connection.execute("SELECT id FROM thread WHERE session = ? ORDER BY id DESC", (position.session,))
    return [thread for (thread,) in rows]


def _new_thread(connection: apsw.Connection, session: int, base: Base | None) -> int:
    shared = (None, 0, 0, 0) if base is None else base
    connection.execute(
        "INSERT INTO thread"
        " (key, session, parent, base_seq, base_messages, base_tokens, seq, messages, tokens)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4, ?5, ?6)",
        (secrets.token_hex(8), session, *shared),
    )
    return connection.last_insert_rowid()


# ---------------------------------------------------------------- deletion


def delete(connection: apsw.Connection, workspace: str, session: str) -> None:
    position = require(connection, workspace, session)
    # session and thread refer to each other until both are gone
    connection.execute("PRAGMA defer_foreign_keys = ON")
    for thread in threads_of(connection, position):  # a fork is newer than its parent: children come first
        shared = row(
            connection,
            "SELECT session, base_seq, base_messages, base_tokens FROM thread WHERE parent = ?"
            " ORDER BY base_seq DESC LIMIT 1",
            thread,
        )
        if shared is None:
            _cut(connection, thread, 0, 0)
            connection.execute("DELETE FROM thread WHERE id = ?", (thread,))
        else:
            _cut(connection, thread, *shared[1:3])
            connection.execute(
                "UPDATE thread SET session = ?, seq = ?, messages = ?, tokens = ? WHERE id = ?",
                (*shared, thread),
            )
    connection.execute("DELETE FROM session WHERE id = ?", (position.session,))
    direct_messages.forget(connection, workspace, session)


def purge(connection: apsw.Connection, *, first: bool) -> bool:
    """Remove some deleted words from the indexes. Return whether there are more to remove.

    A deleted message is not found, but its words stay in the index until the parts of the index are merged.
    Set `first` for the first step.
    """
    changes_before = connection.total_changes()
    pages = -PURGED if first else PURGED  # negative: start merging all parts into one
    connection.execute("INSERT INTO found (found, rank) VALUES ('merge', ?)", (pages,))
    connection.execute("INSERT INTO part (part, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - changes_before > 2  # each command itself counts as one


def _cut(connection: apsw.Connection, thread: int, seq: int, messages: int) -> None:
    """Remove a thread's turns after `seq` and its messages from the position `messages` on."""
    first_id, end_id = thread << SHIFT, (thread + 1) << SHIFT
    connection.execute("DELETE FROM message WHERE id >= ? AND id < ?", (first_id + messages, end_id))
    connection.execute("DELETE FROM compaction WHERE turn > ? AND turn < ?", (first_id + seq, end_id))
    connection.execute("DELETE FROM frozen WHERE turn > ? AND turn < ?", (first_id + seq, end_id))
    connection.execute("UPDATE report SET turn = NULL WHERE turn > ? AND turn < ?", (first_id + seq, end_id))
    connection.execute("DELETE FROM turn WHERE id > ? AND id < ?", (first_id + seq, end_id))


def now() -> str:
    """Return the current time for people, in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _session(connection: apsw.Connection, columns: tuple[Any, ...]) -> Session:
    *columns, assistant, program_id, path, parent, parent_session = columns  # type: ignore[assignment]
    *columns, thread, in_force, undone, last_turn = columns  # type: ignore[assignment]
    *names, agent, parameters, origin, key, owner, seq, messages, tokens = columns
    head_turn = None if owner is None else turn_name(owner, seq)
    head = Head(thread=key, turn=head_turn, seq=seq, messages=messages, tokens=tokens)
    lineage = segments(connection, thread)
    sent_history = _SentHistory(tokens, message_ranges(lineage))
    if in_force is not None or undone:
        sent_history = _sent_history(connection, lineage, tokens, in_force)
    workspace, name, created, updated = names
    return Session(
        workspace=workspace,
        name=name,
        head=head,
        created=created,
        updated=updated,
        last_turn=last_turn,
        agent=agent,
        parameters=optional_value(parameters) or {},
        forked_from=origin,
        sent_tokens=sent_history.tokens,
        counters=_counters(connection, sent_history.messages),
        origin=None
        if assistant is None
        else SessionOrigin(assistant, program_id, path, parent=parent, parent_session=parent_session),
    )


class _SentHistory(NamedTuple):
    """The history that requests still send. `messages` may include summaries of undone compactions."""

    tokens: int
    messages: list[Range]


def _sent_history(
    connection: apsw.Connection, lineage: list[Segment], tokens: int, in_force: int | None
) -> _SentHistory:
    """The part of a thread that requests still send; all its `tokens` and messages if it is damaged.

    Reads only the ranges that the compaction kept: a list costs the same however long the histories are.
    """
    if in_force is None:  # all compactions were undone
        return _SentHistory(tokens - count_summaries(connection, lineage, 0)[1], message_ranges(lineage))
    try:
        first_message, tokens_before, kept_text = row(connection, _COMPACTION, in_force)
        kept_ranges = [
            ids for start, end in value_of(kept_text) for ids in message_ranges(lineage, start, end)
        ]
    except (TypeError, ValueError):  # opening it reports the damage; the list shows the others
        return _SentHistory(tokens, message_ranges(lineage))
    since: int = tokens - tokens_before - count_summaries(connection, lineage, in_force & (PER_THREAD - 1))[1]
    kept_tokens: int = sum(value(connection, _TOKENS, *ids) for ids in kept_ranges)
    return _SentHistory(since + kept_tokens, [*kept_ranges, *message_ranges(lineage, first_message)])


def _counters(connection: apsw.Connection, messages: list[Range]) -> frozenset[str]:
    """The names of the counters that counted some of these messages."""
    return frozenset(str(name) for ids in messages for (name,) in connection.execute(_COUNTERS, ids))


def list_options(connection: apsw.Connection, workspace: str) -> dict[str | None, SessionOptions]:
    """Return the options of a workspace's sessions by name. The workspace's own options have the key None."""
    rows = [row for sql in (_OF_WORKSPACE, _OF_SESSIONS) for row in connection.execute(sql, (workspace,))]
    return {name: _options(*columns) for name, *columns in rows}


def keep_options(connection: apsw.Connection, workspace: str, session: str, options: SessionOptions) -> None:
    """Store these options for a workspace, and for a session if it exists."""
    position = find(connection, workspace, session)
    if position is not None:
        keep_session_options(connection, position.session, options)
    connection.execute(
        "INSERT OR REPLACE INTO workspace_options VALUES (?, ?, ?, ?)", (workspace, *_columns(options))
    )


def keep_session_options(connection: apsw.Connection, session: int, options: SessionOptions) -> None:
    """Store the options of the session with this number."""
    connection.execute(
        "INSERT OR REPLACE INTO session_options VALUES (?, ?, ?, ?)", (session, *_columns(options))
    )


def _columns(options: SessionOptions) -> tuple[Any, ...]:
    return options.choice.model, options.choice.max_tokens, optional_json(options.besides)


def _options(model: str | None, max_tokens: int | None, besides: str | None) -> SessionOptions:
    return SessionOptions(ModelChoice(model, max_tokens), optional_value(besides))
