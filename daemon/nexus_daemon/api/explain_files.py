"""Explain what views do with a setting, a line of an instruction file, or an MCP server, for `nexus/explain`.

1. A setting is answered by the views whose files set it. If no file sets it, the views that know it answer.
2. For a line, the answer says where it is in the text that a view sends.
3. The token cost of a server's tools is known only for servers that Nexus has seen: those in the files that
   it reads.
"""

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.findings import value_at
from nexus_context.assistants.reading.profile_types import AssistantServer, Keys, Profile
from nexus_context.assistants.tracking.in_use import NEXUS, view_title
from nexus_context.assistants.views.mcp_servers import STARTS, find_server_key
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.readers import UNREAD, AssistantUse, file_uses
from nexus_context.assistants.views.setting_docs import SettingDoc, setting_doc
from nexus_context.assistants.views.setting_values import (
    SettingValue,
    find_setting,
    nearest_setting,
    read_keys,
)
from nexus_context.assistants.views.subjects import FileLine, NamedServer
from nexus_context.config.check import describe
from nexus_context.disk.files import which
from nexus_context.errors import RequestError, Severity, Span
from nexus_context.folder.prompt.imports import import_targets
from nexus_context.folder.skills.front_matter import lenient_front_matter
from nexus_context.text.json import pointer_text
from nexus_context.text.lines import LineIndex
from nexus_context.text.redact import printable_setting, redact
from nexus_context.tokens import TokenCounter, counter_for
from nexus_context.turn.models import model_of
from nexus_daemon import protocol
from nexus_daemon.api.assistant_views import build_preview
from nexus_daemon.api.context import build_preview as build_own_preview
from nexus_daemon.features.code_lens import code_lenses
from nexus_daemon.features.server_text import STATES
from nexus_daemon.lsp import convert
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.process.version import __version__

if TYPE_CHECKING:
    from nexus_daemon.api.explain import Scene

_VERDICTS = {"starts": "allowed", "asks": "asks", "off": "denied"}
_OWN_VERDICTS = {"stopped": "allowed", "starting": "allowed", "ready": "allowed", "disabled": "denied"}
MOST_LINES = 5_000
"""The most lines that are compared if an assistant changes a text."""
LISTED_FIELDS = ("name", "description", "when_to_use")
"""The fields of skills and agents that assistants list."""
LONGEST_START = 60
"""The most characters of a field's line to search in a list, which may have only the line's beginning."""
_NOWHERE = protocol.Range(protocol.Position(0, 0), protocol.Position(0, 0))


def explain_link(scene: "Scene", path: str, span: Span, value: str, *, wins: bool) -> protocol.ExplainLink:
    """Build the link to a span of a file; `value` is the text that stands there, or words about it."""
    text = scene.disk.text(path) or ""
    link_range = convert.range_of(LineIndex(text), span, scene.encoding)
    return protocol.ExplainLink(convert.path_to_uri(path), link_range, value, wins)


def _version(name: str) -> str:
    return __version__ if name == NEXUS else PROGRAMS[name].instructions.assistant.version


# ---------------------------------------------------------------- settings


_DOTTED = re.compile(r"[A-Za-z][\w-]*(?:\.[\w-]+)+")


def explain_setting(
    text: str, names: Sequence[str], scene: "Scene", *, is_exclusive: bool
) -> list[protocol.ExplainAnswer]:
    """Explain the value in force in each named view that has the setting.

    If none has it, explain all other views.

    RequestError if `is_exclusive` and only other views have it. Empty if no view has it.
    """
    other_names = tuple(name for name in (*PROGRAMS, NEXUS) if name not in names)
    for group in (names, other_names):
        answers = [answer for name in group if (answer := _answer_text(text, name, scene)) is not None]
        if answers and group is other_names and is_exclusive:
            having = _titles([answer.assistant for answer in answers])
            raise RequestError(
                f"{_titles(names)} has no setting `{text}`. {having} has.", code="no-such-setting"
            )
        if answers:
            return [answer for answer in answers if answer.chain] or answers
    return []


