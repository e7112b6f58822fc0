"""Runs `nexus sessions keep`: copies sessions of other assistants to the ledger before they are deleted."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nexus_context.assistants.mirror import FileOutcome, MirrorSummary, mirror_files
from nexus_context.disk import files
from nexus_context.ledger.errors import LedgerError
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, load_inputs, place_of
from nexus_daemon.cli.open_session import ledger_for, load_folder, note, workspace_of

LONG = 16 << 20
"""Bytes from which on progress is shown."""


def run_keep(options: argparse.Namespace) -> int:
    inputs, snapshot = load_inputs(), load_folder(options.folder)
    place = place_of(snapshot)
    if not place.reads_conversations:
        note(place.not_read)
        return 1
    folder = None if options.all else workspace_of(options.folder)
    with ledger_for(snapshot, writes=True) as ledger, _progress() as advance:
        try:
            summary = mirror_files(
                ledger,
                str(inputs.user_home),
                inputs.environ,
                folder=folder,
                assistant=options.assistant,
                on_progress=advance,
            )
        except LedgerError as error:
            raise LedgerError(
                f"{error} What was written before stays; the next nexus sessions keep continues there.",
                code=error.code,
            ) from error
    for file in summary.files:
        _report(file)
    if options.json:
        output.json_value(_values(summary))
    else:
        has_files = bool(summary.files or summary.unchanged)
        if folder is not None and not has_files and not files.is_dir(str(absolute(options.folder))):
            note(f"{options.folder} is not a folder.")
            return 2
        output.line(_summary_line(summary, folder))
    return 1 if any(file.failure or file.problems for file in summary.files) else 0


def _report(file: FileOutcome) -> None:
    """Print what could not be read of a file."""
    if file.failure is not None:
        note(f"{visible_line(file.path)}: {file.failure}.")
    for problem in file.problems:
        note(f"{visible_line(file.path)}: {problem}")


def _summary_line(summary: MirrorSummary, folder: str | None) -> str:
    if not summary.files and not summary.unchanged:
        where = "on this machine" if folder is None else f"in {visible_line(folder)}"
        text = (
            f"There is nothing to keep: Claude Code, Codex, opencode and Gemini CLI have no sessions {where}"
        )
        return f"{text}; start one of them there."
    parts = []
    for name, words in (("new", "kept"), ("continued", "continued"), ("forked", "continued as a fork")):
        count = summary.total(name)
        if count:
            parts.append(f"{output.counted(count, 'session')} {words}")
    if parts:
        turns = output.counted(summary.total("turns"), "turn")
        messages = output.counted(summary.total("messages"), "message")
        parts.append(f"{turns} with {messages} written")
    else:
        parts.append("Nothing is new")
    deleted = summary.total("deleted")
    if deleted:
        parts.append(f"{output.counted(deleted, 'session')} left out that you deleted here")
    if summary.unchanged:
        parts.append(f"{output.counted(summary.unchanged, 'file')} unchanged")
    failed = sum(file.failure is not None for file in summary.files)
    if failed:
        parts.append(f"{output.counted(failed, 'file')} not read")
    return f"{', '.join(parts)}."


def _values(summary: MirrorSummary) -> dict[str, Any]:
    """The outcome for programs."""
    return {
        "files": [
            {
                "assistant": file.assistant,
                "path": file.path,
                "new": file.new,
                "continued": file.continued,
                "forked": file.forked,
                "deleted": file.deleted,
                "turns": file.turns,
                "messages": file.messages,
                "problems": list(file.problems),
                "failure": file.failure,
            }
            for file in summary.files
        ],
        "unchanged": summary.unchanged,
        "bytes": summary.size,
    }


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal if there is much to read."""
    if not output.is_watched():
        yield lambda _done, _size: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.console(stderr=True), transient=True) as bar:
        tasks: list[TaskID] = []

        def advance(done: int, size: int) -> None:
            if size >= LONG:
                if not tasks:
                    tasks.append(bar.add_task("Reading sessions", total=size))
                bar.update(tasks[0], completed=done, total=size)

        yield advance
