"""`nexus sessions list`, `show` and `search`."""

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from rich.text import Text

from nexus_context.conversation.compaction.receipt import opaque_provider
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.conversation.summary import readable
from nexus_context.disk import files
from nexus_context.ledger.rows import json_text
from nexus_context.ledger.search import AFTER, BEFORE
from nexus_context.ledger.search_query import expression
from nexus_context.text.redact import redact_arguments, redact_message
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.api import stored_sessions as handlers
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import FolderClient, reading
from nexus_daemon.cli.folder import absolute, short_path
from nexus_daemon.cli.open_session import BEGINS_SESSIONS, note, workspace_of
from nexus_daemon.cli.tables import ROLE_COLOURS, Column, print_columns, print_sentence
from nexus_daemon.lsp import convert
from nexus_daemon.protocol import SessionInfo

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
    with reading("sessions", absolute(options.folder)) as client:
        sessions = _listed(client, None if options.all else client.uri)
        # a deleted folder may still have sessions
        if not (sessions or options.all or files.is_dir(str(absolute(options.folder)))):
            note(f"{options.folder} is not a folder.")
            return 2
        if options.json:
            output.json_value({"sessions": [_session_values(one, workspace) for one in sessions]})
            return 0
        if not sessions:
            text = f"There are no sessions yet. {BEGINS_SESSIONS}"
            if not options.all and (others := {one.workspace_folder for one in _listed(client, None)}):
                folders = "1 other folder has" if len(others) == 1 else f"{len(others):,} other folders have"
                text = f"{workspace} has no sessions; {folders}: see nexus sessions list --all."
            note(text)
            return 0
    _print_sessions(sessions, folders=options.all)
    return 0


def _listed(client: FolderClient, uri: str | None) -> Sequence[SessionInfo]:
    return client.ask(handlers.list_sessions, protocol.ListParams(uri)).sessions


