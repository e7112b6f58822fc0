"""A folder whose files are damaged in every way, loaded as the daemon does it: no exception, no bug met."""

import logging
import tempfile
from pathlib import Path

from nexus_context.folder.snapshot import Snapshot
from support.mutated_folders import MutatedFolder
from support.typing_checks import check_snapshot, internal_problems
from torture.figures import Figure, Outcome, Watch, nothing_wrong

LOADS = 500
"""Loads of one folder."""


def run(count: int, first: int = 0) -> Outcome:
    """So many loads, of folders that are loaded LOADS times; `first` is the number of the first folder."""
    watch = Watch()
    loads, exceptions, bugs, wrong = 0, 0, 0, []
    logging.disable(logging.CRITICAL)
    try:
        for seed in range(first, first - (-count // LOADS)):
            with tempfile.TemporaryDirectory(prefix="nexus-mutated-") as root:
                folder = MutatedFolder(Path(root), seed)
                for number in range(min(LOADS, count - loads)):
                    loads += 1
                    try:
                        snapshot = folder.load()
                    except Exception as error:  # noqa: BLE001 - each is counted
                        exceptions += 1
                        wrong.append(f"folder {seed}, load {number}: {error!r:.200}")
                        continue
                    problems = internal_problems(snapshot)
                    bugs += len(problems)
                    wrong += [
                        f"folder {seed}, load {number}: {each.path}: {each.message}" for each in problems
                    ]
                    if not problems:
                        wrong += _misplaced(snapshot, seed, number)
    finally:
        logging.disable(logging.NOTSET)
    figures = (
        Figure("loads of mutated folders", loads, at_least=count),
        Figure("uncaught exceptions", exceptions, at_most=0),
        Figure("problems `internal`", bugs, at_most=0),
        nothing_wrong(wrong),
    )
    return Outcome("mutated", figures, tuple(wrong), seconds=watch.seconds)


def _misplaced(snapshot: Snapshot, seed: int, number: int) -> list[str]:
    """What of a snapshot lies outside of its file."""
    try:
        check_snapshot(snapshot)
    except Exception as error:  # noqa: BLE001 - each is counted
        return [f"folder {seed}, load {number}: {error!r:.200}"]
    return []
