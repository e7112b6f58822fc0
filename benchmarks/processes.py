"""Memory of a process and its children, from /proc (Linux only)."""

from pathlib import Path

from benchmarks.lsp_client import ServerError

PROC = Path("/proc")


def resident_mb(pid: int) -> float:
    """VmRSS of the process and all its descendants, in MB (10^6 bytes)."""
    return sum(_field(PROC / str(process) / "status", "VmRSS") for process in _tree(pid))


def proportional_mb(pid: int) -> float:
    """Pss (a shared page counts by its share) of the process and all its descendants, in MB (10^6 bytes)."""
    return sum(_field(PROC / str(process) / "smaps_rollup", "Pss") for process in _tree(pid))


def _tree(pid: int) -> list[int]:
    children = [
        int(child)
        for path in (PROC / str(pid) / "task").glob("*/children")
        for child in path.read_text().split()
    ]
    return [pid, *(process for child in children for process in _tree(child))]


def _field(path: Path, name: str) -> float:
    for line in path.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ServerError(f"{path} has no {name}")
