"""The features of an editor in one open document: links, definitions, hovers.

1. The text is what the editor has: some program may read a file that Nexus does not.
2. A settings file is answered for the programs that look for it, whether they are in use or not; an
   instruction file for the views in use.
3. A document outside of all folders, such as the user's own settings, is one of the first folder.
4. Each function of HANDLERS runs in a worker thread.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.model import Profile, short_path
from nexus_context.assistants.tracking.in_use import NEXUS, read_views
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.readers import UNREAD, AssistantUse, file_uses
from nexus_context.assistants.views.setting_keys import MCP_SERVERS, is_server, key_at
from nexus_context.assistants.views.settings_readers import SettingsReader, settings_readers
from nexus_context.assistants.views.subjects import NamedServer
from nexus_context.disk.files import file_stamp
from nexus_context.errors import RequestError
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.tokens import TokenCounter, counter_for, get_model_limits
from nexus_context.turn.models import model_of
from nexus_daemon import protocol
from nexus_daemon.api.explain import Scene, scene_of
from nexus_daemon.api.explain_files import explain_keys, explain_server
from nexus_daemon.features import import_links, outline
from nexus_daemon.features.answer_text import answers_text
from nexus_daemon.features.completion import ClientForm
from nexus_daemon.features.hover import TextReader, heading_at, hover, import_text, section_text
from nexus_daemon.features.open_document import KINDS, OpenDocument
from nexus_daemon.features.settings_place import SettingsPlace, place_at
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import Locator, Texts, uri_to_path

if TYPE_CHECKING:
    from nexus_context.assistants.tracking.followers import SessionFollowers
    from nexus_daemon.windows.connection import Connection

OWN_FILES = ("config.json", "mcp.json")


class Question(NamedTuple):
    """What a feature is asked about: a document, the folder around it, and what its client shows."""

    document: OpenDocument
    scene: Scene
    form: ClientForm
    followers: "SessionFollowers"

    def offset(self, position: protocol.Position) -> int:
        """The code-point offset of a position."""
        return self.document.locate.offset(self.document.path, position)

    def is_file(self, path: str) -> bool:
        """Whether there is a file, also one that is not saved yet."""
        return path in self.scene.disk.overlays or file_stamp(path) is not None

    def shorten(self, path: str) -> str:
        """A path as people write it."""
        return short_path(path, self.document.folder, self.document.user_home)

    def readers(self) -> list[SettingsReader]:
        """The programs that look for settings in the document."""
        return list(settings_readers(self.document.path, self.scene.disk, self.scene.surroundings))

    @property
    def nexus_keys(self) -> str | None:
        """The keys of the document if it is a settings file of Nexus itself."""
        directory, name = os.path.split(self.document.path)
        is_own = os.path.basename(directory) == CONFIG_DIRECTORY and name in OWN_FILES
        return None if not is_own else NEXUS if name == "config.json" else MCP_SERVERS


async def answer(client: "Connection", method: str, params: Any) -> Any:
    """The result of a request about a document; None about one that is not open, or of another kind."""
    question = await _question(client, params.text_document.uri)
    return None if question is None else await client.read(HANDLERS[method], question, params)


async def _question(client: "Connection", uri: str) -> Question | None:
    path, folders = uri_to_path(uri), client.folders
    kind = None if path is None else KINDS.get(os.path.splitext(path)[1])
    if path is None or kind is None or path not in folders.overlays:
        return None
    folder = folders.containing(path) or next(iter(folders), None)
    if folder is None:
        return None
    text, encoding = folders.overlays[path], client.capabilities.position_encoding
    scene = await scene_of(client, folder, has_servers=_names_servers(path, text))
    locate = Locator(Texts({path: text.removeprefix("\ufeff")}), encoding, {path: text})
    home = folders.load_inputs.user_home
    document = OpenDocument(path, kind, locate, folder=folder.path, user_home=home)
    form = ClientForm(client.capabilities.takes_snippets, client.capabilities.shows_markdown)
    return Question(document, scene, form, client.daemon.followers)


def _names_servers(path: str, text: str) -> bool:
    return os.path.basename(path).endswith("mcp.json") or "mcp" in text


# ---------------------------------------------------------------- links


def _document_links(question: Question, _: Any) -> list[dict[str, Any]]:
    if question.document.kind != "instructions":
        return []
    return import_links.import_links(question.document, is_file=question.is_file)


def _definition(question: Question, params: lsp_types.PositionParams) -> list[Any]:
    document, offset = question.document, question.offset(params.position)
    if document.kind == "instructions":
        return import_links.import_definition(document, offset, is_file=question.is_file)
    place = place_at(document, offset)
    answers = [] if place is None else list(_answers(question, place))
    return [protocol.Location(link.uri, link.range) for each in answers for link in each.chain if link.wins]


def _references(question: Question, params: lsp_types.PositionParams) -> list[Any]:
    document = question.document
    if document.kind == "instructions":
        return []
    place = place_at(document, question.offset(params.position))
    answers = [] if place is None else list(_answers(question, place))
    return [protocol.Location(link.uri, link.range) for each in answers for link in each.chain]


# ---------------------------------------------------------------- hovers


def _hover(question: Question, params: lsp_types.PositionParams) -> dict[str, Any] | None:
    document, offset = question.document, question.offset(params.position)
    if document.kind == "instructions":
        return _hover_instructions(question, offset)
    place = place_at(document, offset)
    if place is None:
        return None
    answers = list(_answers(question, place))
    text = answers_text(answers, lambda uri: question.shorten(uri_to_path(uri) or uri))
    return hover(
        document, place.span, text or _described(question, place), has_markdown=question.form.has_markdown
    )


def _answers(question: Question, place: SettingsPlace) -> Iterator[protocol.ExplainAnswer]:
    """What each program that looks for the file does with the key or the server at a place."""
    scene, readers = question.scene, question.readers()
    own = [NEXUS] if question.nexus_keys is not None else []
    if is_server(place.path):
        names = [each.program for each in readers] + own
        try:
            yield from explain_server(NamedServer(str(place.path[-1])), names, scene)
        except RequestError:  # nobody takes it
            return
    if question.nexus_keys == MCP_SERVERS:
        return
    for name in [each.program for each in readers if each.has_keys] + own:
        if found := explain_keys(place.keys, name, scene):
            yield found


def _described(question: Question, place: SettingsPlace) -> str:
    """What is known of a key that no view takes from here, such as one of an MCP server."""
    names = filter(None, [question.nexus_keys, MCP_SERVERS])
    found = next((key for name in names if (key := key_at(name, place.path))), None)
    return "" if found is None or not found.text else f"**{found.name}** ({found.kind}): {found.text}"


def _hover_instructions(question: Question, offset: int) -> dict[str, Any] | None:
    document, disk = question.document, question.scene.disk
    for span, target in import_links.imports_at(document, offset):
        readers, profiles = _text_readers(question)
        importers = {
            part.importer
            for profile in profiles
            for part in profile.parts
            if part.path == disk.real(target) and part.importer not in (None, document.path)
        }
        text = import_text(
            question.shorten(target),
            disk.text(target),
            readers,
            [question.shorten(each) for each in sorted(filter(None, importers))],
        )
        return hover(document, span, text, has_markdown=question.form.has_markdown)
    heading = heading_at(document.text, offset)
    if heading is None:
        return None
    text = section_text(document.text, heading, _text_readers(question)[0])
    return hover(document, heading.line, text, has_markdown=question.form.has_markdown)


def _text_readers(question: Question) -> tuple[list[TextReader], list[Profile]]:
    """The views in use, with what each does with the document, and the profiles of the programs."""
    scene, path = question.scene, question.document.path
    readers, profiles = list[TextReader](), list[Profile]()
    for view in read_views(scene.surroundings, scene.disk, scene.snapshot.effective).in_use:
        if view.name == NEXUS:
            limits, counter = model_of(scene.snapshot, None)
            is_sent = any(each.path == path for each in scene.snapshot.prompt.fragments)
            use = AssistantUse("sent") if is_sent else UNREAD
        else:
            profile = read_profile(view.name, scene.surroundings, disk=scene.disk)
            profiles.append(profile)
            model = view.model or profile.assistant.model
            limits, counter = get_model_limits(model), counter_for(model)
            use = file_uses(profile).get(path, UNREAD)
        window = limits.available(None, 0) if limits.known else None
        readers.append(TextReader(view.title, use, counter, window))
    return readers, profiles


def _completion(question: Question, params: lsp_types.PositionParams) -> list[dict[str, Any]]:
    from nexus_daemon.api.completion import complete  # its imports take long

    return complete(question, question.offset(params.position))


# ---------------------------------------------------------------- structure


def _outline(question: Question) -> list[outline.Node]:
    """The parts of a document; tokens are those of the first view in use."""
    return outline.outline(question.document, _counter(question))


def _counter(question: Question) -> TokenCounter:
    """The counter of the first view in use."""
    scene = question.scene
    names = scene.in_use if question.document.kind == "instructions" else (NEXUS,)
    if names[0] == NEXUS:
        return model_of(scene.snapshot, None)[1]
    return counter_for(PROGRAMS[names[0]].instructions.assistant.model)


def _inlay_hints(question: Question, params: lsp_types.RangeParams) -> list[dict[str, Any]]:
    """The tokens of sections and imports where a program is the first view; lenses have those of Nexus."""
    document = question.document
    if document.kind != "instructions" or question.scene.in_use[0] == NEXUS:
        return []
    span, counter = document.locate.span(document.path, params.range), _counter(question)
    hints = outline.section_hints(document, outline.outline(document, counter), span)
    for where, target in import_links.imports_of(document):
        text = question.scene.disk.text(target) if span.start <= where.end <= span.end else None
        if text is not None:
            hints.append(outline.hint(document, where.end, outline.tokens_text(text, counter)))
    return hints


def _document_symbols(question: Question, _: Any) -> list[dict[str, Any]]:
    return outline.symbols(question.document, _outline(question))


def _folds(question: Question, _: Any) -> list[dict[str, Any]]:
    return outline.folds(question.document, _outline(question))


def _selection_ranges(question: Question, params: lsp_types.SelectionRangeParams) -> list[dict[str, Any]]:
    nodes = _outline(question)
    return [
        outline.selection_range(question.document, nodes, question.offset(position))
        for position in params.positions
    ]


HANDLERS: Mapping[str, Callable[[Question, Any], Any]] = {
    "textDocument/completion": _completion,
    "textDocument/definition": _definition,
    "textDocument/documentLink": _document_links,
    "textDocument/documentSymbol": _document_symbols,
    "textDocument/foldingRange": _folds,
    "textDocument/hover": _hover,
    "textDocument/inlayHint": _inlay_hints,
    "textDocument/references": _references,
    "textDocument/selectionRange": _selection_ranges,
}
"""By method, each for the parameters of the method."""
