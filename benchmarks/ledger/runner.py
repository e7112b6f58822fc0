"""Runs the measures, one after the other, alone."""

import sys
import tempfile
from pathlib import Path

import msgspec
from benchmarks.ledger import measures, texts
from benchmarks.ledger.measures import Appending, Importing, Knowing, Opening, Rounds, Searching

MADE, TAU = "made text", "tau-bench"


class Outcome(msgspec.Struct):
    """Everything that was measured; searches and imports by text, openings by what is read."""

    imports: dict[str, Importing] = {}
    appending: Appending | None = None
    openings: dict[str, Opening] = {}
    searches: dict[str, Searching] = {}
    knowing: Knowing | None = None


def run(rounds: Rounds, where: Path | None = None) -> Outcome:
    """Measures everything, in a folder of its own below `where`."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="nexus-ledger-", dir=where) as root:
        path = Path(root) / "made" / "ledger.db"
        path.parent.mkdir()
        turns = rounds.long // texts.TURN
        _say(f"importing {rounds.long:,} messages")
        outcome.imports[MADE] = measures.fill(path, rounds, texts.made(turns))
        measures.more(path, rounds)
        _say("appending")
        outcome.appending = measures.appending(path, rounds)
        _say("opening")
        count, window = rounds.openings, measures.WINDOW
        outcome.openings["whole"] = measures.opening(path, measures.OPENED, count)
        outcome.openings["window"] = measures.opening(path, measures.LONG, count, tokens=window)
        outcome.openings["window, compacted"] = measures.opening(
            path, measures.COMPACTED, count, tokens=window
        )
        _say("searching")
        outcome.searches[MADE] = measures.searching(path, rounds, texts.made(turns))
        if any(True for _ in texts.tau(1)):
            _say("searching tau-bench")
            path = Path(root) / "tau" / "ledger.db"
            path.parent.mkdir()
            outcome.imports[TAU] = measures.fill(path, rounds, texts.tau(turns))
            outcome.searches[TAU] = measures.searching(path, rounds, texts.tau(turns))
        _say(f"indexing {rounds.files:,} files")
        outcome.knowing = measures.knowing(Path(root), rounds)
    return outcome


def _say(text: str) -> None:
    print(f"{text} …", file=sys.stderr)
