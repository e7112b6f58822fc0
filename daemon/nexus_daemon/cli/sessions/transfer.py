"""Runs `nexus sessions export` and `import`: sessions to and from files."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from nexus_context.assistants.importing import importers, jsonl
from nexus_context.assistants.importing.importers import FileContents, Imported
from nexus_context.disk import files
from nexus_context.errors import Severity
from nexus_context.ledger import markdown
from nexus_context.ledger.errors import LedgerError
from nexus_context.text.visible import visible_line
from nexus_context.turn.models import model_of
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.folder import absolute
from nexus_daemon.cli.open_session import ledger_for, load_folder, note, workspace_of
from nexus_daemon.sessions.session_names import find_session

logger = logging.getLogger(__name__)

FORMATS = {
    "nexus": "a session of Nexus",
    "neutral": "messages",
    "openai": "OpenAI messages",
    "anthropic": "Anthropic messages",
    "claude-code": "a session of Claude Code",
    "tau-bench": "tau-bench records",
    "codex": "a session of Codex",
    "responses": "items of OpenAI's Responses API",
    "gemini": "Gemini contents",
    "gemini-cli": "a session of Gemini CLI",
    "pydantic-ai": "messages of pydantic-ai",
    "openhands": "events of OpenHands",
    "swe-agent": "a trajectory of SWE-agent",
    "vscode-chat": "a chat of VS Code",
    "copilot-cli": "a session of Copilot CLI",
    "opencode": "a session of opencode",
    "claude-web": "Claude's data export",
    "aider": "a history of aider",
}
MARKDOWN = (".md", ".markdown")
LONG = 200
"""Turns of a file from which an import shows its progress."""


# ---------------------------------------------------------------- export


def run_export(options: argparse.Namespace) -> int:
    path = None if options.output == "-" else options.output
    form = options.format or ("markdown" if (path or "").lower().endswith(MARKDOWN) else "jsonl")
    workspace = workspace_of(options.folder)
    with ledger_for(load_folder(options.folder)) as ledger:
        session = find_session(ledger, workspace, options.session)
        turns = ledger.turns(workspace, session.name)
        if form == "jsonl":
            pieces = jsonl.lines(session.name, turns, session.parameters, session.origin)
        else:
            pieces = markdown.pieces(session.name, turns, session.origin)
        if path is None:
            write = output.json_lines if form == "jsonl" else output.data
            for piece in pieces:
                write(piece)
            return 0
        try:
            _write(path, pieces, force=options.force)
        except FileExistsError:
            note(f"{path} already exists; use another name, or --force to overwrite it.")
            return 1
        except OSError as error:
            note(f"{path} cannot be written: {error.strerror or error}.")
            return 1
    note(f"{output.counted(session.head.seq, 'turn')} of {session.name!r} written to {path}.")
    return 0


def _write(path: str, pieces: Iterator[str], *, force: bool) -> None:
    """Write a file that only its owner can read; with `force` the old file stays until all is written."""
    if not force:
        _fill(path, pieces)
        return
    new_path = f"{path}.{os.getpid()}.new"
    _fill(new_path, pieces)
    try:
        os.replace(new_path, path)
    except OSError:
        os.unlink(new_path)
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
        note(f"{options.folder} is not a folder.")
        return 2
    snapshot = load_folder(options.folder)
    failed = False
    total: list[Imported] = []
    reports: list[dict[str, Any]] = []
    with ledger_for(snapshot, writes=True) as ledger:
        importer = importers.Importer(ledger, workspace, lambda model: model_of(snapshot, model)[1])
        for name in options.files:
            contents = _read(name)
            if contents is None:
                failed = True
                continue
            failed = failed or any(problem.severity is Severity.ERROR for problem in contents.problems)
            imported = _add(importer, name, contents)
            failed = failed or len(imported) < len(contents.sessions)
            if options.json:
                reports.append(_as_json(name, contents, imported))
            elif imported:
                _report(name, contents, imported)
            total += imported
    if options.json:
        output.json_value({"files": reports})
    elif len(options.files) > 1:
        output.line(f"{_summary(total)} of {output.counted(len(options.files), 'file')}.")
    return 1 if failed else 0


def read_contents(name: str) -> FileContents | None:
    """Read a file and print its problems. None if it has no session that can be read."""
    contents = _read(name)
    return contents if contents is not None and contents.sessions else None


def _read(name: str) -> FileContents | None:
    """Read a file and print its problems; None if it cannot be opened."""
    label = importers.STANDARD_INPUT if name == "-" else name
    if name == "-":
        data = sys.stdin.buffer.read(importers.LIMIT + 1)
    else:
        file_read = files.read_bytes(invocation.current().absolute(name), limit=importers.LIMIT)
        for problem in file_read.problems:
            note(f"{name}: {problem.message}")
        if file_read.status == "missing":
            note(f"{name} does not exist.")
        if file_read.data is None:
            return None
        data = file_read.data
    contents = importers.read(data, label)
    for problem, line in zip(contents.problems, contents.lines, strict=True):
        location = label if line is None else f"{label}:{line}"
        note(f"{location}: {problem.message}")
    return contents


def _add(importer: importers.Importer, name: str, contents: FileContents) -> list[Imported]:
    turns = sum(len(session.turns) for session in contents.sessions)
    imported: list[Imported] = []
    with _progress(os.path.basename(name), turns) as advance:
        for session in contents.sessions:
            try:
                imported.append(importer.add(session, advance))
            except LedgerError:
                raise
            except Exception as error:
                logger.debug("%s: the session %r", name, session.name, exc_info=True)
                reason = f"an error in Nexus ({type(error).__name__}: {str(error)[:200]})"
                note(
                    f"{name}: The session {session.name!r} is left out because of {reason}; please report it."
                )
    return imported


@contextmanager
def _progress(name: str, turns: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal for a long import."""
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


