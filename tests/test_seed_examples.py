"""Every example of the seeds runs, in a process and a home directory of its own, and prints what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = Path(__file__).resolve().parents[1] / "examples" / "seeds"
PRINTS = "\n# It prints:\n"


@pytest.mark.parametrize("example", sorted(SEEDS.glob("*.py")), ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "NEXUS_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-W", "error", str(example)]
    run = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    _, mark, printed = example.read_text(encoding="utf-8").partition(PRINTS)
    if mark:
        lines = [line.removeprefix("#").removeprefix(" ") for line in printed.splitlines()]
        assert run.stdout.splitlines() == lines


def test_each_document_has_examples() -> None:
    documents = {path.name[:8] for path in SEEDS.glob("*.py")}
    assert documents >= {"seed_000", "seed_001", "seed_003", "seed_004"}
