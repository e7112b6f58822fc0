"""Problems of one file as LSP diagnostics."""

from collections.abc import Iterable
from typing import Any

from nexus_context.errors import Problem
from nexus_daemon.lsp.convert import Locator, diagnostic


def diagnostics(problems: Iterable[Problem], locate: Locator) -> list[dict[str, Any]]:
    """Return the diagnostics of one file's problems, in the order of its text."""
    in_order = sorted(problems, key=lambda problem: (problem.span, problem.code))
    return [diagnostic(problem, locate) for problem in in_order]
