"""`nexus sessions keep` beside reading and decoding the same files.

The logs are made up like real ones: long tool results, which both programs write twice, answers of several
records, the provider's usages. Each run is a process of its own (`python -m benchmarks.keep HOME [LEDGER]`,
without a ledger the floor), so its memory is its own.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.promises import ROOT, Measured, Promise, Run, promises, take_turns

MODEL = "claude-sonnet-4-5"
FOLDER = "/home/ana/project"
FLOOR = "reading and json.loads of the same files"
STAT = "a stat of each file"


@promises(
    Promise("a first run", 0.08, FLOOR, unit="MB/s", at_least=True),  # the index of words takes half
    Promise("a run after each file of Claude Code has grown by a turn", 1.0, FLOOR, unit="s"),
    Promise("memory of a first run, one large file", 2.5, "the file", unit="MB"),
)
def keep(run: Run) -> Iterator[Measured]:
    """Sessions of both programs into a new ledger, again when they have grown, and one large file."""
    home, ledgers = run.root / "logs", count()
    megabytes = _write_logs(home, run.pick(full=100, quick=20), run.pick(full=250, quick=60)) / 1e6

    def keep_first() -> dict[str, float]:
        return _run(run, home, run.root / f"{next(ledgers)}.db")

    turns = take_turns({FLOOR: partial(_run, run, home), "nexus": keep_first}, run.pick(full=3, quick=1))
    seconds = {lane: turns[lane, "wall"].at("p50") for lane in (FLOOR, "nexus")}
    run.note_turns("Sessions of assistants into the ledger", turns)
    yield "a first run", megabytes / seconds["nexus"], megabytes / seconds[FLOOR]
    _grow(home)
    grown = _run(run, home, run.root / "0.db")["wall"]
    yield "a run after each file of Claude Code has grown by a turn", grown, seconds[FLOOR]
    large = _write_logs(run.root / "large", 1, run.pick(full=300, quick=120)) / 1e6
    figures = _run(run, run.root / "large", run.root / "large.db")
    yield "memory of a first run, one large file", figures["memory"], large


@promises(Promise("a second run, thousands of small files", 1.5, STAT, unit="s"))
def keep_again(run: Run) -> Iterator[Measured]:
    """A run in which nothing has changed."""
    home, ledger = run.root / "logs", run.root / "ledger.db"
    files = run.pick(full=10_000, quick=1_000)
    _write_logs(home, files, files * 0.006)
    _run(run, home, ledger)
    again: Callable[[], dict[str, float]] = partial(_run, run, home, ledger)
    turns = take_turns({"nexus": again}, run.pick(full=5, quick=2), warm=0)
    stats = take_turns({STAT: partial(_run, run, home, option="--stat")}, run.pick(full=5, quick=2), warm=0)
    yield "a second run, thousands of small files", turns["nexus", "processor"], stats[STAT, "processor"]


def _run(run: Run, home: Path, *ledger: Path, option: str = "") -> dict[str, float]:
    """Keep the sessions of a home in a process of its own, or read them: seconds, and megabytes of memory."""
    command = [sys.executable, "-m", "benchmarks.keep", str(home), *map(str, ledger), *filter(None, [option])]
    figures: dict[str, float] = json.loads(run.execute(command, cwd=ROOT))
    return figures


def main(home: str, *arguments: str) -> None:
    """Keep, read or look at the files of a home; print what that took."""
    if arguments and arguments != ("--stat",):
        from nexus_context.assistants.mirror import mirror_files
        from nexus_context.ledger import open_ledger

        ledger = open_ledger(arguments[0], environ={})
        step: Callable[[], object] = partial(mirror_files, ledger, home, {})
    else:
        step = partial(_read, home, only_stat=bool(arguments))
    wall, processor = time.perf_counter(), time.process_time()
    step()
    seconds = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
    print(json.dumps(seconds | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def _read(home: str, *, only_stat: bool) -> None:
    for path in Path(home).rglob("*.jsonl"):
        if only_stat:
            path.stat()
            continue
        with path.open("rb") as file:
            for line in file:
                json.loads(line)


# ---------------------------------------------------------------- logs


def _write_logs(home: Path, files: int, megabytes: float) -> int:
    """Write session files of Claude Code and Codex, half each; returns their bytes."""
    chance = random.Random(files)  # noqa: S311 - the same logs each time
    texts = _Texts(chance)
    total = 0
    for number in range(files):
        is_codex = bool(number % 2)
        path = home / f".codex/sessions/2026/11/{number % 28 + 1:02}/rollout-{number:06}.jsonl"
        if not is_codex:
            path = home / f".claude/projects/-home-ana-project/{number:08}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = _codex_lines(f"r{number}", texts) if is_codex else _claude_lines(path.stem, texts)
        size = 0
        with path.open("w") as file:
            for line in lines:
                file.write(line)
                size += len(line)
                if size >= megabytes * 1e6 / files:
                    break
        total += size
    return total


def _grow(home: Path) -> None:
    """Add a turn to each file, as its program would: the last record of a file is its last answer."""
    for path in sorted(home.glob(".claude/projects/*/*.jsonl")):
        last = json.loads(path.read_bytes().rstrip().rpartition(b"\n")[2])
        record = {**last, "type": "user", "message": {"role": "user", "content": "And now?"}}
        record |= {"parentUuid": last["uuid"], "uuid": f"{last['uuid']}-more"}
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")


class _Texts:
    """Texts like source code with line numbers, as tools read them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        letters = "abcdefghijklmnopqrstuvwxyz_"
        words = ["".join(chance.choices(letters, k=chance.randint(2, 11))) for _ in range(6_000)]
        lines = []
        for _ in range(20_000):
            indent = " " * chance.choice((0, 4, 8))
            lines.append(indent + " ".join(chance.choices(words, k=chance.randint(2, 10))))
        self._lines = lines

    def text(self, size: int) -> str:
        """A text of about so many characters."""
        start, length = self.chance.randrange(len(self._lines)), 0
        parts: list[str] = []
        while length < size:
            parts.append(f"{len(parts) + 1:6}\t{self._lines[(start + len(parts)) % len(self._lines)]}\n")
            length += len(parts[-1])
        return "".join(parts)

    def result(self) -> str:
        """A result of a tool."""
        return self.text(self.chance.choice((500, 2_000, 8_000, 20_000, 30_000)))


