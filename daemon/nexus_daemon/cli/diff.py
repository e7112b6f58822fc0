"""Show what the changes since a git revision cost in every request of other assistants.

Uncommitted changes and new files count, files that git ignores do not. With --format markdown the output is a
comment for a pull request.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.views.changes import (
    AssistantChange,
    RevisionChanges,
    RevisionError,
    compare_with_revision,
)
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import assistant_option, output
from nexus_daemon.cli.assistant_option import ALL
from nexus_daemon.cli.folder import absolute, folder_of
from nexus_daemon.cli.surroundings import surroundings_of
from nexus_daemon.cli.tables import LEAST_PATH, Column, print_columns

EPILOG = """\
examples:
  nexus diff                                # with HEAD: what is not committed
  nexus diff origin/main --for claude-code
  nexus diff origin/main --format markdown > comment.md
  nexus diff origin/main --budget 500       # exit code 1 if an assistant reads over 500 tokens more

exit codes: 0 success; 1 an assistant reads more than --budget allows; 2 wrong usage
"""
FORMATS = ("text", "markdown", "json")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "revision",
        nargs="?",
        default="HEAD",
        metavar="BASE",
        help="a branch, tag or commit to compare with (default: HEAD)",
    )
    command.add_argument("path", nargs="?", default=".", help="a folder in a git repository (default: .)")
    command.add_argument(
        "--for",
        dest="assistant",
        choices=(*PROGRAMS, ALL),
        default=ALL,
        help="which assistant reads (default: all)",
    )
    command.add_argument("--format", choices=FORMATS, default="text", help="output format (default: text)")
    command.add_argument(
        "--budget",
        type=assistant_option.tokens,
        metavar="TOKENS",
        help="fail if the requests of an assistant grow by more than this",
    )


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.path))
    if folder is None:
        output.complain("diff", f"{options.path} does not exist.")
        return 2
    names = tuple(PROGRAMS) if options.assistant == ALL else (options.assistant,)
    try:
        changes = compare_with_revision(surroundings_of(folder), options.revision, names)
    except RevisionError as error:
        output.complain("diff", str(error))
        return 2
    if options.format == "json":
        output.json_value(
            {"base": options.revision, "assistants": [_values(change) for change in changes.assistants]}
        )
    elif options.format == "markdown":
        output.data(_markdown(changes))
    else:
        _print(changes)
    return report_growth("diff", changes.assistants, options.budget)


def report_growth(command: str, changes: Sequence[AssistantChange], budget: int | None) -> int:
    """Print a complaint about each assistant that reads too much more; return the exit code.

    Without a budget, nothing is too much, and the exit code is 0.
    """
    over = [] if budget is None else [change for change in changes if change.growth > budget]
    for change in over:
        text = f"{_title(change)} reads {_mark(change)}{change.growth:,} tokens more in every request"
        output.complain(command, f"{text}: more than the budget of {budget:,}.")
    return 1 if over else 0


def _title(change: AssistantChange) -> str:
    return change.after.assistant.title


def _mark(change: AssistantChange) -> str:
    return "" if change.after.exact else "≈"


def _rows(changes: Sequence[AssistantChange]) -> list[tuple[str, str, str, str]]:
    return [
        (
            _title(change),
            f"{_mark(change)}{change.before.total:,}",
            f"{_mark(change)}{change.after.total:,}",
            _signed(change.growth),
        )
        for change in changes
    ]


def _file_rows(changes: RevisionChanges) -> list[tuple[str, ...]]:
    """A row for each file that changed, with a column for each assistant."""
    by_assistant = [
        {file.path: _signed(file.after - file.before) for file in change.files}
        for change in changes.assistants
    ]
    paths = dict.fromkeys(path for by_path in by_assistant for path in by_path)
    return [
        (_relative_path(path, changes.top), *(by_path.get(path, "") for by_path in by_assistant))
        for path in paths
    ]


def _relative_path(path: str, top: str) -> str:
    """A path in one line, relative to the working tree if it is inside."""
    return visible_line(path.removeprefix(os.path.join(top, "")))


def _signed(growth: int) -> str:
    return f"{growth:+,}" if growth else "0"


def _print(changes: RevisionChanges) -> None:
    names = ("assistant", "before", "now", "change")
    _print_table(names, _rows(changes.assistants), least=None)
    rows = _file_rows(changes)
    if not rows:
        output.line("No request changes.")
        return
    _print_table(("file", *(_title(change) for change in changes.assistants)), rows, least=LEAST_PATH)


def _print_table(names: Sequence[str], rows: Sequence[Sequence[str]], *, least: int | None) -> None:
    """Print rows of figures; paths in the first cells are cut down to `least`."""
    first_column, *other_columns = zip(*rows, strict=True)
    columns = [Column(names[0], first_column, least=least, cut="start")]
    columns += [
        Column(name, cells, justify="right") for name, cells in zip(names[1:], other_columns, strict=True)
    ]
    print_columns(columns)


def _markdown(changes: RevisionChanges) -> str:
    assistants = changes.assistants
    rows = _file_rows(changes)
    if not rows:
        return "The requests of assistants do not change.\n"
    tables = (
        _markdown_table(("Assistant", "Before", "Now", "Change"), _rows(assistants)),
        _markdown_table(("File", *map(_title, assistants)), [(_code(row[0]), *row[1:]) for row in rows]),
    )
    return "\n".join((f"{_headline(assistants)}\n", *tables))


def _headline(changes: Sequence[AssistantChange]) -> str:
    """The largest growth in a sentence; where nothing grows, the largest saving."""
    change = max(changes, key=lambda candidate: candidate.growth)
    if change.growth <= 0:
        change = min(changes, key=lambda candidate: candidate.growth)
    if not change.growth:
        return "This change leaves the size of all requests as it is."
    amount = f"**{_mark(change)}{abs(change.growth):,}** tokens"
    verb = f"adds {amount} to" if change.growth > 0 else f"removes {amount} from"
    return f"This change {verb} every request of {_title(change)}."


def _markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ("---", *["--:"] * (len(names) - 1)), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _code(text: str) -> str:
    """A name as code in a cell of a table; others choose it."""
    return "`" + text.replace("`", "'").replace("|", "\\|") + "`"


def _values(change: AssistantChange) -> dict[str, Any]:
    return {
        "assistant": change.after.assistant.name,
        "version": change.after.assistant.version,
        "exact": change.after.exact,
        "before": change.before.total,
        "after": change.after.total,
        "files": [{"path": file.path, "before": file.before, "after": file.after} for file in change.files],
    }
