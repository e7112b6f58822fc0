"""List the parts of a document with their tokens, counted for the first view in use."""

from typing import Any

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.tracking.in_use import NEXUS
from nexus_context.tokens import TokenCounter, counter_for
from nexus_context.turn.models import model_of
from nexus_daemon.api.documents.question import Question
from nexus_daemon.features import import_links, outline
from nexus_daemon.lsp import lsp_types


def find_symbols(question: Question, _: lsp_types.DocumentParams) -> list[dict[str, Any]]:
    """Return the sections of an instruction file, or the keys of a settings file."""
    return outline.symbols(question.document, _outline(question))


def find_folds(question: Question, _: lsp_types.DocumentParams) -> list[dict[str, Any]]:
    """Return the folding ranges of the sections or keys."""
    return outline.folds(question.document, _outline(question))


def find_selection_ranges(question: Question, params: lsp_types.SelectionRangeParams) -> list[dict[str, Any]]:
    """Return, for each position, the nested ranges of the sections or keys around it."""
    nodes, document = _outline(question), question.document
    offsets = map(question.offset, params.positions)
    return [outline.selection_range(document, nodes, offset) for offset in offsets]


def find_inlay_hints(question: Question, params: lsp_types.RangeParams) -> list[dict[str, Any]]:
    """Return the token counts of sections and imports, if the first view in use is not Nexus.

    For Nexus, code lenses show these counts, so there are no hints.
    """
    document = question.document
    if document.kind != "instructions" or question.scene.in_use[0] == NEXUS:
        return []
    span, counter = document.locate.span(document.path, params.range), _counter(question)
    hints = outline.section_hints(document, outline.outline(document, counter), span)
    for import_span, target in import_links.imports_of(document):
        text = question.scene.disk.text(target) if span.start <= import_span.end <= span.end else None
        if text is not None:
            hints.append(outline.hint(document, import_span.end, outline.tokens_text(text, counter)))
    return hints


def _outline(question: Question) -> list[outline.Node]:
    return outline.outline(question.document, _counter(question))


def _counter(question: Question) -> TokenCounter:
    scene = question.scene
    names = scene.in_use if question.document.kind == "instructions" else (NEXUS,)
    if names[0] == NEXUS:
        return model_of(scene.snapshot, None)[1]
    return counter_for(PROGRAMS[names[0]].instructions.assistant.model)
