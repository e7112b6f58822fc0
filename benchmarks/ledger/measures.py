"""The price of losing nothing, and how soon a long conversation is there again, beside the disk and SQLite.

The ledger and the floors lie in the same folder, on a disk that syncs: a folder in memory would flatter all.
`TMPDIR` names another disk.
"""

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
from benchmarks.conversation.traces import tau_file
from benchmarks.ledger import texts
from benchmarks.ledger.worker import WORKSPACE
from benchmarks.promises import (
    ROOT,
    Measured,
    Promise,
    Run,
    Series,
    Turns,
    UnavailableError,
    milliseconds,
    processor_ms,
    promises,
    take_turns,
)

from nexus_context.conversation.message import Message, text_of
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewCompaction, NewTurn
from nexus_context.ledger.store import Ledger

LONG, OPENED, COMPACTED = "long", "opened", "compacted"  # sessions
MESSAGES, OPENED_MESSAGES = 100_000, 10_000
WINDOW = 16_000  # tokens
QUERY_TEXTS = 2_000  # messages that the queries are about
INSERT = "INSERT and COMMIT of the same text in SQLite"
SYNC = "fdatasync of the same bytes"
DECODE = "json.loads of the same messages"
FTS = "a query of plain FTS5"


@promises(
    Promise("append a turn, durable", 6.5, SYNC),
    Promise("append a turn, beside SQLite", 3.5, INSERT),
    Promise("open a ledger and a session of 10,000 messages", 2.0, DECODE),
    Promise("resume the window of 100,000 messages", 3.5, DECODE),
    Promise("search 100,000 messages", 4.2, FTS),
)
def sessions(run: Run) -> Iterator[Measured]:
    """Turns that are durable, histories that a new process reads, and searches, in a ledger of made text."""
    path = run.root / "ledger.db"
    turns = list(texts.made(run.pick(full=MESSAGES, quick=MESSAGES // 3) // texts.TURN))
    _fill(run, path, turns)
    appended = _append(run, path)
    yield "append a turn, durable", appended["ledger"], appended[SYNC]
    yield "append a turn, beside SQLite", appended["ledger"], appended[INSERT]
    for session, tokens in ((OPENED, None), (LONG, WINDOW), (COMPACTED, WINDOW)):
        opened = _open(run, path, session, tokens)
        run.note_turns(f"Open the session {session}, ms", opened)
        if session == OPENED:
            yield (
                "open a ledger and a session of 10,000 messages",
                opened["worker", "both"],
                opened["worker", DECODE],
            )
        if session == LONG:
            yield "resume the window of 100,000 messages", opened["worker", "read"], opened["worker", DECODE]
    yield "search 100,000 messages", *_search(run, path, turns)


@promises(Promise("search 100,000 messages of tau-bench", 4.2, FTS))
def tau(run: Run) -> Iterator[Measured]:
    """The same searches in real conversations, where their file is present."""
    if not tau_file().is_file():
        raise UnavailableError(f"{tau_file().name} of tau-bench is not here: see NEXUS_CORPORA")
    path = run.root / "ledger.db"
    turns = list(texts.tau(run.pick(full=MESSAGES, quick=MESSAGES // 3) // texts.TURN))
    with _ledger_at(path) as ledger:
        ledger.import_turns(WORKSPACE, LONG, turns)
    yield "search 100,000 messages of tau-bench", *_search(run, path, turns)


def _fill(run: Run, path: Path, turns: list[NewTurn]) -> None:
    """A long session, one to open whole, and one like the long one that was compacted near its end."""
    text = sum(len(_text(counted.message)) for turn in turns for counted in turn.messages)
    with _ledger_at(path) as ledger:
        seconds = milliseconds(lambda: ledger.import_turns(WORKSPACE, LONG, turns)) / 1e3
        size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
        rate = len(turns) * texts.TURN / seconds
        run.note("Import", "made text", **{"messages/s": rate, "MB": size / 1e6, "× the text": size / text})
        count = run.pick(full=OPENED_MESSAGES, quick=OPENED_MESSAGES // 5) // texts.TURN
        ledger.import_turns(WORKSPACE, OPENED, texts.made(count, seed=7))
        ledger.fork(WORKSPACE, LONG, COMPACTED)
        head = ledger.head(WORKSPACE, COMPACTED)
        assert head is not None
        summary = Counted(Message("user", "[CONTEXT SUMMARY]\n" + "They flew. " * 100), 300)
        kept = ((0, 2), (head.messages - 8, head.messages))
        compaction = NewCompaction(
            id="c", seq=head.seq, summary=summary, counter=texts.COUNTER, kept=kept, receipt={}
        )
        ledger.compact(WORKSPACE, COMPACTED, compaction)


def _append(run: Run, path: Path) -> Turns:
    """Appends and bare writes in turn, so that a disk that slows down slows all."""
    rounds = run.pick(full=1_000, quick=60)
    singles = [turn.messages[:1] for turn in texts.made(rounds + 5, seed=8)]
    messages = [_text(counted.message) for (counted,) in singles]
    with _ledger_at(path) as ledger, _bare(path.parent) as bare, (path.parent / "floor").open("wb") as file:

        def append(counted: tuple[Counted, ...]) -> None:
            ledger.append(WORKSPACE, LONG, NewTurn(messages=counted, counter=texts.COUNTER))

        def insert(text: str) -> None:
            bare.execute("INSERT INTO message (text) VALUES (?)", (text,))

        def write(text: str) -> None:
            file.write(text.encode())
            file.flush()
            os.fdatasync(file.fileno())

        steps = {
            "ledger": each_of(append, singles),
            INSERT: each_of(insert, messages),
            SYNC: each_of(write, messages),
        }
        turns = take_turns(steps, rounds, warm=5)
    run.note_turns("Append a turn of one message, ms", turns)
    return turns


def _open(run: Run, path: Path, session: str, tokens: int | None) -> Turns:
    """Fresh processes that open the ledger and read a session's history; imports are noted, not counted."""
    with _ledger_at(path) as ledger:
        history = ledger.history(WORKSPACE, session, tokens=tokens)
        assert history is not None
        plain = run.root / "messages.json"
        plain.write_bytes(msgspec.json.encode(history.messages))
    command = [sys.executable, "-m", "benchmarks.ledger.worker", str(path), session, str(plain)]
    command += [] if tokens is None else [str(tokens)]

    def read() -> dict[str, float]:
        times: dict[str, float] = json.loads(run.execute(command, cwd=ROOT))
        times[DECODE] = times.pop("decoded")
        return times | {"both": times["opened"] + times["read"]}

    return take_turns({"worker": read}, run.pick(full=15, quick=3))


def _search(run: Run, path: Path, turns: list[NewTurn]) -> tuple[Series, Series]:
    """Searches as a user does, without a session, and the same words in a plain FTS5 table."""
    messages = [_text(counted.message) for turn in turns for counted in turn.messages]
    sample = [text for text in messages[:QUERY_TEXTS] if len(text.split()) > 2]
    queries = texts.queries(sample, run.pick(full=700, quick=70))
    with _ledger_at(path) as ledger, plain_search(path.parent, messages) as match:
        ledger.pages.search("first")  # whatever the first search alone does
        steps = {
            "ledger": each_of(ledger.pages.search, [query.text for query in queries], processor_ms),
            FTS: each_of(match, [query.text.replace(" -", " NOT ") for query in queries], processor_ms),
        }
        turns_taken = take_turns(steps, len(queries), warm=0)
    run.note_turns(f"Search {len(messages):,} messages, ms of the processor", turns_taken)
    by_kind = zip(queries, turns_taken["ledger"].values, strict=True)
    for kind, items in itertools.groupby(sorted(by_kind, key=_kind), key=_kind):
        times = Series([value for _, value in items])
        run.note(
            f"Search {len(messages):,} messages, ms of the processor",
            kind,
            p50=times.at("p50"),
            p95=times.at("p95"),
        )
    return turns_taken["ledger"], turns_taken[FTS]


# ------------------------------------------------------------ floors


@contextlib.contextmanager
def plain_search(folder: Path, rows: Iterable[str]) -> Iterator[Callable[[str], object]]:
    """The twenty best rows of a plain FTS5 table, as a function of a query in FTS5's own language."""
    with contextlib.closing(apsw.Connection(str(folder / "plain.db"))) as plain:
        plain.execute("CREATE VIRTUAL TABLE row USING fts5(text)")
        with plain:
            plain.executemany("INSERT INTO row (text) VALUES (?)", ((row,) for row in rows))
        select = "SELECT text FROM row WHERE row MATCH ? ORDER BY rank LIMIT 20"
        yield lambda query: plain.execute(select, (query,)).fetchall()


@contextlib.contextmanager
def _bare(folder: Path) -> Iterator[apsw.Connection]:
    with contextlib.closing(apsw.Connection(str(folder / "bare.db"))) as bare:
        bare.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
        bare.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, text TEXT)")
        yield bare


# ------------------------------------------------------------ inside


def _ledger_at(path: Path) -> contextlib.closing[Ledger]:
    return contextlib.closing(open_ledger(str(path), environ={}))


def each_of(
    function: Callable[[Any], object],
    items: Iterable[Any],
    clock: Callable[[Callable[[], object]], float] = milliseconds,
) -> Callable[[], float]:
    """A step that times the function with the next item."""
    following = iter(items)

    def step() -> float:
        item = next(following)
        return clock(lambda: function(item))

    return step


def _kind(item: tuple[texts.Query, float]) -> str:
    return item[0].kind


def _text(message: Message) -> str:
    calls = (msgspec.json.encode(call.arguments).decode() for call in message.tool_calls)
    return " ".join([text_of(message), *calls])
