"""A disk that fails at the n-th call, for every n: reading, writing, writing half, syncing, and all the rest.

1. A workload on a ledger that holds something already runs through; its calls of each kind are counted.
2. Then it runs again for every call of every kind, and that one fails, or that one and all after it.
3. Every method either does its work or raises a LedgerError that names the file. No other exception, no
   hang.
4. Afterwards the disk is well: the ledger opens, everything that was acknowledged is there, nothing by
   half, SQLite's own check is content, and no sound file was set aside.
"""

import contextlib
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import msgspec

from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import CODES, LedgerError
from nexus_context.ledger.records import Appended
from nexus_context.ledger.store import Ledger
from torture.faulty import Fault, file_system
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import MAIN, NAME, WORKSPACE, compaction, damage_in, opened, turn, wrong_with

BEFORE = 15  # turns that are there already
IMPORTED = 20
DEFECTS = (
    apsw.Error,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    LookupError,
    RuntimeError,
)
"""What must not come out of a ledger."""

FAULTS = {
    "read fails": Fault("read", code=apsw.SQLITE_IOERR_READ),
    "write fails": Fault("write", code=apsw.SQLITE_IOERR_WRITE),
    "write is cut short": Fault("write", short=True, code=apsw.SQLITE_IOERR_WRITE),
    "write finds no room": Fault("write", code=apsw.SQLITE_FULL),
    "sync fails": Fault("sync", code=apsw.SQLITE_IOERR_FSYNC),
    "truncate fails": Fault("truncate", code=apsw.SQLITE_IOERR_TRUNCATE),
    "size fails": Fault("size", code=apsw.SQLITE_IOERR_FSTAT),
    "delete fails": Fault("delete", code=apsw.SQLITE_IOERR_DELETE),
    "open fails": Fault("open", code=apsw.SQLITE_CANTOPEN),
}


class Done(msgspec.Struct):
    """What a workload did."""

    acknowledged: dict[str, int]
    refused: list[LedgerError] = []
    wrong: list[str] = []
    imported: bool = False


def run(most: int, seed: int = 1) -> Outcome:
    """Every call, or of each kind `most` at random places."""
    watch, dice = Watch(), dice_of(seed)
    wrong: list[str] = []
    trials = refusals = acknowledged = 0
    with tempfile.TemporaryDirectory(prefix="nexus-failing-") as root:
        original = Path(root) / "original" / NAME
        before = _prepare(original)
        for what, fault in FAULTS.items():
            for nth, lasts in _places(original, fault, most, dice):
                folder = Path(root) / f"trial-{trials}"
                tried = msgspec.structs.replace(fault, nth=nth, lasts=lasts, seen=0)
                done = _trial(original, folder, tried, before)
                again = "and ever after" if lasts else "once"
                wrong += [f"{what} at {nth}, {again}: {line}" for line in done.wrong]
                trials, refusals = trials + 1, refusals + len(done.refused)
                acknowledged += len(done.acknowledged)
                shutil.rmtree(folder)
    figures = (
        Figure("workloads, each with one failure", trials),
        Figure("kinds of failure", len(FAULTS)),
        Figure("turns acknowledged", acknowledged),
        Figure("refused with a clear error", refusals),
        Figure("acknowledged turns lost", sum("is lost" in line for line in wrong), at_most=0),
        Figure("half-written", sum("gaps" in line or "by half" in line for line in wrong), at_most=0),
        nothing_wrong(line for line in wrong if not any(w in line for w in ("is lost", "gaps", "half "))),
    )
    return Outcome("failing disk", figures, tuple(wrong), seconds=watch.seconds)


def _prepare(path: Path) -> dict[str, int]:
    with opened(path) as ledger:
        keys = [f"before-{number}" for number in range(BEFORE)]
        return {key: ledger.append(WORKSPACE, MAIN, turn(key)).head.seq for key in keys}


def _places(original: Path, fault: Fault, most: int, dice: random.Random) -> Iterator[tuple[int, bool]]:
    """Which call is to fail, and whether all later ones are."""
    counted = msgspec.structs.replace(fault, nth=0, seen=0)
    with tempfile.TemporaryDirectory(prefix="nexus-counting-") as root:
        done = _trial(original, Path(root) / "copy", counted, {})
    assert not done.refused, done.refused
    every = [(nth, lasts) for nth in range(1, counted.seen + 1) for lasts in (False, True)]
    yield from every if len(every) <= most else dice.sample(every, most)


def _trial(original: Path, folder: Path, fault: Fault, before: dict[str, int]) -> Done:
    """The workload with one failure, and what is found afterwards."""
    shutil.copytree(original.parent, folder)
    path, done = folder / NAME, Done(dict(before))
    with file_system(fault):
        try:
            ledger = open_ledger(str(path), environ={})
        except LedgerError as error:
            done.refused.append(error)
        except DEFECTS as error:
            done.wrong.append(f"opening raised {error!r}")
        else:
            _work(ledger, done)
            # SQLite itself is content if its last tidying fails; an exception of a shim shows nevertheless
            with contextlib.suppress(apsw.Error):
                ledger.close()
    done.wrong += [line for error in done.refused for line in _unclear(error, path)]
    with opened(path) as sound:
        if sound.notice:
            done.wrong.append(f"a sound file was set aside: {sound.notice}")
        done.wrong += wrong_with(sound, MAIN, done.acknowledged)
        found = sound.find(WORKSPACE, "import")
        if (found.head.seq if found else 0) not in ((IMPORTED,) if done.imported else (0, IMPORTED)):
            done.wrong.append("an import is there by half")
    done.wrong += damage_in(path)
    return done


def _work(ledger: Ledger, done: Done) -> None:
    """A bit of everything; each method does its work or refuses."""

    def attempt(work: Callable[[], object]) -> object:
        try:
            return work()
        except LedgerError as error:
            done.refused.append(error)
        except DEFECTS as error:
            done.wrong.append(f"a method raised {error!r}")
        return None

    for key, words in (("one", 10), ("two", 3_000), ("three", 10), ("three", 10)):
        answer = attempt(lambda key=key, words=words: ledger.append(WORKSPACE, MAIN, turn(key, words=words)))  # type: ignore[misc]
        if isinstance(answer, Appended) and ledger.persists:
            done.acknowledged[key] = answer.head.seq
    attempt(lambda: list(ledger.turns(WORKSPACE, MAIN)))
    attempt(lambda: ledger.pages.search("plan"))
    attempt(lambda: ledger.history(WORKSPACE, MAIN))
    head = ledger.head(WORKSPACE, MAIN) if not done.refused else None
    if head is not None:
        attempt(lambda: ledger.compact(WORKSPACE, MAIN, compaction("c", head.seq, ((0, 1),))))
        attempt(lambda: ledger.undo(WORKSPACE, MAIN))
    attempt(lambda: ledger.fork(WORKSPACE, MAIN, "fork"))
    imported = attempt(
        lambda: ledger.import_turns(WORKSPACE, "import", [turn(f"i{n}") for n in range(IMPORTED)])
    )
    done.imported = imported is not None and ledger.persists
    attempt(lambda: ledger.rename(WORKSPACE, "fork", "renamed"))
    attempt(lambda: ledger.delete(WORKSPACE, "renamed"))


def _unclear(error: LedgerError, path: Path) -> Iterator[str]:
    if error.code not in CODES:
        yield f"an error has the code {error.code!r}"
    if error.code in ("unknown-session", "unknown-compaction"):
        return  # what it should have worked on was refused before
    if str(path) not in str(error):
        yield f"an error does not name the file: {error}"
