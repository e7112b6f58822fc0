"""A ledger whose files were cut, emptied, removed, exchanged or are older: that is noticed, nothing else.

1. A ledger lives: turns, forks, compactions, deletions, several windows, logs brought into the file. Its
   files are copied at several moments, open and closed, with what had been acknowledged by then.
2. *Attacks* mix the files of different moments, or of two ledgers, with or without their times. Then the
   ledger is opened: if an acknowledged turn is missing, somebody must have said so, and what was set aside is
   what was there, byte for byte.
3. *Innocent* changes: a state directory that was copied or restored as a whole, a witness that lags, is torn
   or gone, as after a power cut or a kill between commit and witness. Nobody may say anything.
4. A backup made while another process writes holds every turn that was acknowledged before, and verifies.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from torture.children import children, write_turns
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import MAIN, NAME, WORKSPACE, compaction, opened, turn, wrong_with

LIFE = 24  # trials for which one ledger's life is copied
MOMENTS = 6
TURNS = 12  # between two moments
MAIN_FILE, LOG, WITNESS = "", "-wal", ".witness"
ENDS = (MAIN_FILE, LOG, WITNESS)


class Copy(msgspec.Struct, frozen=True):
    """A file as it was."""

    data: bytes
    time: int  # of its last change, in nanoseconds


Files = dict[str, Copy]


class Moment(msgspec.Struct, frozen=True):
    """The files, and what had been acknowledged by then."""

    files: Files
    acknowledged: dict[str, int]


class Tally(msgspec.Struct):
    """What became of all trials."""

    attacks: int = 0
    noticed: int = 0
    harmless: int = 0
    unnoticed: int = 0
    unseen: int = 0
    innocent: int = 0
    alarms: int = 0
    backups: int = 0
    wrong: list[str] = []


Attack = Callable[[list[Moment], Moment, random.Random], Files]


def run(trials: int, seed: int = 1) -> Outcome:
    """So many trials: two of three are attacks, each kind in turn."""
    watch, tally, dice = Watch(), Tally(), dice_of(seed)
    with tempfile.TemporaryDirectory(prefix="nexus-verified-") as root:
        for trial in range(trials):
            if trial % LIFE == 0:
                folder = Path(root) / f"life-{trial}"
                moments = _life(folder / "one" / NAME, dice)
                other = _life(folder / "other" / NAME, dice)[-1]
                _back_up(folder / "backup", tally)
            place = Path(root) / f"trial-{trial}" / NAME
            place.parent.mkdir(mode=0o700)
            if trial % 3 == 2:
                _innocent(place, moments, trial // 3, dice, tally)
            else:
                _attacked(place, moments, other, trial - trial // 3, dice, tally)
            shutil.rmtree(place.parent)
    figures = (
        Figure("ledgers attacked", tally.attacks),
        Figure("noticed: set aside, or an error says what is missing", tally.noticed),
        Figure("harmless: every acknowledged turn is there", tally.harmless),
        Figure("acknowledged turns lost without notice, ledgers", tally.unnoticed, at_most=0),
        Figure("damage that only nexus sessions verify sees", tally.unseen),
        Figure("innocent changes", tally.innocent),
        Figure("false alarms", tally.alarms, at_most=0),
        Figure("backups made while another process wrote", tally.backups),
        nothing_wrong(tally.wrong),
    )
    return Outcome("verified history", figures, tuple(tally.wrong), seconds=watch.seconds)


# ------------------------------------------------------------ a life


def _life(path: Path, dice: random.Random) -> list[Moment]:
    """The moments of a ledger's life, oldest first; at every second it is closed."""
    moments: list[Moment] = []
    acknowledged: dict[str, int] = {}
    for number in range(MOMENTS):
        with opened(path) as left, opened(path) as right:
            for step in range(TURNS):
                key = f"{number}-{step}"
                words = dice.choice((10, 300, 9_000))
                done = dice.choice((left, right)).append(WORKSPACE, MAIN, turn(key, words=words))
                acknowledged[key] = done.head.seq
            left.fork(WORKSPACE, MAIN, f"fork-{number}")
            if number == 2:
                right.compact(WORKSPACE, MAIN, compaction("c", done.head.seq))
            if number % 2:
                right.delete(WORKSPACE, f"fork-{number - 1}")
            if number % 2 == 0:
                moments.append(Moment(_copied(path), dict(acknowledged)))
        if number % 2:
            moments.append(Moment(_copied(path), dict(acknowledged)))
    return moments


