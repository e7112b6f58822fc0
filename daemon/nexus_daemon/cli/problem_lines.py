"""Problems for people at a terminal: a line each, which a click opens, and what to do first."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from rich.text import Text

from nexus_context.errors import Problem, Severity
from nexus_context.text.lines import LineIndex
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import current_directory, short_path

FIRST = ("assistant.stops", "assistant.void")
"""What a program that does not start, or a file that counts for nothing, is reported as."""
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}


def print_lines(
    problems: Sequence[Problem],
    texts: Mapping[str, str],
    minders: Mapping[Problem, Sequence[str]],
) -> None:
    """Print the problems, which are sorted by file; `minders` are the programs that mind, where it is known.

    Paths are from the current directory, as a terminal opens them. A secret in a message is covered.
    """
    console, current = output.console(), current_directory()
    for number, (path, group) in enumerate(groupby(problems, attrgetter("path"))):
        if number:
            console.print()
        index = LineIndex(texts[path]) if path in texts else None
        for problem in group:
            line, column = (0, 0) if index is None else index.position(problem.span.start)
            severity = problem.severity.name.lower()
            message = visible_line(redact(problem.message))
            by = ", ".join(title for title in minders.get(problem, ()) if not message.startswith(title))
            text = Text.assemble(
                (f"{short_path(path, current)}:{line + 1}:{column + 1}", "bold"),
                " ",
                (severity, _STYLES.get(problem.severity, "dim")),
                f" {message}",
                (f" [{problem.code}]", "dim"),
                (f" ({by})", "dim") if by else "",
            )
            console.print(text, soft_wrap=True)
    if problems:
        console.print()


def importance(problem: Problem) -> tuple[bool, Severity]:
    """The smaller, the sooner somebody should look at it."""
    return problem.code not in FIRST, problem.severity


def first_step(problems: Sequence[Problem]) -> str:
    """Which problem to solve first, as a sentence; nothing without one that is worth it."""
    if not any(problem.severity <= Severity.WARNING for problem in problems) or len(problems) < 2:
        return ""
    first = min(problems, key=importance)
    why = {"assistant.stops": "a program does not start", "assistant.void": "a file counts for nothing"}
    reason = f": {why[first.code]}" if first.code in why else ""
    return f"Begin with {short_path(first.path, current_directory())}{reason}.\n"
