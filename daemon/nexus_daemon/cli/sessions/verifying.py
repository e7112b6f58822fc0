"""`nexus sessions verify` and `backup`."""

import argparse

from nexus_context.ledger.records import Verification, Verified
from nexus_daemon.cli import output
from nexus_daemon.cli.check import absolute
from nexus_daemon.cli.sessions.labels import counted
from nexus_daemon.cli.sessions.open_session import accept, folder, ledger_for, say


def run_verify(options: argparse.Namespace) -> int:
    snapshot = folder(".")
    if options.accept is not None:
        replacement = str(absolute(options.accept)) if options.accept else None
        location, aside = accept(snapshot, replacement)
        say(f"{location} is now accepted as complete.")
        if aside is not None:
            say(f"The ledger that was there before is now {aside}.")
    with ledger_for(snapshot) as ledger:
        verification = ledger.verify()
        sound = verification.sound and not (ledger.persists and ledger.notice)
    if options.json:
        output.json_value(_as_json(verification, sound=sound))
    else:
        _print(verification)
    return 0 if sound else 1


def run_backup(options: argparse.Namespace) -> int:
    path = str(absolute(options.file))
    with ledger_for(folder("."), writes=True) as ledger:
        try:
            sessions = ledger.backup(path)
            whole = ledger.notice is None
        except FileExistsError:
            say(f"{options.file} exists already; give another name.")
            return 1
        except OSError as error:
            say(f"{options.file} cannot be written: {error.strerror or error}.")
            return 1
    output.line(f"{counted(sessions, 'session')} written to {options.file} and verified.")
    return 0 if whole else 1


def _print(verification: Verification) -> None:
    for line in verification.damage:
        output.line(f"the file: {line}")
    for session in verification.sessions:
        output.line(f"{_outcome(session)}: {session.session}, {session.workspace}")
    broken = sum(session.broken is not None for session in verification.sessions)
    total = counted(len(verification.sessions), "session")
    output.line(f"{total} verified: {f'{broken:,} broken' if broken else 'none is broken'}.")
    if verification.unchained:
        turns = counted(verification.unchained, "turn")
        output.line(f"{turns} from an earlier version of Nexus: only their messages have checksums.")
    if not verification.sound:
        say("nexus sessions salvage recovers what can still be read of a broken session.")


def _outcome(session: Verified) -> str:
    if session.broken is None:
        return f"ok, {counted(session.turns, 'turn')}"
    return f"broken at turn {session.broken:,} ({session.reason})"


def _as_json(verification: Verification, *, sound: bool) -> dict[str, object]:
    return {
        "sound": sound,
        "damage": list(verification.damage),
        "unchained": verification.unchained,
        "sessions": [
            {
                "workspace": session.workspace,
                "session": session.session,
                "turns": session.turns,
                "broken": session.broken,
                "reason": session.reason,
            }
            for session in verification.sessions
        ],
    }
