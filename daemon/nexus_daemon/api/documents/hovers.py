"""Answer hovers: what an editor shows about the text at a position.

In a settings file, the hover answers for all programs that look for the file, in use or not. In an
instruction file, it answers for the views in use.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from nexus_context.assistants.reading.findings import value_at
from nexus_context.assistants.reading.profile_types import Profile
from nexus_context.assistants.tracking.in_use import NEXUS, read_views
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.readers import UNREAD, AssistantUse
from nexus_context.assistants.views.rule_texts import describe_rule
from nexus_context.assistants.views.setting_keys import MCP_SERVERS, is_server, key_at
from nexus_context.assistants.views.subjects import NamedServer
from nexus_context.errors import RequestError
from nexus_context.tokens import counter_for, get_model_limits
from nexus_context.turn.models import model_of
from nexus_daemon import protocol
from nexus_daemon.api.documents.question import Question
from nexus_daemon.api.explain import NOT_STOPPED
from nexus_daemon.api.explain_files import explain_keys, explain_link, explain_server
from nexus_daemon.features import import_links
from nexus_daemon.features.answer_text import answers_text
from nexus_daemon.features.hover import TextReader, heading_at, hover, import_text, section_text
from nexus_daemon.features.settings_place import SettingsPlace, parse
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import uri_to_path

_WITHOUT_EFFECT = ("assistant.no-effect", "assistant.unknown-name")


def find_hover(question: Question, params: lsp_types.PositionParams) -> dict[str, Any] | None:
    """Return the hover of a key, a heading or an import. None if there is nothing to say."""
    document, offset = question.document, question.offset(params.position)
    if document.kind == "instructions":
        return _hover_instructions(question, offset)
    place = question.settings_place(params.position)
    if place is None:
        return None
    answers = [_rule_answer(question, place, answer) for answer in settings_answers(question, place)]
    text = answers_text(answers, lambda uri: question.shorten(uri_to_path(uri) or uri))
    return hover(
        document, place.span, text or _described(question, place), has_markdown=question.form.has_markdown
    )


def settings_answers(question: Question, place: SettingsPlace) -> Iterator[protocol.ExplainAnswer]:
    """Explain what each program that reads the settings file does with the key or server at `place`."""
    scene, readers = question.scene, question.readers()
    nexus_view = [NEXUS] if question.nexus_keys is not None else []
    if is_server(place.path):
        names = [reader.program for reader in readers] + nexus_view
        with suppress(RequestError):  # nobody takes it
            yield from explain_server(NamedServer(str(place.path[-1])), names, scene)
        return
    if question.nexus_keys == MCP_SERVERS:
        return
    for name in [reader.program for reader in readers if reader.has_keys] + nexus_view:
        if answer := explain_keys(place.keys, name, scene):
            yield answer


def _rule_answer(
    question: Question, place: SettingsPlace, answer: protocol.ExplainAnswer
) -> protocol.ExplainAnswer:
    """Explain the permission rule at `place` instead of its setting, if the value in this file counts.

    The chain has the rules that cover it and count before it.
    """
    document, scene, name = question.document, question.scene, answer.assistant
    parsed, paths = parse(document), (document.path, scene.disk.real(document.path))
    rule = None if parsed is None else describe_rule(name, place.path, value_at(parsed.value, place.path))
    counts = any(link.wins and uri_to_path(link.uri) in paths for link in answer.chain)
    if parsed is None or rule is None or not counts:
        return answer
    spans = (parsed.key_span(place.path), parsed.span(place.path))
    problems = [
        problem
        for problem in read_profile(name, scene.surroundings, disk=scene.disk, counted=False).problems
        if problem.path in paths and problem.span in spans
    ]
    sentences = [problem.message for problem in problems]
    if not any(problem.code in _WITHOUT_EFFECT for problem in problems):
        not_stopped = NOT_STOPPED.get(name, {}).get(rule.tool) if rule.kind == "deny" else None
        sentences = [rule.sentences, *sentences, *filter(None, [not_stopped])]
    return protocol.ExplainAnswer(
        assistant=name,
        version=answer.version,
        reason=sentences[0],
        chain=[
            explain_link(scene, related.path, related.span, related.message.replace("`", ""), wins=True)
            for problem in problems
            for related in problem.related
        ],
        note=" ".join(sentences[1:]) or None,
    )


def _described(question: Question, place: SettingsPlace) -> str:
    """Describe a key that no view reads from this file, such as one of an MCP server."""
    names = filter(None, [question.nexus_keys, MCP_SERVERS])
    key_doc = next((key for name in names if (key := key_at(name, place.path))), None)
    return (
        "" if key_doc is None or not key_doc.text else f"**{key_doc.name}** ({key_doc.kind}): {key_doc.text}"
    )


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
            [question.shorten(importer) for importer in sorted(filter(None, importers))],
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
    paths = (path, scene.disk.real(path))
    readers, profiles = list[TextReader](), list[Profile]()
    for view in read_views(scene.surroundings, scene.disk, scene.snapshot.effective).in_use:
        if view.name == NEXUS:
            limits, counter = model_of(scene.snapshot, None)
            is_sent = any(fragment.path in paths for fragment in scene.snapshot.prompt.fragments)
            use = AssistantUse("sent") if is_sent else UNREAD
        else:
            profile = read_profile(view.name, scene.surroundings, disk=scene.disk)
            profiles.append(profile)
            model = view.model or profile.assistant.model
            limits, counter = get_model_limits(model), counter_for(model)
            use = question.use_of(profile)
        window = limits.available(None, 0) if limits.known else None
        readers.append(TextReader(view.title, use, counter, window))
    return readers, profiles
