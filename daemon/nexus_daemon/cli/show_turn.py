"""`nexus show --session`, `--event`, `--tools` and `--memory`: the next turn of a stored conversation.

1. The conversation and the messages that wait stay as they are; no ledger is created.
2. The session has all its messages here, so the same are sent and cut as by the daemon. Events of a running
   daemon's bus are the only memory that is missing: they are nowhere else.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.assembly import model_in
from nexus_context.config.picked_model import ModelChoice
from nexus_context.conversation.message import Message
from nexus_context.errors import RequestError
from nexus_context.files import exists, read_text
from nexus_context.frozen import Frozen, frozen_of
from nexus_context.layers.agent_definitions import MAIN
from nexus_context.ledger.records import StoredState
from nexus_context.memory.item import MemoryItem
from nexus_context.snapshot import Snapshot
from nexus_context.tokens.correction import UNCORRECTED, Correction
from nexus_context.tools import check_tool
from nexus_daemon.cli import invocation, output
from nexus_daemon.sessions.ledger_events import SESSION

if TYPE_CHECKING:
    from nexus_context.ledger.store import Ledger
    from nexus_context.memory.knowledge import Passage
    from nexus_context.memory.sources import Source
    from nexus_context.tokens.correction import UsageReport

WRONG_USAGE = "wrong-usage"
"""The code of an error in the command line itself."""
MOST_BYTES = 16 << 20
"""Bytes of a file with tools to read."""


class StoredTurn(msgspec.Struct, frozen=True):
    """What the next turn has besides the folder: of a stored session, and of the command line."""

    session: str | None = None  # the stored session; None: none is read
    messages: Sequence[Message] = ()
    parameters: Mapping[str, Any] = {}
    event: Mapping[str, Any] | None = None
    tools: Sequence[dict[str, Any]] = ()
    frozen: Frozen | None = None  # what the requests of the session begin with
    correction: Correction = UNCORRECTED  # of its totals


def arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `nexus show` that are about the next turn."""
    group = command.add_argument_group("the next turn of a conversation")
    group.add_argument(
        "--session",
        metavar="NAME",
        help="list what is sent of this session of the folder, for its model; see nexus sessions list",
    )
    group.add_argument("--event", metavar="JSON", help="add the facts of this event to the last user message")
    group.add_argument(
        "--tools",
        metavar="FILE",
        help="also offer the tools of this JSON list, in the form of any provider; - for standard input",
    )
    group.add_argument(
        "--memory",
        action="store_true",
        help="add what is remembered to --message or --event, as in the session (default: the agent's own): "
        "messages of agents that wait, the levels of memory.levels, passages of memory.knowledge",
    )


def wrong_usage(options: argparse.Namespace) -> str | None:
    """The message for options that do not fit each other; None if they do."""
    if options.messages is not None and (options.session is not None or options.memory):
        option = "--memory" if options.session is None else "--session"
        return f"{option} is about a stored session, and --messages about a file: leave out one of them."
    if options.messages == "-" and options.tools == "-":
        return "--messages and --tools cannot both be standard input."
    if options.memory and not options.message and options.event is None:
        return "--memory goes with --message TEXT or --event JSON: only a turn has memory."
    if options.agent is None and (options.session or "").startswith(SESSION):
        agent = (options.session or "").removeprefix(SESSION)
        return f"{options.session} is the conversation of an agent: add --agent {agent}."
    return None


def read_turn(folder: str, snapshot: Snapshot, options: argparse.Namespace, session: str) -> StoredTurn:
    """Read what the options name. `session` is what --memory is about if they name none.

    RequestError for a session that does not exist, and for JSON that is not an event or not a list of tools.
    """
    turn = StoredTurn(event=_event(options.event), tools=_tools(options.tools))
    name = options.session if options.session is not None or not options.memory else session
    if name is None:
        return turn

    with _stored(folder, snapshot) as (ledger, workspace):
        history = None if ledger is None else ledger.history(workspace, name)
        if ledger is None or history is None:
            if options.session is None:
                return turn
            raise RequestError(
                f"There is no session {name!r}: no conversation is stored yet.", code="unknown-session"
            )
        state = ledger.state(workspace, name) or StoredState(history.head)
        return msgspec.structs.replace(
            turn,
            session=name,
            messages=[stored.message for stored in history.messages],
            parameters=state.parameters,
            frozen=frozen_of(state.frozen),
            correction=_correction(ledger, state.anchor, snapshot),
        )


def full_name(snapshot: Snapshot, session: str | None) -> str | None:
    """The name of the session that a command line names, perhaps by its beginning.

    RequestError if there is none, or are several.
    """
    if session is None:
        return None
    from nexus_daemon.cli.sessions.open_session import find_session

    with _stored(snapshot.folder, snapshot) as (ledger, workspace):
        return session if ledger is None else find_session(ledger, workspace, session).name