def check_spelling(text: str, names: Sequence[str], scene: "Scene") -> None:
    """Raise RequestError if `text` is not a command on the PATH but looks like a setting of a view."""
    environ, folder = scene.surroundings.environ, scene.surroundings.folder
    if which(text, search=environ.get("PATH", "")) or scene.disk.exists(os.path.join(folder, text)):
        return
    for name in dict.fromkeys((*names, *PROGRAMS, NEXUS)):
        schema = describe(()) if name == NEXUS else PROGRAMS[name].settings_schema
        nearest = nearest_setting(schema or {}, text)
        if nearest is not None:
            raise RequestError(
                f"No setting is named `{text}`, and no command on the PATH. Did you mean `{nearest}` of "
                f"{view_title(name)}? Write 'Bash({text})' for the command.",
                code="no-such-setting",
            )
    if _DOTTED.fullmatch(text):
        raise RequestError(
            f"Nexus knows no setting, file or command `{text}`. Check the spelling. For a command that is "
            f"not on the PATH, write 'Bash({text})'.",
            code="no-such-setting",
        )


def _titles(names: Sequence[str]) -> str:
    return ", ".join(map(view_title, names))


def _answer_text(text: str, name: str, scene: "Scene") -> protocol.ExplainAnswer | None:
    """Explain the setting of a view that the user's text names. None if the view has no such setting."""
    if name == NEXUS:
        return explain_keys(tuple(text.strip("/").replace("/", ".").split(".")), name, scene)
    settings = PROGRAMS[name].settings(scene.disk, scene.surroundings)
    return explain_keys(read_keys(name, text, settings), name, scene)


def explain_keys(keys: Keys, name: str, scene: "Scene") -> protocol.ExplainAnswer | None:
    """Explain the value in force at the path of keys `keys` in a view's settings.

    None if the view has no such setting.
    """
    if name == NEXUS:
        return _own_setting(keys, scene)
    settings = PROGRAMS[name].settings(scene.disk, scene.surroundings)
    setting = find_setting(name, keys, settings, scene.disk)
    if setting is None:
        return None
    stop, is_known = settings.stop, setting.is_known is not False
    doc = setting_doc(name, keys)
    return protocol.ExplainAnswer(
        assistant=name,
        version=_version(name),
        reason=_setting_reason(PROGRAMS[name].title, ".".join(keys), setting, doc),
        value=setting.value,
        chain=[
            explain_link(
                scene,
                source.path,
                source.span,
                _as_text(source.value),
                wins=source.counts and is_known,
            )
            for source in setting.sources
        ],
        documentation=None if doc is None else doc.text,
        note=None if stop is None else f"It does not start here: {stop.message}",
    )


def _setting_reason(title: str, text: str, setting: SettingValue, doc: SettingDoc | None) -> str:
    if setting.is_known is False:
        return f"{title} has no setting `{text}`: it has no effect."
    if not setting.sources:
        default = "" if doc is None or doc.default is None else f": {_as_text(doc.default)}"
        return f"No file sets it: {title} uses its default{default}."
    counting = sum(source.counts for source in setting.sources)
    if not counting:
        return f"It is set where {title} ignores the whole file: `nexus check` says why."
    return "In force from one file." if counting == 1 else f"In force from {counting} files together."


def _own_setting(keys: Keys, scene: "Scene") -> protocol.ExplainAnswer | None:
    node = describe(keys)
    if node is None:
        return None
    effective = scene.snapshot.effective
    value, pointer = value_at(effective.values, keys), pointer_text(keys)
    chain = [
        explain_link(
            scene, source.path, source.span, _as_text(printable_setting(source.value, keys)), wins=source.wins
        )
        for source in reversed(effective.provenance.get(pointer, ()))
        if source.document is not None
    ]
    if isinstance(value, dict):  # files set its parts
        part_sources = [
            sources for key, sources in effective.provenance.items() if key.startswith(f"{pointer}/")
        ]
        winners = (
            source
            for sources in part_sources
            for source in sources
            if source.document is not None and source.wins
        )
        files = {source.path: source for source in winners}
        chain += [
            explain_link(scene, path, source.span, "parts of it", wins=True) for path, source in files.items()
        ]
    return protocol.ExplainAnswer(
        assistant=NEXUS,
        version=__version__,
        reason="In force from a file." if any(link.wins for link in chain) else "The default of Nexus.",
        value=printable_setting(value, keys),
        chain=chain,
        documentation=node.get("description"),
    )


