"""Find where a position of a document leads: links, definitions, references, highlights."""

from typing import Any

from nexus_context.assistants.tracking.in_use import NEXUS
from nexus_daemon import protocol
from nexus_daemon.api import explain_files
from nexus_daemon.api.documents.hovers import settings_answers
from nexus_daemon.api.documents.importing import find_imports_of, importing_texts
from nexus_daemon.api.documents.question import Question
from nexus_daemon.api.documents.renames import server_at, server_uses
from nexus_daemon.features import import_links
from nexus_daemon.features.setting_links import setting_links
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import Locator, Texts, path_to_uri
from nexus_daemon.workspace.context_documents import context_uri


def find_document_links(question: Question, _: lsp_types.DocumentParams) -> list[dict[str, Any]]:
    """Return the links of a document: the imports of an instruction file, or the settings whose value is a
    file.
    """
    if question.document.kind != "instructions":
        return setting_links(question.document, is_file=question.is_file)
    return import_links.import_links(question.document, is_file=question.is_file)


def find_definition(question: Question, params: lsp_types.PositionParams) -> list[Any]:
    """Return the file of an import, the entry of a server, or the file that decides a setting."""
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
    return [
        protocol.Location(link.uri, link.range) for answer in answers for link in answer.chain if link.wins
    ]


def find_references(question: Question, params: lsp_types.PositionParams) -> list[Any]:
    """Return the files that set a setting, the places that name a server, or the imports of a file.

    In an instruction file, the file is that of the import at the position, else the document itself.
    """
    if question.document.kind == "instructions":
        return _imports_like(question, question.offset(params.position), importing_texts(question.scene))
    place = question.settings_place(params.position)
    if place is None:
        return []
    if (server := server_at(question, place)) is not None:
        uses, locate = server_uses(question, server[0])
        return [locate.location(use.path, use.span) for use in uses]
    answers = settings_answers(question, place)
    return [protocol.Location(link.uri, link.range) for answer in answers for link in answer.chain]


def find_landings(question: Question, params: lsp_types.PositionParams) -> list[protocol.Location]:
    """Return where a line of an instruction file is in what each view in use sends, in its virtual document.

    Empty if the client does not read virtual documents.
    """
    document, scene = question.document, question.scene
    if document.kind != "instructions" or not question.form.has_contexts:
        return []
    landings = explain_files.find_landings(document.path, params.position.line + 1, scene.in_use, scene)
    folder, locations = path_to_uri(document.folder), list[protocol.Location]()
    for name, row in landings:
        start = protocol.Position(row, 0)
        uri = context_uri(folder, assistant=None if name == NEXUS else name)
        locations.append(protocol.Location(uri, protocol.Range(start, start)))
    return locations


def find_highlights(question: Question, params: lsp_types.PositionParams) -> list[dict[str, Any]]:
    """Return the places in this document that name the import or server at the position."""
    document, path = question.document, question.document.path
    if document.kind == "instructions":
        offset = question.offset(params.position)
        has_import = any(import_links.imports_at(document, offset))
        texts = {path: document.text} if has_import else {}
        return [{"range": location.range} for location in _imports_like(question, offset, texts)]
    place = question.settings_place(params.position)
    server = None if place is None else server_at(question, place)
    if server is None:
        return []
    uses, locate = server_uses(question, server[0])
    return [{"range": locate.range(path, use.span)} for use in uses if use.path == path]


def _imports_like(question: Question, offset: int, texts: dict[str, str]) -> list[protocol.Location]:
    """Find imports, in these texts, of the file that the import at `offset` names, else of the document."""
    document, scene = question.document, question.scene
    target = next(
        (imported_path for _, imported_path in import_links.imports_at(document, offset)), document.path
    )
    locate = Locator(Texts(texts), scene.encoding)
    return [locate.location(path, span) for path, span in find_imports_of(target, scene, texts)]


def find_semantic_tokens(question: Question, _: lsp_types.DocumentParams) -> dict[str, Any]:
    """Return tokens for the imports of an instruction file that lead to an existing file."""
    document = question.document
    imports = import_links.imports_of(document) if document.kind == "instructions" else ()
    spans = [span for span, target in imports if question.is_file(target)]
    return {"data": import_links.semantic_tokens(document, spans)}
