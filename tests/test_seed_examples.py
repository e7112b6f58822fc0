"""Every example of the seeds runs, in a process and a directory of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = Path(__file__).resolve().parents[1] / "examples" / "seeds"


@pytest.mark.parametrize("example", sorted(SEEDS.glob("*.py")), ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "NEXUS_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    run = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