def _report(name: str, contents: FileContents, imported: Sequence[Imported]) -> None:
    label = importers.STANDARD_INPUT if name == "-" else visible_line(name)
    kind = FORMATS[contents.format or "neutral"]
    outcome = _outcome(imported[0]) if len(imported) == 1 else _summary(imported)
    output.line(f"{label}: {kind}, {outcome}.")


def _as_json(name: str, contents: FileContents, imported: Sequence[Imported]) -> dict[str, Any]:
    """Return the outcome of importing a file, as JSON values."""
    return {
        "file": importers.STANDARD_INPUT if name == "-" else name,
        "format": contents.format,
        "messages": sum(session.messages for session in contents.sessions),
        "leftOut": [
            {"reason": omission.reason, "count": omission.count, "text": str(omission)}
            for omission in contents.left_out
        ],
        "sessions": msgspec.to_builtins(imported),
        "problems": [
            {
                "line": line,
                "severity": problem.severity.name.lower(),
                "code": problem.code,
                "message": problem.message,
            }
            for problem, line in zip(contents.problems, contents.lines, strict=True)
        ],
    }


def _outcome(imported: Imported) -> str:
    if imported.outcome == "known":
        return f"already there as {imported.session!r}"
    how = "continued" if imported.outcome == "continued" else "imported as"
    turns, messages = output.counted(imported.turns, "turn"), output.counted(imported.messages, "message")
    return f"{how} {imported.session!r}: {turns}, {messages}"


def _summary(imported: Sequence[Imported]) -> str:
    written = [session for session in imported if session.outcome != "known"]
    parts = []
    for outcome, words in (("new", "imported"), ("continued", "continued"), ("known", "already there")):
        count = sum(session.outcome == outcome for session in imported)
        if count:
            parts.append(f"{output.counted(count, 'session')} {words}")
    if written:
        turns = output.counted(sum(session.turns for session in written), "turn")
        messages = output.counted(sum(session.messages for session in written), "message")
        parts.append(f"{turns} with {messages} written")
    return ", ".join(parts) or "nothing imported"
