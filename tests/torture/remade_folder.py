"""A folder that two windows of the shared daemon have open is deleted and made again, in a loop.

1. It is removed file by file or moved away, at once or after a while; it comes back with other contents, file
   by file or complete.
2. Every CHECK_EVERY rounds, and in the end, it stays; then both windows see what it contains.
3. The daemon has about the watches, descriptors and threads that it had, and no error in its log. Its memory
   grows while caches of texts fill, and hardly any more in the second half.
"""

import contextlib
import random
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

from support.editor import Editor
from support.fixture import write_file
from support.shared import shared_home
from support.waiting import block_until
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.resources import MORE_DESCRIPTORS, Resources, resources_of, settled_resources

NAME = "a folder deleted and made again"
CHECK_EVERY = 10  # rounds
WARM_UP = 5  # rounds before the daemon is measured
LONGEST_PAUSE_S = 0.15  # longer than events are collected
RIGHT_S = 15.0
SETTLE_S = 1.0
MORE_THREADS = 4
MORE_MB = 15.0  # when the caches of texts are nearly full


def run(rounds: int, seed: int = 1) -> Outcome:
    """The folder disappears so many times."""
    watch, dice, wrong, waits = Watch(), dice_of(seed), list[str](), list[float]()
    with (
        tempfile.TemporaryDirectory() as directory,
        shared_home(Path(directory, "home"), has_own_log=True) as home,
    ):
        root = Path(directory, "work")
        _make(root, 0, dice)
        with home.window() as one, home.window() as two:
            for window in (one, two):
                window.hello(root)
            pid = home.pid()
            assert pid is not None
            _check(root, 0, (one, two), wrong)  # loads what is needed once
            before = middle = _measure(pid, one)
            for number in range(1, rounds + 1):
                _remove(root, dice)
                _pause(dice)
                _make(root, number, dice)
                if number == min(WARM_UP, rounds // 2):
                    before = _measure(pid, one)
                if number == rounds // 2:
                    middle = resources_of(pid)
                if number % CHECK_EVERY and number != rounds:
                    _pause(dice)
                    continue
                waits.append(_check(root, number, (one, two), wrong))
            after = settled_resources(pid, before, RIGHT_S)
            survived = home.pid() == pid
            for window in (one, two):
                window.stop()
        wrong += home.logged_errors()
    figures = (
        Figure("times", rounds),
        Figure("the daemon lives", int(survived), at_least=1),
        Figure("both windows are right after", max(waits), "s", at_most=RIGHT_S),
        Figure("more watches", after.watches - before.watches, at_most=0),
        Figure("more descriptors", after.descriptors - before.descriptors, at_most=MORE_DESCRIPTORS),
        Figure("more threads", after.threads - before.threads, at_most=MORE_THREADS),
        Figure("more memory", (after.resident - before.resident) / 1e6, "MB"),
        Figure("of it in the second half", (after.resident - middle.resident) / 1e6, "MB", at_most=MORE_MB),
        nothing_wrong(wrong),
    )
    return Outcome(NAME, figures, tuple(wrong), seconds=watch.seconds)


def _make(root: Path, number: int, dice: random.Random) -> None:
    """Make the folder, its files in any order."""
    files = {
        "NEXUS.md": f"Rule {number}.\n@docs/more.md\n",
        "docs/more.md": f"More {number}.\n",
        ".nexus3/config.json": f'{{"provider": {{"model": "m{number}"}}}}',
        ".nexus3/notes.md": f"Note {number}.\n",
    }
    place = root
    if dice.random() < 0.3:  # complete at once
        place = root.with_name("draft")
    for name, text in dice.sample(sorted(files.items()), len(files)):
        write_file(place / name, text)
        if place == root and dice.random() < 0.1:
            _pause(dice)
    if place != root:
        place.rename(root)


def _remove(root: Path, dice: random.Random) -> None:
    """Remove the folder, or move it away."""
    if dice.random() < 0.3:
        gone = root.with_name("gone")
        root.rename(gone)
        if dice.random() < 0.5:
            _pause(dice)
        shutil.rmtree(gone)
    else:
        with contextlib.suppress(FileNotFoundError):
            if dice.random() < 0.3:
                shutil.rmtree(root / ".nexus3")
                _pause(dice)
        shutil.rmtree(root)


def _pause(dice: random.Random) -> None:
    time.sleep(dice.choice((0.0, dice.random() * 0.01, dice.random() * LONGEST_PAUSE_S)))


def _check(root: Path, number: int, windows: tuple[Editor, ...], wrong: list[str]) -> float:
    """The seconds until all windows see the folder as it is."""
    watch = Watch()
    for index, window in enumerate(windows, start=1):
        try:
            block_until(partial(_is_seen, window, root, number), RIGHT_S)
        except TimeoutError:
            wrong.append(f"round {number}: window {index} does not show the folder as it is")
    return watch.seconds


def _is_seen(window: Editor, root: Path, number: int) -> bool:
    text = window.ask("context/preview", root)["text"]
    model = window.ask("config/effective", root)["config"]["provider"].get("model")
    return model == f"m{number}" and all(f"{what} {number}." in text for what in ("Rule", "More"))


def _measure(pid: int, window: Editor) -> Resources:
    """What the daemon holds once the folder is watched and old watches have ended."""

    def is_watched() -> bool:
        folders = window.request("nexus/status", {})["folders"]
        return all(folder["freshness"]["state"] == "watched" for folder in folders)

    block_until(is_watched, RIGHT_S)
    time.sleep(SETTLE_S)
    return resources_of(pid)
