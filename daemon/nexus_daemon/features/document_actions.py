"""Offer actions at a heading, and at an import whose file does not exist: each is a whole edit."""

import re
from collections.abc import Iterator, Sequence
from os.path import relpath
from typing import Any, NamedTuple

from nexus_context.errors import Edit, Span
from nexus_context.folder.prompt.headings import Heading
from nexus_daemon.features.answer_text import as_json
from nexus_daemon.features.edits import Editing, workspace_edit
from nexus_daemon.features.open_document import OpenDocument

QUICK_FIX, EXTRACT = "quickfix", "refactor.extract"
LONGEST_NAME = 60
_NO_NAME = re.compile(r"[^a-z0-9]+")


class LostImport(NamedTuple):
    """An import whose file does not exist: its span, the path that it names, and files that may be meant."""

    span: Span
    target: str
    nearest: Sequence[str]


def skill_name(title: str) -> str:
    """Return a skill's name for a heading: lowercase letters, digits and hyphens.

    Empty if the heading has none.
    """
    return _NO_NAME.sub("-", title.casefold()).strip("-")[:LONGEST_NAME].strip("-")


def skill_action(
    document: OpenDocument, heading: Heading, path: str, *, saved: str, editing: Editing
) -> dict[str, Any] | None:
    """Build the action that moves the section of a heading into a new skill at `path`.

    None if no file can be created.

    `saved` is the text that says how many tokens this saves.
    """
    if not editing.creates:
        return None
    text, section = document.text, heading.section
    description = as_json(heading.title)  # in quotes: a colon would be no YAML
    matter = f"---\nname: {skill_name(heading.title)}\ndescription: {description}\n---\n\n"
    skill = matter + text[section.start : section.end].rstrip() + "\n"
    edits = {document.path: [Edit(section, "")], path: [Edit(Span(0, 0), skill)]}
    return {
        "title": f"Move “{heading.title}” into a skill: {saved} less in every request",
        "kind": EXTRACT,
        "edit": workspace_edit(edits, [path], document.locate.beside({path: ""}), editing),
    }


def lost_import_actions(
    document: OpenDocument, lost: LostImport, *, editing: Editing
) -> Iterator[dict[str, Any]]:
    """Offer to import one of the nearest files instead, and to create the missing file."""
    directory = document.path.rpartition("/")[0]
    for path in lost.nearest:
        name = relpath(path, directory).replace(" ", "\\ ")
        edits = {document.path: [Edit(lost.span, f"@{name}")]}
        yield {
            "title": f"Import {name} instead",
            "kind": QUICK_FIX,
            "isPreferred": len(lost.nearest) == 1,
            "edit": workspace_edit(edits, (), document.locate, editing),
        }
    if editing.creates:
        edit = workspace_edit({lost.target: []}, [lost.target], document.locate, editing)
        yield {"title": f"Create {relpath(lost.target, directory)}", "kind": QUICK_FIX, "edit": edit}
