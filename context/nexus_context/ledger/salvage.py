"""Copies what can still be read of a damaged ledger to another one.

1. Rows are read page by page (`page_reader`) and identified by their columns; the damaged file is not
   written.
2. Missing rows leave a gap: the turns and messages around it are copied in order and renumbered.
3. A fork is copied with the turns that it shares. A cleared thread, or one without a session, becomes a
   session.
4. A session is copied completely or not at all; if its name is taken, it gets another.
5. Everything is read into a temporary database before anything is written: the target may be the same ledger.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import apsw
import msgspec

from nexus_context.conversation.message import Message
from nexus_context.decoding import convert_to
from nexus_context.ledger import page_reader
from nexus_context.ledger.lineage import SHIFT
from nexus_context.ledger.records import DirectMessage, Ranges, Turn
from nexus_context.ledger.rows import message_of, outcome_of, permissions_of, value_of
from nexus_context.ledger.sessions import fitting
from nexus_context.ledger.sqlite_errors import refused
from nexus_context.ledger.store import Ledger

_MASK = (1 << SHIFT) - 1
_LAST = _MASK  # seq, if the end of a thread is unknown

# what tells the rows of one table from those of others: a letter for each column of `schema/`;
# n nothing (the row's number), i integer, t text, r real, s sum; a capital letter may also be nothing
_SHAPES = {
    "message": "nitiiiItTi",
    "turn": "ntiiiiIiItTTTTTTST",
    "thread": "ntiIiiiiii",
    "session": "nttiTItti",
    "compaction": "ntIitt",
    "parameters": "nt",
    "counter": "nt",
    "direct": "nttttTtrRRrTTTi",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "n": (type(None),),
    "i": (int,),
    "t": (page_reader.StoredText,),
    "r": (float, int),
    "I": (int, type(None)),
    "T": (page_reader.StoredText, type(None)),
    "R": (float, int, type(None)),
    "S": (bytes, type(None)),
}
_OBJECT = b"{"
"""What rows of `parameters` begin with, and no name of a counter."""
_SINCE = {"turn": (16, 17)}
"""Columns of rows from before a later version added some; the missing ones are NULL."""


_UNKNOWN: Mapping[str, Any] = {"type": "query", "created": ""}
"""What is known about a turn whose row is missing."""

_Rows = Any
"""An apsw.Connection; what its tables hold may be anything."""


class Salvaged(msgspec.Struct, frozen=True):
    """What was copied. `damaged` messages differ from what was written, `lost` ones are missing."""

    sessions: int = 0
    turns: int = 0
    messages: int = 0
    damaged: int = 0
    lost: int = 0
    direct: int = 0


class _Line(NamedTuple):
    """A session to write: the threads of its turns, each with a range of seqs."""

    workspace: str
    name: str
    parts: tuple[tuple[int, int, int], ...]  # thread, after which seq, up to which
    session: int | None  # number of the session that has or had the thread


class _Tally:
    def __init__(self) -> None:
        self.turns = self.messages = self.damaged = self.lost = 0


def salvage(
    broken: str,
    target: Ledger,
    *,
    only: Collection[tuple[str, str]] | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Salvaged:
    """Copy what can be read of the ledger at the path `broken`; `on_progress` gets the number of turns so
    far.

    `only`: copy just these sessions, by workspace and name; then `target` may be the ledger at `broken`
    itself. Raises LedgerError if the file cannot be read or nothing can be written.
    """
    tally = _Tally()

    def counted(turns: Iterator[Turn]) -> Iterator[Turn]:
        for turn in turns:
            yield turn
            tally.turns += 1
            on_progress(tally.turns)

    rows = apsw.Connection("")  # a temporary file, for ledgers of any size
    try:
        try:
            _collect(broken, rows)
        except OSError as error:
            raise refused(error, broken) from error
        sessions = 0
        for line in _lines(rows):
            if only is not None and (line.workspace, line.name) not in only:
                continue
            name = _free(target, line.workspace, line.name)
            turns = counted(_turns(rows, line, tally))
            target.import_turns(line.workspace, name, turns, parameters=_parameters(rows, line.session))
            sessions += 1
        direct = 0
        for message in _direct(rows) if only is None else ():
            target.messages.send(message)
            direct += 1
    finally:
        rows.close()
    return Salvaged(
        sessions=sessions,
        turns=tally.turns,
        messages=tally.messages,
        damaged=tally.damaged,
        lost=tally.lost,
        direct=direct,
    )


# ---------------------------------------------------------------- rows


def _collect(path: str, into: _Rows) -> None:
    """Put the identified rows into tables without constraints. Texts are blobs: they may be damaged."""
    for name, shape in _SHAPES.items():
        columns = ", ".join(f"c{index}" for index in range(1, len(shape)))
        into.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {columns})")
    into.execute("BEGIN")
    for row in page_reader.rows(path):
        table = _table(row.columns)
        if table is not None and 0 <= row.number < 1 << 63:
            missing = (None,) * (len(_SHAPES[table]) - len(row.columns))
            values = (row.number, *map(_plain, row.columns[1:]), *missing)
            places = ", ".join("?" * len(values))
            into.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)  # noqa: S608  # _SHAPES
    into.execute("COMMIT")


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, page_reader.StoredText) else value


def _table(columns: tuple[Any, ...]) -> str | None:
    """The table of a row, identified by its columns."""
    for name, shape in _SHAPES.items():
        if name == "parameters" and not (len(columns) == 2 and _is_object(columns[1])):
            continue
        if len(columns) in (len(shape), *_SINCE.get(name, ())) and all(
            isinstance(value, _TYPES[letter]) for letter, value in zip(shape, columns, strict=False)
        ):
            return name
    return None


def _is_object(value: Any) -> bool:
    return isinstance(value, page_reader.StoredText) and bytes(value).startswith(_OBJECT)


# ---------------------------------------------------------------- sessions


def _lines(rows: _Rows) -> Iterator[_Line]:
    threads = {row[0]: row for row in rows.execute("SELECT id, c3, c4, c7 FROM thread")}
    sessions = rows.execute("SELECT id, c1, c2, c3 FROM session ORDER BY c8").fetchall()
    names = {number: (_text(workspace), _text(name)) for number, workspace, name, _ in sessions}
    owners = dict(rows.execute("SELECT id, c2 FROM thread"))
    covered: set[tuple[int, int]] = set()
    for number, _, _, thread in sessions:
        yield _line(threads, thread, names[number], covered)._replace(session=number)
    present = rows.execute(
        f"SELECT DISTINCT id >> {SHIFT} FROM turn UNION SELECT DISTINCT id >> {SHIFT} FROM message"  # noqa: S608
        " ORDER BY 1 DESC"
    ).fetchall()
    for (thread,) in present:
        last = rows.execute(
            "SELECT max(id) FROM turn WHERE id BETWEEN ? AND ?", (thread << SHIFT, (thread << SHIFT) + _MASK)
        ).get
        if any(each == thread and ((last or 0) & _MASK) <= until for each, until in covered):
            continue
        number = owners.get(thread, 0)
        owner = names.get(number)
        label = ("/", f"thread {thread}") if owner is None else (owner[0], f"{owner[1]} (cleared)")
        yield _line(threads, thread, label, covered)._replace(session=number)


def _line(
    threads: dict[int, tuple[Any, ...]], thread: int, label: tuple[str, str], covered: set[tuple[int, int]]
) -> _Line:
    parts: list[tuple[int, int, int]] = []
    until = _LAST
    at: int | None = thread
    while at is not None and all(at != each for each, _, _ in parts):
        _, parent, base, _ = threads.get(at, (at, None, 0, 0))
        parts.append((at, base, until))
        covered.add((at, until))
        at, until = parent, base
    return _Line(*label, tuple(reversed(parts)), None)


def _parameters(rows: _Rows, session: int | None) -> dict[str, Any]:
    """The model parameters of a session; none if their row is missing or damaged."""
    stored = rows.execute("SELECT c1 FROM parameters WHERE id = ?", (session,)).get
    value = _json(stored)
    return value if isinstance(value, dict) else {}


def _free(target: Ledger, workspace: str, name: str) -> str:
    free_name, number = fitting(name), 1
    while target.find(workspace, free_name) is not None:
        number += 1
        free_name = fitting(name, " (salvaged)" if number == 2 else f" (salvaged {number - 1})")
    return free_name


# ---------------------------------------------------------------- turns


def _turns(rows: _Rows, line: _Line, tally: _Tally) -> Iterator[Turn]:
    counters = {number: _text(name) for number, name in rows.execute("SELECT id, c1 FROM counter")}
    places: dict[int, int] = {}  # old position of a message → new position
    in_force: list[str] = []  # compactions that can be undone
    for thread, after, until in line.parts:
        first, last = (thread << SHIFT) + after + 1, (thread << SHIFT) + min(until, _LAST)
        described = {
            row[0] & _MASK: row
            for row in rows.execute("SELECT * FROM turn WHERE id BETWEEN ? AND ?", (first, last))
        }
        by_turn = _messages(rows, thread, tally, after=after, until=until)
        for seq in sorted(described.keys() | by_turn.keys()):
            about = _about(rows, described[seq], places) if seq in described else _UNKNOWN
            turn = _turn(seq, by_turn.get(seq, []), counters, about)
            tally.lost += max(0, (described[seq][3] if seq in described else 0) - len(turn.messages))
            if turn.type == "compaction":
                if not turn.messages:
                    continue
                in_force.append(turn.compaction or "")
            elif turn.type == "undo":
                if turn.compaction not in in_force:
                    continue
                del in_force[len(in_force) - 1 - in_force[::-1].index(turn.compaction) :]
            for position, _, _, _ in by_turn.get(seq, []):
                places[position] = len(places)
            tally.messages += len(turn.messages)
            yield turn


def _messages(
    rows: _Rows, thread: int, tally: _Tally, *, after: int, until: int
) -> dict[int, list[tuple[int, Message, int, int]]]:
    """Position, message, tokens and counter of the messages of a thread's turns, by the turn's seq."""
    by_turn: dict[int, list[tuple[int, Message, int, int]]] = {}
    start = thread << SHIFT
    sql = "SELECT * FROM message WHERE id BETWEEN ? AND ? AND c1 > ? AND c1 <= ? ORDER BY id"
    for row in rows.execute(sql, (start, start + _MASK, after, until)):
        number, turn, role, _, tokens, counter, length, text, data, crc = row
        try:
            message = message_of((number, turn, _text(role), tokens, length, text, data, crc))
        except (ValueError, msgspec.MsgspecError):
            restored = _restored(_text(role), length, text, data)
            if restored is None:
                tally.lost += 1
                continue
            message = restored
            tally.damaged += 1
        by_turn.setdefault(turn, []).append((number & _MASK, message, tokens, counter))
    return by_turn


def _restored(role: str, length: int | None, stored_text: bytes, data: bytes | None) -> Message | None:
    """A damaged message, with U+FFFD for invalid text; None if it is not a message."""
    text = _text(stored_text)[:length]
    try:
        if data is None:
            return convert_to({"role": role, "content": text}, Message)
        message = convert_to(value_of(_text(data)), Message)
    except (ValueError, msgspec.MsgspecError):
        return None
    return message if length is None else msgspec.structs.replace(message, content=text)


def _turn(
    seq: int,
    messages: list[tuple[int, Message, int, int]],
    counters: dict[int, str],
    about: Mapping[str, Any],
) -> Turn:
    """A turn with what its row says `about` it."""
    return Turn(
        id="",
        seq=seq,
        tokens=sum(tokens for _, _, tokens, _ in messages),
        messages=tuple(message for _, message, _, _ in messages),
        counter=counters.get(messages[0][3], "unknown") if messages else "",
        counts=tuple(tokens for _, _, tokens, _ in messages),
        **about,
    )


def _about(rows: _Rows, row: tuple[Any, ...], places: dict[int, int]) -> dict[str, Any]:
    number, kind, _, _, _, _, _, _, undoes, created, *facts = row
    model, role, permissions, toolset, event, context, _, outcome = facts
    kind = _text(kind)
    compaction_row = rows.execute(
        "SELECT c1, c4, c5 FROM compaction WHERE id = ?", (number if undoes is None else undoes,)
    ).fetchone()
    compacted = compaction_row if kind == "compaction" else None
    return {
        "type": kind if kind in ("query", "compaction", "undo") else "query",
        "created": _text(created),
        "model": _optional(model),
        "role": _optional(role),
        "permissions": permissions_of(_optional(permissions)),
        "toolset": tuple(_json(toolset) or ()),
        "event": _json(event),
        "context": _json(context),
        "outcome": outcome_of(_json(outcome)),
        "compaction": None if compaction_row is None else _text(compaction_row[0]),
        "kept": () if compacted is None else _ranges(_json(compacted[1]) or (), places),
        "receipt": None if compacted is None else _json(compacted[2]),
    }


def _ranges(ranges: Any, places: dict[int, int]) -> Ranges:
    """The ranges in new positions."""
    mapped: list[list[int]] = []
    for start, end in ranges:
        for position in range(start, end):
            at = places.get(position)
            if at is not None and mapped and mapped[-1][1] == at:
                mapped[-1][1] += 1
            elif at is not None:
                mapped.append([at, at + 1])
    return tuple((start, end) for start, end in mapped)


def _direct(rows: _Rows) -> Iterator[DirectMessage]:
    """Direct messages that still wait for their agents."""
    for row in rows.execute("SELECT * FROM direct WHERE c14 = 0 ORDER BY id"):
        (
            _,
            name,
            workspace,
            source,
            target,
            node,
            content,
            created,
            _,
            ttl,
            priority,
            task,
            session,
            data,
            _,
        ) = row
        yield DirectMessage(
            id=_text(name),
            workspace=_text(workspace),
            source=_text(source),
            target=_text(target),
            content=_text(content),
            created=float(created),
            node=_optional(node),
            priority=float(priority),
            ttl=ttl,
            task=_optional(task),
            metadata=_json(data),
            session=_optional(session),
        )


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _optional(data: bytes | None) -> str | None:
    return None if data is None else _text(data)


def _json(data: bytes | None) -> Any:
    try:
        return None if data is None else value_of(_text(data))
    except ValueError:
        return None
