"""Runs `nexus show --session`, `--event`, `--tools` and `--memory`: the next turn of a stored conversation.

The conversation and the messages that wait stay as they are; no ledger is created. Only one kind of memory is
missing: events on the bus of a running daemon, which are nowhere else.
"""

import argparse
import sys
from typing import Any

import msgspec

from nexus_context.conversation.tools import check_tool
from nexus_context.disk.files import read_text
from nexus_context.errors import RequestError
from nexus_daemon.cli import invocation
from nexus_daemon.sessions.ledger_events import SESSION

WRONG_USAGE = "wrong-usage"
"""The code of an error in the command line itself."""
MOST_BYTES = 16 << 20
"""Bytes of a file with tools to read."""


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
    """Return the message for options that do not fit each other. None if they do."""
    if options.messages is not None and (options.session is not None or options.memory):
        option = "--memory" if options.session is None else "--session"
        return f"{option} is about a stored session, and --messages about a file: leave out one of them."
    if options.messages is not None and (options.source or options.layers):
        return "--source and --layers are about the folder; leave out --messages."
    if options.messages is None and (options.conversation is not None or options.no_folder):
        return "--conversation and --no-folder go with --messages FILE."
    if options.messages == "-" and options.tools == "-":
        return "--messages and --tools cannot both be standard input."
    if options.memory and not options.message and options.event is None:
        return "--memory goes with --message TEXT or --event JSON: only a turn has memory."
    if options.agent is None and (options.session or "").startswith(SESSION):
        agent = (options.session or "").removeprefix(SESSION)
        return f"{options.session} is the conversation of an agent: add --agent {agent}."
    return None


def event_of(text: str | None) -> dict[str, Any] | None:
    """Parse the event of the command line.

    RequestError if it is not a JSON object; None if there is no event.
    """
    if text is None:
        return None
    event = _json(text, "--event")
    if not isinstance(event, dict):
        raise RequestError(
            f"--event is of type {type(event).__name__}; an event is a JSON object.", code=WRONG_USAGE
        )
    return event


def tools_of(name: str | None) -> list[dict[str, Any]]:
    """Read the tools of a file, or of standard input for `-`. RequestError if it is not a list of tools."""
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
    file_read = read_text(invocation.current().absolute(name), limit=MOST_BYTES)
    if file_read.status == "missing":
        raise RequestError(f"{name} does not exist.", code=WRONG_USAGE)
    if file_read.text is None or file_read.problems:
        reason = file_read.problems[0].message if file_read.problems else "It cannot be read."
        raise RequestError(f"{name}: {reason}", code="unreadable")
    return file_read.text


def _json(text: str, label: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RequestError(f"{label} is not valid JSON: {error}.", code=WRONG_USAGE) from None
