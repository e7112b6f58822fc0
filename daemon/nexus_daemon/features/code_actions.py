"""Offer quick fixes: the fix of each problem at the cursor, and the edits that make Nexus read an unread
file.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nexus_context.errors import Problem, Span
from nexus_context.folder.layers.unread import edits_of, title_of
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_daemon.features.diagnostics import Minders, source_of
from nexus_daemon.features.edits import Editing, workspace_edit
from nexus_daemon.lsp.convert import Locator, diagnostic, visible_span

if TYPE_CHECKING:
    from nexus_context.folder.snapshot import Snapshot


def code_actions(
    snapshot: "Snapshot", path: str, span: Span, *, locate: Locator, editing: Editing
) -> list[dict[str, Any]]:
    """Return the quick fixes at a span of a file that Nexus's own problems have."""
    return [
        *fix_actions(snapshot.problems, path, span, locate=locate, editing=editing, minders={}),
        *unread_actions(snapshot, path, locate=locate, editing=editing),
    ]


def fix_actions(
    problems: Iterable[Problem],
    path: str,
    span: Span,
    *,
    locate: Locator,
    editing: Editing,
    minders: Minders,
) -> list[dict[str, Any]]:
    """Return a quick fix for each problem whose span or edits touch `span`.

    The fix is marked as preferred, so that an editor applies it on one key, unless it writes prose that other
    assistants read, too.

    The edits count because an editor that reports JSON errors itself may report one where Nexus would edit:
    an unclosed bracket at the end of the file.
    """
    return [
        {
            "title": problem.fix.title,
            "kind": "quickfix",
            "isPreferred": not _is_shared_prose(path),
            "diagnostics": [diagnostic(problem, locate, source=source_of(problem, minders))],
            "edit": workspace_edit({path: problem.fix.edits}, (), locate, editing),
        }
        for problem in sorted(problems, key=lambda problem: problem.span)
        if problem.fix is not None and problem.path == path and _touches(problem, span, locate.text(path))
    ]


def unread_actions(
    snapshot: "Snapshot", path: str, *, locate: Locator, editing: Editing
) -> Iterator[dict[str, Any]]:
    """Offer the edits that make Nexus read an unread file, wherever the cursor is.

    The action is never marked as preferred, since the user has to choose it.
    """
    skipped = next((unread_file for unread_file in snapshot.layers.unread if unread_file.path == path), None)
    if skipped is None or skipped.remedy is None:
        return
    files = edits_of(snapshot.layers, skipped.remedy)
    new_paths = [file_edits.path for file_edits in files if file_edits.creates]
    if not files or (new_paths and not editing.creates):
        return
    edits = {file_edits.path: file_edits.edits for file_edits in files}
    edit = workspace_edit(edits, new_paths, locate, editing)
    yield {
        "title": title_of(skipped.remedy),
        "kind": "quickfix",
        "isPreferred": False,
        "edit": edit,
    }


def _is_shared_prose(path: str) -> bool:
    """Whether other assistants may read a text: it is neither settings nor in a file of Nexus alone."""
    is_own = f"/{CONFIG_DIRECTORY}/" in path or path.endswith("/NEXUS.md")
    return not is_own and not path.endswith((".json", ".jsonc", ".toml"))


def _touches(problem: Problem, cursor: Span, text: str) -> bool:
    """Whether the problem as shown, or one of its edits, shares a character or a border with the cursor."""
    edits = () if problem.fix is None else problem.fix.edits
    spans = (problem.span, visible_span(text, problem.span), *(edit.span for edit in edits))
    return any(span.start <= cursor.end and cursor.start <= span.end for span in spans)
