"""Values of the library → results of the protocol, with ranges in the client's position encoding."""

from collections.abc import Iterable

import msgspec

from nexus_context import budget, errors
from nexus_context.assembly import AssembledContext
from nexus_context.snapshot import Snapshot
from nexus_daemon import protocol
from nexus_daemon.convert import Locator


def problems(locate: Locator, found: Iterable[errors.Problem]) -> list[protocol.Problem]:
    return [_problem(problem, locate) for problem in found]


def usage(value: budget.TokenUsage, locate: Locator) -> protocol.TokenUsage:
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
        rows=[_row(row, locate) for row in value.rows],
    )


def assembled(
    context: AssembledContext,
    snapshot: Snapshot,
    params: protocol.AssembleParams,
    folder: str,
    locate: Locator,
    *,
    history: list[msgspec.Raw] | None = None,
) -> protocol.Assembled:
    """The result of `nexus/context/assemble`. `history` is the context's own, where it is encoded already."""
    return protocol.Assembled(
        revision=snapshot.revision,
        workspace_folder=folder,
        session=params.session,
        agent=params.agent,
        system_prompt=context.prompt.text,
        history=context.history if history is None else history,
        current_message=context.current_message,
        tools=context.tools,
        parameters={n: protocol.ParameterValue(p.value, p.origin) for n, p in context.parameters.items()},
        model=context.model,
        provider=context.provider,
        usage=usage(context.usage, locate),
        metadata=context.metadata,
        problems=problems(locate, context.problems),
        request=context.request,
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


def _row(row: budget.UsageRow, locate: Locator) -> protocol.UsageRow:
    source = locate.location(row.path, row.span) if row.path and row.span else None
    return protocol.UsageRow(row.category, row.label, row.tokens, row.exact, source)
