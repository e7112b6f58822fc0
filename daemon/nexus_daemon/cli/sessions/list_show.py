"""`nexus sessions list`, `show` and `search`."""

import argparse
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from nexus_context import files
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.ledger.records import Hit, Session, Turn
from nexus_context.ledger.rows import json_text
from nexus_context.ledger.search import AFTER, BEFORE
from nexus_context.ledger.search_query import expression
from nexus_context.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.check import absolute
from nexus_daemon.cli.sessions.labels import counted, local
from nexus_daemon.cli.sessions.open_session import folder, ledger_for, say, there, workspace_of
from nexus_daemon.cli.tables import say as print_line

COLOURS = {"system": "cyan", "user": "green", "assistant": "yellow", "tool": "magenta"}
LAST_TURNS = 20
"""Turns that are shown on a terminal where nobody says how many."""
LEAST_NAME = 16
"""Columns of a session's name that are shown however narrow the terminal is."""
MOST_TEXT = 200
"""Code points of a message that are shown."""

_MATCH = re.compile(f"{BEFORE}([^{BEFORE}{AFTER}]*){AFTER}")


# ---------------------------------------------------------------- list


def run_list(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    with ledger_for(folder(options.folder)) as ledger:
        found = ledger.sessions(None if options.all else workspace)
        # a folder that is gone may have sessions still
        if not (found or options.all or files.is_dir(str(absolute(options.folder)))):
            say(f"{options.folder} is not a folder.")
            return 2
        if options.json:
            output.json_value({"sessions": [_listed(session) for session in found]})
            return 0
        if not found:
            said = "There are no sessions yet."
            if not options.all and (others := {one.workspace for one in ledger.sessions()}):
                folders = "1 other folder has" if len(others) == 1 else f"{len(others):,} other folders have"
                said = f"{workspace} has no sessions; {folders}: see nexus sessions list --all."
            say(said)
            return 0
    _print_sessions(found, folders=options.all)
    return 0


def _print_sessions(found: Sequence[Session], *, folders: bool) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_footer=len(found) > 1)
    least = min(LEAST_NAME, max(cell_len(one.name) for one in found))
    table.add_column("session", style="bold", min_width=least, footer=f"{len(found):,} sessions")
    if folders:
        table.add_column("folder", overflow="fold")
    for name, values in (
        ("turns", [one.head.seq for one in found]),
        ("messages", [one.head.messages for one in found]),
        ("tokens", [one.sent_tokens for one in found]),
    ):
        table.add_column(name, justify="right", no_wrap=True, footer=f"{sum(values):,}")
    table.add_column("changed", no_wrap=True)
    forks = any(one.forked_from for one in found)
    if forks:
        table.add_column("forked from")
    for one in found:
        head = one.head
        numbers = (f"{head.seq:,}", f"{head.messages:,}", f"{one.sent_tokens:,}")
        place = (Text(visible_line(one.workspace)),) if folders else ()
        origin = (_cut(one.forked_from or ""),) if forks else ()
        table.add_row(_cut(one.name), *place, *numbers, local(one.updated), *origin)
    output.console().print(table)


def _cut(name: str) -> Text:
    """A name in one line, however narrow its column is."""
    return Text(visible_line(name), no_wrap=True, overflow="ellipsis")


def _listed(session: Session) -> dict[str, Any]:
    """As in the result of nexus/session/list, and the folder."""
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
    }


# ---------------------------------------------------------------- show


def run_show(options: argparse.Namespace) -> int:
    workspace = workspace_of(options.folder)
    out = output.console()
    with ledger_for(folder(options.folder)) as ledger:
        session = there(ledger, workspace, options.session)
        if options.json:
            turns = ledger.turns(workspace, session.name, last=options.last)
            output.json_value({"session": _listed(session), "turns": [_told(turn) for turn in turns]})
            return 0
        last = options.last or (LAST_TURNS if out.is_terminal else None)
        _print_about(session)
        hidden = 0 if last is None else max(0, session.head.seq - last)
        if hidden:
            print_line(out, Text(f"… {counted(hidden, 'earlier turn')}: --last N shows more", "dim"))
        for turn in ledger.turns(workspace, session.name, last=last):
            _print_turn(turn)
    return 0


