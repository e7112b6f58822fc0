"""The seeds' examples, as programs: each prints what its last comment says."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "seeds"
PRINTS = "\n# It prints:\n"


def check(example: Path, home: Path) -> str:
    """The output of an example that runs in an empty home directory."""
    environ = {"HOME": str(home), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "example",
    [path for seed in ("000", "001") for path in sorted(EXAMPLES.glob(f"seed_{seed}_*.py"))],
    ids=lambda path: path.stem,
)
def test_an_example_prints_what_it_says(example: Path, tmp_path: Path) -> None:
    printed = example.read_text(encoding="utf-8").partition(PRINTS)[2]
    lines = [line.removeprefix("#").removeprefix(" ") for line in printed.splitlines()]
    assert check(example, tmp_path).splitlines() == lines


def test_the_examples_are_there() -> None:
    assert len(list(EXAMPLES.glob("seed_000_*.py"))) >= 6
    assert len(list(EXAMPLES.glob("seed_001_*.py"))) >= 3