def _claude_lines(session: str, texts: _Texts) -> Iterator[str]:
    about = {"isSidechain": False, "cwd": FOLDER, "sessionId": session, "version": "2.1.330"}
    number, sent, parent = 0, 20_000, None

    def line(kind: str, message: dict[str, Any], **values: Any) -> str:
        nonlocal number, parent
        number += 1
        record = {"parentUuid": parent, **about, "type": kind, "message": message, **values}
        parent = f"{session}-{number:08}-4a5b-8c9d"
        record |= {"uuid": parent, "timestamp": "2026-11-20T10:00:00.000Z"}
        return json.dumps(record) + "\n"

    def answer(name: str, block: dict[str, Any]) -> str:
        usage = {"input_tokens": 5, "cache_read_input_tokens": sent, "output_tokens": 200}
        content = {"id": name, "role": "assistant", "model": MODEL, "content": [block], "usage": usage}
        return line("assistant", content)

    while True:
        yield line("user", {"role": "user", "content": texts.text(300)})
        for _ in range(8):
            name, call = f"msg_{number}", f"toolu_{session}_{number}"
            yield answer(name, {"type": "text", "text": texts.text(200)})
            yield answer(name, {"type": "tool_use", "id": call, "name": "Read", "input": {"path": "x.py"}})
            text = texts.result()
            sent += 100 + len(text) // 3
            result = {"type": "tool_result", "tool_use_id": call, "content": text}
            file = {"type": "text", "file": {"filePath": "x.py", "content": text}}
            yield line("user", {"role": "user", "content": [result]}, toolUseResult=file)
        yield answer(f"msg_{number}", {"type": "text", "text": texts.text(800)})


def _codex_lines(session: str, texts: _Texts) -> Iterator[str]:
    def line(kind: str, **payload: Any) -> str:
        record = {"timestamp": "2026-11-20T10:00:00.000Z", "type": kind, "payload": payload}
        return json.dumps(record) + "\n"

    yield line("session_meta", id=session, cwd=FOLDER)
    yield line("turn_context", cwd=FOLDER, model="gpt-5")
    number, sent = 0, 20_000
    while True:
        content = [{"type": "input_text", "text": texts.text(300)}]
        yield line("response_item", type="message", role="user", content=content)
        for _ in range(8):
            number += 1
            call = f"call_{number}"
            values = {"call_id": call, "name": "shell", "arguments": '{"command": "cat x.py"}'}
            yield line("response_item", type="function_call", **values)
            usage = {"input_tokens": sent, "cached_input_tokens": 0, "output_tokens": 200}
            yield line("event_msg", type="token_count", info={"last_token_usage": usage})
            text = texts.result()
            sent += 50 + len(text) // 3
            yield line("response_item", type="function_call_output", call_id=call, output=text)
            yield line("event_msg", type="exec_command_end", call_id=call, aggregated_output=text)


if __name__ == "__main__":
    main(*sys.argv[1:])
