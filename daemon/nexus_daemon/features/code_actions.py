"""Quick fixes: the one fix of each problem at the cursor; in a file that is not read, to read it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nexus_context.errors import Fix, Problem, Span
from nexus_context.layers.unread_fixes import edits_of, title_of
from nexus_daemon.lsp.convert import Locator, diagnostic

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot


def code_actions(
    snapshot: "Snapshot", path: str, uri: str, span: Span, encoding: str, *, creates: bool = False
) -> list[dict[str, Any]]:
    """A preferred quick fix for each problem that `span` touches, itself or with its edits.

    An editor that reports errors of JSON itself may see one where the daemon would fix it: a bracket that is
    not closed, at the end. `uri` is the client's spelling of the file, used in the edits. `creates`: the
    client can create files.
    """
    locate = Locator(snapshot.layers, encoding)
    return [*_fixes(snapshot, path, uri, span, locate), *_reading(snapshot, path, locate, creates=creates)]


def _reading(snapshot: "Snapshot", path: str, locate: Locator, *, creates: bool) -> Iterator[dict[str, Any]]:
    """What makes Nexus read a file that it does not read, anywhere in it."""
    skipped = next((each for each in snapshot.layers.unread if each.path == path), None)
    if skipped is None or skipped.remedy is None:
        return
    files = edits_of(snapshot.layers, skipped.remedy)
    new = [locate.uri(each.path) for each in files if each.creates]
    if not files or (new and not creates):
        return
    edits = {
        locate.uri(each.path): [
            {"range": locate.range(each.path, edit.span), "newText": edit.text} for edit in each.edits
        ]
        for each in files
    }
    changed: dict[str, Any] = {"changes": edits}
    if new:
        creating = [{"kind": "create", "uri": uri, "options": {"ignoreIfExists": True}} for uri in new]
        editing = [{"textDocument": {"uri": uri, "version": None}, "edits": edits[uri]} for uri in edits]
        changed = {"documentChanges": [*creating, *editing]}
    yield {
        "title": title_of(skipped.remedy),
        "kind": "quickfix",
        "isPreferred": True,
        "edit": changed,
    }


def _fixes(snapshot: "Snapshot", path: str, uri: str, span: Span, locate: Locator) -> list[dict[str, Any]]:
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
