"""The ledger under faults and Nexus under attack, with a table at the end: `python -m tests.torture`."""

import argparse
import datetime
import os
import platform
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import apsw

# `python -m tests.torture` has the repository's root on the path, not this folder's
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from torture.figures import Outcome, table

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "durability.md"
BEGIN, END = "<!-- figures: python -m tests.torture --write -->", "<!-- end of figures -->"


def main() -> int:
    """Runs the faults; 1 if a promise was broken."""
    faults = _faults()
    options = _options(list(faults))
    outcomes = []
    for name, run in faults.items():
        if not options.only or name in options.only:
            count = getattr(options, name) or (COUNTS[name][1] if options.quick else COUNTS[name][0])
            _say(f"{name} × {count:,} …")
            outcomes.append(run(count))
            _say(table(outcomes[-1:]))
    text = f"# Torture {_today()}\n\n{_machine()}\n\n{table(outcomes)}"
    sys.stdout.write(text)
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{_today()}.md"
        path.write_text(text, encoding="utf-8")
        _say(f"written to {path}")
        if not options.only and not options.quick:
            _publish(table(outcomes))
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
}


def _faults() -> dict[str, Callable[[int], Outcome]]:
    return {name: import_module(f"torture.{name}").run for name in COUNTS}


def _publish(figures: str) -> None:
    """Puts the figures into the page that promises them."""
    text = PAGE.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    said = f"The run of {_today()} on {_machine()}:"
    PAGE.write_text(f"{before}{begin}\n\n{said}\n\n{figures}\n{end}{after}", encoding="utf-8")
    _say(f"written to {PAGE}")


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
        help="write the table to results/<date>.md; all faults: to docs/durability.md, too",
    )
    for name in names:
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"how often [{COUNTS[name][0]:,}]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
