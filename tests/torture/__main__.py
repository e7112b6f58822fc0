"""The ledger under faults and Nexus under attack, with a table at the end: `python -m tests.torture`."""

import argparse
import datetime
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import apsw
import msgspec

# `python -m tests.torture` has the repository's root on the path, not this folder's and not that of `scripts`
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from torture.figures import Outcome, summary, table

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- figures: python -m tests.torture --write -->", "<!-- end of figures -->"


def main() -> int:
    """Runs the faults; 1 if a promise was broken."""
    faults = _faults()
    options = _options(list(faults))
    chosen = [name for name in faults if name in (options.only or PAGES.get(options.page) or faults)]
    outcomes = []
    for name in chosen:
        count = getattr(options, name) or (COUNTS[name][1] if options.quick else COUNTS[name][0])
        _say(f"{name} × {count:,} …")
        outcomes.append(faults[name](count))
        _say(table(outcomes[-1:]))
    sys.stdout.write(f"{_machine()}\n\n{table(outcomes)}")
    if options.write:
        _write(dict(zip(chosen, outcomes, strict=True)))
    return 0 if all(outcome.good for outcome in outcomes) else 1


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


# how often each fault happens: all of it, and quickly
COUNTS: Mapping[str, tuple[int, int]] = {
    "kills": (1_000, 20),
    "power": (100, 10),
    "crash": (1_000, 60),
    "full": (5, 1),
    "failing": (100_000, 10),
    "readonly": (1, 1),
    "windows": (5_000, 200),
    "clock": (1_000, 50),
    "newer": (1, 1),
    "damage": (450, 45),
    "watches": (600, 60),
    "race": (20_000, 500),
    "unread": (1_000, 200),
    "starved": (100, 10),
    "canaries": (100_000, 300),
    "terminal": (20_000, 200),
    "adversarial": (10_000, 200),
    "imports": (100_000, 600),
    "long": (100, 20),
    "verified": (660, 66),
    "typing_states": (100_000, 500),
    "mutated": (100_000, 500),
    "daemon_kills": (200, 10),
    "elections": (500, 10),
    "daemon_clients": (10_000, 100),
    "mutated_frames": (10_000, 200),
    "file_events": (50_000, 2_000),
    "remade_folder": (1_000, 20),
    "long_traffic": (1_800, 20),
    "runtime_directory": (10, 1),
}


PAGES = {
    "durability": (
        "kills",
        "power",
        "crash",
        "full",
        "failing",
        "readonly",
        "windows",
        "starved",
        "clock",
        "newer",
        "verified",
        "damage",
    ),
    "security": (
        "typing_states",
        "mutated",
        "adversarial",
        "race",
        "watches",
        "canaries",
        "terminal",
        "imports",
        "long",
        "unread",
    ),
    "daemon": (
        "daemon_kills",
        "elections",
        "daemon_clients",
        "mutated_frames",
        "file_events",
        "remade_folder",
        "long_traffic",
        "runtime_directory",
    ),
}
"""The page of the docs that promises what a fault must not break."""


class Run(msgspec.Struct, frozen=True):
    """The last run of a fault."""

    day: str
    machine: str
    outcome: Outcome


def _faults() -> dict[str, Callable[[int], Outcome]]:
    return {name: import_module(f"torture.{name}").run for name in COUNTS}


def _write(outcomes: Mapping[str, Outcome]) -> None:
    """Keeps the figures of these faults, and writes the tables of their pages."""
    RESULTS.mkdir(exist_ok=True)
    for name, outcome in outcomes.items():
        run = Run(_today(), _machine(), outcome)
        (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(run)) + b"\n")
    for page, names in PAGES.items():
        if outcomes.keys() & set(names):
            _publish(
                DOCS / f"{page}.md", [path for name in names if (path := RESULTS / f"{name}.json").exists()]
            )


def _publish(page: Path, results: Sequence[Path]) -> None:
    runs = [msgspec.json.decode(path.read_bytes(), type=Run) for path in results]
    places = dict.fromkeys(f"{run.day} on {run.machine}" for run in runs)
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    outcomes = [run.outcome for run in runs]
    days = " and ".join(sorted({run.day for run in runs}))
    full = RESULTS / f"{page.stem}.md"
    head = f"Last run {days}; [all figures](../{full.relative_to(DOCS.parent).as_posix()}):"
    page.write_text(f"{before}{begin}\n\n{head}\n\n{summary(outcomes)}\n{end}{after}", encoding="utf-8")
    title = f"# Figures of docs/{page.name}\n\nThe last run of each fault, {'; '.join(places)}:"
    full.write_text(f"{title}\n\n{table(outcomes)}", encoding="utf-8")
    _say(f"written to {page}")


def _today() -> str:
    return datetime.datetime.now().astimezone().date().isoformat()


def _machine() -> str:
    cores = len(os.sched_getaffinity(0))
    return (
        f"{platform.system()} {platform.release()} {platform.machine()}, {cores} cores, Python "
        f"{platform.python_version()}, SQLite {apsw.sqlitelibversion()}"
    )


def _options(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each fault a few times: does it all work?")
    parser.add_argument("--only", action="append", choices=names, help="only this fault; may be repeated")
    parser.add_argument(
        "--write",
        action="store_true",
        help="keep the figures in results/, and sum them up in the pages of docs/",
    )
    parser.add_argument("--page", choices=PAGES, help="only the faults of this page of the docs")
    for name in names:
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"how often [{COUNTS[name][0]:,}]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
