"""What is wrong with one file, as LSP diagnostics."""

from typing import TYPE_CHECKING, Any

from nexus_daemon.convert import Locator, diagnostic

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot


def diagnostics(snapshot: "Snapshot", path: str, encoding: str) -> list[dict[str, Any]]:
    """The diagnostics of a file in the order of its text; none for a file that the folder does not read."""
    locate = Locator(snapshot.layers, encoding)
    mine = (problem for problem in snapshot.problems if problem.path == path)
    found = sorted(mine, key=lambda problem: (problem.span, problem.code))
    return [diagnostic(problem, locate) for problem in found]