def _as_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# ---------------------------------------------------------------- lines


class Landing(NamedTuple):
    """The line, from 1, that a source line has in a text that a view sends. `place` names that text. `row` is
    its line, from 0, in all that the view sends.
    """

    line: int
    place: str
    row: int

    @property
    def sentence(self) -> str:
        """Return a sentence for people that says where the line is."""
        return f"Sent with every request: line {self.line:,} of {self.place}."


def explain_line(subject: FileLine, names: Sequence[str], scene: "Scene") -> list[protocol.ExplainAnswer]:
    """Explain who reads a line, where it is in the text that is sent, and its cost.

    RequestError without such a line.
    """
    text = scene.disk.text(subject.path) or ""
    index = LineIndex(text)  # whose lines are those of an editor
    lines = [index.line(number) for number in range(index.count)]
    lines = lines if lines[-1] else lines[:-1]
    if subject.line is not None and subject.line > len(lines):
        raise RequestError(f"{subject.path} has {len(lines)} lines.", code="no-such-line")
    return [
        _own_line(subject, lines, scene) if name == NEXUS else _assistant_line(subject, lines, name, scene)
        for name in names
    ]


def find_landings(path: str, line: int, names: Sequence[str], scene: "Scene") -> Iterator[tuple[str, int]]:
    """Find a line of a file, counted from 1, in the text that each view sends.

    Yields the name of each view that sends the line, and the line in its text, counted from 0.
    """
    for name in names:
        file_path = path if name == NEXUS else scene.disk.real(path)
        index = LineIndex(scene.disk.text(file_path) or "")
        if name == NEXUS:
            preview = build_own_preview(
                scene.snapshot, Locator(scene.snapshot.layers, scene.encoding), scene.now
            )
        else:
            profile = read_profile(name, scene.surroundings, disk=scene.disk.anew(), counted=False)
            preview = build_preview(profile, Locator(profile, scene.encoding), 0)
        lines = [index.line(number) for number in range(index.count)]
        landing = _landing(preview, FileLine(file_path, line), lines)
        if landing is not None:
            yield name, landing.row


def _assistant_line(
    subject: FileLine, lines: Sequence[str], name: str, scene: "Scene"
) -> protocol.ExplainAnswer:
    profile = read_profile(name, scene.surroundings, disk=scene.disk.anew())
    use = file_uses(profile).get(subject.path, UNREAD)
    preview = build_preview(profile, Locator(profile, scene.encoding), 0)
    landing = _landing(preview, subject, lines)
    counter = counter_for(profile.assistant.model)
    tokens = use.tokens if subject.line is None else _line_tokens(subject.line, lines, counter)
    entry = _list_entry(profile, subject, lines)
    if entry is not None:
        tokens = entry.tokens
    importers = {part.importer for part in profile.parts if part.path == subject.path and part.importer}
    return protocol.ExplainAnswer(
        assistant=name,
        version=profile.assistant.version,
        reason=entry.sentence
        if entry
        else _line_reason(profile, use, landing) or _other_use(profile, subject.path, scene),
        chain=[
            _subject_link(subject, wins=landing is not None or entry is not None),
            *(
                explain_link(scene, path, _import_span(path, subject.path, scene), "imports it", wins=True)
                for path in sorted(importers)
            ),
        ],
        tokens=0 if landing is None and use.use != "later" else tokens,
        exact=counter.exact,
        note=_line_problems(profile, subject, scene),
    )


def _line_problems(profile: Profile, subject: FileLine, scene: "Scene") -> str | None:
    """What is wrong with a line, such as an import whose file is missing. None if nothing is."""
    index = LineIndex(scene.disk.text(subject.path) or "")
    messages = [
        redact(problem.message)
        for problem in profile.problems
        if problem.path == subject.path
        and problem.severity <= Severity.WARNING
        and index.position(problem.span.start)[0] + 1 == subject.line
    ]
    return " ".join(messages) or None


class ListEntry(NamedTuple):
    """The entry of a skill or an agent in a list that every request has, with its tokens."""

    kind: str
    tokens: int

    @property
    def sentence(self) -> str:
        """Return a sentence for people that says where the entry is."""
        return f"Sent with every request, in the list of {self.kind}: the entry has these tokens."


