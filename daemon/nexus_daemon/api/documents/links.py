"""Where a position of a document leads."""

from typing import Any

from nexus_daemon import protocol
from nexus_daemon.api.documents.hovers import settings_answers
from nexus_daemon.api.documents.question import Question
from nexus_daemon.api.documents.renames import server_at, server_uses
from nexus_daemon.features import import_links
from nexus_daemon.lsp import lsp_types


def find_document_links(question: Question, _: lsp_types.DocumentParams) -> list[dict[str, Any]]:
    """The imports of an instruction file that lead to a file."""
    if question.document.kind != "instructions":
        return []
    return import_links.import_links(question.document, is_file=question.is_file)


def find_definition(question: Question, params: lsp_types.PositionParams) -> list[Any]:
    """The file of an import, the entry of a server, or the file that decides a setting."""
    document, offset = question.document, question.offset(params.position)
    if document.kind == "instructions":
        return import_links.import_definition(document, offset, is_file=question.is_file)
    place = question.settings_place(params.position)
    if place is None:
        return []
    if (server := server_at(question, place)) is not None:
        uses, locate = server_uses(question, server[0])
        return [locate.location(use.path, use.span) for use in uses if use.defines]
    answers = settings_answers(question, place)
    return [protocol.Location(link.uri, link.range) for each in answers for link in each.chain if link.wins]


def find_references(question: Question, params: lsp_types.PositionParams) -> list[Any]:
    """The files that set a setting, or the places that name a server."""
    place = question.settings_place(params.position)
    if place is None:
        return []
    if (server := server_at(question, place)) is not None:
        uses, locate = server_uses(question, server[0])
        return [locate.location(use.path, use.span) for use in uses]
    answers = settings_answers(question, place)
    return [protocol.Location(link.uri, link.range) for each in answers for link in each.chain]
