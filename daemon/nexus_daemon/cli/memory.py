"""Query and list what a folder's conversations remember, and add notes to it.

Memory is read from the conversations in the ledger: the exchanges that matter (L2), the summaries of
compactions (L3), and a search across all conversations (L4). These are the queries that a model may call.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import RequestError
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute

if TYPE_CHECKING:
    from nexus_daemon.protocol import MemoryEntry

EPILOG = """\
examples:
  nexus memory query 'deploy friday'
  nexus memory query --level 2 --session main
  nexus memory add 'The staging database is read-only.'
  nexus memory list

exit codes: 0 success; 1 failure; 2 wrong usage
"""

NOTES = "notes"
"""The session of notes that name none: every other conversation finds it with an L4 query."""
LEVELS = (2, 3, 4)
BEGINS_MEMORY = "Conversations are remembered as they are stored, and nexus memory add TEXT adds a note."
LIMIT = 10


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _query(_action(actions, "query", "answer a memory query as for a model"))
    _add(_action(actions, "add", "add a note, as a pinned message of a session"))
    _list(_action(actions, "list", "list the exchanges that matter and the summaries"))


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=f"{text[:1].upper()}{text[1:]}."
    )
    command.add_argument("--folder", default=".", metavar="PATH", help="the workspace folder (default: .)")
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def _query(command: argparse.ArgumentParser) -> None:
    command.add_argument("words", nargs="*", metavar="WORD", help="words to find, at level 4")
    command.add_argument(
        "--level",
        type=int,
        choices=LEVELS,
        default=4,
        help="2: exchanges that matter; 3: summaries; 4: search all conversations (default)",
    )
    command.add_argument("--session", metavar="NAME", help="only this session (default: all)")
    command.add_argument(
        "--limit", type=_number, default=LIMIT, metavar="N", help=f"at most N entries (default: {LIMIT})"
    )


def _add(command: argparse.ArgumentParser) -> None:
    command.add_argument("text", metavar="TEXT", help="the note")
    command.add_argument(
        "--session",
        default=NOTES,
        metavar="NAME",
        help=f"the session that it becomes part of (default: {NOTES}, a session of its own)",
    )


def _list(command: argparse.ArgumentParser) -> None:
    command.add_argument("--session", metavar="NAME", help="only this session (default: all)")
    command.add_argument(
        "--limit",
        type=_number,
        default=LIMIT,
        metavar="N",
        help=f"at most N entries of each kind (default: {LIMIT})",
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def run(options: argparse.Namespace) -> int:
    actions: dict[str, Callable[[argparse.Namespace], int]]
    actions = {"query": run_query, "add": run_add, "list": run_list}
    try:
        return actions[options.action](options)
    except RequestError as error:
        output.complain("memory", str(error))
        return 2 if error.code in ("unknown-folder", "bad-argument") else 1


# ---------------------------------------------------------------- actions


def run_query(options: argparse.Namespace) -> int:
    from nexus_daemon import protocol
    from nexus_daemon.api import memory, stored_sessions
    from nexus_daemon.cli.asking import reading

    if options.words and options.level != max(LEVELS):
        output.complain("memory", "only a query of level 4 takes words; leave out --level, or the words.")
        return 2
    arguments: dict[str, Any] = {"limit": options.limit}
    if options.words:
        arguments["query"] = " ".join(options.words)
    with reading("memory", absolute(options.folder)) as client:
        if options.session is not None:
            arguments["session_id"] = client.find_session(options.session).session
        params = protocol.MemoryQueryParams(
            client.uri, session=None, tool=f"query_l{options.level}_memory", arguments=arguments
        )
        text = client.ask(memory.query, params).text
        is_empty = not client.ask(stored_sessions.list_sessions, protocol.ListParams(client.uri)).sessions
    if options.json:
        output.json_value({"text": text})
    else:
        output.page(text + "\n")
        if is_empty:
            output.complain("memory", _nothing(absolute(options.folder)))
    return 0


def run_list(options: argparse.Namespace) -> int:
    from nexus_daemon import protocol
    from nexus_daemon.api import memory
    from nexus_daemon.cli.asking import reading

    folder = absolute(options.folder)
    with reading("memory", folder) as client:
        session = None if options.session is None else client.find_session(options.session).session
        params = protocol.MemoryListParams(client.uri, session=session, limit=options.limit)
        result = client.ask(memory.list_entries, params)
    if options.json:
        output.json_value(msgspec.to_builtins(result))
        return 0
    if not result.important and not result.summaries:
        output.complain("memory", _nothing(session or folder))
    _print("Exchanges that matter (L2)", result.important)
    _print("Summaries (L3)", result.summaries)
    return 0


def _nothing(name: str | Path) -> str:
    return f"nothing is remembered of {name} yet. {BEGINS_MEMORY}"


def run_add(options: argparse.Namespace) -> int:
    from nexus_context.conversation.message import Message
    from nexus_daemon import protocol
    from nexus_daemon.api import session
    from nexus_daemon.cli.asking import answer

    if not options.text.strip():
        output.complain("memory", "the note is empty.")
        return 2
    note = Message("user", options.text, meta={"pinned": True})
    appended = answer(
        "memory",
        options.folder,
        session.append,
        lambda uri: protocol.AppendParams(uri, options.session, messages=[note]),
    )
    if options.json:
        output.json_value({"session": appended.session, "turn": appended.turn})
    else:
        output.line(f"Added to the session {appended.session!r}.")
    return 0


def _print(title: str, entries: "Sequence[MemoryEntry]") -> None:
    from nexus_context.memory.queries import rendered
    from nexus_context.memory.working import Entry

    if entries:
        text = rendered([Entry(**msgspec.structs.asdict(entry)) for entry in entries])
        output.page(f"{title}\n\n{text}\n\n")
