"""Conversations within a budget, beside other libraries: `python -m benchmarks.conversation`."""

import argparse
import datetime
import importlib.metadata
import sys
from pathlib import Path

from benchmarks import machine
from benchmarks.conversation import report, runner, targets
from benchmarks.conversation.traces import ROOT


def main() -> int:
    """Runs the measures; 0, or with --strict 1 if a target was missed or something was not measured."""
    options = _options()
    if not options.ours_only:
        runner.install_peers()
    today = datetime.datetime.now().astimezone().date().isoformat()
    title = f"{today} {options.name or _name(options)}"
    facts = _facts() | {"load before": machine.load()}
    rounds = runner.QUICK if options.quick else runner.FULL
    outcome = runner.run(
        rounds,
        ours_only=options.ours_only,
        facts_only=options.facts_only,
        survival_only=options.survival_only,
    )
    facts["load after"] = machine.load()
    verdicts = targets.verdicts(outcome)
    text = report.markdown(title, facts, verdicts, outcome)
    print(text)
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / title.replace(" ", "-")
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    stem.with_suffix(".json").write_bytes(report.as_json(title, facts, verdicts, outcome))
    print(f"written to {stem}.md and .json", file=sys.stderr)
    wrong = bool(outcome.failures) or any(verdict.result != "pass" for verdict in verdicts)
    return 1 if options.strict and wrong else 0


def _name(options: argparse.Namespace) -> str:
    only = "facts" if options.facts_only else "survival" if options.survival_only else ""
    parts = ("conversation", only, "quick" if options.quick else "")
    return "-".join(part for part in parts if part)


def _facts() -> dict[str, str]:
    return machine.facts() | {"nexusd": importlib.metadata.version("nexusd")} | report.versions()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conversation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions: does everything work?")
    parser.add_argument("--ours-only", action="store_true", help="leave the peers out")
    parser.add_argument("--facts-only", action="store_true", help="only the walks with facts in every turn")
    parser.add_argument("--survival-only", action="store_true", help="only what survives compactions")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a target is missed or not measured")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks/results", help="where the report goes"
    )
    parser.add_argument("--name", help="the report's name after the date [conversation]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
