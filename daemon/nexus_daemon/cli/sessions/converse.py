"""Runs `nexus sessions append`, `compact`, `undo` and `rebase`."""

import argparse

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.errors import Severity
from nexus_daemon import protocol
from nexus_daemon.api import session as handlers
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import answer, writing
from nexus_daemon.cli.open_session import note
from nexus_daemon.cli.sessions.transfer import read_contents

MOST_LOST = 5
"""Lost items of a kind to print."""


def run_append(options: argparse.Namespace) -> int:
    if (options.text is None) == (options.messages is None):
        note("append takes either TEXT or --messages FILE.")
        return 2
    if options.role is not None and options.text is None:
        note("--role is the role of TEXT; messages of a file have their own.")
        return 2
    messages = _messages(options)
    if messages is None:
        return 1
    appended = answer(
        "sessions",
        options.folder,
        handlers.append,
        lambda uri: protocol.AppendParams(
            uri, options.session, messages=messages, idempotency_key=options.key, model=options.model
        ),
    )
    if options.json:
        output.json_value(msgspec.to_builtins(appended))
        return 0
    messages_now = output.counted(appended.count, "message")
    output.line(f"{appended.session!r} has {messages_now}; its next request has {_tokens(appended.usage)}.")
    return 0


def run_compact(options: argparse.Namespace) -> int:
    pins = [int(pin) if pin.isascii() and pin.isdecimal() else pin for pin in options.pin]
    with writing("sessions", options.folder) as client:
        name = client.find_session(options.session).session
        compacted = client.ask(
            handlers.compact,
            protocol.CompactParams(client.uri, name, pins=pins, overflow=options.overflow),
        )
    if options.json:
        output.json_value(msgspec.to_builtins(compacted))
        return 0
    receipt = compacted.receipt
    replaced = output.counted(receipt.replaced_messages, "message")
    output.line(
        f"{replaced} of {name!r} replaced: {receipt.tokens_before:,} tokens before, "
        f"{receipt.tokens_after:,} after. The compaction is {compacted.compaction}."
    )
    if receipt.replaced_opaque:
        output.line(f"The summary replaces a compaction by the provider ({receipt.replaced_opaque}), too.")
    for kind, count in receipt.lost.counts.items():
        if count:
            lost = list(getattr(receipt.lost, kind))[:MOST_LOST]
            more_note = f" and {count - len(lost):,} more" if count > len(lost) else ""
            output.line(f"lost {kind}: {', '.join(lost)}{more_note}")
    output.line(f"nexus sessions undo {name} restores them.")
    return 0


def run_undo(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        name = client.find_session(options.session).session
        undone = client.ask(
            handlers.undo_compaction, protocol.UndoParams(client.uri, name, options.compaction)
        )
    if options.json:
        output.json_value(msgspec.to_builtins(undone))
        return 0
    output.line(f"The messages of {name!r} are restored: {_tokens(undone.usage)}.")
    return 0


def run_rebase(options: argparse.Namespace) -> int:
    with writing("sessions", options.folder) as client:
        name = client.find_session(options.session).session
        rebased = client.ask(handlers.rebase, protocol.SessionParams(client.uri, name))
    if options.json:
        output.json_value(msgspec.to_builtins(rebased))
        return 0
    output.line(
        f"The next request of {name!r} begins with the present system prompt and tools: "
        f"{_tokens(rebased.usage)}."
    )
    return 0


def _messages(options: argparse.Namespace) -> list[Message] | None:
    """The messages to append; None if the file cannot be read in full, which it has reported."""
    if options.messages is None:
        return [Message(options.role or "user", options.text)]
    contents = read_contents(options.messages)
    if contents is None or any(problem.severity is Severity.ERROR for problem in contents.problems):
        return None
    sessions = [session for session in contents.sessions if session.agent is None] or contents.sessions
    if len(sessions) != 1:
        number = len(sessions)
        note(f"{options.messages} has {number:,} conversations; append takes one. Use nexus sessions import.")
        return None
    return [message for turn in sessions[0].turns for message in turn.messages]


def _tokens(usage: protocol.TokenUsage) -> str:
    if usage.corrected is not None:
        return f"≈{usage.corrected.total:,} of {usage.available:,} tokens"
    mark = "" if usage.counter.exact else "≈"
    return f"{mark}{usage.total:,} of {usage.available:,} tokens"
