"""Computes and verifies the chain of turns: each turn's sum covers its content and the sum of the turn before
it.

1. A sum is BLAKE2b over the row of a turn, its compaction, its messages and the sum before it. A fork
   continues from the sum of the turn that it shares, so common history is summed once.
2. Turns that version 3 wrote have no sum. The chain begins with the first turn after them. From there on, a
   turn without a sum is broken.
3. A thread is as long as its row says, and its turns and messages are numbered without gaps.
4. Verifying a ledger is SQLite's own check of the file, then a walk along the chain of every thread.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import apsw
import msgspec

from nexus_context.ledger.lineage import PER_THREAD, SHIFT
from nexus_context.ledger.records import Verification, Verified
from nexus_context.ledger.rows import SELECTED, message_of

LENGTH = 16
"""Bytes of a sum."""

MOST_LINES = 20
"""Lines of SQLite's check that are reported."""

_TABLES = ("session", "thread", "turn", "message", "compaction")

_encode = msgspec.json.Encoder().encode
_MASK = PER_THREAD - 1

_THREADS = """
SELECT thread.id, thread.parent, thread.base_seq, thread.base_messages, thread.base_tokens,
    thread.seq, thread.messages, thread.tokens, shared.first + shared.messages, shared.sum,
    shared.before + shared.tokens
FROM thread LEFT JOIN turn AS shared ON shared.id = (thread.parent << 32) + thread.base_seq
ORDER BY thread.id
"""
_TURNS = """
SELECT turn.id, type, first, messages, before, turn.tokens, in_force, undone, undoes, created, model, role,
    permissions, toolset, event, context, sum, name, below, compaction.tokens, kept, receipt, outcome
FROM turn LEFT JOIN compaction ON compaction.turn = turn.id
WHERE turn.id >= ? AND turn.id < ? ORDER BY turn.id
"""
_SESSIONS = """
SELECT workspace, name, thread, ifnull(thread.seq, 0)
FROM session LEFT JOIN thread ON thread.id = session.thread ORDER BY changed DESC
"""


class MessageColumns(NamedTuple):
    """The columns of a message that a sum covers."""

    position: int
    role: str
    tokens: int
    counter: str
    length: int | None
    text: bytes
    data: bytes | None


class ChainBreak(NamedTuple):
    """The number of the first damaged turn of a thread, and the reason."""

    seq: int
    reason: str


def summed_columns(turn: tuple[Any, ...], outcome: str | None) -> tuple[Any, ...]:
    """Return the columns of a turn that its sum covers: those from `type` to `context`, and the outcome if it
    is not None.

    Turns of earlier versions have no outcome, so their sums stay valid.
    """
    return turn if outcome is None else (*turn, outcome)


def turn_sum(
    sum_before: bytes | None,
    turn: tuple[Any, ...],
    compaction: tuple[Any, ...] | None,
    messages: Iterable[MessageColumns],
) -> bytes:
    """Compute the sum of a turn. `sum_before` is the sum of the turn before it.

    `turn` are the columns from `summed_columns`. `compaction` is the row of its compaction, from `name` to
    `receipt`, or None.
    """
    digest = blake2b(
        _encode((None if sum_before is None else sum_before.hex(), turn, compaction)), digest_size=LENGTH
    )
    for position, role, tokens, counter, length, text, data in messages:
        size = None if data is None else len(data)
        digest.update(_encode((position, role, tokens, counter, length, len(text), size)))
        digest.update(text)
        digest.update(data or b"")
    return digest.digest()


def verify(connection: apsw.Connection) -> Iterator[Verified]:
    """Walk the chain of every thread and yield the result for each session, beginning with the one that
    changed last.
    """
    breaks = find_breaks(connection)
    sessions: list[tuple[Any, ...]] = connection.execute(_SESSIONS).fetchall()
    for workspace, name, thread, turns in sessions:
        first_break = breaks.get(thread, _NO_THREAD)
        yield Verified(
            workspace, name, turns, *((first_break.seq, first_break.reason) if first_break else (None, None))
        )


def find_breaks(
    connection: apsw.Connection, *, unreadable: type[Exception] = LookupError
) -> dict[int, ChainBreak | None]:
    """Find the first break of each thread, in its own turns or in those of its ancestors: thread id → break,
    or None if it is intact.

    `unreadable` is a type of SQLite's errors. Such an error breaks only the thread in which it occurs.
    """
    rows = connection.execute(_THREADS).fetchall()
    threads = {thread.id: thread for thread in map(_Thread._make, rows)}
    own_breaks = {number: _break(connection, thread, unreadable) for number, thread in threads.items()}
    return {number: _first_break(threads, own_breaks, number) for number in threads}


def unchained(connection: apsw.Connection) -> int:
    """Return how many turns have no sum because an earlier version wrote them."""
    count: int = connection.execute("SELECT count(*) FROM turn WHERE sum IS NULL").get
    return count


def verify_ledger(connection: apsw.Connection) -> Verification:
    """Verify the file and all sessions, in the caller's transaction. Raise apsw.Error if the file cannot be
    read.
    """
    lines = find_damage(connection, entire=True)
    sessions = tuple(verify(connection))
    return Verification(sessions, unchained(connection), tuple(lines.splitlines()) if lines else ())


def find_damage(connection: apsw.Connection, *, entire: bool) -> str | None:
    """Return SQLite's report of damage, in lines, or None if there is none. If `entire` is false, only tables
    that cannot be rebuilt are checked.
    """
    arguments = (str(MOST_LINES),) if entire else _TABLES
    checks = [connection.execute(f"PRAGMA integrity_check({argument})").fetchall() for argument in arguments]
    lines = [str(line) for rows in checks for (line,) in rows if line != "ok"]
    return "\n".join(lines[:MOST_LINES]) or None


