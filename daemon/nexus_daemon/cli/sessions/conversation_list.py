"""Runs `nexus sessions list`: the conversations of a folder, of Nexus and of all programs, kept or not."""

import argparse
from collections.abc import Sequence
from typing import Any

from nexus_context.assistants.sessions.prices import RequestPrice
from nexus_context.assistants.sessions.session_types import Folders, Place
from nexus_context.assistants.tracking import find_sessions
from nexus_context.assistants.tracking.conversations import (
    ListedConversation,
    belongs_to,
    matches,
    program_title,
    related_folders,
    sum_costs,
)
from nexus_context.disk import files
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.api import stored_sessions
from nexus_daemon.api.conversation import join, ledger_session_of, path_of
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import FolderClient, reading
from nexus_daemon.cli.folder import absolute, load_inputs, short_path
from nexus_daemon.cli.open_session import BEGINS_SESSIONS, note, workspace_of
from nexus_daemon.cli.sessions.assistants import LEAST_TITLE, UNSTATED, complain_of, short_ids
from nexus_daemon.cli.tables import Column, print_columns
from nexus_daemon.protocol import SessionInfo


def run_list(options: argparse.Namespace) -> int:
    if options.assistants:
        from nexus_daemon.cli.sessions import assistants

        return assistants.run_list(options)
    workspace = workspace_of(options.folder)
    root = None if options.all else workspace
    folders = folders_of(root)
    with reading("sessions", absolute(options.folder)) as client:
        stored_infos, place = list_stored(client), client.place()
    of_programs = find_sessions(place, folders)
    complain_of(of_programs)
    conversations = [
        conversation for conversation in join(stored_infos, of_programs) if belongs_to(conversation, folders)
    ]
    # a deleted folder may still have sessions
    if not (conversations or options.all or files.is_dir(str(absolute(options.folder)))):
        note(f"{options.folder} is not a folder.")
        return 2
    matching = [
        conversation
        for conversation in conversations
        if matches(conversation, options.program, options.since)
    ]
    if options.json:
        names = {conversation.kept for conversation in matching}
        infos = [
            session
            for session in stored_infos
            if ledger_session_of(session) in names and root in (None, path_of(session))
        ]
        output.json_value(
            {
                "sessions": [session_values(session, workspace) for session in infos],
                "conversations": [conversation_values(conversation) for conversation in matching],
                "total": _total(matching),
            }
        )
    elif matching:
        _print(matching, root)
    elif conversations:
        note("No conversation matches --program and --since.")
    else:
        note(_nothing(workspace, stored_infos, place, options))
    return 1 if of_programs.failures else 0


# ---------------------------------------------------------------- read


def list_stored(client: FolderClient, uri: str | None = None) -> Sequence[SessionInfo]:
    """Return the sessions of the ledger, of one folder or of all."""
    return client.ask(stored_sessions.list_sessions, protocol.ListParams(uri)).sessions


def folders_of(root: str | None) -> Folders:
    """Return the folders whose conversations belong to the folder `root`. None means all folders."""
    return None if root is None else related_folders(root, str(load_inputs().user_home))


def _nothing(
    workspace: str, stored_infos: Sequence[SessionInfo], place: Place, options: argparse.Namespace
) -> str:
    if options.program is not None:
        return f"There are no sessions of {program_title(options.program)}{'' if options.all else ' here'}."
    is_all = options.all
    elsewhere = set() if is_all else {path_of(session) for session in stored_infos}
    elsewhere |= set() if is_all else {session.folder for session in find_sessions(place).sessions}
    if not elsewhere and not place.reads_conversations:
        return "Nexus itself has no sessions yet."
    if not elsewhere:
        return f"There are no sessions yet. {BEGINS_SESSIONS}"
    folders = "1 other folder has" if len(elsewhere) == 1 else f"{len(elsewhere):,} other folders have"
    return f"{workspace} has no sessions; {folders}: see nexus sessions list --all."


# ---------------------------------------------------------------- print


