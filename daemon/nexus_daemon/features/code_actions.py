"""Quick fixes: the fix of each problem at the cursor, and the edits that make Nexus read an unread file."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nexus_context.errors import Edit, Fix, Problem, Span
from nexus_context.layers.unread import edits_of, title_of
from nexus_daemon.lsp.convert import Locator, diagnostic

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot


def code_actions(
    snapshot: "Snapshot", path: str, span: Span, *, uri: str, encoding: str, creates: bool = False
) -> list[dict[str, Any]]:
    """Return a preferred quick fix for each problem whose span or edits touch `span`.

    The edits count because an editor with its own JSON errors may report one where Nexus would edit: an
    unclosed bracket at the end of the file. `uri` is the client's spelling of the file's URI, used in the
    edits. `creates`: the client can create files.
    """
    locate = Locator(snapshot.layers, encoding)
    problems = [
        problem
        for problem in sorted(snapshot.problems, key=lambda problem: problem.span)
        if problem.path == path and _touches(problem, span)
    ]
    return [
        *(_fix_action(problem, problem.fix, uri, locate) for problem in problems if problem.fix is not None),
        *_unread_actions(snapshot, path, locate, creates=creates),
    ]


def _unread_actions(
    snapshot: "Snapshot", path: str, locate: Locator, *, creates: bool
) -> Iterator[dict[str, Any]]:
    """Offer the edits that make Nexus read an unread file, wherever the cursor is."""
    skipped = next((each for each in snapshot.layers.unread if each.path == path), None)
    if skipped is None or skipped.remedy is None:
        return
    files = edits_of(snapshot.layers, skipped.remedy)
    new = [locate.uri(each.path) for each in files if each.creates]
    if not files or (new and not creates):
        return
    edits = {locate.uri(each.path): _text_edits(each.path, each.edits, locate) for each in files}
    workspace_edit: dict[str, Any] = {"changes": edits}
    if new:
        creating = [{"kind": "create", "uri": uri, "options": {"ignoreIfExists": True}} for uri in new]
        editing = [{"textDocument": {"uri": uri, "version": None}, "edits": edits[uri]} for uri in edits]
        workspace_edit = {"documentChanges": [*creating, *editing]}
    yield {
        "title": title_of(skipped.remedy),
        "kind": "quickfix",
        "isPreferred": True,
        "edit": workspace_edit,
    }


def _fix_action(problem: Problem, fix: Fix, uri: str, locate: Locator) -> dict[str, Any]:
    return {
        "title": fix.title,
        "kind": "quickfix",
        "isPreferred": True,
        "diagnostics": [diagnostic(problem, locate)],
        "edit": {"changes": {uri: _text_edits(problem.path, fix.edits, locate)}},
    }


def _touches(problem: Problem, cursor: Span) -> bool:
    """Whether the problem or one of its edits shares a character, or a border, with the cursor."""
    edits = () if problem.fix is None else problem.fix.edits
    spans = (problem.span, *(edit.span for edit in edits))
    return any(span.start <= cursor.end and cursor.start <= span.end for span in spans)


def _text_edits(path: str, edits: Iterable[Edit], locate: Locator) -> list[dict[str, Any]]:
    return [{"range": locate.range(path, edit.span), "newText": edit.text} for edit in edits]
