"""On which machine and at which commit something was measured."""

import os
import platform
import subprocess
from pathlib import Path

from benchmarks.conversation.traces import ROOT


def facts() -> dict[str, str]:
    """Processor, system, Python and commit, for the head of a report."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    commit = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "CPU": next(names, platform.processor()),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": done.stdout.strip() or "none",
    }


def load() -> str:
    """How busy the machine has been in the last 1, 5 and 15 minutes: processes that could run."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())