def _print(conversations: Sequence[ListedConversation], root: str | None) -> None:
    several = len(conversations) > 1
    total = _total(conversations)
    tokens = f"{total['tokens']:,}" if several else ""
    columns = [
        Column("session", short_ids([conversation.short_name for conversation in conversations])),
        Column(
            "title",
            [_title(conversation) for conversation in conversations],
            least=LEAST_TITLE,
            footer=f"{len(conversations):,} conversations" if several else "",
        ),
        Column("program", [program_title(conversation.program) for conversation in conversations], worth=4),
        Column(
            "last turn",
            [output.local_time(conversation.last_turn) for conversation in conversations],
            worth=5,
        ),
        Column(
            "window",
            [tokens_of(conversation) for conversation in conversations],
            worth=6,
            justify="right",
            footer=tokens,
        ),
        Column(
            "cost",
            [dollars(conversation.cost) for conversation in conversations],
            worth=3,
            justify="right",
            footer=dollars(sum_costs(conversations)) if several else "",
        ),
        Column(
            "kept", ["no" if conversation.kept is None else "yes" for conversation in conversations], worth=2
        ),
    ]
    if any(conversation.folder != root for conversation in conversations):
        places = [
            "" if conversation.folder == root else short_path(conversation.folder or UNSTATED, root)
            for conversation in conversations
        ]
        columns.insert(3, Column("folder", places, worth=7 if root is None else 1, least=LEAST_TITLE))
    print_columns(columns)


def _title(conversation: ListedConversation) -> str:
    fork = "" if conversation.fork_of is None else f" (fork of {conversation.fork_of[:LEAST_TITLE]})"
    return visible_line(redact(conversation.title or UNSTATED) + fork)


def tokens_of(conversation: ListedConversation) -> str:
    """Return the tokens of a conversation's window as a text, marked ≈ if some of them are estimates."""
    if conversation.tokens is None:
        return UNSTATED
    return f"{'≈' if conversation.estimated else ''}{conversation.tokens:,}"


def dollars(cost: RequestPrice) -> str:
    """Return a cost as a text. It begins with “at least” if not all of the cost is known."""
    if cost.usd is None:
        return UNSTATED
    return f"{'at least ' if cost.lacks else ''}${cost.usd:,.2f}"


# ---------------------------------------------------------------- values for programs


def _total(conversations: Sequence[ListedConversation]) -> dict[str, Any]:
    cost = sum_costs(conversations)
    return {
        "conversations": len(conversations),
        "tokens": sum(conversation.tokens or 0 for conversation in conversations),
        "costUsd": cost.usd,
        "costLacks": cost.lacks,
    }


def conversation_values(conversation: ListedConversation) -> dict[str, Any]:
    """Return one conversation for JSON. `session` is its name in the ledger, `id` that of its program."""
    ledger_session, session = conversation.kept, conversation.session
    return {
        "program": conversation.program,
        "id": conversation.id,
        "session": None if ledger_session is None else ledger_session.name,
        "thread": None if ledger_session is None else ledger_session.thread,
        "title": None if conversation.title is None else redact(conversation.title),
        "folder": conversation.folder,
        "lastTurn": conversation.last_turn,
        "tokens": conversation.tokens,
        "estimated": conversation.estimated,
        "window": None if session is None else session.window,
        "costUsd": conversation.cost.usd,
        "costLacks": conversation.cost.lacks,
        "kept": ledger_session is not None,
        "path": None if session is None else session.path,
        "parent": conversation.parent,
        "forkOf": conversation.fork_of,
    }


def session_values(session: SessionInfo, workspace: str) -> dict[str, Any]:
    """Return a session for JSON, as in the result of nexus/session/list, with the path of its folder.

    If the path is not known, it is `workspace`.
    """
    return {
        "session": session.session,
        "workspace": path_of(session) or workspace,
        "thread": session.thread,
        "turns": session.turns,
        "messages": session.messages,
        "tokens": session.tokens,
        "created": session.created,
        "updated": session.updated,
        "agent": session.agent,
        "forkedFrom": session.forked_from,
        "origin": None if session.origin is None else _origin_values(session.origin),
    }


def _origin_values(origin: protocol.SessionOrigin) -> dict[str, str | None]:
    return {
        "assistant": origin.assistant,
        "id": origin.id,
        "path": origin.path,
        "parent": origin.parent,
        "parentSession": origin.parent_session,
    }
