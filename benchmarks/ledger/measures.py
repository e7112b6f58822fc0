"""What is measured: importing, appending, opening, searching, asking. Every `Times` is in microseconds.

Garbage collection is off while the clock runs. The ledger and the bare database lie in the same folder,
on a disk that syncs: a folder in memory would flatter both.
"""

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from benchmarks.conversation.speed import Times, quiet, timed
from benchmarks.conversation.traces import ROOT
from benchmarks.ledger import texts
from benchmarks.ledger.worker import WORKSPACE

from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import Span
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewCompaction, NewTurn
from nexus_context.ledger.store import Ledger
from nexus_context.memory.knowledge import KnowledgeIndex, KnowledgePath, Settings, query, refresh
from nexus_context.tokens import TiktokenCounter

LONG, OPENED, COMPACTED = "long", "opened", "compacted"  # sessions
WINDOW = 16_000  # tokens
QUERY_TEXTS = 2_000  # messages that the queries are about


class Rounds(msgspec.Struct, frozen=True):
    """How much is measured."""

    long: int  # messages
    opened: int  # messages
    appends: int
    openings: int  # processes
    searches: int
    files: int  # of the knowledge base


FULL = Rounds(long=100_000, opened=10_000, appends=2_000, openings=25, searches=700, files=10_000)
QUICK = Rounds(long=8_000, opened=2_000, appends=100, openings=3, searches=70, files=500)


class Appending(msgspec.Struct, frozen=True):
    """A durable append, beside the least that a durable write costs here."""

    ledger: Times  # of a turn of one message, behind the long thread
    larger: Times  # of a turn of four messages
    bare: Times  # INSERT and COMMIT of the same text in the standard library's SQLite, WAL and FULL
    file: Times  # the same bytes written to a file and synced


class Opening(msgspec.Struct, frozen=True):
    """In a process of its own: the imports, then the ledger, then the history, then that again."""

    messages: int  # of the history that was read
    imported: Times
    opened: Times
    read: Times
    again: Times
    both: Times  # opened and read


class Searching(msgspec.Struct, frozen=True):
    """Searches in the long session's ledger, all kinds together and each."""

    messages: int
    all: Times
    kinds: dict[str, Times]
    narrowed: Times  # within one session


class Importing(msgspec.Struct, frozen=True):
    """A long conversation that is put into the ledger, and how large that is then."""

    messages: int
    seconds: float
    bytes: int
    text_bytes: int


class Knowing(msgspec.Struct, frozen=True):
    """Passages for a message, out of many files; and what it took to index them."""

    files: int
    bytes: int
    seconds: float
    unchanged: float  # seconds to look through all of them when nothing has changed
    query: Times


def fill(path: Path, rounds: Rounds, turns: Iterator[NewTurn]) -> Importing:
    """A ledger with the long session."""
    count = rounds.long // texts.TURN
    given = [turn for turn, _ in zip(turns, range(count), strict=False)]
    text = sum(len(_text(counted.message)) for turn in given for counted in turn.messages)
    with ledger_at(path) as ledger:
        started = time.perf_counter()
        ledger.import_turns(WORKSPACE, LONG, given)
        seconds = time.perf_counter() - started
    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    return Importing(count * texts.TURN, seconds, size, text)


