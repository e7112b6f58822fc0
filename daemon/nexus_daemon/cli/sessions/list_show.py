"""`nexus sessions list`, `show` and `search`."""

import argparse
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.text import Text

from nexus_context import files
from nexus_context.conversation.compaction.receipt import opaque_provider
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.conversation.summary import readable
from nexus_context.ledger.records import Hit, Session, SessionOrigin, Turn
from nexus_context.ledger.rows import json_text
from nexus_context.ledger.search import AFTER, BEFORE
from nexus_context.ledger.search_query import expression
from nexus_context.redact import redact_arguments, redact_message
from nexus_context.tokens import SimpleTokenCounter
from nexus_context.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, short_path
from nexus_daemon.cli.open_session import (
    BEGINS_SESSIONS,
    find_session,
    ledger_for,
    load_folder,
    note,
    session_name,
    workspace_of,
)
from nexus_daemon.cli.tables import ROLE_COLOURS, Column, print_columns, print_sentence

LAST_TURNS = 20
"""Turns to print on a terminal without --last."""
LEAST_NAME = 16
"""Columns of a session's name to print, however narrow the terminal is."""
MOST_TEXT = 200
"""Code points of a message to print."""

_MATCH = re.compile(f"{BEFORE}([^{BEFORE}{AFTER}]*){AFTER}")


# ---------------------------------------------------------------- list


def run_list(options: argparse.Namespace) -> int:
    if options.assistants:
        from nexus_daemon.cli.sessions import assistants  # most lists are of our own sessions

        return assistants.run_list(options)
    workspace = workspace_of(options.folder)
    with ledger_for(load_folder(options.folder)) as ledger:
        sessions = ledger.sessions(None if options.all else workspace)
        # a deleted folder may still have sessions
        if not (sessions or options.all or files.is_dir(str(absolute(options.folder)))):
            note(f"{options.folder} is not a folder.")
            return 2
        if options.json:
            output.json_value({"sessions": [_session_values(session) for session in sessions]})
            return 0
        if not sessions:
            text = f"There are no sessions yet. {BEGINS_SESSIONS}"
            if not options.all and (others := {one.workspace for one in ledger.sessions()}):
                folders = "1 other folder has" if len(others) == 1 else f"{len(others):,} other folders have"
                text = f"{workspace} has no sessions; {folders}: see nexus sessions list --all."
            note(text)
            return 0
    _print_sessions(sessions, folders=options.all)
    return 0


def _print_sessions(sessions: Sequence[Session], *, folders: bool) -> None:
    several = len(sessions) > 1
    name = f"{len(sessions):,} sessions" if several else ""
    columns = [Column("session", [visible_line(one.name) for one in sessions], least=LEAST_NAME, footer=name)]
    if folders:
        places = [short_path(one.workspace) for one in sessions]
        columns.append(Column("folder", places, worth=6, least=LEAST_NAME))
    for title, counts, cells, worth in (
        ("turns", [one.head.seq for one in sessions], None, 3),
        ("messages", [one.head.messages for one in sessions], None, 2),
        ("tokens", [one.sent_tokens for one in sessions], [_tokens(one) for one in sessions], 5),
    ):
        total = f"{sum(counts):,}" if several else ""
        cells = cells or [f"{count:,}" for count in counts]
        columns.append(Column(title, cells, worth=worth, justify="right", footer=total))
    columns.append(Column("changed", [output.local_time(one.updated) for one in sessions], worth=4))
    if any(one.origin for one in sessions):
        origins = [visible_line(one.origin.assistant if one.origin else "") for one in sessions]
        columns.append(Column("from", origins, worth=1))
    if any(one.forked_from for one in sessions):
        forks = [visible_line(one.forked_from or "") for one in sessions]
        columns.append(Column("forked from", forks, worth=0, least=LEAST_NAME))
    print_columns(columns)


def _tokens(session: Session) -> str:
    """What the next request would send, marked ≈ if some of it was not counted by a tokenizer."""
    mark = "≈" if SimpleTokenCounter.name in session.counters else ""
    return f"{mark}{session.sent_tokens:,}"


def _session_values(session: Session) -> dict[str, Any]:
    """As in the result of nexus/session/list, with the folder."""
    head = session.head
    return {
        "session": session.name,
        "workspace": session.workspace,
        "thread": head.thread,
        "turns": head.seq,
        "messages": head.messages,
        "tokens": session.sent_tokens,
        "created": session.created,
        "updated": session.updated,
        "agent": session.agent,
        "forkedFrom": session.forked_from,
        "origin": None if session.origin is None else _origin_values(session.origin),
    }


def _origin_values(origin: SessionOrigin) -> dict[str, str | None]:
    return {
        "assistant": origin.assistant,
        "id": origin.id,
        "path": origin.path,
        "parent": origin.parent,
        "parentSession": origin.parent_session,
    }


# ---------------------------------------------------------------- show