def _list_entry(profile: Profile, subject: FileLine, lines: Sequence[str]) -> ListEntry | None:
    """The entry of a file in a list, for a line of its front matter that is in it."""
    if subject.line is None:
        return None
    text = "\n".join(lines)
    start = sum(len(line) + 1 for line in lines[: subject.line - 1])
    end = start + len(lines[subject.line - 1])
    values = [
        text[max(start, field.value.span.start) : min(end, field.value.span.end)]
        for field in (lenient_front_matter(subject.path, text).fields or {}).values()
        if field.name in LISTED_FIELDS and field.span.start < end and start < field.value.span.end
    ]
    for block in profile.blocks if values else ():
        for part in block.parts if block.kind != "instructions" else ():
            sent_text = " ".join(unescape(part.text).split())
            words = " ".join(values[0].strip("\"'|>-+ ").split())
            if part.path == subject.path and words[:LONGEST_START] in sent_text:
                return ListEntry("rules" if part.scope == "rule" else block.kind, part.tokens)
    return None


def _line_tokens(line: int, lines: Sequence[str], counter: TokenCounter) -> int:
    return counter.count(f"{lines[line - 1]}\n")


def _import_span(importer: str, path: str, scene: "Scene") -> Span:
    """Where a file imports another one; its beginning if it cannot be found."""
    text, home = scene.disk.text(importer) or "", scene.surroundings.user_home
    targets = import_targets(importer, text, home)
    return next((span for span, target in targets if scene.disk.real(target) == path), Span(0, 0))


def _other_use(profile: Profile, path: str, scene: "Scene") -> str:
    """Say what a program does with a file that it does not send to its model."""
    assistant = profile.assistant
    settings = PROGRAMS[assistant.name].settings(scene.disk.anew(), scene.surroundings)
    if any(file.path == path for file in settings.files):
        return f"{assistant.title} takes settings from it: `nexus explain KEY` says which one is in force."
    if any(server.path == path for server in profile.servers):
        return f"{assistant.title} takes MCP servers from it: `nexus explain mcp:NAME` says which ones start."
    return f"{assistant.title} does not read it."


def _line_reason(profile: Profile, use: AssistantUse, landing: Landing | None) -> str | None:
    title = profile.assistant.title
    if use.use in ("sent", "cut") and landing is not None:
        return landing.sentence
    if use.use == "sent":
        return f"{title} sends the file without this line."
    return use.reason


def _own_line(subject: FileLine, lines: Sequence[str], scene: "Scene") -> protocol.ExplainAnswer:
    snapshot, path = scene.snapshot, subject.path
    preview = build_own_preview(snapshot, Locator(snapshot.layers, scene.encoding), scene.now)
    landing = _landing(preview, subject, lines)
    lenses = code_lenses(snapshot, path, scene.encoding, folder="", agent=None, is_live=False)
    reason = lenses[0]["command"]["title"].removeprefix("Nexus: ") if lenses else "Nexus does not read it."
    if landing is not None and subject.line is not None:
        reason = landing.sentence
    fragments = [
        fragment for fragment in preview.fragments if fragment.source and fragment.source.uri == _uri(path)
    ]
    counter, file_tokens = model_of(snapshot, None)[1], sum(fragment.tokens for fragment in fragments)
    tokens = file_tokens if subject.line is None else _line_tokens(subject.line, lines, counter)
    return protocol.ExplainAnswer(
        assistant=NEXUS,
        version=__version__,
        reason=reason,
        chain=[_subject_link(subject, wins=landing is not None)],
        tokens=0 if landing is None else tokens,
        exact=counter.exact,
    )


def _subject_link(subject: FileLine, *, wins: bool) -> protocol.ExplainLink:
    if subject.line is None:
        return protocol.ExplainLink(_uri(subject.path), _NOWHERE, "the file", wins)
    line_range = protocol.Range(protocol.Position(subject.line - 1, 0), protocol.Position(subject.line, 0))
    return protocol.ExplainLink(_uri(subject.path), line_range, f"line {subject.line}", wins)


