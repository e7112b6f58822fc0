"""Answer `nexus/assistant/sessions` and `session`: what other assistants do in a folder."""

import os
import time
from typing import TYPE_CHECKING

import apsw

from nexus_context.assistants.programs import WITH_SESSIONS
from nexus_context.assistants.sessions.report import DroppedItems, ReportedWindow, SessionReport, WindowPart
from nexus_context.assistants.sessions.session_types import Place, is_within
from nexus_context.assistants.tracking import AssistantSession, Usage, find_sessions
from nexus_context.assistants.tracking.followers import SessionFollowers, is_live
from nexus_context.config.conversations import explain_not_read, reads_conversations
from nexus_context.errors import RequestError
from nexus_context.text.redact import redact
from nexus_context.tokens.models import UNKNOWN_WINDOW
from nexus_daemon import protocol
from nexus_daemon.api import resolve
from nexus_daemon.lsp import convert

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection
    from nexus_daemon.windows.live_folder import LiveFolder

MOST_LISTED = 200
"""The most sessions of a folder that are listed: the ones that changed last."""
MOST_REPORTED = 3
"""The most live sessions whose transcripts are read for the list."""
LONGEST_TITLE = 300
_TOP = protocol.Range(protocol.Position(0, 0), protocol.Position(0, 0))
_PARTS = {"system": "system", "instructions": "system", "tools": "tools"}
_LABELS = {
    "system": "the program's prompt",
    "tools": "definitions of tools",
    "instructions": "instructions",
    "user": "messages of the user",
    "answers": "answers",
    "thinking": "thinking",
    "calls": "calls",
    "results": "results",
    "attachments": "attachments",
    "summary": "summary",
    "earlier": "earlier",
}


async def sessions(
    client: "Connection", params: protocol.AssistantSessionsParams
) -> protocol.AssistantSessionsResult:
    """List the sessions of Claude Code, Codex, opencode and Gemini CLI in a folder, at most 200, the latest
    first.

    Their files are only read. An unknown assistant is an error. While the setting `views.conversations` is
    off, the list is empty, and `notice` says why.
    """
    _check_assistant(params.assistant)
    folder = client.folders.at(params.workspace_folder)
    place = await _session_place(client, folder)
    return await client.read(_list, client.daemon.followers, place, folder=folder.path, params=params)


async def session(
    client: "Connection", params: protocol.AssistantSessionParams
) -> protocol.AssistantSessionResult:
    """Return the window, cache, compactions, tools, sub-agents and cost of a session of another assistant.

    The first request reads the session's transcript, or the end of a large one. A later request reads only
    what was added. While the setting `views.conversations` is off, the request is an error.
    """
    _check_assistant(params.assistant)
    folder = client.folders.at(params.workspace_folder)
    place = await _session_place(client, folder)
    return await client.read(_report, client.daemon.followers, place, folder=folder.path, params=params)


async def _session_place(client: "Connection", folder: "LiveFolder") -> Place:
    settings = (await resolve.snapshot_of(client, folder, None)).effective
    inputs = client.folders.load_inputs
    return Place(
        str(inputs.user_home), inputs.environ, reads_conversations(settings), explain_not_read(settings)
    )


def _check_assistant(name: str | None) -> None:
    if name is not None and name not in WITH_SESSIONS:
        names = ", ".join(WITH_SESSIONS)
        raise RequestError(
            f"There are no sessions of {name!r}. Nexus reads those of: {names}.", code="unknown-assistant"
        )


def _list(
    followers: SessionFollowers, place: Place, *, folder: str, params: protocol.AssistantSessionsParams
) -> protocol.AssistantSessionsResult:
    assistants = WITH_SESSIONS if params.assistant is None else (params.assistant,)
    found_sessions = find_sessions(place, folder, assistants=assistants)
    now = time.time()
    chosen_sessions = [
        listed_session
        for listed_session in found_sessions.sessions
        if not params.live or is_live(listed_session, now)
    ]
    failures = [
        protocol.AssistantSessionFailure(convert.path_to_uri(path), reason)
        for path, reason in found_sessions.failures
    ]
    infos: list[protocol.AssistantSessionInfo] = []
    for listed_session in chosen_sessions[:MOST_LISTED]:
        report = None
        if is_live(listed_session, now) and listed_session.parent is None and len(infos) < MOST_REPORTED:
            try:
                report = followers.report(listed_session, place, found_sessions.sessions)
            except apsw.Error:
                report = None  # as a failure above says
        infos.append(build_info(listed_session, report, now))
    return protocol.AssistantSessionsResult(infos, failures, found_sessions.notice)


def _report(
    followers: SessionFollowers, place: Place, *, folder: str, params: protocol.AssistantSessionParams
) -> protocol.AssistantSessionResult:
    found_sessions = find_sessions(place, folder, assistants=(params.assistant,))
    matches = (listed_session for listed_session in found_sessions.sessions if listed_session.id == params.id)
    listed_session = next(matches, None)
    if found_sessions.notice is not None:
        raise RequestError(found_sessions.notice, code="conversations-off")
    if listed_session is None:
        message = (
            f"{params.assistant} has no session {params.id!r} in {folder}. nexus/assistant/sessions lists "
            "those that there are."
        )
        raise RequestError(message, code="unknown-assistant-session")
    try:
        report = followers.report(listed_session, place, found_sessions.sessions)
    except apsw.Error as error:
        raise RequestError(
            f"{listed_session.path} cannot be read: {error}", code="unknown-assistant-session"
        ) from error
    return build_session(report, time.time())


