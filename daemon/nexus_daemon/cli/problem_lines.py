"""Prints problems for people: a line or a frame each, with a place to click, and what to do first."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from nexus_context.config.frames import format_frame
from nexus_context.errors import Problem, Severity
from nexus_context.text.lines import LineIndex
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import current_directory, short_path

FIRST_CODES = ("assistant.stops", "assistant.void")
"""What a program that does not start, or a file that counts for nothing, is reported as."""
LAST_CODES = ("mcp.unpinned",)
"""What works today, and may not tomorrow."""
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}


def print_lines(
    problems: Sequence[Problem],
    texts: Mapping[str, str],
    minders: Mapping[Problem, Sequence[str]],
) -> None:
    """Print a line for each problem. The problems are sorted by file.

    `minders` are the programs that mind a problem, where they are known. Paths are from the current
    directory, as a terminal opens them. A secret in a message is covered.
    """
    from rich.text import Text  # not at import: frames do without it

    console = output.console()
    for number, (path, group) in enumerate(groupby(problems, attrgetter("path"))):
        if number:
            console.print()
        index = LineIndex(texts[path]) if path in texts else None
        for problem in group:
            message = visible_line(redact(problem.message))
            text = Text.assemble(
                (_location(problem, index), "bold"),
                " ",
                (problem.severity.name.lower(), _STYLES.get(problem.severity, "dim")),
                f" {message}",
                (_code(problem, minders), "dim"),
            )
            console.print(text, soft_wrap=True)
    if problems:
        console.print()


def print_frames(
    problems: Sequence[Problem],
    texts: Mapping[str, str],
    minders: Mapping[Problem, Sequence[str]],
) -> None:
    """Print each problem with the lines around it. Its place and code follow as in `print_lines`."""
    is_private = output.is_read_by_person()
    frames = []
    for path, group in groupby(problems, attrgetter("path")):
        text = texts.get(path)
        index = None if text is None else LineIndex(text)
        for problem in group:
            frame = format_frame(problem, text, is_private=is_private)
            severity = problem.severity.name.lower()
            frames.append(f"{frame}\n\n{_location(problem, index)} {severity}{_code(problem, minders)}\n\n")
    output.page("".join(frames))


def _location(problem: Problem, index: LineIndex | None) -> str:
    """The path, the line and the column, as a terminal opens them."""
    line, column = (0, 0) if index is None else index.position(problem.span.start)
    return f"{short_path(problem.path, current_directory())}:{line + 1}:{column + 1}"


def _code(problem: Problem, minders: Mapping[Problem, Sequence[str]]) -> str:
    """The code, and the programs that mind if the message does not name them first."""
    titles = [title for title in minders.get(problem, ()) if not problem.message.startswith(title)]
    return f" [{problem.code}]" + (f" ({', '.join(titles)})" if titles else "")


def importance(problem: Problem) -> tuple[bool, Severity, bool]:
    """Return the key to sort problems by importance: the smaller, the sooner somebody should look at it."""
    return problem.code not in FIRST_CODES, problem.severity, problem.code in LAST_CODES


def first_step(problems: Sequence[Problem]) -> str:
    """Say which problem to solve first. Empty if there is only one problem, or no error and no warning."""
    if not any(problem.severity <= Severity.WARNING for problem in problems) or len(problems) < 2:
        return ""
    first_problem = min(problems, key=importance)
    why = {"assistant.stops": "a program does not start", "assistant.void": "a file counts for nothing"}
    reason = f": {why[first_problem.code]}" if first_problem.code in why else ""
    return f"Begin with {short_path(first_problem.path, current_directory())}{reason}.\n"
