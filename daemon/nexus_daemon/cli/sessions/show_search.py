"""Runs `nexus sessions show` and `search`."""

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw
import msgspec
from rich.text import Text

from nexus_context.assistants.mirror.file_search import FileHit, FileSearch, search_files
from nexus_context.assistants.sessions.session_types import AssistantSession
from nexus_context.assistants.tracking import find_sessions
from nexus_context.assistants.tracking.conversations import ListedConversation, belongs_to, program_title
from nexus_context.conversation.compaction.receipt import opaque_provider
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.conversation.summary import readable
from nexus_context.errors import RequestError
from nexus_context.ledger.records import Turn
from nexus_context.ledger.rows import json_text
from nexus_context.ledger.search import AFTER, BEFORE
from nexus_context.ledger.search_query import expression
from nexus_context.text.decoding import convert_to
from nexus_context.text.redact import redact, redact_arguments, redact_message
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.api import stored_sessions
from nexus_daemon.api.conversation import Matches, find_matches, in_ledger_of, join, path_of
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import FolderClient, reading
from nexus_daemon.cli.folder import absolute
from nexus_daemon.cli.open_session import note, workspace_of
from nexus_daemon.cli.sessions.assistants import complain_of_files
from nexus_daemon.cli.sessions.conversation_list import (
    conversation_values,
    dollars,
    folders_of,
    list_stored,
    session_values,
    tokens_of,
)
from nexus_daemon.cli.tables import ROLE_COLOURS, print_sentence
from nexus_daemon.lsp import convert
from nexus_daemon.protocol import SessionInfo
from nexus_daemon.sessions.session_names import MOST_NAMED

LAST_TURNS = 20
"""Turns to print on a terminal without --last."""
MOST_TEXT = 200
"""Code points of a message to print."""

_MATCH = re.compile(f"{BEFORE}([^{BEFORE}{AFTER}]*){AFTER}")


def _tokens(session: SessionInfo) -> str:
    """Format the tokens of the next request, marked ≈ if a tokenizer did not count all of them."""
    return f"{'≈' if session.estimated else ''}{session.tokens:,}"


# ---------------------------------------------------------------- show


def run_show(options: argparse.Namespace) -> int:
    folder = absolute(options.folder)
    with reading("sessions", folder) as client:
        try:
            session = client.find_session(options.session)
        except RequestError as error:
            conversation = _find_anywhere(client, options.session, error)
        else:
            return _show_stored(client, session, options)
    if conversation.kept is None:
        return _show_unkept(conversation, options)
    with reading("sessions", absolute(conversation.kept.workspace)) as client:
        return _show_stored(client, client.find_session(conversation.kept.thread), options)