def build_info(
    session: AssistantSession, report: SessionReport | None, now: float
) -> protocol.AssistantSessionInfo:
    """Build the protocol's form of a session. If there is a `report`, its newer values are used."""
    title = session.prompt
    return protocol.AssistantSessionInfo(
        assistant=session.assistant,
        id=session.id,
        uri=convert.path_to_uri(session.path),
        folder=None if session.folder is None else convert.path_to_uri(session.folder),
        title=None if title is None else redact(title)[:LONGEST_TITLE],
        updated=session.changed if report is None else report.changed,
        live=is_live(session, now),
        model=session.model if report is None else report.model,
        parent=session.parent,
        last=_tokens(session.last if report is None else report.last),
        window=session.window if report is None else report.window.size,
        usage=None if report is None else _usage(report),
        cost_usd=session.cost_usd if report is None else report.cost_usd,
        cost_at_least=bool(session.lacks if report is None else report.lacks),
        fork_of=session.fork_of,
        compactions=None if report is None else len(report.compactions),
    )


def build_session(report: SessionReport, now: float) -> protocol.AssistantSessionResult:
    """Build the protocol's form of a report. `now` decides whether the session is live."""
    cache = report.cache
    session = AssistantSession(
        assistant=report.assistant,
        id=report.id,
        path=report.path,
        folder=report.folder,
        prompt=report.title,
        changed=report.changed,
        parent=report.parent,
        fork_of=report.fork_of,
    )
    return protocol.AssistantSessionResult(
        session=build_info(session, report, now),
        version=report.version,
        requests=report.requests,
        context=_window(report.window),
        total=_tokens(report.total) or protocol.AssistantTokens(0, 0, 0, 0),
        total_origin=report.total_origin,
        cost_origin=report.cost_origin,
        cost_lacks=report.lacks,
        estimated_output=report.estimated,
        cache=None
        if cache is None
        else protocol.AssistantCache(
            lifetime_seconds=cache.lifetime_s,
            cold_at=cache.cold_at,
            next_tokens=cache.next_tokens,
            warm_usd=cache.warm_usd,
            cold_usd=cache.cold_usd,
        ),
        misses=[
            protocol.AssistantCacheMiss(
                at=miss.at,
                cause=miss.cause,
                tokens=miss.tokens,
                cost_usd=miss.cost_usd,
                idle_seconds=miss.idle_s,
                detail=miss.detail,
            )
            for miss in report.misses
        ],
        missed_tokens=report.missed_tokens,
        missed_usd=report.missed_usd,
        compactions=[
            protocol.AssistantCompaction(
                at=compaction.at,
                trigger=compaction.trigger,
                before=compaction.before,
                after=compaction.after,
                dropped=_dropped(compaction.dropped),
                partial=compaction.is_partial,
            )
            for compaction in report.compactions
        ],
        tools=[
            protocol.AssistantTool(
                tool=tool.tool,
                server=tool.server,
                calls=tool.calls,
                errors=tool.errors,
                tokens=tool.tokens,
                in_window=tool.in_window,
                cost_usd=tool.cost_usd,
            )
            for tool in report.tools
        ],
        agents=[
            protocol.AssistantSubAgent(
                id=agent.id,
                title=None if agent.title is None else redact(agent.title),
                model=agent.model,
                requests=agent.requests,
                tokens=_tokens(agent.usage) or protocol.AssistantTokens(0, 0, 0, 0),
                window=agent.window,
                cost_usd=agent.cost_usd,
                cost_at_least=bool(agent.lacks),
                updated=agent.changed,
            )
            for agent in report.agents
        ],
        instructions=[convert.path_to_uri(path) for path in report.instructions if os.path.isabs(path)],
        skipped_bytes=report.skipped_bytes,
        unread=report.unread,
        damaged_lines=report.damaged,
        long_lines=report.long_lines,
    )


def _tokens(usage: Usage | None) -> protocol.AssistantTokens | None:
    if usage is None:
        return None
    return protocol.AssistantTokens(usage.fresh, usage.cache_read, usage.cache_write, usage.output)


def _window(window: ReportedWindow) -> protocol.AssistantWindow:
    return protocol.AssistantWindow(
        used=window.used,
        size=window.size,
        parts=[
            protocol.AssistantWindowPart(
                category=part.category, label=part.label, server=part.server, tokens=part.tokens
            )
            for part in window.parts
        ],
        estimate=window.is_estimate,
    )


def _dropped(items: DroppedItems | None) -> protocol.AssistantDropped | None:
    if items is None:
        return None
    return protocol.AssistantDropped(
        instructions=list(items.instructions),
        tasks=list(items.tasks),
        paths=list(items.paths),
        identifiers=list(items.identifiers),
        counts=items.counts,
    )


def _usage(report: SessionReport) -> protocol.TokenUsage:
    """Convert the window to a token usage: the same rows under the category names of Nexus."""
    window = report.window
    limit = window.size or UNKNOWN_WINDOW
    return protocol.TokenUsage(
        model=report.model or "",
        limit=limit,
        limit_known=window.size is not None,
        reserved=0,
        available=limit,
        total=window.used,
        remaining=limit - window.used,
        percent=round(100 * window.used / limit, 1),
        over=window.used > limit,
        counter=protocol.Counter(name="provider", exact=not window.is_estimate),
        rows=[_usage_row(part, report.folder) for part in window.parts],
    )


def _usage_row(part: WindowPart, folder: str | None) -> protocol.UsageRow:
    """A part of the window as a row; an instruction file leads to its text."""
    is_file = part.category == "instructions" and os.path.isabs(part.label)
    label = os.path.relpath(part.label, folder) if is_file and is_within(part.label, folder) else part.label
    return protocol.UsageRow(
        category=_PARTS.get(part.category, "history"),
        label=" ".join(filter(None, (_LABELS[part.category], part.server, label))),
        tokens=part.tokens,
        exact=False,
        source=protocol.Location(convert.path_to_uri(part.label), _TOP) if is_file else None,
    )
