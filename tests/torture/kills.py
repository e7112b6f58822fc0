"""kill -9 at random moments, with two writers and a reader on one session.

1. A trial starts two writers and a reader, kills them one by one at random moments, from before the
   ledger is open to the middle of an append, an import or a fork, and measures how long a newcomer
   needs, from the first kill to its own acknowledged turn, while the other writer goes on.
2. Then each writer's last acknowledged key and the one after it, which may or may not be in, are sent
   again.
3. After that: every acknowledged turn is there once, at the number that was told; no gaps; nothing that
   nobody sent; imports are whole or not there; acknowledged forks end where they were told to; the
   search finds the last turns; and SQLite's own check is content.
4. Trials share a ledger for a while, so that kills also hit one that was just recovered.
"""

import random
import tempfile
import time
from pathlib import Path

import msgspec

from nexus_context.ledger.store import Ledger
from torture.children import IMPORTED, Child, children, read_everything, write_everything
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong, p95
from torture.ledgers import (
    MAIN,
    NAME,
    WORKSPACE,
    damage_in,
    opened,
    parts_of,
    turn,
    unfound,
    words_of,
    wrong_with,
)

LEDGER_LIVES = 20  # trials
LATEST_KILL_S = 0.12  # after the start; a process needs some 20 ms to its first turn
READY_S = 2.0


class Tally(msgspec.Struct):
    """What is known of one ledger, and counted over all."""

    acknowledged: dict[str, int] = {}
    sent: set[str] = set()
    imported: set[str] = set()
    forked: dict[str, int] = {}
    wrong: list[str] = []
    ready: list[float] = []
    kills: int = 0
    reads: int = 0
    early: int = 0  # kills before the writer's first turn
    unsaid: int = 0  # turns that were in although the writer died before it could say so
    total: int = 0


def run(trials: int, seed: int = 1) -> Outcome:
    """All trials, each with three kills."""
    watch, tally, dice = Watch(), Tally(), dice_of(seed)
    with tempfile.TemporaryDirectory(prefix="nexus-kill-") as root:
        for trial in range(trials):
            if trial % LEDGER_LIVES == 0:
                _count(tally)
            path = Path(root) / f"{trial // LEDGER_LIVES}" / NAME
            _trial(str(path), trial, dice, tally)
    _count(tally)
    lost = sum("is lost" in line for line in tally.wrong)
    uneven = sum("gaps" in line for line in tally.wrong)
    double = sum("twice" in line for line in tally.wrong)
    rest = [line for line in tally.wrong if not any(w in line for w in ("is lost", "gaps", "twice"))]
    figures = (
        Figure("trials, two writers and a reader killed in each", trials),
        Figure("processes killed", tally.kills),
        Figure("of them before their first turn", tally.early),
        Figure("acknowledged turns", tally.total),
        Figure("turns that were in, but not yet acknowledged", tally.unsaid),
        Figure("reads meanwhile", tally.reads),
        Figure("acknowledged turns lost", lost, at_most=0),
        Figure("gaps", uneven, at_most=0),
        Figure("duplicates, with keys sent again", double, at_most=0),
        Figure("ready again after a kill, p95", 1e3 * p95(tally.ready), "ms"),
        Figure("ready again after a kill, longest", max(tally.ready, default=0.0), "s", at_most=READY_S),
        nothing_wrong(rest),
    )
    return Outcome("kill -9", figures, tuple(tally.wrong), seconds=watch.seconds)


def _count(tally: Tally) -> None:
    """A new ledger begins."""
    tally.total += len(tally.acknowledged)
    tally.acknowledged, tally.sent, tally.imported, tally.forked = {}, set(), set(), {}


def _trial(path: str, trial: int, dice: random.Random, tally: Tally) -> None:
    moments = sorted(dice.uniform(0, LATEST_KILL_S) for _ in range(3))
    with children() as start:
        names = [f"{trial}-{side}" for side in "ab"]
        writers = {name: start(write_everything, path, name) for name in names}
        reader = start(read_everything, path)
        victims = [*writers.values(), reader]
        dice.shuffle(victims)
        time.sleep(moments[0])
        victims[0].kill()
        watch = Watch()
        with opened(path) as ledger:
            done = ledger.append(WORKSPACE, MAIN, turn(f"{trial}-new"))
            tally.wrong += [f"a notice: {ledger.notice}"] if ledger.notice else []
        tally.ready.append(watch.seconds)
        tally.acknowledged[f"{trial}-new"] = done.head.seq
        tally.sent.add(f"{trial}-new")
        for victim, moment in zip(victims[1:], moments[1:], strict=True):
            time.sleep(max(0.0, moment - moments[0] - watch.seconds))
            victim.kill()
        tally.kills += 3
        heard = {name: _hear(writer, tally) for name, writer in writers.items()}
        _hear(reader, tally)
    with opened(path) as ledger:
        tally.wrong += [f"a notice: {ledger.notice}"] if ledger.notice else []
        for name, last in heard.items():
            _send_again(ledger, name, last, tally)
        tally.wrong += wrong_with(ledger, MAIN, tally.acknowledged, tally.sent)
        tally.wrong += _wrong_beside(ledger, tally)
        tally.wrong += unfound(ledger, [f"{name}-{last}" for name, last in heard.items() if last])
    tally.wrong += damage_in(path)


def _hear(child: Child, tally: Tally) -> int:
    """Takes down what a child said; how many turns it said it had written."""
    last = 0
    for words in child.hear():
        if words[0] == "ack":
            tally.acknowledged[words[2]] = int(words[3])
            last += 1
        elif words[0] == "imported":
            tally.imported.add(words[1])
        elif words[0] == "forked":
            tally.forked[words[1]] = int(words[2])
        elif words[0] == "read":
            tally.reads += 1
        elif words[0] != "open" or words[1] != "True":
            tally.wrong.append(" ".join(words))
    if child.process.exitcode != -9:
        tally.wrong.append(f"a process ended by itself with {child.process.exitcode}")
    return last


def _send_again(ledger: Ledger, name: str, last: int, tally: Tally) -> None:
    tally.early += last == 0
    for number in (last, last + 1):
        if number == 0:
            continue
        key = f"{name}-{number}"
        done = ledger.append(WORKSPACE, MAIN, turn(key, words=words_of(key), parts=parts_of(key)))
        if number == last and not done.repeated:
            tally.wrong.append(f"{key} was sent twice and not recognized")
        tally.unsaid += number > last and done.repeated
        tally.acknowledged.setdefault(key, done.head.seq)
    tally.sent.update(f"{name}-{number}" for number in range(1, last + 2))


def _wrong_beside(ledger: Ledger, tally: Tally) -> list[str]:
    """What is wrong with the imported and forked sessions."""
    turns = {each.name: each.head.seq for each in ledger.sessions(WORKSPACE)}
    imports = {name for name in turns if name.startswith("import-")}
    wrong = [f"{name} has {turns[name]} turns of {IMPORTED}" for name in imports if turns[name] != IMPORTED]
    wrong += [f"{name} was acknowledged and is lost" for name in tally.imported - imports]
    for name, seq in tally.forked.items():
        if turns.get(name) != seq:
            wrong.append(
                f"{name} was acknowledged with {seq} turns and has {turns.get(name, 'none: is lost')}"
            )
    return wrong