def _correction(ledger: "Ledger", anchor: "UsageReport | None", snapshot: Snapshot) -> Correction:
    """How totals of a session are corrected by what providers counted."""
    family = model_in(snapshot.effective)[0].family.name
    anchor = anchor if anchor is not None and anchor.family == family else None
    return msgspec.structs.replace(ledger.usage.correction(family), anchor=anchor)


def tools_of(turn: StoredTurn) -> Sequence[dict[str, Any]]:
    """The tools of the next turn: those of the command line, else those of the session's last one."""
    return turn.tools or (() if turn.frozen is None else turn.frozen.latest.tools)


def picked_model(snapshot: Snapshot, session: str | None) -> ModelChoice | None:
    """The model last picked in an editor: for the session, else for the folder. None: there is none."""
    if snapshot.effective.get("/ledger/url") is not None:
        return None
    with _stored(snapshot.folder, snapshot) as (ledger, workspace):
        stored = {} if ledger is None else ledger.options.of(workspace)
    options = stored.get(session) or stored.get(None)
    return None if options is None else options.choice


def memory_items(
    folder: str, snapshot: Snapshot, turn: StoredTurn, *, history: Sequence[Message], text: str
) -> list[MemoryItem]:
    """What is remembered for a turn with this text; `history` is what is sent of the session.

    Each source that fails is named on standard error.
    """
    from nexus_context.memory import sources
    from nexus_context.memory.levels import Levels, settings_of

    settings = settings_of(snapshot.effective.get("/memory") or {})
    with _stored(folder, snapshot) as (ledger, workspace):
        chosen: list[Source] = [sources.KnowledgeSource(lambda words: _passages(folder, snapshot, words))]
        if ledger is not None:
            chosen.append(sources.DirectSource(ledger))
            if turn.session is not None:
                chosen.append(sources.MemorySource(Levels(ledger), include=settings.levels))
        query = sources.Query(
            workspace=workspace,
            now=time.time(),
            session=turn.session,
            agent=snapshot.agent or MAIN,
            text=text,
            history=history,
            settings=settings,
        )
        items, failures = sources.gather(chosen, query)
    for failure in failures:
        output.complain("show", f"not all is remembered: {failure}")
    return items


# ---------------------------------------------------------------- the ledger and the files


@contextmanager
def _stored(folder: str, snapshot: Snapshot) -> "Iterator[tuple[Ledger | None, str]]":
    """The ledger, None if there is none yet, and the folder's name there."""
    from nexus_context.ledger import open_ledger
    from nexus_context.ledger.opening import place, workspace_of
    from nexus_daemon.sessions.ledger_writer import refuse_url

    refuse_url(snapshot.effective.get("/ledger/url"))
    path, workspace = snapshot.effective.get("/ledger/path"), workspace_of(folder)
    if not exists(place(path, invocation.current().environ)):
        yield None, workspace
        return
    ledger = open_ledger(path, environ=invocation.current().environ)
    try:
        yield ledger, workspace
    finally:
        ledger.close()


def _passages(folder: str, snapshot: Snapshot, text: str) -> "list[Passage]":
    """The passages of the folder's knowledge that match a text; the index is brought up to date."""
    from nexus_context import assembly
    from nexus_daemon.cli.knowledge import open_knowledge

    _, counter = assembly.model_of(snapshot, None)
    with open_knowledge("show", folder, snapshot) as knowledge:
        return [] if knowledge is None else knowledge.passages(text, counter)


# ---------------------------------------------------------------- JSON of the command line


def _event(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    event = _json(text, "--event")
    if not isinstance(event, dict):
        raise RequestError(
            f"--event is of type {type(event).__name__}; an event is a JSON object.", code=WRONG_USAGE
        )
    return event


def _tools(name: str | None) -> list[dict[str, Any]]:
    if name is None:
        return []
    label = "standard input" if name == "-" else name
    tools = _json(sys.stdin.read() if name == "-" else _text(name), label)
    if not isinstance(tools, list):
        raise RequestError(
            f"{label} is of type {type(tools).__name__}; it must be a JSON list of tools.", code=WRONG_USAGE
        )
    for number, tool in enumerate(tools, 1):
        check_tool(tool, f"{label}: tool {number}")
    return tools


def _text(name: str) -> str:
    read = read_text(invocation.current().absolute(name), limit=MOST_BYTES)
    if read.status == "missing":
        raise RequestError(f"{name} does not exist.", code=WRONG_USAGE)
    if read.text is None or read.problems:
        reason = read.problems[0].message if read.problems else "It cannot be read."
        raise RequestError(f"{name}: {reason}", code="unreadable")
    return read.text


def _json(text: str, label: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RequestError(f"{label} is not valid JSON: {error}.", code=WRONG_USAGE) from None
