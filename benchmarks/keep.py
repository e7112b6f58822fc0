"""Measures `nexus sessions keep`: `python -m benchmarks.keep`.

The logs are made up like real ones: long tool results, which both programs write twice, answers of several
records, the provider's usages. Each run is a process of its own, so its processor time and its memory are its
own: a first run of all of the logs, a second one in which nothing has changed, one in which every file of
Claude Code has grown by a turn; then one file that is larger than what is read at once; then thousands of
small files.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIRST_LEAST_MB_S = 50.0
SECOND_MOST_S = 1.0
LARGE_MOST_MB = 700.0
MODEL = "claude-sonnet-4-5"
FOLDER = "/home/ana/project"


def main() -> int:
    """Print the figures; with --strict 1 if one of them misses its target."""
    options = _options()
    if options.run:
        _run(*options.run)
        return 0
    rows = []
    with tempfile.TemporaryDirectory(prefix="nexus-keep-", dir=options.where) as root:
        home, ledger = Path(root, "home"), Path(root, "ledger.db")
        size = _write_logs(home, options.files, options.megabytes)
        first, second = _measure(home, ledger), _measure(home, ledger)
        _grow(home)
        third = _measure(home, ledger)
        speed, work = size / first["wall"] / 1e6, size / first["cpu"] / 1e6
        name = f"first run, {options.files} files of {size / 1e6:,.0f} MB"
        rows += [
            (f"{name} (MB/s)", speed, speed >= FIRST_LEAST_MB_S),
            ("the same, by processor time (MB/s)", work, True),
            ("memory (MB)", first["memory"], True),
            ("second run (s)", second["wall"], second["wall"] <= SECOND_MOST_S),
            ("run after each file has grown by a turn (s)", third["wall"], True),
        ]
        home, ledger = Path(root, "large"), Path(root, "large.db")
        size = _write_logs(home, 1, options.large)
        large = _measure(home, ledger)
        name = f"one file of {size / 1e6:,.0f} MB"
        rows += [
            (f"{name} (MB/s)", size / large["wall"] / 1e6, True),
            ("memory (MB)", large["memory"], large["memory"] <= LARGE_MOST_MB),
        ]
        home, ledger = Path(root, "small"), Path(root, "small.db")
        _write_logs(home, options.small, options.small * 0.006)
        first, second = _measure(home, ledger), _measure(home, ledger)
        rows += [
            (f"first run, {options.small:,} files of a few KB (s)", first["wall"], True),
            ("second run (s)", second["wall"], second["wall"] <= SECOND_MOST_S),
        ]
    print("| `nexus sessions keep` | | |\n|---|--:|---|")
    for name, figure, passed in rows:
        print(f"| {name} | {figure:,.2f} | {'pass' if passed else 'MISS'} |")
    return 1 if options.strict and not all(passed for *_, passed in rows) else 0


def _measure(home: Path, ledger: Path) -> dict[str, float]:
    """Keep the sessions of a home in a process of its own: seconds, and megabytes of memory."""
    command = [sys.executable, "-m", "benchmarks.keep", "--run", str(home), str(ledger)]
    output = subprocess.run(command, check=True, capture_output=True).stdout
    figures: dict[str, float] = json.loads(output)
    return figures


def _run(home: str, path: str) -> None:
    from nexus_context.ledger import open_ledger
    from nexus_context.mirror import mirror_files

    ledger = open_ledger(path, environ={})
    wall, cpu = time.perf_counter(), time.process_time()
    mirror_files(ledger, home, {})
    figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    ledger.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures | {"memory": memory}))


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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keep", description=__doc__)
    parser.add_argument("--files", type=int, default=200, help="session files of the first logs [200]")
    parser.add_argument("--megabytes", type=float, default=500, help="their size together [500]")
    parser.add_argument("--large", type=float, default=300, help="megabytes of the large file [300]")
    parser.add_argument("--small", type=int, default=10_000, help="small session files [10000]")
    parser.add_argument("--where", type=Path, help="the folder for logs and ledgers")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--run", nargs=2, metavar=("HOME", "LEDGER"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
