"""Convert values of the library to results of the protocol, with ranges in the client's position encoding."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context import errors
from nexus_context.errors import Span
from nexus_context.text.decoding import convert_to
from nexus_daemon import protocol
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.process import lazy

if TYPE_CHECKING:  # neither the first reply nor the first diagnostics wait for what makes contexts
    from nexus_context.conversation import budget
    from nexus_context.folder.snapshot import Snapshot
    from nexus_context.turn.assembly import Measure
    from nexus_context.turn.prefix import CacheReport
    from nexus_context.turn.request import AssembledContext, Pending
    from nexus_daemon.workspace.watcher import Freshness


def problems(locate: Locator, values: Iterable[errors.Problem]) -> list[protocol.Problem]:
    return [_problem(problem, locate) for problem in values]


def freshness(value: "Freshness") -> protocol.Freshness:
    return protocol.Freshness(
        state=value.state,
        since=None if value.since is None else utc(value.since),
        every_seconds=None if value.every is None else round(value.every, 3),
        reasons=list(value.reasons),
    )


def utc(seconds: float) -> str:
    """Format a time (`time.time()`) in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def usage(value: "budget.TokenUsage", locate: Locator, positions: Sequence[int] = ()) -> protocol.TokenUsage:
    """Convert a usage. `positions` are the positions of the conversation's messages."""
    return protocol.TokenUsage(
        model=value.model,
        limit=value.limit,
        limit_known=value.limit_known,
        reserved=value.reserved,
        available=value.available,
        total=value.total,
        remaining=value.remaining,
        percent=value.percent,
        over=value.over,
        counter=protocol.Counter(value.counter, value.exact),
        rows=[_row(row, locate, positions) for row in value.rows],
        parts=[protocol.UsagePart(part.part, part.tokens, part.exact) for part in value.parts],
        corrected=_corrected(value),
        deferred_tokens=value.deferred or None,
    )


def _corrected(value: "budget.TokenUsage") -> protocol.CorrectedTotal | None:
    corrected = value.corrected
    if corrected is None:
        return None
    percent = round(100 * corrected.total / value.available, 1) if value.available else 100.0
    error = None if corrected.error is None else round(corrected.error / 10, 1)
    return protocol.CorrectedTotal(corrected.total, percent, error)


def _measure(context: "AssembledContext") -> "Measure":
    metadata = context.metadata
    removed = metadata.get("truncation", {}).get("removedMessages", 0)
    return lazy.assembly.Measure(
        context.usage,
        metadata["wantedPercent"],
        removed,
        metadata.get("compactionReason"),
        pending=context.pending,
    )


def _pending(value: "Pending | None", locate: Locator) -> protocol.PendingChanges | None:
    if value is None:
        return None
    changes = [
        protocol.PendingChange(
            change.kind,
            change.label,
            change.tokens,
            told=change.told,
            tool=change.is_tool,
            source=locate.location(change.path, Span(0, 0)) if change.path else None,
        )
        for change in value.changes
    ]
    return protocol.PendingChanges(
        changes, value.tokens, loses_thinking=value.loses_reasoning, cost_usd=value.cost
    )


def measured(measure: "Measure", locate: Locator, positions: Sequence[int] = ()) -> protocol.TokenUsage:
    """Convert the usage of a conversation, with what was cut from it and what changes are pending."""
    return msgspec.structs.replace(
        usage(measure.usage, locate, positions),
        wanted_percent=measure.wanted_percent,
        removed_messages=measure.removed_messages or None,
        compaction_reason=measure.compaction_reason,
        pending=_pending(measure.pending, locate),
    )


def assembled(
    context: "AssembledContext",
    snapshot: "Snapshot",
    params: protocol.AssembleParams,
    locate: Locator,
    *,
    folder: str,
    metadata: dict[str, Any],
    positions: Sequence[int] = (),
) -> protocol.AssembledContext:
    """Build the result of `nexus/context/assemble`.

    `metadata` has the context's own metadata and what is added here.

    `positions` are the positions of the conversation's messages.
    """
    event = (params.event or {}).get("id")
    return protocol.AssembledContext(
        revision=snapshot.revision,
        workspace_folder=folder,
        session=context.session,
        agent=params.agent,
        system_prompt=context.prompt.text,
        history=context.view.encoded(),
        current_message=context.current_message,
        tools=context.tools,
        parameters={n: protocol.ParameterValue(p.value, p.origin) for n, p in context.parameters.items()},
        model=context.model,
        provider=context.provider,
        usage=measured(_measure(context), locate, positions),
        token_budget=convert_to(context.budget, protocol.TokenBudget, from_attributes=True),
        permissions=context.permissions,
        toolset="narrowed" if "toolsLeftOut" in metadata else "all",
        role=snapshot.role,
        workspace_path=context.workspace_path,
        metadata=metadata,
        problems=problems(locate, snapshot.problems),
        request=context.request,
        request_id=context.sent_request.id,
        source_event=event if isinstance(event, str) else None,
        endpoint=_endpoint(snapshot),
    )


def cache_report(report: "CacheReport", locate: Locator) -> protocol.CacheReport:
    """Report how much of the previous request a provider can reuse."""
    broke = report.broke
    if broke is None:
        return protocol.CacheReport(report.reused, report.total)
    source = None
    if broke.path is not None and broke.span is not None:
        source = locate.location(broke.path, broke.span)
    cache_break = protocol.CacheBreak(
        broke.category, broke.label, broke.tokens, cost_usd=broke.cost, source=source
    )
    return protocol.CacheReport(report.reused, report.total, cache_break, report.lapsed or None)


def _endpoint(snapshot: "Snapshot") -> protocol.Endpoint | None:
    endpoint = lazy.endpoint.endpoint_of(snapshot)
    if endpoint is None:
        return None
    return protocol.Endpoint(
        has_key=endpoint.has_key,
        url=endpoint.url,
        headers=list(endpoint.headers),
        key_variable=endpoint.key_variable,
    )


def _problem(problem: errors.Problem, locate: Locator) -> protocol.Problem:
    return protocol.Problem(
        uri=locate.uri(problem.path),
        range=locate.range(problem.path, problem.span),
        severity=int(problem.severity),
        code=problem.code,
        message=problem.message,
        fix=_fix(problem.path, problem.fix, locate) if problem.fix else None,
    )


def _fix(path: str, fix: errors.Fix, locate: Locator) -> protocol.Fix:
    edits = [protocol.FixEdit(locate.range(path, edit.span), edit.text) for edit in fix.edits]
    return protocol.Fix(fix.title, edits)


def _row(row: "budget.UsageRow", locate: Locator, positions: Sequence[int]) -> protocol.UsageRow:
    source = locate.location(row.path, row.span) if row.path and row.span else None
    index = row.message
    message = positions[index] if index is not None and index < len(positions) else None
    return protocol.UsageRow(
        row.category, row.label, row.tokens, exact=row.exact, source=source, message=message
    )
