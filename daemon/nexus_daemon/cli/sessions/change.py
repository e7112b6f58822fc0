"""Runs `nexus sessions fork`, `rename` and `delete`."""

import argparse
from collections.abc import Sequence

from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.api import session as handlers
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import writing
from nexus_daemon.cli.open_session import note


def run_fork(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        name, turn = client.find_session(options.session).session, options.turn
        if turn is not None and turn.isascii() and turn.isdecimal():
            turn = int(turn)
        client.ask(handlers.fork, protocol.ForkParams(client.uri, name, to=options.to, turn=turn))
        shared = client.find_session(options.to).turns
    output.line(f"{options.to!r} shares {output.counted(shared, 'turn')} of {name!r}.")
    return 0


def run_rename(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        name = client.find_session(options.session).session
        client.ask(handlers.rename, protocol.RenameParams(client.uri, name, to=options.to))
    output.line(f"{name!r} is now {options.to!r}.")
    return 0


def run_delete(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        named_sessions = (client.find_session(name) for name in options.sessions)
        sessions = {session.session: session for session in named_sessions}
        if not options.yes:
            if not output.can_ask():
                note("delete asks for confirmation, which needs a terminal; use --yes to delete without it.")
                return 2
            if not _confirmed(list(sessions.values())):
                note("Nothing was deleted.")
                return 1
        for name in sessions:
            client.ask(handlers.delete, protocol.SessionParams(client.uri, name))
            output.line(f"{name!r} is deleted.")
    return 0


def _confirmed(sessions: Sequence[protocol.SessionInfo]) -> bool:
    for session in sessions:
        messages = output.counted(session.messages, "message")
        output.beside(
            f"  {visible_line(session.session)}: {messages}, changed {output.local_time(session.updated)}\n"
        )
    subject = "this session" if len(sessions) == 1 else f"these {len(sessions):,} sessions"
    return output.says_yes(f"Delete {subject} for good?")
