"""`nexus sessions fork`, `rename` and `delete`."""

import argparse
import sys

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Session
from nexus_context.ledger.store import Ledger
from nexus_context.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.open_session import find_session, ledger_for, load_folder, note, workspace_of


def run_fork(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    with ledger_for(load_folder(options.folder), writes=True) as ledger:
        session = find_session(ledger, workspace, options.session)
        turn = None if options.turn is None else _turn(ledger, session, options.turn)
        fork = ledger.fork(workspace, session.name, options.to, turn=turn)
    output.line(f"{fork.name!r} shares {output.counted(fork.head.seq, 'turn')} of {session.name!r}.")
    return 0


def _turn(ledger: Ledger, session: Session, turn: str) -> str:
    """The id of a turn, from its number or its id."""
    if not (turn.isascii() and turn.isdecimal()):
        return turn
    last = session.head.seq - int(turn) + 1
    if not 1 <= last <= session.head.seq:
        raise LedgerError(
            f"The session {session.name!r} has {session.head.seq:,} turns; there is no turn {turn}.",
            code="unknown-turn",
        )
    return next(iter(ledger.turns(session.workspace, session.name, last=last))).id


def run_rename(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    with ledger_for(load_folder(options.folder), writes=True) as ledger:
        session = find_session(ledger, workspace, options.session)
        ledger.rename(workspace, session.name, options.to)
    output.line(f"{session.name!r} is now {options.to!r}.")
    return 0


def run_delete(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    with ledger_for(load_folder(options.folder), writes=True) as ledger:
        sessions = [find_session(ledger, workspace, name) for name in dict.fromkeys(options.sessions)]
        if not options.yes:
            if not output.can_ask():
                note("delete asks for confirmation, which needs a terminal; use --yes to delete without it.")
                return 2
            if not _confirmed(sessions):
                note("Nothing was deleted.")
                return 1
        for session in sessions:
            ledger.delete(workspace, session.name)
            output.line(f"{session.name!r} is deleted.")
    return 0


def _confirmed(sessions: list[Session]) -> bool:
    for session in sessions:
        messages = output.counted(session.head.messages, "message")
        output.beside(
            f"  {visible_line(session.name)}: {messages}, changed {output.local_time(session.updated)}\n"
        )
    what = "this session" if len(sessions) == 1 else f"these {len(sessions):,} sessions"
    output.beside(f"Delete {what} for good? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
