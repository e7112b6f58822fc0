"""Quick fixes: the one mend of each problem at the cursor."""

from typing import TYPE_CHECKING, Any

from nexus_context.errors import Fix, Problem, Span
from nexus_daemon.convert import Locator, diagnostic

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot


def code_actions(
    snapshot: "Snapshot", path: str, uri: str, span: Span, encoding: str
) -> list[dict[str, Any]]:
    """A preferred quick fix for each mendable problem that `span` touches, itself or with its edits.

    An editor that reports errors of JSON itself may see one where the daemon would mend it: a bracket that is
    not closed, at the end. `uri` is the client's spelling of the file, used in the edits.
    """
    locate = Locator(snapshot.layers, encoding)
    return [
        {
            "title": problem.fix.title,
            "kind": "quickfix",
            "isPreferred": True,
            "diagnostics": [diagnostic(problem, locate)],
            "edit": {"changes": {uri: _edits(problem, problem.fix, locate)}},
        }
        for problem in sorted(snapshot.problems, key=lambda problem: problem.span)
        if problem.path == path
        and problem.fix is not None
        and any(_touches(span, place) for place in (problem.span, *(edit.span for edit in problem.fix.edits)))
    ]


def _touches(one: Span, other: Span) -> bool:
    """Whether two spans have a character, or a border, in common."""
    return one.start <= other.end and other.start <= one.end


def _edits(problem: Problem, fix: Fix, locate: Locator) -> list[dict[str, Any]]:
    return [{"range": locate.range(problem.path, edit.span), "newText": edit.text} for edit in fix.edits]
