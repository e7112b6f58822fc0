"""How soon the sessions of other assistants are known, beside `ccusage` and plain reading.

Made-up transcripts of Claude Code and Codex, as 2.1.330 and 0.169.0 write them. Nexus reads the sums that the
programs write at the ends of their files; ccusage adds up all records. The totals of both must be equal.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.promises import (
    ROOT,
    Measured,
    Promise,
    Run,
    Series,
    Step,
    UnavailableError,
    milliseconds,
    promises,
    take_turns,
)
from benchmarks.servers import SHARED, Lane, install, started

sys.path.insert(0, str(ROOT / "tests"))

from assistants.programs import cache_directory
from nexus_context.assistants.tracking import AssistantSession
from nexus_context.assistants.tracking.follow import SessionFollower
from support.assistant_transcripts import Claude, Codex, calls, lines

PACKAGE, VERSION = "ccusage", "20.0.24"
"""The last version with a binary for Linux in the registry when this was written."""
CCUSAGE = f"ccusage {VERSION}, for both programs"
STATS = "a Python process that stats each file"
GREP = "grep -F on the same files"
RARE = "quagga"
TURNS = 60  # of each session
HUGE = 2_000_000_000  # bytes
WORDS = "the cache of a model keeps what was sent before until it goes cold or its beginning changes. "


# ---------------------------------------------------------------- lists


@promises(Promise("a first list", 1.0, CCUSAGE), Promise("a list", 0.3, CCUSAGE))
def lists(run: Run) -> Iterator[Measured]:
    """`nexus sessions list --assistants`, the whole process with the shared daemon running."""
    size = _write_sessions(run, run.pick(full=400, quick=40), TURNS)
    lister = _Lister(run)
    with _daemon(run):
        lister.list_with_ccusage()  # so that no one pays alone for what the disk and node cache
        steps: dict[str, Step] = {"nexus": lister.list, CCUSAGE: lister.list_with_ccusage}
        first = Series([milliseconds(lister.list)])
        turns = take_turns(steps, run.pick(full=6, quick=3), warm=0)
    lister.compare()
    yield "a first list", first, turns[CCUSAGE]
    yield "a list", turns["nexus"], turns[CCUSAGE]
    run.note("Lists of sessions", "transcripts", MB=size / 1e6)


@promises(Promise("a first list of 10,000", 25.0, STATS), Promise("a list of 10,000", 6.0, STATS))
def long_list(run: Run) -> Iterator[Measured]:
    """The same command for 10,000 transcripts, the first time and then."""
    _write_sessions(run, run.pick(full=5_000, quick=500), 2)
    script = "import pathlib, sys\nfor path in pathlib.Path(sys.argv[1]).rglob('*.jsonl'): path.stat()"
    stat = partial(run.execute, [sys.executable, "-c", script, run.environ["HOME"]])
    with _daemon(run):
        lister = _Lister(run)
        first = Series([lister.list()])
        steps: dict[str, Step] = {"nexus": lister.list, STATS: partial(milliseconds, stat)}
        turns = take_turns(steps, run.pick(full=6, quick=3))
    yield "a first list of 10,000", first, turns[STATS]
    yield "a list of 10,000", turns["nexus"], turns[STATS]


@promises(Promise("a search in files that are not kept", 3.0, GREP))
def search(run: Run) -> Iterator[Measured]:
    """`nexus sessions search` of a rare word, the whole process with the shared daemon running."""
    size, home = _write_sessions(run, run.pick(full=400, quick=40), TURNS), Path(run.environ["HOME"])
    grep = ["grep", "-rF", "--include=*.jsonl", RARE, str(home)]
    claude = Claude("/home/ana/project-1", session="ffffffff-0000-4000-8000-000000000000")
    claude.path(home).write_bytes(lines([claude.asks(f"Where is the {RARE}?")]))
    command = [*run.nexus, "sessions", "search", RARE.upper(), "--all", "--json"]
    with _daemon(run):
        found = json.loads(run.execute(command))["notKept"]
        assert len(found["hits"]) == len(run.execute(grep).splitlines()) == 1, found
        steps: dict[str, Step] = {
            "nexus": partial(milliseconds, partial(run.execute, command)),
            GREP: partial(milliseconds, partial(run.execute, grep)),
        }
        turns = take_turns(steps, run.pick(full=10, quick=3))
    yield "a search in files that are not kept", turns["nexus"], turns[GREP]
    run.note("A search in files", "transcripts", MB=size / 1e6)


class _Lister:
    """Lists the sessions of a home with both programs, and remembers the totals."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._listed: list[dict[str, Any]] = []
        self._totals: dict[str, dict[str, Any]] = {}

    def list(self) -> float:
        """Milliseconds of Nexus."""
        command = [*self._run.nexus, "sessions", "list", "--assistants", "--all", "--json"]
        began = time.perf_counter()
        output = self._run.execute(command)
        elapsed = time.perf_counter() - began
        self._listed = json.loads(output)["totals"]
        return 1e3 * elapsed

    def list_with_ccusage(self) -> float:
        """Milliseconds of ccusage for Claude Code and Codex, after each other."""
        command = _install_ccusage()
        began = time.perf_counter()
        outputs = {
            name: self._run.execute([command, name, "daily", "--json", "--offline"])
            for name in ("claude", "codex")
        }
        elapsed = time.perf_counter() - began
        self._totals = {name: json.loads(output)["totals"] for name, output in outputs.items()}
        return 1e3 * elapsed

    def compare(self) -> None:
        """Raise AssertionError unless both count the same tokens."""
        totals = {entry["assistant"]: entry["total"] for entry in self._listed}
        _compare(totals["claude-code"], self._totals["claude"])
        _compare(totals["codex"], self._totals["codex"])


