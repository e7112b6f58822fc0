"""`nexus sessions fork`, `rename` and `delete`."""

import argparse
import sys
from collections.abc import Sequence

from nexus_context.ledger.errors import LedgerError
from nexus_context.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.api import session as handlers
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import FolderClient, writing
from nexus_daemon.cli.open_session import note


def run_fork(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        name = client.session_named(options.session)
        turns, turn = _info(client, name).turns, options.turn
        if turn is not None and turn.isascii() and turn.isdecimal():
            if not 1 <= int(turn) <= turns:
                raise LedgerError(
                    f"The session {name!r} has {output.counted(turns, 'turn')}; there is no turn {turn}.",
                    code="unknown-turn",
                )
            turn = client.turn_id(name, turns - int(turn) + 1)
        client.ask(handlers.fork, protocol.ForkParams(client.uri, name, to=options.to, turn=turn))
        shared = _info(client, options.to).turns
    output.line(f"{options.to!r} shares {output.counted(shared, 'turn')} of {name!r}.")
    return 0


def run_rename(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        name = client.session_named(options.session)
        client.ask(handlers.rename, protocol.RenameParams(client.uri, name, to=options.to))
    output.line(f"{name!r} is now {options.to!r}.")
    return 0


def run_delete(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        names = dict.fromkeys(client.session_named(name) for name in options.sessions)
        if not options.yes:
            if not output.can_ask():
                note("delete asks for confirmation, which needs a terminal; use --yes to delete without it.")
                return 2
            if not _confirmed([_info(client, name) for name in names]):
                note("Nothing was deleted.")
                return 1
        for name in names:
            client.ask(handlers.delete, protocol.SessionParams(client.uri, name))
            output.line(f"{name!r} is deleted.")
    return 0


def _info(client: FolderClient, name: str) -> protocol.SessionInfo:
    listed = client.ask(handlers.list_sessions, protocol.FolderParams(client.uri))
    return next(one for one in listed.sessions if one.session == name)


def _confirmed(sessions: Sequence[protocol.SessionInfo]) -> bool:
    for session in sessions:
        messages = output.counted(session.messages, "message")
        output.beside(
            f"  {visible_line(session.session)}: {messages}, changed {output.local_time(session.updated)}\n"
        )
    what = "this session" if len(sessions) == 1 else f"these {len(sessions):,} sessions"
    output.beside(f"Delete {what} for good? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
