"""Power cuts: what had reached the block device is mounted elsewhere, and the ledger opened from it.

1. Two processes append to one session on an ext4 in an image file on a loop device. The image is what
   has reached the device: the file system's own cache is not in it.
2. At a random moment they are stopped where they are, what they had acknowledged is taken down, and the
   image is copied. A copy that something wrote into meanwhile (the file system's journal) is made again.
   Then they go on.
3. The copy is mounted, by which its journal is replayed, as after a power cut: every acknowledged turn
   is there.
4. Control group: the same with `synchronous=NORMAL` has to lose turns, else this test could not fail.
"""

import contextlib
import filecmp
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torture.children import Child, Voice, children, write_turns
from torture.faulty import careless
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import MAIN, NAME, damage_in, opened, wrong_with
from torture.mounts import format_image, image, why_not

IMAGE_BYTES = 32 << 20
LIVES = 20  # cuts until a new file system is made
PAUSE_S = 0.002  # between two turns of a process
LATEST_CUT_S = 0.1  # after the last one
COPIES = 20  # attempts
ENDLESS = 10**6
MEMORY = Path("/dev/shm")


def run(cuts: int, seed: int = 1) -> Outcome:
    """All cuts, and as many of the control group."""
    if reason := why_not(loop=True):
        return Outcome("power cut", skipped=reason)
    watch = Watch()
    wrong, acknowledged = _cut(cuts, dice_of(seed), write_turns)
    control, hoped = _cut(cuts, dice_of(seed), write_carelessly)
    figures = (
        Figure("cuts, two writers on ext4", cuts),
        Figure("acknowledged turns, over all cuts", acknowledged),
        Figure("of them lost", sum("is lost" in line for line in wrong), at_most=0),
        Figure(f"lost by the control group of {hoped:,}, synchronous=NORMAL", _lost(control), at_least=1),
        Figure("cuts at which the control group lost turns", len({_cut_of(line) for line in control})),
        nothing_wrong(line for line in wrong if "is lost" not in line),
    )
    return Outcome("power cut", figures, tuple(wrong), seconds=watch.seconds)


def write_carelessly(voice: Voice, *arguments: object) -> None:
    """As `write_turns`, with `synchronous=NORMAL`."""
    with careless():
        write_turns(voice, *arguments)  # type: ignore[arg-type]


def _lost(wrong: list[str]) -> int:
    return sum("is lost" in line for line in wrong)


def _cut_of(line: str) -> str:
    return line.partition(":")[0]


def _cut(cuts: int, dice: random.Random, work: Callable[..., None]) -> tuple[list[str], int]:
    """What was wrong after the cuts, and how many turns had been acknowledged before them, added up."""
    wrong: list[str] = []
    total = 0
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="nexus-power-", dir=place) as root:
        for life in range(0, cuts, LIVES):
            folder = Path(root) / f"life-{life}"
            folder.mkdir()
            format_image(folder / "disk.img", IMAGE_BYTES)
            with image(folder / "disk.img", folder / "disk") as disk, children() as start:
                path = str(disk / "state" / NAME)
                writers = [start(work, path, name, 1, ENDLESS, PAUSE_S) for name in "ab"]
                for number in range(life, min(life + LIVES, cuts)):
                    time.sleep(dice.uniform(0, LATEST_CUT_S))
                    acknowledged, odd = _copy(writers, folder)
                    found = odd + _wrong_in(folder, acknowledged)
                    wrong += [f"cut {number}: {line}" for line in found]
                    total += len(acknowledged)
            shutil.rmtree(folder)
    return wrong, total


def _copy(writers: list[Child], folder: Path) -> tuple[dict[str, int], list[str]]:
    """Copies the image while nobody writes; what had been acknowledged, and what else was said."""
    for writer in writers:
        writer.signal(signal.SIGSTOP)
    try:
        for writer in writers:
            _await_stop(writer)
        heard = [words for writer in writers for words in writer.hear()]
        for _ in range(COPIES):
            shutil.copyfile(folder / "disk.img", folder / "cut.img")
            if filecmp.cmp(folder / "disk.img", folder / "cut.img", shallow=False):
                break
        else:
            heard.append(["the", "image", "never", "came", "to", "rest"])
    finally:
        for writer in writers:
            writer.signal(signal.SIGCONT)
    acknowledged = {words[2]: int(words[3]) for words in heard if words[0] == "ack"}
    odd = [" ".join(words) for words in heard if words[0] != "ack"]
    odd += [
        f"a writer ended with {each.process.exitcode}"
        for each in writers
        if each.process.exitcode is not None
    ]
    return acknowledged, odd


def _await_stop(writer: Child) -> None:
    """A stopped process may still be in the system's hands, in the middle of a sync."""
    stat = Path(f"/proc/{writer.process.pid}/stat")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        while stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "TZ":
            time.sleep(0.0002)


def _wrong_in(folder: Path, acknowledged: dict[str, int]) -> list[str]:
    with image(folder / "cut.img", folder / "cut") as cut:
        path = cut / "state" / NAME
        if not path.exists():
            return [f"{key} was acknowledged and is lost, with the file" for key in acknowledged]
        with opened(path) as ledger:
            wrong = [f"a notice: {ledger.notice}"] if ledger.notice else []
            wrong += wrong_with(ledger, MAIN, acknowledged)
        return wrong + damage_in(path)
