"""Runs the measures, one after the other, alone."""

import sys
import tempfile
from pathlib import Path

import msgspec
from benchmarks.agents import measures, workspace
from benchmarks.agents.measures import Asking, Previewing, Rounds, Spawning
from benchmarks.agents.worker import DIRECTORIES, FOLDERS, Many


class Outcome(msgspec.Struct):
    """Everything that was measured; `many` by how the agents are spread."""

    spawning: Spawning | None = None
    many: dict[str, Many] = {}
    previewing: Previewing | None = None
    asking: Asking | None = None


def run(rounds: Rounds) -> Outcome:
    """Measures everything, in a folder of its own."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="nexus-agents-") as root:
        _say(f"writing {rounds.folders} folders")
        made = workspace.made(Path(root), rounds.folders)
        _say("spawning")
        outcome.spawning = measures.spawning(made, rounds)
        for way in (FOLDERS, DIRECTORIES):
            _say(f"spawning {rounds.folders} × {rounds.agents}, {way}")
            outcome.many[way] = measures.many(made, rounds, way)
        _say("previewing")
        outcome.previewing = measures.previewing(made, rounds)
        _say("asking a daemon")
        outcome.asking = measures.asking(made, rounds, Path(root) / "state")
    return outcome


def _say(text: str) -> None:
    print(f"{text} …", file=sys.stderr)
