"""A clock that is set back again and again: turns stay in the order in which they were acknowledged."""

import datetime
import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

import apsw

from torture.children import Voice, children, write_turns
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import MAIN, NAME, WORKSPACE, opened, wrong_with

START_S = 1_900_000_000.0  # in 2030
BACK_S = 86_400.0  # at most, at each look at the clock
DAY_S = 86_400.0
EPOCH_JULIAN_MS = 210_866_760_000_000  # SQLite counts from noon of the 24th of November 4714 BC
SIDES = ("before", "after")


def run(turns: int, seed: int = 1) -> Outcome:
    """So many turns by a process whose clock runs backwards, among turns of one whose clock is right."""
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="nexus-clock-") as root:
        path = str(Path(root) / NAME)
        with children() as start:
            said = start(write_turns, path, SIDES[0], 1, turns).finish()
            said += start(write_backwards, path, seed, turns).finish()
            said += start(write_turns, path, SIDES[1], 1, turns).finish()
        keys = [words[2] for words in said if words[0] == "ack"]
        wrong = [" ".join(words) for words in said if words[0] not in ("ack", "took")]
        with opened(path) as ledger:
            found = list(ledger.turns(WORKSPACE, MAIN))
            wrong += wrong_with(ledger, MAIN, {key: place + 1 for place, key in enumerate(keys)}, set(keys))
            history = ledger.history(WORKSPACE, MAIN)
            texts = (
                [str(held.message.content).partition(" ")[0] for held in history.messages] if history else []
            )
    backwards = sum(b.created < a.created for a, b in itertools.pairwise(found))
    misplaced = sum(a != b for a, b in zip(texts, keys, strict=False)) + abs(len(texts) - len(keys))
    figures = (
        Figure("turns", len(keys), at_least=3 * turns),
        Figure("created before the turn that they follow", backwards, at_least=turns // 4),
        Figure("messages out of order", misplaced, at_most=0),
        nothing_wrong(wrong),
    )
    return Outcome("clock set back", figures, tuple(wrong), seconds=watch.seconds)


def write_backwards(voice: Voice, path: str, seed: int, turns: int) -> None:
    """As `write_turns`, with a clock that jumps back whenever somebody looks."""
    clock = _Backwards(seed)
    try:
        write_turns(voice, path, "back", 1, turns)
    finally:
        clock.unregister()


class _Clock(datetime.datetime):
    """`datetime` that asks `time.time`."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Self:
        return cls.fromtimestamp(time.time(), tz)


class _Backwards(apsw.VFS):
    """Python's clocks and SQLite's, all the same one."""

    def __init__(self, seed: int) -> None:
        self._dice, self._now = dice_of(seed), START_S
        super().__init__("torture-clock", apsw.vfs_names()[0], makedefault=True)
        time.time = self.look
        time.time_ns = lambda: int(self.look() * 1e9)
        datetime.datetime = _Clock  # type: ignore[misc]
        for name, module in list(sys.modules.items()):
            if name.startswith("nexus_context.ledger") and hasattr(module, "datetime"):
                setattr(module, "datetime", _Clock)  # noqa: B010 - mypy does not know that it has one

    def look(self) -> float:
        self._now -= self._dice.uniform(0, BACK_S)
        return self._now

    def xCurrentTime(self) -> float:
        return self.xCurrentTimeInt64() / (1e3 * DAY_S)

    def xCurrentTimeInt64(self) -> int:
        return EPOCH_JULIAN_MS + int(1e3 * self.look())
