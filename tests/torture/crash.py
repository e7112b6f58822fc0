"""Power cuts at any write, simulated: whatever was not synced is lost, there, or torn.

1. A workload runs over a file system that remembers every write, truncation and sync, and every
   acknowledgement.
2. At a random place of that record the power goes. What was synced before is on the disk. Of the rest a
   fate decides: nothing of it, all of it, or any sectors of it, in any mixture.
3. The ledger is opened from those files: everything acknowledged before the cut is there, and it takes
   the next turn.
4. The witness is written past SQLite: what it holds at each acknowledgement is one more write that nobody
   synced. Whatever becomes of it, nobody is told that anything is missing.
5. Control group: the same with `synchronous=NORMAL` has to lose turns, else this test could not fail.
"""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from torture.faulty import Event, careless, file_system
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import MAIN, NAME, WORKSPACE, compaction, damage_in, opened, turn, wrong_with

SECTOR = 512  # bytes that a disk writes whole
FATES = ("nothing", "some", "all")
ROUNDS = 4  # the workload closes and opens the ledger in between


class Disk(msgspec.Struct):
    """One file: what is on the disk, and what was written since the last sync."""

    durable: bytearray = msgspec.field(default_factory=bytearray)
    pending: list[Event] = []

    def sync(self) -> None:
        for event in self.pending:
            _put(self.durable, event)
        self.pending = []

    def after(self, fate: str, dice: random.Random) -> bytes:
        """What is found after a power cut."""
        found = bytearray(self.durable)
        for event in self.pending:
            if fate == "all" or (fate == "some" and event.kind == "truncate" and dice.random() < 0.5):
                _put(found, event)
            elif fate == "some" and event.kind == "write":
                for start in range(0, len(event.data), SECTOR):
                    if dice.random() < 0.5:
                        part = event.data[start : start + SECTOR]
                        _put(found, Event("write", event.file, event.at + start, part))
        return bytes(found)


def run(cuts: int, seed: int = 1) -> Outcome:
    """Cuts at random places, and as many of the control group."""
    watch = Watch()
    wrong, acknowledged = _cut(cuts, dice_of(seed))
    with careless():
        control, _ = _cut(cuts, dice_of(seed))
    lost = sum("is lost" in line for line in wrong)
    figures = (
        Figure("cuts, each with lost, torn or reordered sectors", cuts),
        Figure("acknowledged turns, over all cuts", acknowledged),
        Figure("of them lost", lost, at_most=0),
        Figure(
            "lost by the control group, synchronous=NORMAL",
            sum("is lost" in line for line in control),
            at_least=1,
        ),
        nothing_wrong(line for line in wrong if "is lost" not in line),
    )
    return Outcome("power cut, simulated", figures, tuple(wrong), seconds=watch.seconds)


def _cut(cuts: int, dice: random.Random) -> tuple[list[str], int]:
    """What was wrong after the cuts, and how many turns had been acknowledged before them, added up."""
    wrong: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory(prefix="nexus-crash-") as root:
        record = _record(Path(root) / "original" / NAME)
        places = sorted(dice.choices(range(1, len(record)), k=cuts))
        for number, (place, files, acknowledged) in enumerate(_states(record, places)):
            folder = Path(root) / f"cut-{number}"
            folder.mkdir(mode=0o700)
            fate = FATES[number % len(FATES)]
            for name, disk in files.items():
                (folder / name).write_bytes(disk.after(fate, dice))
            found = _wrong_after(folder / NAME, acknowledged)
            wrong += [f"cut at {place} of {len(record)}, {fate} kept: {line}" for line in found]
            total += len(acknowledged)
    return wrong, total


def _record(path: Path) -> list[Event]:
    """A few sessions' life, as everything that it does to its files."""
    record: list[Event] = []

    def acknowledge(key: str, seq: int) -> None:
        record.append(Event("write", f"{NAME}.witness", 0, Path(f"{path}.witness").read_bytes()))
        record.append(Event("ack", key, seq))

    with file_system(told=record.append):
        for round_ in range(ROUNDS):
            with opened(path) as ledger:
                for number in range(12):
                    key = f"{round_}-{number}"
                    words = 4_000 if number == 7 else 10
                    done = ledger.append(WORKSPACE, MAIN, turn(key, words=words, parts=number % 3 + 1))
                    acknowledge(key, done.head.seq)
                ledger.fork(WORKSPACE, MAIN, f"fork-{round_}", turn=done.turn)
                done = ledger.compact(WORKSPACE, MAIN, compaction(f"c{round_}", done.head.seq))
                acknowledge("", done.head.seq)
                done = ledger.undo(WORKSPACE, MAIN)
                acknowledge("", done.head.seq)
                ledger.import_turns(WORKSPACE, f"import-{round_}", [turn(f"i{n}") for n in range(30)])
                if round_:
                    ledger.delete(WORKSPACE, f"import-{round_ - 1}")
    return record


def _states(record: list[Event], places: list[int]) -> Iterator[tuple[int, dict[str, Disk], dict[str, int]]]:
    """The disks and the acknowledged turns at each of the places, which ascend."""
    files: dict[str, Disk] = {}
    acknowledged: dict[str, int] = {}
    done = 0
    for place in places:
        for event in record[done:place]:
            if event.kind == "ack":
                acknowledged |= {event.file: event.at} if event.file else {}
            elif event.kind == "delete":
                files.pop(event.file, None)
            elif event.kind == "sync":
                files.setdefault(event.file, Disk()).sync()
            else:
                disk = files.setdefault(event.file, Disk())
                disk.pending += [] if event.kind == "open" else [event]
        done = place
        yield place, files, acknowledged


def _put(content: bytearray, event: Event) -> None:
    end = event.at + len(event.data)
    if event.kind == "truncate":
        del content[event.at :]
        return
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[event.at : end] = event.data


def _wrong_after(path: Path, acknowledged: dict[str, int]) -> list[str]:
    """What is wrong with the ledger that is found after a cut."""
    with opened(path) as ledger:
        wrong = [f"a notice: {ledger.notice}"] if ledger.notice else []
        done = ledger.append(WORKSPACE, MAIN, turn("next"))
        wrong += wrong_with(ledger, MAIN, acknowledged | {"next": done.head.seq})
        for session in ledger.sessions(WORKSPACE):
            if session.name.startswith("import") and session.head.seq != 30:
                wrong.append(f"{session.name} is there by half")
    return wrong + damage_in(path)