def _print_sessions(sessions: Sequence[SessionInfo], *, folders: bool) -> None:
    several = len(sessions) > 1
    name = f"{len(sessions):,} sessions" if several else ""
    columns = [
        Column("session", [visible_line(one.session) for one in sessions], least=LEAST_NAME, footer=name)
    ]
    if folders:
        places = [short_path(_path(one.workspace_folder or "")) for one in sessions]
        columns.append(Column("folder", places, worth=6, least=LEAST_NAME))
    for title, counts, cells, worth in (
        ("turns", [one.turns for one in sessions], None, 3),
        ("messages", [one.messages for one in sessions], None, 2),
        ("tokens", [one.tokens for one in sessions], [_tokens(one) for one in sessions], 5),
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


def _tokens(session: SessionInfo) -> str:
    """What the next request would send, marked ≈ if some of it was not counted by a tokenizer."""
    return f"{'≈' if session.estimated else ''}{session.tokens:,}"


def _path(uri: str) -> str:
    return convert.uri_to_path(uri) or uri


def _session_values(session: SessionInfo, workspace: str) -> dict[str, Any]:
    """As in the result of nexus/session/list, with the path of the folder, by default the `workspace`."""
    uri = session.workspace_folder
    return {
        "session": session.session,
        "workspace": workspace if uri is None else _path(uri),
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


# ---------------------------------------------------------------- show


def run_show(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    out = output.console()
    last = options.last or (LAST_TURNS if out.is_terminal and not options.json else None)
    with reading("sessions", absolute(options.folder)) as client:
        session = client.find_session(options.session)
        hidden = 0 if last is None else max(0, session.turns - last)
        turns = _turns(client, session.session, first=hidden + 1)
        if options.json:
            values = [msgspec.to_builtins(turn) for turn in turns]
            output.json_value({"session": _session_values(session, workspace), "turns": values})
            return 0
        _print_about(session)
        if hidden:
            earlier = output.counted(hidden, "earlier turn")
            print_sentence(out, Text(f"… {earlier}: --last N shows more", "dim"))
        for turn in turns:
            _print_turn(turn)
    return 0


def _turns(client: FolderClient, session: str, *, first: int) -> Iterator[protocol.StoredTurn]:
    """The turns from one on, page by page: a conversation may be larger than memory."""
    while True:
        page = client.ask(handlers.turns, protocol.TurnsParams(client.uri, session, first=first)).turns
        yield from page
        if not page:
            return
        first = page[-1].seq + 1


def _print_about(session: SessionInfo) -> None:
    out = output.console()
    print_sentence(out, Text(visible_line(session.session), "bold"))
    counts = f"{output.counted(session.turns, 'turn')}, {output.counted(session.messages, 'message')}, "
    counts += f"{_tokens(session)} {'token' if session.tokens == 1 else 'tokens'}"
    print_sentence(
        out,
        f"{counts}; begun {output.local_time(session.created)}, changed {output.local_time(session.updated)}",
    )
    if session.forked_from:
        print_sentence(out, f"forked from {visible_line(session.forked_from)}")
    if session.origin is not None:
        _print_origin(session.origin)
    out.print()


def _print_origin(origin: protocol.SessionOrigin) -> None:
    out = output.console()
    print_sentence(out, f"kept from {origin.assistant}: {visible_line(origin.id)}")
    if origin.parent is not None:
        above = origin.parent if origin.parent_session is None else repr(visible_line(origin.parent_session))
        print_sentence(out, f"a sub-agent of {visible_line(above)}")
    print_sentence(out, Text(visible_line(origin.path), "dim"))


def _print_turn(turn: protocol.StoredTurn) -> None:
    out = output.console()
    model = f", {visible_line(turn.model)}" if turn.model else ""
    kind = {"query": "", "compaction": _compaction(turn), "undo": ", a compaction undone"}[turn.type]
    print_sentence(out, Text(f"turn {turn.seq:,}, {output.local_time(turn.created)}{model}{kind}", "dim"))
    counts: Sequence[int | None] = turn.counts or [None] * len(turn.messages)
    for message, tokens in zip(turn.messages, counts, strict=True):
        line = Text.assemble(
            (f"{message.role:>11}", ROLE_COLOURS[message.role]),
            f"{'' if tokens is None else f'{tokens:,}':>9}  ",
            _line(message),
        )
        out.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _compaction(turn: protocol.StoredTurn) -> str:
    provider = opaque_provider(turn.receipt)
    return ", a compaction" if provider is None else f", compacted by {visible_line(provider)}"


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
    query = " ".join(options.query)
    if expression(query) is None:
        note(f"The query {query!r} has no word to search for.")
        return 2
    with reading("sessions", absolute(options.folder)) as client:
        session, uri = options.session, None if options.all else client.uri
        if session is not None and uri is not None:
            session = client.find_session(session).session
        params = protocol.SearchParams(
            query=query, workspace_folder=uri, session=session, limit=options.limit
        )
        hits = client.ask(handlers.search, params).hits
        found = {hit.session for hit in hits}
        named = [] if session is not None else [one for one in _listed(client, uri) if _is_named(one, query)]
        named = [one for one in named if one.session not in found and one.forked_from is None]
    if options.json:
        sessions = [_session_values(one, _path(one.workspace_folder or "")) for one in named]
        output.json_value({"hits": [_hit_values(hit) for hit in hits], "sessions": sessions})
        return 0
    for one in named:
        print_sentence(output.console(), Text.assemble((visible_line(one.session), "bold"), ", by its name"))
    if not hits and not named:
        folder = workspace_of(options.folder)
        where = "" if options.all else f" in {folder}; --all searches the sessions of all folders"
        note(f"No message matches {query!r}{where}.")
    for hit in hits:
        _print_hit(hit, folder=options.all)
    return 0


def _is_named(session: SessionInfo, query: str) -> bool:
    """Whether the name of a session has all words of a query."""
    name = session.session.casefold()
    return all(word.casefold() in name for word in query.split())


def _hit_values(hit: protocol.SearchHit) -> dict[str, Any]:
    """As in the result of nexus/session/search, with the path of the folder."""
    values = msgspec.structs.asdict(hit)
    del values["thread"]
    return {"workspace": _path(values.pop("workspace_folder")), **values}


def _print_hit(hit: protocol.SearchHit, *, folder: bool) -> None:
    out = output.console()
    head = Text.assemble(
        (visible_line(hit.session), "bold"),
        f", turn {hit.seq:,}, ",
        (hit.role, ROLE_COLOURS.get(hit.role, "")),
        (f", {output.local_time(hit.created)}", "dim"),
        (f", from {visible_line(hit.assistant)}" if hit.assistant else "", "dim"),
        (f", {visible_line(_path(hit.workspace_folder))}" if folder else "", "dim"),
    )
    print_sentence(out, head)
    snippet = visible_line(" ".join(hit.snippet.split()))
    print_sentence(out, Text("  ") + (_marked(snippet) if out.is_terminal else Text(snippet)))


def _marked(snippet: str) -> Text:
    """The snippet with colour instead of marks."""
    pieces = _MATCH.split(snippet)
    return Text.assemble(*((piece, "bold red" if index % 2 else "") for index, piece in enumerate(pieces)))
