"""Shows problems as text for people: an error in a frame of its lines, and the exception with all frames."""

import functools
from collections.abc import Mapping, Sequence

from nexus_context.config.cover import CoveredText
from nexus_context.errors import NexusError, Problem, Severity
from nexus_context.text.lines import LineIndex
from nexus_context.text.redact import redact

MAX_FRAMES = 20
MAX_COLUMNS = 160  # of one printed line; minified files have lines of a megabyte

# the problems of a file are formatted one after another
_lines_of = functools.lru_cache(maxsize=2)(LineIndex)

_TITLES = {
    "json": ("Invalid JSON in", "Fix the JSON syntax error and try again."),
    "config": ("Invalid setting in", "Fix the setting and try again."),
    "mcp": ("Invalid MCP server in", "Fix the MCP server and try again."),
    "internal": ("Nexus failed on", ""),
}
_OTHER = ("Problem in", "Fix the file and try again.")
_REMARK = ("About", "")
_SERVER_WARNING = "MCP server in"  # Nexus refuses no server for it


class ConfigError(NexusError):
    """Raised by the library's simple interface (`loader`) if configuration files cannot be used.

    `problems` has all of them, errors and warnings; the message shows the frames of the errors. `texts` maps
    absolute paths to the files' decoded texts; a file without one is shown without its lines.
    """

    def __init__(self, problems: Sequence[Problem], texts: Mapping[str, str]) -> None:
        self.problems = tuple(problems)
        errors = [problem for problem in problems if problem.severity == Severity.ERROR] or list(problems)
        frames = [format_frame(problem, texts.get(problem.path)) for problem in errors[:MAX_FRAMES]]
        if len(errors) > MAX_FRAMES:
            frames.append(f"... and {len(errors) - MAX_FRAMES} more.")
        super().__init__("\n\n".join(frames))


def format_frame(problem: Problem, text: str | None, *, is_private: bool = False) -> str:
    """Return a problem as text: its message, its line with a mark below, and one line before and after.

    Lines and columns count from 1, columns in code points. The lines show structure, keys and the reported
    value unless its place is secret. All other values are covered (see `cover`), and so are secrets in the
    message. With `is_private` only the user sees it, so that more is shown. Characters that could steer a
    terminal are replaced. The text does not end with a line end.
    """
    title, remedy = _REMARK
    family = problem.code.partition(".")[0]
    if family == "mcp" and problem.severity == Severity.WARNING:
        title = _SERVER_WARNING
    elif problem.severity <= Severity.WARNING:
        title, remedy = _TITLES.get(family, _OTHER)
    if problem.severity > Severity.ERROR:  # nothing fails that could be tried again
        remedy = ""
    head = f"Configuration {problem.severity.name.capitalize()}: {title} {_harmless(problem.path)}"
    message = _harmless(redact(problem.message))
    end = ["", remedy] if remedy else []
    if text is None:
        return "\n".join([head, "", f"  {message}", *end])
    index = _lines_of(text)
    line, column = index.position(problem.span.start)
    location = f"  Line {line + 1}, Column {column + 1}: {message}"
    excerpt = _excerpt(CoveredText(problem, text, index, is_private=is_private), index, line, column)
    return "\n".join([head, "", location, "", *excerpt, *end])


def _excerpt(lines: CoveredText, index: LineIndex, line: int, column: int) -> list[str]:
    numbers = range(max(line - 1, 0), min(line + 2, index.count))
    width = len(str(numbers[-1] + 1))
    start = max(0, column - MAX_COLUMNS // 2) if column > MAX_COLUMNS - 20 else 0
    rows = []
    for number in numbers:
        if number > line and not index.line(number):
            continue
        full = _harmless(lines.line(number, min(start, column), start + MAX_COLUMNS + 1))
        rows.append(f"  {number + 1:>{width}} | {_clip(full, start)}".rstrip())
        if number == line:
            text_before = full[start:column]
            rows.append(f"  {'':>{width}} | {' ' if start else ''}{_blank(text_before)}^")
    return rows


def _clip(line: str, start: int) -> str:
    cut = line[start : start + MAX_COLUMNS]
    return ("…" if start else "") + cut + ("…" if len(line) > start + MAX_COLUMNS else "")


def _harmless(text: str) -> str:
    """The text with control and bidirectional characters replaced one by one: columns stay the same."""
    if text.isprintable():
        return text
    return "".join(
        char if char == "\t" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def _blank(text: str) -> str:
    """As many spaces as the text before the mark is wide on a terminal; tabs stay tabs."""
    if text.isascii():
        return "".join("\t" if char == "\t" else " " for char in text)
    # unicodedata is only needed for a line that is not ASCII
    from unicodedata import combining, east_asian_width

    return "".join(
        char if char == "\t" else "" if combining(char) else "  " if east_asian_width(char) in "WF" else " "
        for char in text
    )
