"""`nexus sessions list --assistants`: the sessions that other assistants have here."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from nexus_context.assistant_sessions import AssistantSession, Usage, find_sessions
from nexus_context.redact import redact
from nexus_context.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import load_inputs
from nexus_daemon.cli.sessions.open_session import note, workspace_of

UNSTATED = "–"


def run_list(options: argparse.Namespace) -> int:
    inputs = load_inputs()
    folder = None if options.all else workspace_of(options.folder)
    assistant_sessions = find_sessions(str(inputs.user_home), inputs.environ, folder)
    for path, reason in assistant_sessions.failures:
        output.complain("sessions", f"{path} cannot be read: {reason}")
    code = 1 if assistant_sessions.failures else 0
    sessions = assistant_sessions.sessions
    if options.json:
        output.json_value(
            {"sessions": [_values(session) for session in sessions], "totals": list(_totals(sessions))}
        )
    elif sessions:
        _print(sessions, folders=options.all)
    else:
        where = "on this machine" if folder is None else f"in {folder}"
        note(f"Claude Code, Codex and opencode have no sessions {where}; start one of them there.")
    return code


def _print(sessions: Sequence[AssistantSession], *, folders: bool) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("assistant", no_wrap=True)
    table.add_column("session", style="bold", min_width=16)
    if folders:
        table.add_column("folder", overflow="fold")
    table.add_column("model", no_wrap=True)
    for column in ("window", "from cache", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("changed", no_wrap=True)
    for session in sessions:
        name = Text(_shown(session.prompt or session.id), no_wrap=True, overflow="ellipsis")
        place = (Text(visible_line(session.folder or UNSTATED)),) if folders else ()
        model = Text(visible_line(session.model or UNSTATED))
        cost = UNSTATED if session.cost_usd is None else f"${session.cost_usd:,.2f}"
        figures = (_window(session), _cached(session.last), cost)
        table.add_row(session.assistant, name, *place, model, *figures, output.local_time(session.changed))
    output.console().print(table)


def _shown(text: str) -> str:
    """What somebody wrote, in one line and without secrets."""
    return visible_line(redact(text))


def _window(session: AssistantSession) -> str:
    """How much of its window the last request used."""
    if session.last is None:
        return UNSTATED
    used = session.last.sent
    if not session.window:
        return f"{used:,}"
    return f"{used:,} of {session.window:,} ({used / session.window:.0%})"


def _cached(last: Usage | None) -> str:
    """The part of the last request that came from the provider's cache."""
    return UNSTATED if last is None or not last.sent else f"{last.cache_read / last.sent:.0%}"


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
        "parent": session.parent,
        "damagedLines": session.damaged,
    }


def _totals(sessions: Sequence[AssistantSession]) -> Iterator[dict[str, Any]]:
    """For each assistant what its sessions say of all their requests; `unsummed` of them say nothing."""
    for assistant in dict.fromkeys(session.assistant for session in sessions):
        listed = [session for session in sessions if session.assistant == assistant]
        totals = [session.total for session in listed if session.total is not None]
        costs = [session.cost_usd for session in listed if session.cost_usd is not None]
        yield {
            "assistant": assistant,
            "sessions": len(listed),
            "unsummed": len(listed) - len(totals),
            "total": _usage_values(
                Usage(
                    fresh=sum(total.fresh for total in totals),
                    cache_read=sum(total.cache_read for total in totals),
                    cache_write=sum(total.cache_write for total in totals),
                    output=sum(total.output for total in totals),
                )
            ),
            "costUsd": sum(costs) if costs else None,
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