def find_broken_session(connection: apsw.Connection) -> Verified | None:
    """Return the result for the first session with a damaged turn. Return None if there is none."""
    return next((verified for verified in verify(connection) if verified.broken is not None), None)


# ---------------------------------------------------------------- inside


class _Thread(NamedTuple):
    id: int
    parent: int | None
    base_seq: int
    base_messages: int
    base_tokens: int
    seq: int
    messages: int
    tokens: int
    shared_messages: int | None  # up to the turn `base_seq` of the parent; None if it is missing
    shared_sum: bytes | None
    shared_tokens: int | None


_NO_THREAD = ChainBreak(1, "the thread that it continues is missing")


def _first_break(
    threads: dict[int, _Thread], breaks: dict[int, ChainBreak | None], number: int
) -> ChainBreak | None:
    """The earliest break in a thread's own turns or in those of its ancestors."""
    earliest_break: ChainBreak | None = None
    ancestor: int | None = number
    until, newest = _MASK, number
    while ancestor is not None:
        # a parent is older than its child: damage cannot make them a circle
        if ancestor not in threads or ancestor > newest:
            return _NO_THREAD
        own_break = breaks[ancestor]
        if own_break is not None and own_break.seq <= until:
            earliest_break = own_break
        until, newest, ancestor = threads[ancestor].base_seq, ancestor - 1, threads[ancestor].parent
    return earliest_break


def _break(connection: apsw.Connection, thread: _Thread, unreadable: type[Exception]) -> ChainBreak | None:
    """The first break in the thread's own turns."""
    shared = (thread.shared_messages, thread.shared_tokens)
    if thread.parent is not None and shared != (thread.base_messages, thread.base_tokens):
        return ChainBreak(thread.base_seq, "the turn that it was forked from is missing or different")
    walk = None
    try:
        walk = _Walk(connection, thread)
        return walk.end(thread) if (wrong := walk.turns(thread.seq)) is None else wrong
    except (ValueError, LookupError, TypeError, unreadable) as error:
        return ChainBreak((thread.base_seq if walk is None else walk.seq) + 1, str(error))


class _Walk:
    """A walk along the turns of a thread; its state describes the last intact turn."""

    def __init__(self, connection: apsw.Connection, thread: _Thread) -> None:
        start = thread.id << SHIFT
        end = start + PER_THREAD
        self._turns = connection.execute(_TURNS, (start, end))
        self._messages = SummedMessages(connection, start + thread.base_messages, end)
        self.seq, self.sum = thread.base_seq, thread.shared_sum
        self.messages, self.tokens = thread.base_messages, thread.base_tokens

    def turns(self, last_seq: int) -> ChainBreak | None:
        """Walk to the end, which must be at `last_seq`."""
        for number, *columns in self._turns:
            seq, total, compaction = number & _MASK, columns[15], tuple(columns[16:21])
            turn = summed_columns(tuple(columns[:15]), columns[21])
            _, first_message, count, tokens_before, tokens, *_ = turn
            if seq != self.seq + 1:
                return ChainBreak(self.seq + 1, "it is missing")
            if seq > last_seq:
                return ChainBreak(seq, "it lies beyond the end of its session")
            if (first_message, tokens_before) != (self.messages, self.tokens):
                return ChainBreak(seq, "it does not begin where the turn before it ends")
            messages = self._messages.take(seq, count)
            if total is None and self.sum is not None:
                return ChainBreak(seq, "it has no sum")
            if total is not None and total != turn_sum(
                self.sum, turn, compaction if turn[0] == "compaction" else None, messages
            ):
                return ChainBreak(seq, "it is not what was written")
            self.seq, self.messages, self.tokens, self.sum = (
                seq,
                first_message + count,
                tokens_before + tokens,
                total,
            )
        return None

    def end(self, thread: _Thread) -> ChainBreak | None:
        """Compare the end with the row of the thread."""
        if self.seq != thread.seq:
            return ChainBreak(self.seq + 1, "it is missing")
        if (self.messages, self.tokens) != (thread.messages, thread.tokens):
            return ChainBreak(self.seq, "its session counts other messages than there are")
        if self._messages.more():
            return ChainBreak(self.seq, "messages after it belong to no turn")
        return None


class SummedMessages:
    """Reads the messages of a thread in order, turn by turn, with the columns that sums cover."""

    def __init__(self, connection: apsw.Connection, first_id: int, end_id: int) -> None:
        self._counters = dict(connection.execute("SELECT id, name FROM counter"))
        self._rows = connection.execute(SELECTED + " ORDER BY id", (first_id, end_id))
        self._next = next(self._rows, None)
        self._position = first_id & _MASK

    def take(self, seq: int, count: int) -> list[MessageColumns]:
        """Return the `count` messages of the next turn. Raise DamagedError or LookupError if they are
        damaged.
        """
        taken: list[MessageColumns] = []
        while len(taken) < count:
            row = self._next
            if row is None or row[0] & _MASK != self._position or row[1] != seq:
                raise LookupError(f"its message {self._position} is missing")
            message_of(row)  # checks it
            number, _, role, tokens, length, text, data, _, counter = row
            taken.append(
                MessageColumns(
                    position=number & _MASK,
                    role=role,
                    tokens=tokens,
                    counter=self._counters[counter],
                    length=length,
                    text=text,
                    data=data,
                )
            )
            self._position += 1
            self._next = next(self._rows, None)
        return taken

    def more(self) -> bool:
        return self._next is not None
