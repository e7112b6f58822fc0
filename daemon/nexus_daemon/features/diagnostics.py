"""Problems of one file as LSP diagnostics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexus_context.errors import Problem
from nexus_daemon.lsp.convert import SOURCE, Locator, diagnostic


def diagnostics(
    problems: Iterable[Problem],
    locate: Locator,
    minders: Mapping[Problem, Sequence[str]],
) -> list[dict[str, Any]]:
    """Return the diagnostics of one file's problems, in the order of its text.

    Their source is the programs that mind, by their titles, or Nexus.
    """
    in_order = sorted(problems, key=lambda problem: (problem.span, problem.code))
    return [
        diagnostic(problem, locate, source=", ".join(minders.get(problem, ())) or SOURCE)
        for problem in in_order
    ]
