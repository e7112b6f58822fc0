"""Offer code actions that do not fix a problem: what a keystroke can do at a heading or at an import."""

import os
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.views.profile import read_profile
from nexus_context.config.fixes import meant
from nexus_context.folder.layers.walk import within
from nexus_context.folder.prompt.imports import import_tokens
from nexus_context.tokens import counter_for
from nexus_daemon.api.documents.importing import IMPORTING, importing_texts
from nexus_daemon.api.documents.question import Question
from nexus_daemon.features.document_actions import (
    LostImport,
    lost_import_actions,
    skill_action,
    skill_name,
)
from nexus_daemon.features.hover import heading_at
from nexus_daemon.features.import_links import imports_at
from nexus_daemon.features.outline import tokens_text
from nexus_daemon.lsp import lsp_types

CLAUDE_CODE = "claude-code"
SHORTEST = 200
"""The fewest characters of a section that is worth a skill file of its own."""


def find_actions(question: Question, params: lsp_types.CodeActionParams) -> list[dict[str, Any]]:
    """Return the actions at the start of the range.

    If the request names kinds, only actions of these kinds.
    """
    document = question.document
    if document.kind != "instructions":
        return []
    only = params.context.only
    offset = question.offset(params.range.start)
    actions = [*_import_actions(question, offset), *_section_actions(question, offset)]
    return [
        action
        for action in actions
        if only is None or any(f"{action['kind']}.".startswith(f"{kind}.") or not kind for kind in only)
    ]


def _import_actions(question: Question, offset: int) -> Iterator[dict[str, Any]]:
    document, disk = question.document, question.scene.disk
    for span, target in imports_at(document, offset):
        is_text = target.endswith(IMPORTING) and within(target, document.folder)
        if not is_text or question.is_file(target):
            continue
        directory, name = os.path.split(target)
        sibling_names = [file_name for file_name, entry in disk.entries(directory) if entry != "directory"]
        closest_name = meant(
            name, [file_name for file_name in sibling_names if file_name.endswith(IMPORTING)]
        )
        paths = [path for path in importing_texts(question.scene) if os.path.basename(path) == name]
        candidates = [*([os.path.join(directory, closest_name)] if closest_name else []), *paths]
        nearest: dict[str, None] = dict.fromkeys(candidates)
        lost = LostImport(span, target, [path for path in nearest if path != document.path])
        yield from lost_import_actions(document, lost, editing=question.editing)


def _section_actions(question: Question, offset: int) -> Iterator[dict[str, Any]]:
    """A section of a text that Claude Code sends with every request can be a skill."""
    document, scene = question.document, question.scene
    heading = heading_at(document.text, offset)
    if heading is None or heading.level == 1 or CLAUDE_CODE not in scene.in_use:
        return
    section = document.text[heading.section.start : heading.section.end]
    name = skill_name(heading.title)
    directory = os.path.dirname(document.path)
    path = f"{directory}/.claude/skills/{name}/SKILL.md"
    has_imports = next(import_tokens(section), None) is not None  # a skill has none
    if len(section) < SHORTEST or has_imports or not name or scene.disk.exists(path):
        return
    profile = read_profile(CLAUDE_CODE, scene.surroundings, disk=scene.disk, counted=False)
    if question.use_of(profile).use != "sent":
        return
    saved = tokens_text(section, counter_for(PROGRAMS[CLAUDE_CODE].instructions.assistant.model))
    action = skill_action(document, heading, path, saved=saved, editing=question.editing)
    if action is not None:
        yield action
