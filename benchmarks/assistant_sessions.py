"""How soon the sessions of other assistants are known, beside `ccusage`.

`python -m benchmarks.assistant_sessions [--strict] [--quick]` writes made-up transcripts of Claude Code and
Codex into a temporary home, as 2.1.330 and 0.169.0 write them, and measures

- `list`: `nexus sessions list --assistants --all --json`, the whole process with the shared daemon running,
  beside `ccusage claude daily --json --offline` and `ccusage codex daily --json --offline` after each other.
  The totals of both must be equal. Nexus reads the sums that the programs write at the ends of their files;
  ccusage adds up all records;
- `list of 10,000`: the same command for 10,000 transcripts, the second time;
- `open 2 GB`: the report of a rollout of 2 GB, from a new process's first look on; the file is sparse where
  nobody reads;
- `event`: from the end of a write to the new report, for each event that is appended to that rollout.

ccusage is installed from npm into the cache of the assistants (`tests/assistants/programs.py`).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.servers import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from assistants.programs import cache_directory
from nexus_context.assistant_sessions import AssistantSession
from nexus_context.assistant_sessions.follow import SessionFollower
from support.assistant_transcripts import Claude, Codex, calls, lines

PACKAGE, VERSION = "ccusage", "20.0.24"
"""The last version with a binary for Linux in the registry when this was written."""
NEXUS = str(Path(sys.executable).with_name("nexus"))
SESSIONS, TURNS = 400, 60  # of Claude Code and of Codex
MANY = 10_000
HUGE = 2_000_000_000  # bytes
EVENTS = 200
ROUNDS = 7
RATIO = 0.5
LIST_MS, OPEN_MS, EVENT_MS = 1_000.0, 300.0, 5.0
WORDS = "the cache of a model keeps what was sent before until it goes cold or its beginning changes. "


class Figure(NamedTuple):
    """A measured figure in ms and its limit."""

    name: str
    value: float
    limit: float
    note: str = ""


def main() -> int:
    """Measure and print a table; with --strict 1 where a figure misses its limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sessions")
    chosen = parser.parse_args()
    share = 10 if chosen.quick else 1
    figures: list[Figure] = []
    print(f"load {os.getloadavg()[0]:.1f}")
    for measure in (
        lambda home: _beside_ccusage(home, SESSIONS // share),
        lambda home: _many(home, MANY // share),
        _huge,
    ):
        with tempfile.TemporaryDirectory(prefix="nexus-bench-") as root:
            for figure in measure(Path(root)):
                figures.append(figure)
                verdict = "pass" if figure.value <= figure.limit else "MISS"
                limit = f"≤ {figure.limit:,.1f}"
                print(f"{figure.name:34} {figure.value:9,.1f} ms  {limit:>12}  {verdict}  {figure.note}")
    return 1 if chosen.strict and any(one.value > one.limit for one in figures) else 0


# ---------------------------------------------------------------- beside ccusage


def _beside_ccusage(home: Path, sessions: int) -> Iterator[Figure]:
    command = _ccusage()
    if command is None:
        print("ccusage cannot be installed: npm is missing or has no network")
        return
    size = _write_sessions(home, sessions, TURNS)
    environ = _environ(home)
    with _Daemon(environ, home):
        ours, theirs = [], []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            listed = json.loads(_run([NEXUS, *LIST], environ, home))
            between = time.perf_counter()
            peers = {
                name: json.loads(_run([command, name, "daily", "--json", "--offline"], environ, home))[
                    "totals"
                ]
                for name in ("claude", "codex")
            }
            theirs.append(1000 * (time.perf_counter() - between))
            ours.append(1000 * (between - began))
    totals = {one["assistant"]: one["total"] for one in listed["totals"]}
    _compare(totals["claude-code"], peers["claude"])
    _compare(totals["codex"], peers["codex"])
    peer = statistics.median(theirs)
    note = f"ccusage {VERSION}: {peer:,.1f} ms; {2 * sessions:,} sessions, {size / 1e6:,.0f} MB; totals equal"
    yield Figure("list, first time", ours[0], RATIO * theirs[0], f"ccusage {theirs[0]:,.1f} ms")
    yield Figure("list, beside ccusage", statistics.median(ours[1:]), RATIO * peer, note)


LIST = ("sessions", "list", "--assistants", "--all", "--json")


def _compare(total: dict[str, int], peer: dict[str, Any]) -> None:
    """Raise AssertionError unless both count the same tokens."""
    ours = (total["fresh"], total["cacheRead"], total["cacheWrite"], total["output"])
    names = ("inputTokens", "cacheReadTokens", "cacheCreationTokens", "outputTokens")
    theirs = tuple(peer[name] for name in names)
    assert ours == theirs, f"the totals differ: nexus {ours}, ccusage {theirs}"


def _write_sessions(home: Path, sessions: int, turns: int) -> int:
    size = 0
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


# ---------------------------------------------------------------- many and huge


def _many(home: Path, sessions: int) -> Iterator[Figure]:
    size = _write_sessions(home, sessions // 2, 2)
    environ = _environ(home)
    with _Daemon(environ, home):
        times = []
        for _ in range(4):
            began = time.perf_counter()
            _run([NEXUS, *LIST], environ, home)
            times.append(1000 * (time.perf_counter() - began))
    note = f"first time {times[0]:,.0f} ms; {size / 1e6:,.0f} MB"
    yield Figure(f"list of {sessions:,}, warm", statistics.median(times[1:]), LIST_MS, note)


def _huge(home: Path) -> Iterator[Figure]:
    _, records = _codex("/home/ana/shop", 1, 400)
    path = home / "rollout-2026-11-23T09-00-00-1.jsonl"
    with path.open("wb") as file:
        file.write(lines(records[:2]))
        file.truncate(HUGE)  # nobody reads the middle
        file.seek(HUGE)
        file.write(b"\n" + lines(records[2:]))
    script = OPEN.format(path=str(path))
    opened = [float(_run([sys.executable, "-c", script], _environ(home), home)) for _ in range(ROUNDS)]
    yield Figure(
        "open 2 GB", statistics.median(opened), OPEN_MS, "without the start of Python and its imports"
    )
    session = AssistantSession(
        assistant="codex", id="1", path=str(path), folder="/", changed="2026-11-23T09:00:00Z"
    )
    follower = SessionFollower(session)
    follower.advance()
    follower.report()
    _, more = _codex("/home/ana/shop", 2, EVENTS)
    times = []
    with path.open("ab", buffering=0) as file:
        for record in more[2:]:
            file.write(lines([record]))
            began = time.perf_counter()
            follower.advance()
            follower.report()
            times.append(1000 * (time.perf_counter() - began))
    ordered = sorted(times)
    note = f"p50 {statistics.median(times):.2f} ms, max {ordered[-1]:.2f} ms of {len(times):,} events"
    yield Figure("event, p95", ordered[int(0.95 * (len(ordered) - 1))], EVENT_MS, note)


OPEN = """
import time
from nexus_context.assistant_sessions import AssistantSession
from nexus_context.assistant_sessions.follow import SessionFollower
session = AssistantSession(assistant="codex", id="1", path={path!r}, folder="/", changed="")
began = time.perf_counter()
follower = SessionFollower(session)
follower.advance()
assert follower.report().total.sent
print(1000 * (time.perf_counter() - began))
"""


# ---------------------------------------------------------------- processes


class _Daemon:
    """The shared daemon of a user, which the first command would start."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self._environ = environ
        self._folder = folder

    def __enter__(self) -> None:
        command = [NEXUS, "serve", "--remote=auto"]
        self._process = subprocess.Popen(
            command, env=self._environ, cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        params: dict[str, Any] = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": {},
            "workspaceFolders": [],
        }
        data = json.dumps({**body, "params": params}).encode()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()
        self._process.stdout.readline()

    def __exit__(self, *_: object) -> None:
        _run([NEXUS, "stop"], self._environ, self._folder)
        self._process.kill()
        self._process.communicate()


def _environ(home: Path) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    runtime = home / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    places = {"NEXUS_HOME": home / ".nexus3", "NEXUS_STATE": home / "state", "XDG_RUNTIME_DIR": runtime}
    return {**keep, **{name: str(place) for name, place in places.items()}, "HOME": str(home)}


def _run(command: list[str], environ: dict[str, str], folder: Path) -> bytes:
    return subprocess.run(command, env=environ, cwd=folder, stdout=subprocess.PIPE, check=True).stdout


def _ccusage() -> str | None:
    """The path of ccusage, installed if it is not yet; None if it cannot be."""
    target = cache_directory() / f"{PACKAGE}-{VERSION}"
    command = target / "node_modules" / ".bin" / PACKAGE
    npm = shutil.which("npm")
    if not command.exists() and npm is not None:
        target.mkdir(parents=True, exist_ok=True)
        (target / "package.json").write_text("{}\n")
        install = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", f"{PACKAGE}@{VERSION}"]
        subprocess.run(install, cwd=target, check=False)
    return str(command) if command.exists() else None


if __name__ == "__main__":
    sys.exit(main())