def _print_about(session: Session) -> None:
    head = session.head
    out = output.console()
    print_line(out, Text(visible_line(session.name), "bold"))
    numbers = ((head.seq, "turn"), (head.messages, "message"), (session.sent_tokens, "token"))
    said = ", ".join(counted(count, noun) for count, noun in numbers)
    print_line(out, f"{said}; begun {local(session.created)}, changed {local(session.updated)}")
    if session.forked_from:
        print_line(out, f"forked from {visible_line(session.forked_from)}")
    out.print()


def _print_turn(turn: Turn) -> None:
    out = output.console()
    model = f", {visible_line(turn.model)}" if turn.model else ""
    kind = {"query": "", "compaction": ", a compaction", "undo": ", a compaction taken back"}[turn.type]
    print_line(out, Text(f"turn {turn.seq:,}, {local(turn.created)}{model}{kind}", "dim"))
    counts = turn.counts or (None,) * len(turn.messages)
    for message, tokens in zip(turn.messages, counts, strict=True):
        line = Text.assemble(
            (f"{message.role:>11}", COLOURS[message.role]),
            f"{'' if tokens is None else f'{tokens:,}':>9}  ",
            _line(message),
        )
        out.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _told(turn: Turn) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(turn)
    return told


def _line(message: Message) -> str:
    """A message in one line: how its text begins, what else it holds, the calls that it makes."""
    said = [_beginning(text_of(message))]
    content = content_of(message)
    if isinstance(content, list):
        kinds = (part.get("type", "part") if isinstance(part, dict) else "part" for part in content)
        said += [f"[{kind}]" for kind in kinds if kind != "text"]
    for call in message.tool_calls:
        arguments = call.arguments
        given = arguments if isinstance(arguments, str) else json_text(arguments)
        said.append(f"→ {call.name} {_beginning(given)}")
    return visible_line(" ".join(filter(None, said))) or "(empty)"


def _beginning(text: str) -> str:
    shown = " ".join(text[: 4 * MOST_TEXT].split())
    return shown if len(shown) <= MOST_TEXT else shown[:MOST_TEXT].rstrip() + " …"


# ---------------------------------------------------------------- search


def run_search(options: argparse.Namespace) -> int:
    workspace = None if options.all else workspace_of(options.folder)
    query = " ".join(options.query)
    if expression(query) is None:
        say(f"The query {query!r} holds no word to look for.")
        return 2
    with ledger_for(folder(options.folder)) as ledger:
        if options.session is not None and workspace is not None:
            there(ledger, workspace, options.session)
        hits = ledger.search(query, workspace=workspace, session=options.session, limit=options.limit)
    if options.json:
        output.json_value({"hits": [msgspec.to_builtins(hit) for hit in hits]})
        return 0
    if not hits:
        where = "" if options.all else f" in {workspace}; --all searches those of all folders"
        say(f"No message matches {query!r}{where}.")
    for hit in hits:
        _print_hit(hit, folder=options.all)
    return 0


def _print_hit(hit: Hit, *, folder: bool) -> None:
    out = output.console()
    head = Text.assemble(
        (visible_line(hit.session), "bold"),
        f", turn {hit.seq:,}, ",
        (hit.role, COLOURS.get(hit.role, "")),
        (f", {local(hit.created)}", "dim"),
        (f", {visible_line(hit.workspace)}" if folder else "", "dim"),
    )
    print_line(out, head)
    snippet = visible_line(" ".join(hit.snippet.split()))
    print_line(out, Text("  ") + (_marked(snippet) if out.is_terminal else Text(snippet)))


def _marked(snippet: str) -> Text:
    """The snippet with colour instead of marks."""
    pieces = _MATCH.split(snippet)
    return Text.assemble(*((piece, "bold red" if at % 2 else "") for at, piece in enumerate(pieces)))