def more(path: Path, rounds: Rounds) -> None:
    """The other sessions: one to open whole, and one like the long one that was compacted near its end."""
    with ledger_at(path) as ledger:
        ledger.import_turns(WORKSPACE, OPENED, texts.made(rounds.opened // texts.TURN, seed=7))
        ledger.fork(WORKSPACE, LONG, COMPACTED)
        head = ledger.head(WORKSPACE, COMPACTED)
        assert head is not None
        summary = Counted(Message("user", "[CONTEXT SUMMARY]\n" + "They flew. " * 100), 300)
        kept = ((0, 2), (head.messages - 40, head.messages))
        compaction = NewCompaction(
            id="c", seq=head.seq, summary=summary, counter=texts.COUNTER, kept=kept, receipt={}
        )
        ledger.compact(WORKSPACE, COMPACTED, compaction)


def appending(path: Path, rounds: Rounds) -> Appending:
    """Appends and bare writes in turn, so that a disk that slows down slows all."""
    turns = list(texts.made(2 * rounds.appends, seed=8))
    times: dict[str, list[int]] = {"ledger": [], "larger": [], "bare": [], "file": []}
    floor = path.parent / "floor"
    with ledger_at(path) as ledger, _bare(path.parent) as bare, floor.open("wb") as file, quiet():
        for one, four in zip(turns[::2], turns[1::2], strict=True):
            single = msgspec.structs.replace(one, messages=one.messages[:1])
            with timed(times["ledger"]):
                ledger.append(WORKSPACE, LONG, single)
            text = _text(single.messages[0].message)
            with timed(times["bare"]):
                bare.execute("INSERT INTO message (text) VALUES (?)", (text,))
                bare.commit()
            with timed(times["file"]):
                file.write(text.encode())
                file.flush()
                os.fdatasync(file.fileno())
            with timed(times["larger"]):
                ledger.append(WORKSPACE, LONG, four)
    return Appending(**{name: Times.of(values) for name, values in times.items()})


def opening(path: Path, session: str, processes: int, *, tokens: int | None = None) -> Opening:
    """Opens the ledger and reads a session's history in fresh processes."""
    command = [sys.executable, "-m", "benchmarks.ledger.worker", str(path), session]
    command += [] if tokens is None else [str(tokens)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'context'}"}
    answers: list[dict[str, int]] = []
    for _ in range(processes + 1):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
        answers.append(msgspec.json.decode(done.stdout))
    del answers[0]  # the machine's caches are as they were left by something else
    columns = {
        name: Times.of([answer[name] for answer in answers])
        for name in ("imported", "opened", "read", "again")
    }
    both = Times.of([answer["opened"] + answer["read"] for answer in answers])
    return Opening(messages=answers[0]["messages"], both=both, **columns)


def searching(path: Path, rounds: Rounds, turns: Iterator[NewTurn]) -> Searching:
    """Searches as a user does: without a session, newest ledger, twenty hits."""
    sample = [
        _text(c.message)
        for turn, _ in zip(turns, range(QUERY_TEXTS // 4), strict=False)
        for c in turn.messages
    ]
    asked = texts.queries([text for text in sample if len(text.split()) > 2], rounds.searches)
    times: dict[str, list[int]] = {kind: [] for kind in texts.KINDS}
    narrowed: list[int] = []
    with ledger_at(path) as ledger:
        ledger.search("first")  # whatever the first search alone does
        with quiet():
            for query in asked:
                with timed(times[query.kind]):
                    ledger.search(query.text)
                with timed(narrowed):
                    ledger.search(query.text, workspace=WORKSPACE, session=LONG)
        messages = sum(each.head.messages for each in ledger.sessions() if each.name != COMPACTED)
    kinds = {kind: Times.of(values) for kind, values in times.items()}
    every = [value for values in times.values() for value in values]
    return Searching(messages, Times.of(every), kinds, Times.of(narrowed))


def knowing(folder: Path, rounds: Rounds) -> Knowing:
    """A knowledge base of made pages, asked with whole messages."""
    pages = folder / "pages"
    size = 0
    for number, page in enumerate(texts.pages(rounds.files)):
        file = pages / f"{number % 100:02}" / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        size += file.write_text(page, encoding="utf-8")
    place = KnowledgePath(
        str(pages), (), str(pages), "local", str(folder), str(folder / "config.json"), Span(0, 0)
    )
    settings = Settings((place,))
    index = KnowledgeIndex(str(folder / "knowledge.db"))
    started = time.perf_counter()
    refreshed = refresh(index, settings)
    between = time.perf_counter()
    refresh(index, settings)
    ended = time.perf_counter()
    assert refreshed.changed == rounds.files, refreshed
    counter = TiktokenCounter("cl100k_base")
    counter.count("loads the vocabulary")
    turns = texts.made(rounds.searches, seed=9)
    asked = [_text(turn.messages[0].message) for turn in turns]
    times: list[int] = []
    with quiet():
        for message in asked:
            with timed(times):
                query(index, message, counter, top_k=settings.top_k, max_tokens=settings.max_tokens)
    index.close()
    return Knowing(rounds.files, size, between - started, ended - between, Times.of(times))


# ------------------------------------------------------------ inside


def ledger_at(path: Path) -> contextlib.closing[Ledger]:
    """The ledger at a path, closed at the end."""
    return contextlib.closing(open_ledger(str(path), environ={}))


@contextlib.contextmanager
def _bare(folder: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(folder / "bare.db")) as bare:
        bare.execute("PRAGMA journal_mode=WAL")
        bare.execute("PRAGMA synchronous=FULL")
        bare.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, text TEXT)")
        bare.commit()
        yield bare


def _text(message: Message) -> str:
    calls = (msgspec.json.encode(call.arguments).decode() for call in message.tool_calls)
    return " ".join([text_of(message), *calls])
