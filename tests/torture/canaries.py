"""Secrets in every place of a folder's files, in every state of a file: nothing that is read shows one."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.canaries import Canary, canaries, leaks, states, write
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong


def run(files: int, seed: int = 1) -> Outcome:
    """So many files, of all canaries in all their states, in an order of chance."""
    watch = Watch()
    pairs = [(canary, state) for canary in canaries() for state in states(canary)]
    dice_of(seed).shuffle(pairs)
    pairs = pairs[:files]
    with tempfile.TemporaryDirectory(prefix="nexus-canaries-") as root, _environ(_home(Path(root))):
        wrong = [leak for canary, state in pairs for leak in _leaks(Path(root), canary, state)]
    figures = (
        Figure("secrets in different places", len(list(canaries())), at_least=61),
        Figure("files", len(pairs), at_least=min(files, 5_000)),
        Figure("outputs that show a secret", len(wrong), at_most=0),
        nothing_wrong(()),
    )
    return Outcome("secrets", figures, tuple(wrong), seconds=watch.seconds)


def _leaks(root: Path, canary: Canary, state: str) -> list[str]:
    folder = write(root, canary, states(canary)[state])
    try:
        return [f"{state}: {leak}" for leak in leaks(canary, folder)]
    finally:
        for child in root.iterdir():
            shutil.rmtree(child)


def _home(root: Path) -> Mapping[str, str]:
    return {"HOME": str(root / "home"), "NEXUS_HOME": str(root / "home/.nexus3")}


@contextmanager
def _environ(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
