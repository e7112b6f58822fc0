"""Measures nexus beside other JSON language servers and prints the ratios: `python benchmarks/run.py`."""

import argparse
import datetime
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# a script's own folder is on the path, the repository's root is not
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import measures, report
from benchmarks.figures import Figures
from benchmarks.servers import HERE, ROOT, Sandbox, install_peers, lanes

MEASURES = ("startup", "edit", "assemble", "wire", "memory")
SCHEMA = ROOT / "context/nexus_context/config/config.schema.json"


def main() -> int:
    """Runs the measures; 0, or with --strict 1 if a target was missed or a measure failed."""
    options = _options()
    if not options.schema.is_file():
        print(f"{options.schema} is missing: generate it, or name another with --schema", file=sys.stderr)
        return 2
    install_peers()
    today = datetime.datetime.now().astimezone().date().isoformat()
    name = options.name or ("quick" if options.quick else "full")
    facts = report.machine(shutil.which("node") or "node") | {"load before": report.load()}
    chosen = [
        lane
        for lane in lanes(options.nexus, options.schema.resolve())
        if not options.peers_only or lane.schema
    ]
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="nexus-bench-") as root:
        sandbox = Sandbox(Path(root), os.environ["PATH"])
        _measure(
            options,
            measures.Bench(
                figures, tuple(chosen), sandbox, measures.QUICK if options.quick else measures.FULL
            ),
        )
    facts["load after"] = report.load()
    series = figures.series()
    wanted = [t for t in report.targets() if not options.only or t.measure.startswith(tuple(options.only))]
    verdicts = [report.judge(target, series) for target in wanted]
    title = f"{today} {name}"
    text = report.markdown(title, facts, verdicts, series, figures.failures)
    print(text)
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / f"{today}-{name}"
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    stem.with_suffix(".json").write_bytes(report.as_json(title, facts, verdicts, series, figures.failures))
    print(f"written to {stem}.md and .json", file=sys.stderr)
    wrong = bool(figures.failures) or any(verdict.outcome != "pass" for verdict in verdicts)
    return 1 if options.strict and wrong else 0


def _measure(options: argparse.Namespace, bench: measures.Bench) -> None:
    steps: dict[str, Callable[[], None]] = {
        "startup": lambda: measures.startup(bench),
        "edit": lambda: measures.edits(bench),
        "assemble": lambda: measures.assemble(bench, options.workspace.resolve()),
        "wire": lambda: measures.wire(bench),
        "memory": lambda: measures.memory(bench),
    }
    gc.disable()  # a collection in the client would count as the server's time
    for name, step in steps.items():
        if not options.only or name in options.only:
            print(f"measuring {name} …", file=sys.stderr)
            gc.collect()
            step()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions: does everything work?")
    parser.add_argument(
        "--only", action="append", choices=MEASURES, help="only this measure; may be repeated"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 if a target is missed or not measured")
    parser.add_argument(
        "--nexus", default=f"{Path(sys.executable).with_name('nexus')} serve", help="the daemon's command"
    )
    parser.add_argument("--peers-only", action="store_true", help="leave nexus out")
    parser.add_argument(
        "--workspace",
        type=Path,
        default=ROOT / "examples/company/backend/auth-service",
        help="folder to assemble",
    )
    parser.add_argument("--schema", type=Path, default=SCHEMA, help="the schema given to the peers")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where the report goes")
    parser.add_argument("--name", help="the report's name after the date [full or quick]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
