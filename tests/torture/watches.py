"""No file watches or inotify instances are left: every edit is noticed all the same, and it is said how.

1. It all happens in a user namespace of its own, whose limits of inotify are its own: no root is needed, and
   no other program loses a watch.
2. For each limit a daemon starts when it is reached, gets room, and meets the limit again with one more
   folder: that one is polled without more watches, and watched without more instances, since the daemon
   needs only the one that it has.
3. Each round edits one file in every folder, in one of the ways of programs; an edit that no prompt shows
   after `PATIENCE_S` is missed.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec

from support.editor import Editor
from support.waiting import PAUSE_S, pauses
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong, p95

NAME = "no file watches left"
LIMITS = ("max_inotify_watches", "max_inotify_instances")
PHASES = 3
FOLDERS = 10
PATIENCE_S = 10.0  # counted in pauses: longer where the machine is busy
RECOVERY_S = 75.0  # longer than the longest pause between two tries
POLL_S = 1.1  # longer than a poller rests
ROOM = 100_000
UNSHARE = shutil.which("unshare")
TESTS = Path(__file__).resolve().parents[1]

Edit = Callable[[Path, str, Random], None]


def run(edits: int, seed: int = 1) -> Outcome:
    """So many edits, most of them of files that cannot be watched."""
    reason = why_not()
    if reason is not None:
        return Outcome(NAME, skipped=reason)
    watch = Watch()
    done = subprocess.run(
        [*_namespace(), sys.executable, "-m", "torture.watches", str(edits), str(seed)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(TESTS)]).lstrip(os.pathsep),
        },
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return Outcome(NAME, wrong=(done.stderr.decode(errors="replace"),), seconds=watch.seconds)
    return msgspec.structs.replace(msgspec.json.decode(done.stdout, type=Outcome), seconds=watch.seconds)


def why_not() -> str | None:
    """Why there can be no namespace with limits of its own here; None if there can."""
    if UNSHARE is None or not _limit(LIMITS[0]).exists():
        return "there is no `unshare`, or no inotify"
    done = subprocess.run([*_namespace(), "sh", "-c", f"echo 1 > {_limit(LIMITS[0])}"], check=False)
    return "this user may make no user namespace" if done.returncode else None


def _namespace() -> list[str]:
    return [str(UNSHARE), "--user", "--map-root-user"]


def _limit(name: str) -> Path:
    return Path("/proc/sys/user", name)


class _Run:
    """What came of the edits of one limit."""

    def __init__(self, editor: Editor, dice: Random, root: Path) -> None:
        self.editor = editor
        self.folders = [root / str(number) for number in range(FOLDERS)]
        self.waits: list[float] = []  # of polled files
        self.edits = self.missed = self.untrue = 0
        self.recovery_s = RECOVERY_S
        self._dice = dice
        self._markers = itertools.count(1)
        for folder in self.folders:
            (folder / "docs").mkdir(parents=True)
            (folder / "NEXUS.md").write_text(_text("NEXUS.md", "Old rules."))
            (folder / "docs" / "more.md").write_text(_text("docs/more.md", "More old rules."))

    def story(self, limit: Path, rounds: int) -> None:
        """Reached at the start, then room, then reached again with one more folder."""
        *first, last = self.folders
        limit.write_text("0")
        self.editor.hello(*first)
        self._wait("polled", first)
        for _ in range(rounds):
            self._round(first, "polled")
        limit.write_text(str(ROOM))
        watch = Watch()
        self._wait("watched", first)
        self.recovery_s = watch.seconds
        for _ in range(rounds):
            self._round(first, "watched")
        limit.write_text("0")
        self.editor.add(last)
        state = "polled" if limit == _limit(LIMITS[0]) else "watched"
        self._wait(state, [last])
        for _ in range(rounds):
            self._round(first, "watched")
            self._round([last], state)

    def _wait(self, state: str, folders: list[Path]) -> None:
        self.editor.eventually(
            lambda: {self.editor.layers(folder)["freshness"]["state"] for folder in folders},
            lambda states: states == {state},
            RECOVERY_S,
        )

    def _round(self, folders: list[Path], state: str) -> None:
        """Edit a file in each folder, and wait until each prompt shows it."""
        pending: dict[Path, tuple[str, float]] = {}
        for folder in folders:
            marker = f"Rule {next(self._markers):06}."
            name = self._dice.choice(("NEXUS.md", "docs/more.md"))
            self._dice.choice(EDITS)(folder / name, marker, self._dice)
            pending[folder] = marker, time.monotonic()
        self.edits += len(folders)
        for _ in pauses(PATIENCE_S):
            if not pending:
                break
            for folder, (marker, since) in list(pending.items()):
                if marker in self.editor.ask("context/preview", folder)["text"]:
                    self.waits += [time.monotonic() - since] if state == "polled" else []
                    del pending[folder]
            time.sleep(PAUSE_S)
        self.missed += len(pending)
        states = [self.editor.layers(folder)["freshness"]["state"] for folder in folders]
        self.untrue += sum(each == "watched" for each in states) if state == "polled" else 0

    @property
    def warnings(self) -> int:
        return len(self.editor.said("window/showMessage"))


def _text(name: str, marker: str) -> str:
    return f"{marker}\n@docs/more.md\n" if name == "NEXUS.md" else f"{marker}\n"


def _write(path: Path, marker: str, _: Random) -> None:
    path.write_text(_text(path.name, marker))


def _replace(path: Path, marker: str, _: Random) -> None:
    other = path.with_name(f".{path.name}.new")
    other.write_text(_text(path.name, marker))
    other.replace(path)


def _append(path: Path, marker: str, _: Random) -> None:
    with path.open("a") as file:
        file.write(_text(path.name, marker))


def _make_anew(path: Path, marker: str, dice: Random) -> None:
    path.unlink()
    time.sleep(dice.choice((0, dice.random() * POLL_S)))
    path.write_text(_text(path.name, marker))


def _write_twice(path: Path, marker: str, dice: Random) -> None:
    """The second time perhaps within a step of the clock after the first was noticed, with the same size."""
    path.write_text(_text(path.name, marker[::-1]))
    time.sleep(dice.choice((0, dice.random() * POLL_S)))
    path.write_text(_text(path.name, marker))


def _keep_size_and_time(path: Path, marker: str, _: Random) -> None:
    before = path.stat()
    path.write_text(_text(path.name, marker).ljust(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


EDITS: tuple[Edit, ...] = (_write, _replace, _append, _make_anew, _write_twice, _keep_size_and_time)


def _in_namespace(edits: int, seed: int) -> Outcome:
    """What `run` returns; the limits of inotify are changed for this process and its children."""
    rounds = max(edits // (len(LIMITS) * PHASES * FOLDERS), 1)
    runs, wrong = list(_runs(rounds, seed)), []
    for limit, one in zip(LIMITS, runs, strict=True):
        if one.missed:
            wrong.append(f"{limit}: {one.missed} edits missed")
    figures = (
        Figure("edits", sum(one.edits for one in runs), at_least=edits // 2),
        Figure("edits missed", sum(one.missed for one in runs), at_most=0),
        Figure("folders called watched that were not", sum(one.untrue for one in runs), at_most=0),
        Figure("warnings for each limit", max(one.warnings for one in runs), at_least=1, at_most=1),
        Figure("noticed by polling (p95)", p95([each for one in runs for each in one.waits]), "s"),
        Figure("watched again after", max(one.recovery_s for one in runs), "s", at_most=RECOVERY_S),
        nothing_wrong(wrong),
    )
    return Outcome(NAME, figures, tuple(wrong))


def _runs(rounds: int, seed: int) -> Iterator[_Run]:
    for number, limit in enumerate(LIMITS):
        with (
            tempfile.TemporaryDirectory(prefix="nexus-watches-") as root,
            Editor(Path(root).resolve() / "home") as editor,
        ):
            run = _Run(editor, dice_of(seed + number), Path(root).resolve() / "work")
            run.story(_limit(limit), rounds)
            editor.goodbye()
            yield run
        _limit(limit).write_text(str(ROOM))


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_in_namespace(int(sys.argv[1]), int(sys.argv[2]))))
