"""`nexus sessions fork`, `rename`, `delete` and `salvage`."""

import argparse
import sys

from nexus_context import files
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Session
from nexus_context.ledger.store import Ledger
from nexus_context.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.check import absolute
from nexus_daemon.cli.sessions.labels import counted, local
from nexus_daemon.cli.sessions.open_session import folder, ledger_for, say, there, workspace_of


def run_fork(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    with ledger_for(folder(options.folder), writes=True) as ledger:
        session = there(ledger, workspace, options.session)
        turn = None if options.turn is None else _turn(ledger, session, options.turn)
        made = ledger.fork(workspace, session.name, options.to, turn=turn)
    turns = f"{made.head.seq:,} turn" + ("" if made.head.seq == 1 else "s")
    output.line(f"{made.name!r} shares {turns} of {session.name!r}.")
    return 0


def _turn(ledger: Ledger, session: Session, given: str) -> str:
    """The id of a turn, from its number or its id."""
    if not (given.isascii() and given.isdecimal()):
        return given
    last = session.head.seq - int(given) + 1
    if not 1 <= last <= session.head.seq:
        raise LedgerError(
            f"The session {session.name!r} has {session.head.seq:,} turns; there is no turn {given}.",
            code="unknown-turn",
        )
    return next(iter(ledger.turns(session.workspace, session.name, last=last))).id


def run_rename(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    with ledger_for(folder(options.folder), writes=True) as ledger:
        session = there(ledger, workspace, options.session)
        ledger.rename(workspace, session.name, options.to)
    output.line(f"{session.name!r} is {options.to!r} now.")
    return 0


def run_delete(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    with ledger_for(folder(options.folder), writes=True) as ledger:
        found = [there(ledger, workspace, name) for name in dict.fromkeys(options.sessions)]
        if not options.yes:
            if not output.can_ask():
                say("delete asks on a terminal only; give --yes to delete without being asked.")
                return 2
            if not _agreed(found):
                say("Nothing was deleted.")
                return 1
        for session in found:
            ledger.delete(workspace, session.name)
            output.line(f"{session.name!r} is deleted.")
    return 0


def _agreed(found: list[Session]) -> bool:
    for session in found:
        messages = counted(session.head.messages, "message")
        output.beside(f"  {visible_line(session.name)}: {messages}, changed {local(session.updated)}\n")
    what = "this session" if len(found) == 1 else f"these {len(found):,} sessions"
    output.beside(f"Delete {what} for good? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def run_salvage(options: argparse.Namespace) -> int:
    from nexus_context.ledger.salvage import salvage  # a reader of broken files: rarely needed

    path = absolute(options.broken)
    if not path.is_file():
        say(f"{options.broken} is no file; name the one that was set aside.")
        return 2
    workspace = workspace_of(options.folder)
    only = None if options.sessions is None else {(workspace, name) for name in options.sessions}
    with ledger_for(folder("."), writes=True) as ledger:
        if only is None and files.real_path(str(path)) == files.real_path(ledger.location):
            say(
                f"{options.broken} is the ledger in use; name the one that was set aside, or with --session "
                "NAME the sessions of this one that are damaged."
            )
            return 2
        saved = salvage(str(path), ledger, only=only)
    if not saved.turns and not saved.direct:
        what = "a session" if only is None else f"{', '.join(map(repr, options.sessions))} of {workspace}"
        say(f"There is nothing in {options.broken} that could be read as turns of {what}.")
        return 1
    output.line(f"{counted(saved.sessions, 'session')} with {counted(saved.turns, 'turn')} brought over.")
    if saved.damaged:
        output.line(f"{counted(saved.damaged, 'message')} of them not quite as written.")
    if saved.lost:
        output.line(f"{counted(saved.lost, 'message')} could not be read.")
    output.line(
        f"What was in {options.broken} is as it was; nexus sessions list --all shows what there is now."
    )
    missing = 0 if only is None else len(only) - saved.sessions
    if missing > 0:
        say(f"{counted(missing, 'session')} of {workspace} that you named cannot be found there.")
    return 1 if missing > 0 else 0
