"""A burst of file events in a folder that two windows of the shared daemon have open.

1. A process changes files as fast as it can: instructions and settings that count, files beside them that do
   not, directories that come and go, more names than the daemon collects and more events than the kernel's
   queue holds.
2. Meanwhile both windows ask about the folder, and one of them about another folder; no reply is late.
3. After the burst both windows see the last contents of the settings, the instructions and an imported file,
   without another event.
4. The daemon has the watches and descriptors that it had, about the memory, and no error in its log.
"""

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from support.editor import Editor
from support.shared import shared_home
from support.waiting import block_until
from torture.figures import Figure, Outcome, Watch, nothing_wrong, p95
from torture.resources import MORE_DESCRIPTORS, Resources, resources_of, settled_resources

NAME = "a burst of file events"
REPLY_MS = 2_000.0
RIGHT_S = 15.0
MORE_MB = 40.0
WARM_UP = 1_000  # changes before the memory is measured
SETTLE_S = 1.0
WRITER = r"""
import os, random, sys

root, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dice = random.Random(seed)
done = 0

def write(path, text):
    with open(path, "w") as file:
        file.write(text)

def replace(path, text):
    write(path + ".new", text)
    os.replace(path + ".new", path)

os.chdir(root)
while done < count:
    kind = dice.randrange(6)
    if kind == 0:
        dice.choice((write, replace))("NEXUS.md", f"Rule {done}.\n@docs/more.md\n")
    elif kind == 1:
        broken = dice.random() < 0.3
        text = '{"provider": {"model": ' if broken else '{"provider": {"model": "m%d"}}' % done
        dice.choice((write, replace))(".nexus3/config.json", text)
    elif kind == 2:
        write("docs/more.md", f"More {done}.\n")
    elif kind == 3:
        for number in range(done, done + 20):
            write(f"docs/f{number}", "")
        for number in range(done, done + 20):
            os.unlink(f"docs/f{number}")
        done += 39
    elif kind == 4:
        for number in range(10):
            write(f".f{number % 3}", str(done))
        done += 9
    else:
        os.mkdir("docs/sub")
        write("docs/sub/NEXUS.md", "x")
        os.unlink("docs/sub/NEXUS.md")
        os.rmdir("docs/sub")
        done += 3
    done += 1
write("NEXUS.md", "The last rule.\n@docs/more.md\n")
write("docs/more.md", "The last of more.\n")
replace(".nexus3/config.json", '{"provider": {"model": "the-last"}}')
"""


def run(events: int, seed: int = 1) -> Outcome:
    """So many changes of files in one burst."""
    watch, wrong, waits = Watch(), list[str](), list[float]()
    with (
        tempfile.TemporaryDirectory() as directory,
        shared_home(Path(directory, "home"), has_own_log=True) as home,
    ):
        root, other = _folder(Path(directory, "work")), _folder(Path(directory, "other"))
        with home.window() as one, home.window() as two:
            one.hello(root)
            two.hello(root, other)
            pid = home.pid()
            assert pid is not None
            _warm_up(root, one, two, seed)
            before = _watched(pid, one)
            burst = Watch()
            writer = _start_writer(root, events, seed)
            while writer.poll() is None:
                waits += [
                    _reply_ms(window, folder) for window, folder in ((one, root), (two, root), (two, other))
                ]
                time.sleep(0.02)
            burst_s = burst.seconds
            if writer.returncode:
                wrong.append(f"the writer ended with {writer.returncode}")
            right = Watch()
            for number, window in enumerate((one, two), start=1):
                try:
                    block_until(partial(_is_last, window, root), RIGHT_S)
                except TimeoutError:
                    wrong.append(f"window {number} does not show the last contents")
            right_s = right.seconds
            after = settled_resources(pid, before, RIGHT_S)
            survived = home.pid() == pid
            for window in (one, two):
                window.stop()
        wrong += home.logged_errors()
    figures = (
        Figure("changes of files", events),
        Figure("time of the burst", burst_s, "s"),
        Figure("the daemon lives", int(survived), at_least=1),
        Figure("slowest reply meanwhile", max(waits, default=0.0), "ms", at_most=REPLY_MS),
        Figure("95 % of replies", p95(waits), "ms"),
        Figure("both windows are right after", right_s, "s", at_most=RIGHT_S),
        Figure("more watches", after.watches - before.watches, at_most=0),
        Figure("more descriptors", after.descriptors - before.descriptors, at_most=MORE_DESCRIPTORS),
        Figure("more memory", (after.resident - before.resident) / 1e6, "MB", at_most=MORE_MB),
        nothing_wrong(wrong),
    )
    return Outcome(NAME, figures, tuple(wrong), seconds=watch.seconds)


def _folder(root: Path) -> Path:
    for name in (".nexus3", "docs"):
        (root / name).mkdir(parents=True)
    (root / "NEXUS.md").write_text("First rule.\n@docs/more.md\n")
    (root / "docs" / "more.md").write_text("First of more.\n")
    (root / ".nexus3" / "config.json").write_text('{"provider": {"model": "the-first"}}')
    return root


def _start_writer(root: Path, events: int, seed: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(root), str(events), str(seed)])


def _warm_up(root: Path, one: Editor, two: Editor, seed: int) -> None:
    """A small burst, after which the ledger is open, threads run and caches are filled."""
    assert _start_writer(root, WARM_UP, seed).wait() == 0
    for window in (one, two):
        _reply_ms(window, root)
        block_until(partial(_is_last, window, root), RIGHT_S)


def _watched(pid: int, window: Editor) -> Resources:
    """What the daemon holds once all folders are watched and old watches have ended."""

    def is_watched() -> bool:
        folders = window.request("nexus/status", {})["folders"]
        return all(folder["freshness"]["state"] == "watched" for folder in folders)

    block_until(is_watched, RIGHT_S)
    time.sleep(SETTLE_S)
    return resources_of(pid)


def _reply_ms(window: Editor, root: Path) -> float:
    watch = Watch()
    window.ask("context/usage", root)
    return watch.seconds * 1000


def _is_last(window: Editor, root: Path) -> bool:
    text = window.ask("context/preview", root)["text"]
    provider = window.ask("config/effective", root)["config"]["provider"]
    return "The last rule." in text and "The last of more." in text and provider.get("model") == "the-last"
