"""Turn the problems of one file into LSP diagnostics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexus_context.errors import Problem
from nexus_daemon.lsp.convert import SOURCE, Locator, diagnostic

Minders = Mapping[Problem, Sequence[str]]
"""Problem → the titles of the programs that report it. A problem of Nexus itself is not in it."""


def diagnostics(problems: Iterable[Problem], locate: Locator, minders: Minders) -> list[dict[str, Any]]:
    """Return the diagnostics of one file's problems, in the order of its text."""
    in_order = sorted(problems, key=lambda problem: (problem.span, problem.code))
    return [diagnostic(problem, locate, source=source_of(problem, minders)) for problem in in_order]


def source_of(problem: Problem, minders: Minders) -> str:
    """Name the programs that report a problem, by their titles. If `minders` has none for it, it is Nexus."""
    return ", ".join(minders.get(problem, ())) or SOURCE
