"""Runs `nexus sessions list --assistants`: the sessions that other assistants have here."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.record_values import seconds
from nexus_context.assistants.tracking import AssistantSession, AssistantSessions, Usage, find_sessions
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import place_of, short_path
from nexus_daemon.cli.open_session import load_folder, note, workspace_of
from nexus_daemon.cli.tables import Column, print_columns

UNSTATED = "–"
LONGEST_TITLE = 60  # characters in a line about a session
LEAST_ID = 8
LEAST_TITLE = 16
"""Characters of an id, and of a title or path, that a narrow terminal shows."""


def run_list(options: argparse.Namespace) -> int:
    folder = None if options.all else workspace_of(options.folder)
    assistant_sessions = find_sessions(place_of(load_folder(options.folder)), folder)
    complain_of(assistant_sessions)
    code = 1 if assistant_sessions.failures else 0
    program, since = options.program, options.since
    sessions = [
        session
        for session in assistant_sessions.sessions
        if program in (None, session.assistant) and (since is None or seconds(session.changed) >= since)
    ]
    if options.json:
        output.json_value(
            {"sessions": [_values(session) for session in sessions], "totals": list(_totals(sessions))}
        )
    elif sessions:
        _print(sessions, folders=options.all)
    elif not (assistant_sessions.failures or assistant_sessions.notice):
        where = "on this machine" if folder is None else f"in {folder}"
        note(
            f"Claude Code, Codex, opencode and Gemini CLI have no sessions {where}; start one of them there."
        )
    return code


def complain_of(found_sessions: AssistantSessions) -> None:
    """Print which session files cannot be read, and why, or the setting that forbids it."""
    if found_sessions.notice is not None:
        note(found_sessions.notice)
    complain_of_files(found_sessions.failures)


def complain_of_files(failures: Sequence[tuple[str, str]]) -> None:
    """Print which files cannot be read. `failures` are paths, each with a reason."""
    reasons: dict[str, list[str]] = {}
    for path, reason in failures:
        reasons.setdefault(reason, []).append(path)
    for reason, paths in reasons.items():
        note(f"{output.counted(len(paths), 'file')} not read: {reason} ({paths[0]})")


def _print(sessions: Sequence[AssistantSession], *, folders: bool) -> None:
    titles = [visible_line(redact(session.prompt or UNSTATED) + _fork(session)) for session in sessions]
    columns = [
        Column("session", short_ids([session.id for session in sessions])),
        Column("title", titles, least=LEAST_TITLE),
        Column("assistant", [session.assistant for session in sessions], worth=4),
        Column("model", [visible_line(session.model or UNSTATED) for session in sessions], worth=2),
        Column("window", [_window(session) for session in sessions], worth=6, justify="right"),
        Column("from cache", [_cached(session.last) for session in sessions], worth=1, justify="right"),
        Column("cost", [_cost(session) for session in sessions], worth=3, justify="right"),
        Column("changed", [output.local_time(session.changed) for session in sessions], worth=5),
    ]
    if folders:
        places = [short_path(session.folder or UNSTATED) for session in sessions]
        columns.insert(2, Column("folder", places, worth=7, least=LEAST_TITLE))
    print_columns(columns)


def describe_session(session: AssistantSession) -> str:
    """Describe a session in a line: its program, what it is about, its window and its cost."""
    title = visible_line(redact(session.prompt or UNSTATED) + _fork(session))[:LONGEST_TITLE]
    facts = [fact for fact in (_window(session), _cost(session)) if fact != UNSTATED]
    return " · ".join((f"{PROGRAMS[session.assistant].title} “{title}”", *facts))


def _fork(session: AssistantSession) -> str:
    return "" if session.fork_of is None else f" (fork of {session.fork_of[:LEAST_ID]})"


def short_ids(ids: Sequence[str]) -> list[str]:
    """Shorten ids for people to a common length, the shortest at which they stay different."""
    length = LEAST_ID
    while length < max(map(len, ids)) and len({session_id[:length] for session_id in ids}) < len(set(ids)):
        length += 1
    return [visible_line(session_id[:length]) for session_id in ids]


def _cost(session: AssistantSession) -> str:
    if session.cost_usd is None:
        return UNSTATED
    return f"{'at least ' if session.lacks else ''}${session.cost_usd:,.2f}"


def _window(session: AssistantSession) -> str:
    """Format the tokens of the last request and their share of the window."""
    if session.last is None:
        return UNSTATED
    used_tokens = session.last.sent
    if not session.window:
        return f"{used_tokens:,}"
    return f"{used_tokens:,} of {session.window:,} ({used_tokens / session.window:.0%})"


def _cached(last_usage: Usage | None) -> str:
    """The part of the last request that came from the provider's cache."""
    return (
        UNSTATED
        if last_usage is None or not last_usage.sent
        else f"{last_usage.cache_read / last_usage.sent:.0%}"
    )


def _values(session: AssistantSession) -> dict[str, Any]:
    return {
        "assistant": session.assistant,
        "id": session.id,
        "path": session.path,
        "folder": session.folder,
        "prompt": None if session.prompt is None else redact(session.prompt),
        "model": session.model,
        "version": session.version,
        "started": session.started,
        "changed": session.changed,
        "window": session.window,
        "last": _usage_values(session.last),
        "total": _usage_values(session.total),
        "costUsd": session.cost_usd,
        "costLacks": session.lacks,
        "parent": session.parent,
        "forkOf": session.fork_of,
        "damagedLines": session.damaged,
    }


def _totals(sessions: Sequence[AssistantSession]) -> Iterator[dict[str, Any]]:
    """For each assistant what its sessions say of all their requests; `unsummed` of them say nothing.

    The cost is that of those that state one: with `costAtLeast` others were used, too, or one lacks
    something.
    """
    for assistant in dict.fromkeys(session.assistant for session in sessions):
        program_sessions = [session for session in sessions if session.assistant == assistant]
        totals = [session.total for session in program_sessions if session.total is not None]
        costs = [session.cost_usd for session in program_sessions if session.cost_usd is not None]
        yield {
            "assistant": assistant,
            "sessions": len(program_sessions),
            "unsummed": len(program_sessions) - len(totals),
            "total": _usage_values(
                Usage(
                    fresh=sum(total.fresh for total in totals),
                    cache_read=sum(total.cache_read for total in totals),
                    cache_write=sum(total.cache_write for total in totals),
                    output=sum(total.output for total in totals),
                )
            ),
            "costUsd": sum(costs) if costs else None,
            "costAtLeast": 0 < len(costs) < len(program_sessions)
            or any(session.lacks for session in program_sessions),
        }


def _usage_values(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "fresh": usage.fresh,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "output": usage.output,
    }
