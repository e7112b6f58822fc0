"""A full disk: a small file system in memory, filled by somebody else until the ledger has no room.

1. Appending goes on until it is refused; so do an import and a fork. The error says that there is no
   room.
2. Nothing is half-written, reading and searching go on, also after the ledger was closed and opened
   again.
3. As soon as there is room, the same turn with the same key goes in, once.
"""

import tempfile
from pathlib import Path

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from torture.figures import Figure, Outcome, Watch, nothing_wrong
from torture.ledgers import MAIN, NAME, WORKSPACE, damage_in, opened, turn, unfound, wrong_with
from torture.mounts import memory, why_not

SIZE = "8m"
BALLAST_BYTES = 6 << 20
ENOUGH = 10_000  # turns that never fit
LONG_WORDS = 300


def run(trials: int) -> Outcome:
    """So many disks are filled."""
    if reason := why_not():
        return Outcome("disk full", skipped=reason)
    watch = Watch()
    wrong: list[str] = []
    kept = refused = 0
    with tempfile.TemporaryDirectory(prefix="nexus-full-") as root:
        for trial in range(trials):
            with memory(Path(root) / f"{trial}", SIZE) as disk:
                found = _fill(disk, LONG_WORDS * (1 + 7 * trial), wrong)
            kept, refused = kept + found[0], refused + found[1]
    figures = (
        Figure("disks filled", trials),
        Figure("turns acknowledged before, and after room was made", kept),
        Figure("writes refused for want of room", refused, at_least=3 * trials),
        Figure("acknowledged turns lost", sum("is lost" in line for line in wrong), at_most=0),
        Figure("half-written", sum("gaps" in line or "by half" in line for line in wrong), at_most=0),
        nothing_wrong(line for line in wrong if not any(w in line for w in ("is lost", "gaps", "by half"))),
    )
    return Outcome("disk full", figures, tuple(wrong), seconds=watch.seconds)


def _fill(disk: Path, words: int, wrong: list[str]) -> tuple[int, int]:
    """One disk; how many turns were kept and how many writes refused."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    path = disk / "state" / NAME
    acknowledged: dict[str, int] = {}
    refused = 0
    with opened(path) as ledger:
        for number in range(ENOUGH):
            if not _appended(ledger, f"t-{number}", words, acknowledged, wrong):
                break
        next_key = f"t-{len(acknowledged)}"
        refused += 1 + _refuses(ledger, wrong)
        wrong += wrong_with(ledger, MAIN, acknowledged, set(acknowledged))
        wrong += unfound(ledger, list(acknowledged)[-3:])
    with opened(path) as ledger:
        wrong += [f"opened on a full disk: {line}" for line in wrong_with(ledger, MAIN, acknowledged)]
        if not ledger.persists and not ledger.notice:
            wrong.append("opened on a full disk, the ledger keeps nothing and does not say so")
    ballast.unlink()
    with opened(path) as ledger:
        if not ledger.persists:
            wrong.append("with room again, the ledger still keeps nothing")
        for key in (next_key, next_key, "after"):
            if not _appended(ledger, key, words, acknowledged, wrong):
                wrong.append(f"with room again, {key} was refused")
        wrong += wrong_with(ledger, MAIN, acknowledged, set(acknowledged))
    wrong += damage_in(path)
    return len(acknowledged), refused


def _appended(ledger: Ledger, key: str, words: int, acknowledged: dict[str, int], wrong: list[str]) -> bool:
    try:
        done = ledger.append(WORKSPACE, MAIN, turn(key, words=words))
    except LedgerError as error:
        wrong += [] if error.code == "ledger-full" else [f"no room is called {error.code}: {error}"]
        return False
    acknowledged[key] = done.head.seq
    return True


def _refuses(ledger: Ledger, wrong: list[str]) -> int:
    """How many of the other writes were refused; none may be there by half."""
    refused = 0
    try:
        ledger.import_turns(WORKSPACE, "import", [turn(f"i-{n}", words=2_000) for n in range(200)])
    except LedgerError as error:
        refused += error.code == "ledger-full"
    if ledger.find(WORKSPACE, "import") is not None:
        wrong.append("an import was refused and is there by half")
    try:
        ledger.append(WORKSPACE, "other", turn("o", words=20_000))
    except LedgerError as error:
        refused += error.code == "ledger-full"
    if ledger.find(WORKSPACE, "other") is not None:
        wrong.append("a session was begun by an append that was refused, and is there by half")
    return refused