def _copied(path: Path) -> Files:
    found = ((end, Path(f"{path}{end}")) for end in ENDS)
    return {end: Copy(file.read_bytes(), file.stat().st_mtime_ns) for end, file in found if file.exists()}


def _put(path: Path, files: Files, *, times: bool) -> None:
    for end, copy in files.items():
        file = Path(f"{path}{end}")
        file.write_bytes(copy.data)
        if times:
            os.utime(file, ns=(copy.time, copy.time))


# ------------------------------------------------------------ attacks


def _with_log(moments: list[Moment]) -> Moment:
    """The last moment at which a log lay beside the file."""
    return next(each for each in reversed(moments) if LOG in each.files and each.files[LOG].data)


def _without(files: Files, *ends: str) -> Files:
    return {end: copy for end, copy in files.items() if end not in ends}


def _emptied(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    files = dice.choice((moments[-1], _with_log(moments))).files
    return files | {MAIN_FILE: Copy(b"", files[MAIN_FILE].time)}


def _emptied_beside_log(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    files = _with_log(moments).files
    return _without(files, *dice.choice(((), (WITNESS,)))) | {MAIN_FILE: Copy(b"", 0)}


def _removed(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    return _without(dice.choice((moments[-1], _with_log(moments))).files, MAIN_FILE)


def _older(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    return dice.choice(moments[:-1]).files | {WITNESS: moments[-1].files[WITNESS]}


def _older_file(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    files = dice.choice((moments[-1], _with_log(moments))).files
    return files | {MAIN_FILE: dice.choice(moments).files[MAIN_FILE]}


def _older_log(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    older = [each.files[LOG] for each in moments if LOG in each.files]
    return dice.choice((moments[-1], _with_log(moments))).files | {LOG: dice.choice(older)}


def _no_log(moments: list[Moment], _: Moment, __: random.Random) -> Files:
    return _without(_with_log(moments).files, LOG)


def _cut_log(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    files = _with_log(moments).files
    log = files[LOG]
    return files | {LOG: Copy(log.data[: dice.randrange(len(log.data))], log.time)}


def _cut_file(moments: list[Moment], _: Moment, dice: random.Random) -> Files:
    files = dice.choice((moments[-1], _with_log(moments))).files
    main = files[MAIN_FILE]
    return files | {MAIN_FILE: Copy(main.data[: dice.randrange(len(main.data))], main.time)}


def _swapped(moments: list[Moment], other: Moment, _: random.Random) -> Files:
    return moments[-1].files | {MAIN_FILE: other.files[MAIN_FILE]}


def _foreign_log(moments: list[Moment], other: Moment, dice: random.Random) -> Files:
    log = other.files.get(LOG) or Copy(dice.randbytes(9_000), 0)
    return dice.choice((moments[-1], _with_log(moments))).files | {LOG: log}


ATTACKS: tuple[Attack, ...] = (
    _emptied,
    _emptied_beside_log,
    _removed,
    _older,
    _older_file,
    _older_log,
    _no_log,
    _cut_log,
    _cut_file,
    _swapped,
    _foreign_log,
)


def _attacked(
    path: Path, moments: list[Moment], other: Moment, number: int, dice: random.Random, tally: Tally
) -> None:
    attack = ATTACKS[number % len(ATTACKS)]
    files = attack(moments, other, dice)
    _put(path, files, times=dice.random() < 0.5)
    tally.attacks += 1
    # whose files these are: the witness's, else the newest of the others
    acknowledged = max(
        (each.acknowledged for each in moments if _holds(each, files)),
        key=len,
        default=moments[0].acknowledged,
    )
    name = f"{attack.__name__.strip('_')}, {number}"
    end, lines = _use(path, acknowledged)
    tally.wrong += [f"{name}: {line}" for line in lines]
    if end == "noticed":
        tally.noticed += 1
        tally.wrong += [f"{name}: {line}" for line in _aside(path, files)]
    elif end == "missing":
        tally.unnoticed += 1
        tally.wrong.append(f"{name}: acknowledged turns are lost, and nobody says so")
    else:
        tally.harmless += 1
        tally.unseen += end == "unsound"


def _holds(moment: Moment, files: Files) -> bool:
    if WITNESS in files:
        return moment.files.get(WITNESS) == files[WITNESS]
    return any(moment.files.get(end) == copy for end, copy in files.items() if copy.data)


def _use(path: Path, acknowledged: dict[str, int]) -> tuple[str, list[str]]:
    """Open, read and write: `noticed`, `missing`, `unsound` or `whole`, and what else is wrong."""
    try:
        with opened(path) as ledger:
            try:
                missing = any("is lost" in line for line in wrong_with(ledger, MAIN, acknowledged))
                end = "missing" if missing else "whole" if ledger.upkeep.verify().sound else "unsound"
            except LedgerError as error:
                if error.code != "ledger-corrupt":
                    return "noticed", [f"{error.code}: {error}"]
                end = "noticed"
            if ledger.notice is not None:
                end = "noticed"
            return end, list(_goes_on(ledger))
    except LedgerError as error:
        return "noticed", [f"it cannot be opened: {error}"]


def _goes_on(ledger: Ledger) -> Iterator[str]:
    """The ledger, or the one that was begun, takes the next turn."""
    for _ in range(3):
        try:
            ledger.append(WORKSPACE, "after", turn("after"))
        except LedgerError as error:
            if error.code != "ledger-corrupt":
                yield f"{error.code}: {error}"
                return
        else:
            return
    yield "nothing can be written, again and again"


def _aside(path: Path, files: Files) -> Iterator[str]:
    """What was set aside is what was there."""
    found = sorted(path.parent.glob(f"{NAME}.broken-*Z"))
    if not found:
        return
    for end, copy in files.items():
        file = Path(f"{found[0]}{end}")
        if end != WITNESS and copy.data and not (file.exists() and file.read_bytes() == copy.data):
            yield f"the file {end or NAME} that was set aside is not what was there"


# ------------------------------------------------------------ innocent changes


def _innocent(path: Path, moments: list[Moment], number: int, dice: random.Random, tally: Tally) -> None:
    moment = dice.choice(moments)
    files, kind = dict(moment.files), number % 5
    if kind == 1:
        files = _without(files, WITNESS)
    elif kind == 2:
        files[WITNESS] = dice.choice(moments[: moments.index(moment) + 1]).files[WITNESS]
    elif kind == 3:
        torn = bytearray(files[WITNESS].data)
        for at in range(0, len(torn), 512):
            if dice.random() < 0.5:
                torn[at : at + 512] = bytes(512)
        files[WITNESS] = Copy(bytes(torn), files[WITNESS].time)
    elif kind == 4:
        files[WITNESS] = Copy(files[WITNESS].data[: dice.randrange(5_000)], files[WITNESS].time)
    _put(path, files, times=dice.random() < 0.5)
    tally.innocent += 1
    with opened(path) as ledger:
        lines = [f"a notice: {ledger.notice}"] if ledger.notice else []
        lines += wrong_with(ledger, MAIN, moment.acknowledged)
        lines += [] if ledger.upkeep.verify().sound else ["verify finds it broken"]
    tally.alarms += bool(lines)
    tally.wrong += [f"innocent {kind}, {number}: {line}" for line in lines]


# ------------------------------------------------------------ backups


def _back_up(folder: Path, tally: Tally) -> None:
    """A copy that is made while somebody else writes."""
    path = folder / NAME
    with opened(path) as ledger, children() as start:
        done = {f"b-{n}": ledger.append(WORKSPACE, MAIN, turn(f"b-{n}")).head.seq for n in range(20)}
        writer = start(write_turns, str(path), "w", 1, 200)
        for number in range(3):
            done |= {words[2]: int(words[3]) for words in writer.hear() if words[0] == "ack"}
            target = folder / f"backup-{number}.db"
            ledger.upkeep.backup(str(target))
            tally.backups += 1
            with opened(target) as copy:
                tally.wrong += [f"backup {number}: {line}" for line in wrong_with(copy, MAIN, done)]
                tally.wrong += [] if copy.upkeep.verify().sound else [f"backup {number} is broken"]
        tally.wrong += [
            f"backup: {' '.join(words)}" for words in writer.finish() if words[0] in ("hung", "died")
        ]