def _compare(total: dict[str, int], peer: dict[str, Any]) -> None:
    """Raise AssertionError unless both count the same tokens."""
    ours = (total["fresh"], total["cacheRead"], total["cacheWrite"], total["output"])
    names = ("inputTokens", "cacheReadTokens", "cacheCreationTokens", "outputTokens")
    theirs = tuple(peer[name] for name in names)
    assert ours == theirs, f"the totals differ: nexus {ours}, ccusage {theirs}"


def _write_sessions(run: Run, sessions: int, turns: int) -> int:
    size, home = 0, Path(run.environ["HOME"])
    for number in range(sessions):
        folder = f"/home/ana/project-{number % 40}"
        for path, records in (_claude(folder, number, turns), _codex(folder, number, turns)):
            path = home / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(lines(records))
            size += path.stat().st_size
    return size


def _claude(folder: str, number: int, turns: int) -> tuple[Path, list[dict[str, Any]]]:
    claude = Claude(folder, session=f"{number:08}-0000-4000-8000-000000000000")
    records: list[dict[str, Any]] = []
    sums = {"inputTokens": 0, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "outputTokens": 0}
    for turn in range(turns):
        claude.minute = turn
        name = f"toolu_{turn}"
        records.append(claude.asks(f"Question {turn}: {WORDS}"))
        usage: dict[str, Any] = {
            "fresh": 3 + turn,
            "read": 20_000 + 500 * turn,
            "write": 500 + number % 7,
            "output": 90 + turn,
        }
        answer = claude.answers(WORDS * 3, calls("Read", name, file_path=f"/src/f{turn}.py"), **usage)
        for record in answer:
            record["message"]["id"] = f"msg_{number}_{turn}"
            record["requestId"] = f"req_{number}_{turn}"
        records += [*answer, claude.returns(name, WORDS * 30)]
        for key, value in zip(sums, ("fresh", "read", "write", "output"), strict=True):
            sums[key] += usage[value]
    records.append(claude.sums_up(1.0, **sums))
    return claude.path(Path()), records


def _codex(folder: str, number: int, turns: int) -> tuple[Path, list[dict[str, Any]]]:
    codex = Codex(folder, session=f"{number:08}-1111-7000-8000-000000000000")
    records = codex.begins()
    for turn in range(turns):
        codex.minute = turn + 100 * number  # ccusage takes equal counts at equal times for one
        records.append(codex.says(f"Question {turn}: {WORDS}"))
        records += [codex.calls("exec_command", f"c{turn}", cmd="ls"), codex.returns(f"c{turn}", WORDS * 30)]
        records.append(codex.says(WORDS * 3, role="assistant"))
        records += codex.uses(10_000 + 400 * turn, cached=9_000 + 300 * turn, output=70 + turn)
    return codex.path(Path()), records


# ---------------------------------------------------------------- a huge file


@promises(
    Promise("open a rollout of 2 GB", 3.0, "json.loads of the records at its ends"),
    Promise("a record that is appended → its report", 11.0, "reading it back and json.loads"),
)
def huge(run: Run) -> Iterator[Measured]:
    """The report of a rollout of 2 GB, sparse where nobody reads, and after each record that is appended."""
    _, records = _codex("/home/ana/shop", 1, 400)
    path = run.root / "rollout-2026-11-23T09-00-00-1.jsonl"
    ends = lines(records[2:])
    with path.open("wb") as file:
        file.write(lines(records[:2]))
        file.truncate(HUGE)  # nobody reads the middle
        file.seek(HUGE)
        file.write(b"\n" + ends)
    session = AssistantSession(assistant="codex", id="1", path=str(path), folder="/", changed="")

    def decode() -> list[Any]:
        return [json.loads(line) for line in ends.splitlines()]

    steps = {"nexus": partial(milliseconds, partial(_open, session)), "floor": partial(milliseconds, decode)}
    turns = take_turns(steps, run.pick(full=15, quick=5))
    yield "open a rollout of 2 GB", turns["nexus"], turns["floor"]
    yield (
        "a record that is appended → its report",
        *_append(path, _open(session), run.pick(full=600, quick=200)),
    )


def _open(session: AssistantSession) -> SessionFollower:
    follower = SessionFollower(session)
    follower.advance()
    assert follower.report().total.sent
    return follower


def _append(path: Path, follower: SessionFollower, events: int) -> tuple[Series, Series]:
    _, records = _codex("/home/ana/shop", 2, events)
    reports, reads = Series([]), Series([])
    with path.open("ab", buffering=0) as file, path.open("rb") as reader:
        reader.seek(0, os.SEEK_END)
        for record in records[2 : events + 2]:
            file.write(lines([record]))
            reads.values.append(milliseconds(lambda: json.loads(reader.readline())))
            reports.values.append(milliseconds(lambda: (follower.advance(), follower.report())))
    return reports, reads


# ---------------------------------------------------------------- processes


@contextmanager
def _daemon(run: Run) -> Iterator[None]:
    """The shared daemon of a user, which the first command would start."""
    with started(Lane(SHARED), run, run.folder("empty", {})):
        yield


def _install_ccusage() -> str:
    """The path of ccusage, installed if it is not yet. UnavailableError if it cannot be."""
    target = cache_directory() / f"{PACKAGE}-{VERSION}"
    command = target / "node_modules" / ".bin" / PACKAGE
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("ccusage needs Node.js 20 or later with npm")
    if not command.exists():
        target.mkdir(parents=True, exist_ok=True)
        (target / "package.json").write_text("{}\n")
        install(npm, "install", f"{PACKAGE}@{VERSION}", cwd=target)
    return str(command)
