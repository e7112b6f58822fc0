"""`nexus sessions export` and `import`: sessions to and from files."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nexus_context import assembly, files
from nexus_context.errors import Severity
from nexus_context.ledger import importers, jsonl, markdown
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.importers import FileContents, Imported
from nexus_context.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.check import absolute
from nexus_daemon.cli.sessions.labels import counted
from nexus_daemon.cli.sessions.open_session import folder, ledger_for, say, there, workspace_of

logger = logging.getLogger(__name__)

FORMATS = {
    "nexus": "a session of Nexus",
    "neutral": "messages",
    "openai": "OpenAI messages",
    "anthropic": "Anthropic messages",
    "claude-code": "a session of Claude Code",
    "tau-bench": "tau-bench records",
}
MARKDOWN = (".md", ".markdown")
LONG = 200
"""Turns of a file from which on an import shows its progress."""


# ---------------------------------------------------------------- export


def run_export(options: argparse.Namespace) -> int:
    path = None if options.output == "-" else options.output
    form = options.format or ("markdown" if (path or "").lower().endswith(MARKDOWN) else "jsonl")
    workspace = workspace_of(options.folder)
    with ledger_for(folder(options.folder)) as ledger:
        session = there(ledger, workspace, options.session)
        turns = ledger.turns(workspace, session.name)
        write = jsonl.lines if form == "jsonl" else markdown.pieces
        if path is None:
            _print(write(session.name, turns), form)
            return 0
        try:
            _write(path, write(session.name, turns), force=options.force)
        except FileExistsError:
            say(f"{path} exists already; give another name, or --force to overwrite it.")
            return 1
        except OSError as error:
            say(f"{path} cannot be written: {error.strerror or error}.")
            return 1
    say(f"{counted(session.head.seq, 'turn')} of {session.name!r} written to {path}.")
    return 0


def _print(pieces: Iterator[str], form: str) -> None:
    write = output.json_lines if form == "jsonl" else output.data
    for piece in pieces:
        write(piece)


def _write(path: str, pieces: Iterator[str], *, force: bool) -> None:
    """Write a file that only its owner may read; with `force` what was there stays until all is written."""
    if not force:
        _fill(path, pieces)
        return
    fresh = f"{path}.{os.getpid()}.new"
    _fill(fresh, pieces)
    try:
        os.replace(fresh, path)
    except OSError:
        os.unlink(fresh)
        raise


def _fill(path: str, pieces: Iterator[str]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.writelines(pieces)
    except BaseException:
        os.unlink(path)
        raise


# ---------------------------------------------------------------- import


def run_import(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    if not files.is_dir(str(absolute(options.folder))):
        say(f"{options.folder} is not a folder.")
        return 2
    snapshot = folder(options.folder)
    failed = False
    done: list[Imported] = []
    with ledger_for(snapshot, writes=True) as ledger:
        importer = importers.Importer(ledger, workspace, lambda model: assembly.model_of(snapshot, model)[1])
        for name in options.files:
            contents = _read(name)
            if contents is None or any(one.severity is Severity.ERROR for one in contents.problems):
                failed = True
            if contents is not None:
                made = _add(importer, name, contents)
                failed = failed or len(made) < len(contents.sessions)
                if made:
                    _report(name, contents, made)
                done += made
    if len(options.files) > 1:
        output.line(f"{_summary(done)} of {counted(len(options.files), 'file')}.")
    return 1 if failed else 0


def _read(name: str) -> FileContents | None:
    """What a file holds; what is wrong with it is said. None if nothing of it can be read."""
    shown = importers.STANDARD_INPUT if name == "-" else name
    if name == "-":
        data = sys.stdin.buffer.read(importers.LIMIT + 1)
    else:
        found = files.read_bytes(os.path.abspath(name), limit=importers.LIMIT)
        for problem in found.problems:
            say(f"{name}: {problem.message}")
        if found.status == "missing":
            say(f"{name} does not exist.")
        if found.data is None:
            return None
        data = found.data
    contents = importers.read(data, shown)
    for problem, line in zip(contents.problems, contents.lines, strict=True):
        place = shown if line is None else f"{shown}:{line}"
        say(f"{place}: {problem.message}")
    return contents if contents.sessions else None


def _add(importer: importers.Importer, name: str, contents: FileContents) -> list[Imported]:
    turns = sum(len(found.turns) for found in contents.sessions)
    added: list[Imported] = []
    with _progress(os.path.basename(name), turns) as told:
        for found in contents.sessions:
            try:
                added.append(importer.add(found, told))
            except LedgerError:
                raise
            except Exception as error:
                logger.debug("%s: the session %r", name, found.name, exc_info=True)
                because = f"because of an error in Nexus ({type(error).__name__}: {str(error)[:200]})"
                left_out = f"The session {found.name!r} cannot be imported, {because}."
                say(f"{name}: {left_out} It is left out; please report it.")
    return added


@contextmanager
def _progress(name: str, turns: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, beside the output, for what takes a while."""
    if turns < LONG or not output.is_watched():
        yield lambda _: None
        return
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("turns"))
    with Progress(
        *columns, TimeRemainingColumn(), console=output.console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(escape(visible_line(name)), total=turns)
        yield lambda count: bar.advance(task, count)


def _report(name: str, contents: FileContents, made: Sequence[Imported]) -> None:
    shown = importers.STANDARD_INPUT if name == "-" else visible_line(name)
    kind = FORMATS[contents.format or "neutral"]
    if len(made) == 1:
        output.line(f"{shown}: {kind}, {_one(made[0])}.")
    else:
        output.line(f"{shown}: {kind}, {_summary(made)}.")


def _one(made: Imported) -> str:
    if made.outcome == "known":
        return f"is there already as {made.session!r}"
    how = "continued" if made.outcome == "continued" else "imported as"
    return f"{how} {made.session!r}: {counted(made.turns, 'turn')}, {counted(made.messages, 'message')}"


def _summary(made: Sequence[Imported]) -> str:
    written = [one for one in made if one.outcome != "known"]
    said = []
    for outcome, words in (("new", "imported"), ("continued", "continued"), ("known", "there already")):
        count = sum(one.outcome == outcome for one in made)
        if count:
            said.append(f"{counted(count, 'session')} {words}")
    if written:
        turns, messages = (
            sum(each) for each in zip(*((one.turns, one.messages) for one in written), strict=True)
        )
        said.append(f"{counted(turns, 'turn')} with {counted(messages, 'message')} written")
    return ", ".join(said) or "nothing imported"