def _find_anywhere(client: FolderClient, name: str, error: RequestError) -> ListedConversation:
    """The conversation of any program whose id begins so, in the folder, else anywhere.

    `error` if there is none.
    """
    stored_infos, here = list_stored(client), workspace_of(_path(client.uri))
    place = client.place()
    matching: list[ListedConversation] = []
    for root in (here, None):  # to read everywhere may take seconds the first time
        folders = folders_of(root)
        conversations = (
            conversation
            for conversation in join(stored_infos, find_sessions(place, folders))
            if belongs_to(conversation, folders)
        )
        matching = [conversation for conversation in conversations if name and conversation.begins(name)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            break
    if not matching and not place.reads_conversations:
        raise RequestError(f"{error} {place.not_read}", code=error.code) from error
    if all(
        conversation.kept is not None and conversation.kept.workspace == here for conversation in matching
    ):
        raise error  # which names them
    ids = ", ".join(repr(conversation.short_name) for conversation in matching[:MOST_NAMED])
    raise RequestError(
        f"{len(matching):,} conversations begin with {name!r}: {ids}. Write more of it.",
        code="unknown-session",
    )


def _turn_limit(options: argparse.Namespace) -> int | None:
    """Return the number of turns to print; None means all."""
    turn_limit: int | None = options.last
    return turn_limit or (LAST_TURNS if output.console().is_terminal and not options.json else None)


def _show_stored(client: FolderClient, session: SessionInfo, options: argparse.Namespace) -> int:
    turn_limit = _turn_limit(options)
    hidden_count = 0 if turn_limit is None else max(0, session.turns - turn_limit)
    turns = _turns(client, session.session, first=hidden_count + 1)
    if options.json:
        values = [msgspec.to_builtins(turn) for turn in turns]
        workspace = workspace_of(_path(client.uri))
        output.json_value({"session": session_values(session, workspace), "turns": values})
        return 0
    _print_about(session)
    _print_turns(turns, hidden_count)
    return 0


def _show_unkept(conversation: ListedConversation, options: argparse.Namespace) -> int:
    from nexus_context.assistants.mirror.session_reader import read_turns  # most are kept

    session = conversation.session
    try:
        turns = [] if session is None else list(read_turns(session))
    except (apsw.Error, OSError) as error:
        note(f"{conversation.short_name} cannot be read: {error}.")
        return 1
    turn_limit = _turn_limit(options)
    hidden_count = 0 if turn_limit is None else max(0, len(turns) - turn_limit)
    printed = [convert_to(msgspec.structs.asdict(turn), protocol.StoredTurn) for turn in turns[hidden_count:]]
    if options.json:
        values = [msgspec.to_builtins(turn) for turn in printed]
        output.json_value({"session": conversation_values(conversation), "turns": values})
        return 0
    _print_about_unkept(conversation, turns)
    _print_turns(printed, hidden_count)
    return 0


def _print_turns(turns: Iterable[protocol.StoredTurn], hidden_count: int) -> None:
    out = output.console()
    if hidden_count:
        earlier = output.counted(hidden_count, "earlier turn")
        print_sentence(out, Text(f"… {earlier}: --last N shows more", "dim"))
    for turn in turns:
        _print_turn(turn)


def _turns(client: FolderClient, session: str, *, first: int) -> Iterator[protocol.StoredTurn]:
    """The turns from one on, page by page: a conversation may be larger than memory."""
    while True:
        page = client.ask(stored_sessions.turns, protocol.TurnsParams(client.uri, session, first=first)).turns
        yield from page
        if not page:
            return
        first = page[-1].seq + 1


def _print_about_unkept(conversation: ListedConversation, turns: Sequence[Turn]) -> None:
    out = output.console()
    print_sentence(out, Text(visible_line(redact(conversation.title or conversation.short_name)), "bold"))
    messages = output.counted(sum(len(turn.messages) for turn in turns), "message")
    facts = [
        f"{output.counted(len(turns), 'turn')}, {messages}",
        f"window {tokens_of(conversation)}",
        f"cost {dollars(conversation.cost)}",
        f"last turn {output.local_time(conversation.last_turn)}",
    ]
    print_sentence(out, "; ".join(facts))
    program = program_title(conversation.program)
    print_sentence(out, f"not kept: read from the file of {program}, {visible_line(conversation.short_name)}")
    if conversation.session is not None:
        print_sentence(out, Text(visible_line(conversation.session.path), "dim"))
    out.print()


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
        parent = origin.parent if origin.parent_session is None else repr(visible_line(origin.parent_session))
        print_sentence(out, f"a sub-agent of {visible_line(parent)}")
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
    root = None if options.all else workspace_of(options.folder)
    with reading("sessions", absolute(options.folder)) as client:
        matches = _search(client, query, options)
        place = client.place()
        if not place.reads_conversations:
            note(place.not_read)
    hits, named_sessions, files = matches
    complain_of_files(files.failures)
    if options.json:
        output.json_value(_match_values(matches))
        return 1 if files.failures else 0
    for named_session in named_sessions:
        print_sentence(
            output.console(), Text.assemble((visible_line(named_session.session), "bold"), ", by its name")
        )
    for hit in hits:
        folder = _path(hit.workspace_folder)
        _print_hit(hit, None if folder == root else folder)
    for file_hit in files.hits:
        _print_file_hit(file_hit, None if file_hit.folder == root else file_hit.folder)
    if not (hits or named_sessions or files.hits):
        location = "" if options.all else f" in {root}; --all searches the sessions of all folders"
        note(f"No message matches {query!r}{location}.")
    if files.searched:
        _note_searched(files, options.limit)
    return 1 if files.failures else 0


def _search(client: FolderClient, query: str, options: argparse.Namespace) -> Matches:
    uri, session, limit = None if options.all else client.uri, options.session, options.limit
    if session is None:
        params = protocol.ConversationSearchParams(query=query, workspace_folder=uri, limit=limit)
        return client.ask(find_matches, params)
    if uri is not None:
        try:
            session = client.find_session(session).session
        except RequestError as error:
            conversation = _find_anywhere(client, session, error)
            if conversation.kept is None:
                return Matches((), files=_search_file(client, query, conversation.session, limit))
            uri, session = None, conversation.kept.name
    in_session = protocol.SearchParams(query=query, workspace_folder=uri, session=session, limit=limit)
    return Matches(client.ask(stored_sessions.search, in_session).hits)


def _search_file(
    client: FolderClient, query: str, session: AssistantSession | None, limit: int
) -> FileSearch:
    """Search a session that is not kept."""
    in_ledger = in_ledger_of(client.mirrored_files(), list_stored(client))
    return search_files(query, client.place(), None, in_ledger, session=session, limit=limit)


def _note_searched(files: FileSearch, limit: int) -> None:
    files_of = (
        "the file of 1 conversation" if files.searched == 1 else f"files of {files.searched:,} conversations"
    )
    text = f"Also searched: {files_of} that Nexus does not keep whole. To keep: nexus sessions keep."
    note(f"{text} There may be more hits: --limit N." if len(files.hits) >= limit else text)


def _match_values(matches: Matches) -> dict[str, Any]:
    files = matches.files
    return {
        "hits": [_hit_values(hit) for hit in matches.hits],
        "sessions": [session_values(session, path_of(session) or "") for session in matches.named],
        "notKept": {"searched": files.searched, "hits": [msgspec.to_builtins(hit) for hit in files.hits]},
    }


def _path(uri: str) -> str:
    return convert.uri_to_path(uri) or uri


def _hit_values(hit: protocol.SearchHit) -> dict[str, Any]:
    """Return a hit as nexus/session/search does, with the path of its folder."""
    values = msgspec.structs.asdict(hit)
    del values["thread"]
    return {"workspace": _path(values.pop("workspace_folder")), **values}


def _print_hit(hit: protocol.SearchHit, folder: str | None) -> None:
    head = Text.assemble(
        (visible_line(hit.session), "bold"),
        f", turn {hit.seq:,}, ",
        (hit.role, ROLE_COLOURS.get(hit.role, "")),
        (f", {output.local_time(hit.created)}", "dim"),
        (f", from {visible_line(hit.assistant)}" if hit.assistant else "", "dim"),
        (f", {visible_line(folder)}" if folder else "", "dim"),
    )
    _print_match(head, hit.snippet)


def _print_file_hit(hit: FileHit, folder: str | None) -> None:
    head = Text.assemble(
        (visible_line(hit.title or program_title(hit.program)), "bold"),
        f", {visible_line(hit.id)}, ",
        (hit.role, ROLE_COLOURS.get(hit.role, "")),
        (f", {output.local_time(hit.created)}" if hit.created else "", "dim"),
        ", not kept",
        (f", {visible_line(folder)}" if folder else "", "dim"),
    )
    _print_match(head, hit.snippet)


def _print_match(head: Text, text: str) -> None:
    out = output.console()
    print_sentence(out, head)
    snippet = visible_line(" ".join(text.split()))
    print_sentence(out, Text("  ") + (_marked(snippet) if out.is_terminal else Text(snippet)))


def _marked(snippet: str) -> Text:
    """The snippet with colour instead of marks."""
    pieces = _MATCH.split(snippet)
    return Text.assemble(*((piece, "bold red" if index % 2 else "") for index, piece in enumerate(pieces)))
