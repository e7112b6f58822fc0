"""Runs `nexus sessions verify`, `backup`, `restore` and `salvage`, which keep the ledger whole."""

import argparse
import re

import msgspec

from nexus_context.disk import files
from nexus_context.ledger import daily_backups
from nexus_context.ledger.location import place
from nexus_context.ledger.records import Verification, Verified
from nexus_context.ledger.restore import restore
from nexus_context.ledger.salvage import salvage
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.folder import absolute
from nexus_daemon.cli.open_session import accept, check_settings, ledger_for, load_folder, note, workspace_of

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def run_verify(options: argparse.Namespace) -> int:
    snapshot = load_folder(".")
    if options.accept is not None:
        replacement = str(absolute(options.accept)) if options.accept else None
        location, aside = accept(snapshot, replacement)
        note(f"{location} is now accepted as complete.")
        if aside is not None:
            note(f"The previous ledger is now {aside}.")
    with ledger_for(snapshot) as ledger:
        verification = ledger.upkeep.verify()
        is_sound = verification.sound and not (ledger.persists and ledger.notice)
    if options.json:
        output.json_value(
            {
                "sound": is_sound,
                "damage": list(verification.damage),
                "unchained": verification.unchained,
                "sessions": [msgspec.to_builtins(session) for session in verification.sessions],
            }
        )
    else:
        _print(verification)
    return 0 if is_sound else 1


def run_backup(options: argparse.Namespace) -> int:
    path = str(absolute(options.file))
    with ledger_for(load_folder("."), writes=True) as ledger:
        try:
            sessions = ledger.upkeep.backup(path)
            is_complete = ledger.notice is None
        except FileExistsError:
            note(f"{options.file} exists already; give another name.")
            return 1
        except OSError as error:
            note(f"{options.file} cannot be written: {error.strerror or error}.")
            return 1
    output.line(f"{output.counted(sessions, 'session')} written to {options.file} and verified.")
    return 0 if is_complete else 1


def run_restore(options: argparse.Namespace) -> int:
    snapshot = load_folder(".")
    check_settings(snapshot, writes=True)
    path, environ = snapshot.effective.get("/ledger/path"), invocation.current().environ
    if options.list:
        backups = daily_backups.list_backups(place(path, environ))
        if options.json:
            output.json_value([backup._asdict() for backup in backups])
        else:
            for backup in backups:
                output.line(f"{backup.day}  {backup.path}")
        return 0
    backup_name = options.backup
    if backup_name is not None and not _DAY.fullmatch(backup_name):
        backup_name = str(absolute(backup_name))
    restored = restore(path, environ, backup_name)
    if options.json:
        output.json_value(msgspec.to_builtins(restored))
        return 0
    output.line(f"{output.counted(restored.sessions, 'session')} restored from {restored.backup}.")
    for turns in restored.missing:
        count = turns.last - turns.first + 1
        numbers = f"{turns.first:,}–{turns.last:,}" if count > 1 else f"{turns.first:,}"
        are = "turns are" if count > 1 else "turn is"
        output.line(
            f"{turns.session}, {turns.workspace}: {count:,} {are} missing in the backup, or cut ({numbers})."
        )
    for ledger, writes in restored.unread:
        write_note = "" if writes is None else f"; {output.counted(writes, 'write')} came after the backup"
        output.line(f"{ledger} could not be read{write_note}.")
    if not restored.missing and not restored.unread:
        output.line("No turn is missing.")
    if restored.previous is not None:
        note(f"The previous ledger is now {restored.previous}; nexus sessions salvage copies what it holds.")
    return 0


def run_salvage(options: argparse.Namespace) -> int:
    path = absolute(options.broken)
    if not path.is_file():
        note(f"{options.broken} is not a file; name the ledger that was set aside.")
        return 2
    workspace = workspace_of(options.folder)
    only = None if options.sessions is None else {(workspace, name) for name in options.sessions}
    with ledger_for(load_folder("."), writes=True) as ledger:
        if only is None and files.real_path(str(path)) == files.real_path(ledger.location):
            note(
                f"{options.broken} is the ledger in use; name the one that was set aside, or use --session "
                "NAME to recover damaged sessions of this one."
            )
            return 2
        saved = salvage(str(path), ledger, only=only)
    copied = [session for session in saved.sessions if session.turns]
    if not copied and not saved.direct:
        names = ", ".join(repr(name) for _, name in sorted(only or ()))
        session_names = f"{names} of {workspace}" if only else "a session"
        note(f"{options.broken} has nothing that can be read as turns of {session_names}.")
        return 1
    turns = output.counted(sum(session.turns for session in copied), "turn")
    output.line(f"{output.counted(len(copied), 'session')} with {turns} recovered.")
    for session in saved.sessions:
        if session.broken is not None:
            output.line(
                f"{session.session}, {session.workspace}: broken at turn {session.broken.seq:,} "
                f"({session.broken.reason}); {output.counted(session.lost, 'turn')} could not be read."
            )
    output.line(f"{options.broken} is unchanged; nexus sessions list --all shows the recovered sessions.")
    missing = (only or set()) - {(session.workspace, session.session) for session in saved.sessions}
    if missing:
        note(
            f"{output.counted(len(missing), 'session')} of {workspace} that you named cannot be found there."
        )
    return 1 if missing else 0


def _print(verification: Verification) -> None:
    for line in verification.damage:
        output.line(f"the file: {line}")
    for session in verification.sessions:
        output.line(f"{_outcome(session)}: {session.session}, {session.workspace}")
    broken = sum(session.broken is not None for session in verification.sessions)
    total = output.counted(len(verification.sessions), "session")
    output.line(f"{total} verified: {f'{broken:,} broken' if broken else 'none is broken'}.")
    if verification.unchained:
        turns = output.counted(verification.unchained, "turn")
        output.line(f"{turns} from an earlier version of Nexus: only their messages have checksums.")
    if not verification.sound:
        note("nexus sessions salvage recovers what can still be read of a broken session.")


def _outcome(session: Verified) -> str:
    if session.broken is None:
        return f"ok, {output.counted(session.turns, 'turn')}"
    return f"broken at turn {session.broken:,} ({session.reason})"