def _landing(preview: protocol.Preview, subject: FileLine, lines: Sequence[str]) -> Landing | None:
    """Where a line of a file is, or the beginning of the file."""
    top, place = 0, "the system prompt"
    line = None if subject.line is None else subject.line - 1
    for fragment in preview.fragments:
        if fragment.section == "heading":
            top, place = fragment.range.end.line, _place_of(fragment.title)
        if fragment.source is None or fragment.source.uri != _uri(subject.path):
            continue
        source, begin = fragment.source.range, fragment.range.start.line
        if line is None:
            return Landing(begin - top + 1, place, begin)
        if not fragment.verbatim:  # comments are left out, say
            sent_lines = preview.text.split("\n")[begin : fragment.range.end.line + 1]
            fragment_line = _same_line(lines, sent_lines, line)
        else:
            last_line = source.end.line - (source.end.character == 0 and source.end.line > source.start.line)
            fragment_line = line - source.start.line if source.start.line <= line <= last_line else None
        if fragment_line is not None:
            return Landing(begin - top + fragment_line + 1, place, begin + fragment_line)
    return None


def _place_of(heading: str) -> str:
    """`Codex: instructions, in a developer message; …` as a part of a sentence."""
    return f"the {heading.partition(': ')[2].partition(';')[0].replace(', in', ' in')}"


def _same_line(lines: Sequence[str], other_lines: Sequence[str], line: int) -> int | None:
    """Return the index of the same line in `other_lines`, by a diff. None if it is not there."""
    matcher = SequenceMatcher(None, lines[:MOST_LINES], other_lines[:MOST_LINES], autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.a <= line < block.a + block.size:
            return block.b + line - block.a
    return None


def _uri(path: str) -> str:
    return convert.path_to_uri(path)


# ---------------------------------------------------------------- servers


def explain_server(
    subject: NamedServer, names: Sequence[str], scene: "Scene"
) -> list[protocol.ExplainAnswer]:
    """Explain which programs start a server, and which file makes them.

    RequestError if no view has the server.
    """
    answers = [answer for name in names for answer in _server_answers(subject.name, name, scene)]
    if not answers:
        raise RequestError(
            f"No MCP server here is named `{subject.name}`, in the settings of {_titles(names)}.",
            code="no-such-server",
        )
    return answers


def _server_answers(server: str, name: str, scene: "Scene") -> Iterator[protocol.ExplainAnswer]:
    if name == NEXUS:
        yield from (_own_server(info) for info in scene.servers if info.name == server)
        return
    program = PROGRAMS[name]
    settings = program.settings(scene.disk, scene.surroundings)
    entries = [entry for entry in program.servers.read(scene.disk, settings) if entry.name == server]
    if not entries:
        return
    first_entry = entries[0]
    infos = [info for info in scene.servers if info.name == server and info.uri == _uri(first_entry.path)]
    yield protocol.ExplainAnswer(
        assistant=name,
        version=_version(name),
        verdict="denied" if settings.stop is not None else _VERDICTS[first_entry.start],
        reason=_server_reason(program.title, first_entry)
        if settings.stop is None
        else f"{program.title} does not start here: {settings.stop.message}",
        chain=[
            explain_link(
                scene,
                entry.path,
                find_server_key(entry.path, server, scene.disk),
                f"{entry.scope} {server}",
                wins=entry is first_entry,
            )
            for entry in entries
        ],
        tokens=infos[0].tokens if infos and infos[0].tools else None,
        exact=bool(infos) and infos[0].exact,
        note=program.servers.why or None if len(entries) > 1 else None,
    )


def _server_reason(title: str, server: AssistantServer) -> str:
    return server.reason or f"It {STARTS[server.start].replace('the assistant', title)}."


def _own_server(server: protocol.ServerInfo) -> protocol.ExplainAnswer:
    return protocol.ExplainAnswer(
        assistant=NEXUS,
        version=__version__,
        verdict=_OWN_VERDICTS.get(server.state, "asks"),
        reason=f"Nexus: {STATES.get(server.state, server.state)}.",
        chain=[protocol.ExplainLink(server.uri, server.range, f"{server.origin} {server.name}", wins=True)],
        tokens=server.tokens if server.tools else None,
        exact=server.exact,
    )
