"""Knowledge: how well words, meaning and both find passages: `python -m benchmarks.knowledge`."""

import argparse
import datetime
import sys
import tempfile
from pathlib import Path

from benchmarks import machine
from benchmarks.conversation.traces import ROOT
from benchmarks.knowledge import measures, report
from benchmarks.ledger.report import as_json


def main() -> int:
    """Runs the measures; 0, or with --strict 1 if a target was missed."""
    options = _options()
    today = datetime.datetime.now().astimezone().date().isoformat()
    title = f"{today} {options.name or ('knowledge-quick' if options.quick else 'knowledge')}"
    facts = machine.facts() | {"load before": machine.load()}
    with tempfile.TemporaryDirectory(prefix="nexus-knowledge-") as folder:
        outcome = measures.measure(Path(folder), measures.QUICK if options.quick else measures.FULL)
    facts["load after"] = machine.load()
    verdicts = list(report.verdicts(outcome))
    text = report.markdown(title, facts, verdicts, outcome)
    print(text)
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / title.replace(" ", "-")
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    stem.with_suffix(".json").write_bytes(as_json(title, facts, verdicts, outcome))
    print(f"written to {stem}.md and .json", file=sys.stderr)
    return 1 if options.strict and any(verdict.result != "pass" for verdict in verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.knowledge", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions: does everything work?")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks/results", help="where the report goes"
    )
    parser.add_argument("--name", help="the report's name after the date [knowledge]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