def run_show(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    out = output.console()
    with ledger_for(load_folder(options.folder)) as ledger:
        session = find_session(ledger, workspace, options.session)
        if options.json:
            turns = ledger.turns(workspace, session.name, last=options.last)
            output.json_value(
                {"session": _session_values(session), "turns": [_turn_values(turn) for turn in turns]}
            )
            return 0
        last = options.last or (LAST_TURNS if out.is_terminal else None)
        _print_about(session)
        hidden = 0 if last is None else max(0, session.head.seq - last)
        if hidden:
            print_sentence(
                out, Text(f"… {output.counted(hidden, 'earlier turn')}: --last N shows more", "dim")
            )
        for turn in ledger.turns(workspace, session.name, last=last):
            _print_turn(turn)
    return 0


def _print_about(session: Session) -> None:
    head = session.head
    out = output.console()
    print_sentence(out, Text(visible_line(session.name), "bold"))
    counts = f"{output.counted(head.seq, 'turn')}, {output.counted(head.messages, 'message')}, "
    counts += f"{_tokens(session)} {'token' if session.sent_tokens == 1 else 'tokens'}"
    print_sentence(
        out,
        f"{counts}; begun {output.local_time(session.created)}, changed {output.local_time(session.updated)}",
    )
    if session.forked_from:
        print_sentence(out, f"forked from {visible_line(session.forked_from)}")
    if session.origin is not None:
        _print_origin(session.origin)
    out.print()


def _print_origin(origin: SessionOrigin) -> None:
    out = output.console()
    print_sentence(out, f"kept from {origin.assistant}: {visible_line(origin.id)}")
    if origin.parent is not None:
        above = origin.parent if origin.parent_session is None else repr(visible_line(origin.parent_session))
        print_sentence(out, f"a sub-agent of {visible_line(above)}")
    print_sentence(out, Text(visible_line(origin.path), "dim"))


def _print_turn(turn: Turn) -> None:
    out = output.console()
    model = f", {visible_line(turn.model)}" if turn.model else ""
    kind = {"query": "", "compaction": _compaction(turn), "undo": ", a compaction undone"}[turn.type]
    print_sentence(out, Text(f"turn {turn.seq:,}, {output.local_time(turn.created)}{model}{kind}", "dim"))
    counts = turn.counts or (None,) * len(turn.messages)
    for message, tokens in zip(turn.messages, counts, strict=True):
        line = Text.assemble(
            (f"{message.role:>11}", ROLE_COLOURS[message.role]),
            f"{'' if tokens is None else f'{tokens:,}':>9}  ",
            _line(message),
        )
        out.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _compaction(turn: Turn) -> str:
    provider = opaque_provider(turn.receipt)
    return ", a compaction" if provider is None else f", compacted by {visible_line(provider)}"


def _turn_values(turn: Turn) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(turn)
    return values


def _line(message: Message) -> str:
    """A message in one line: the beginning of its text, its other parts, its calls."""
    words = [_beginning(text_of(readable(message)))]
    content = content_of(message)
    if isinstance(content, list):
        kinds = (part.get("type", "part") if isinstance(part, dict) else "part" for part in content)
        words += [f"[{kind}]" for kind in kinds if kind != "text"]
    for call in message.tool_calls:
        arguments = redact_arguments(call.arguments)
        encoded = arguments if isinstance(arguments, str) else json_text(arguments)
        words.append(f"→ {call.name} {_beginning(encoded)}")
    return visible_line(" ".join(filter(None, words))) or "(empty)"


def _beginning(text: str) -> str:
    """The beginning of a text without secrets, in one line."""
    line = " ".join(redact_message(text[: 8 * MOST_TEXT])[: 4 * MOST_TEXT].split())
    return line if len(line) <= MOST_TEXT else line[:MOST_TEXT].rstrip() + " …"


# ---------------------------------------------------------------- search


def run_search(options: argparse.Namespace) -> int:
    workspace = None if options.all else workspace_of(options.folder)
    query = " ".join(options.query)
    if expression(query) is None:
        note(f"The query {query!r} has no word to search for.")
        return 2
    with ledger_for(load_folder(options.folder)) as ledger:
        if options.session is not None:
            options.session = session_name(ledger, workspace, options.session)
        hits = ledger.pages.search(query, workspace=workspace, session=options.session, limit=options.limit)
    if options.json:
        output.json_value({"hits": [msgspec.to_builtins(hit) for hit in hits]})
        return 0
    if not hits:
        where = "" if options.all else f" in {workspace}; --all searches the sessions of all folders"
        note(f"No message matches {query!r}{where}.")
    for hit in hits:
        _print_hit(hit, folder=options.all)
    return 0


def _print_hit(hit: Hit, *, folder: bool) -> None:
    out = output.console()
    head = Text.assemble(
        (visible_line(hit.session), "bold"),
        f", turn {hit.seq:,}, ",
        (hit.role, ROLE_COLOURS.get(hit.role, "")),
        (f", {output.local_time(hit.created)}", "dim"),
        (f", from {visible_line(hit.assistant)}" if hit.assistant else "", "dim"),
        (f", {visible_line(hit.workspace)}" if folder else "", "dim"),
    )
    print_sentence(out, head)
    snippet = visible_line(" ".join(hit.snippet.split()))
    print_sentence(out, Text("  ") + (_marked(snippet) if out.is_terminal else Text(snippet)))


def _marked(snippet: str) -> Text:
    """The snippet with colour instead of marks."""
    pieces = _MATCH.split(snippet)
    return Text.assemble(*((piece, "bold red" if index % 2 else "") for index, piece in enumerate(pieces)))
