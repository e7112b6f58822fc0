"""What may be written at a place of an open document: keys, values, paths, fields."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import apsw

from nexus_context.assistants.claude_code.rule_syntax import tool_names
from nexus_context.assistants.reading.git_ignored import GitIgnore
from nexus_context.assistants.reading.toml_cursor import find_place as find_toml_place
from nexus_context.assistants.reading.working_tree import LEFT_OUT
from nexus_context.assistants.sessions.model import Place
from nexus_context.assistants.tracking import find_sessions
from nexus_context.assistants.views.front_matter import MatterPlace, find_matter_place, matter_fields
from nexus_context.assistants.views.setting_keys import MCP_SERVERS, key_at, keys_below
from nexus_context.assistants.views.settings_readers import SettingsReader
from nexus_context.config.conversations import reads_conversations
from nexus_context.errors import Span
from nexus_context.text.json.cursor import CursorPlace, find_place
from nexus_context.tokens import TiktokenCounter, get_model_limits
from nexus_context.tokens.models import model_names
from nexus_daemon.api.documents.question import Question
from nexus_daemon.features.answer_text import as_json
from nexus_daemon.features.completion import Suggestion, key_items, value_items
from nexus_daemon.lsp.lsp_types import PositionParams

MOST_SESSIONS = 2
"""Whose calls of tools are counted, the last ones of a program."""
MOST_COUNTED = 40
"""Files of a directory whose tokens are shown."""
LONGEST_COUNTED = 64 << 10  # bytes
FAMILIES = {"claude-code": "anthropic", "codex": "openai", "gemini": "google"}
"""The provider of a program's models."""
_VARIABLE = re.compile(r"(?:\$\{(?:env:)?|\{env:)(\w*)$")
_IMPORT = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\ )*)$")
_RULES = tuple(("permissions", kind) for kind in ("allow", "ask", "deny"))
_SERVER_LISTS = ("enabledMcpjsonServers", "disabledMcpjsonServers")


def complete(question: Question, params: PositionParams) -> list[dict[str, Any]]:
    """Return the items at a position."""
    document, offset = question.document, question.offset(params.position)
    if document.kind == "instructions":
        matter = find_matter_place(document.text, offset)
        return _complete_import(question, offset) if matter is None else _complete_matter(question, matter)
    find = find_place if document.kind == "json" else find_toml_place
    place = find(document.text, offset)
    if place is None:
        return []
    readers = question.readers()
    names = _vocabularies(question, readers)
    if place.is_object and place.key is None:
        keys = chain.from_iterable(keys_below(name, place.container) for name in names)
        return key_items(document, place, keys, form=question.form)
    if (variable := _VARIABLE.search(place.prefix)) is not None:
        span = Span(offset - len(variable[1]), offset)
        names = sorted(question.scene.surroundings.environ)
        variables = (Suggestion(name, kind="variable") for name in names)
        return value_items(document, span, variables, form=question.form)
    suggestions = chain.from_iterable(_value_suggestions(question, name, place, readers) for name in names)
    unique = {suggestion.label: suggestion for suggestion in suggestions}
    return value_items(document, place.written, unique.values(), form=question.form)


def _vocabularies(question: Question, readers: Sequence[SettingsReader]) -> list[str]:
    """Whose keys the document may have."""
    names = [each.program for each in readers if each.has_keys]
    own = question.nexus_keys
    if own is not None:
        names.append(own)
    elif any(not each.has_keys for each in readers):
        names.append(MCP_SERVERS)
    return names


# ---------------------------------------------------------------- values


def _value_suggestions(
    question: Question, name: str, place: CursorPlace, readers: Sequence[SettingsReader]
) -> Iterator[Suggestion]:
    pointer = place.pointer
    key = key_at(name, pointer)
    if key is not None:
        yield from (Suggestion(str(_shown(value)), as_json(value)) for value in key.values)
        if key.name.lower().endswith("model") and not key.values:
            yield from _models(name)
    last = next((step for step in reversed(pointer) if isinstance(step, str)), "")
    if name == "claude-code" and (last in _SERVER_LISTS or pointer[:2] in _RULES or last == "matcher"):
        servers = next((each.servers for each in readers if each.program == name), ())
        if last in _SERVER_LISTS:
            yield from (_suggest_text(each.name, "MCP server") for each in servers)
        else:
            yield from _tools(question, name)
            yield from (_suggest_text(f"mcp__{each.name}", "all tools of the MCP server") for each in servers)


def _shown(value: object) -> object:
    return value if isinstance(value, str) else as_json(value)


def _suggest_text(text: str, detail: str = "") -> Suggestion:
    return Suggestion(text, as_json(text), detail=detail)


def _models(name: str) -> Iterator[Suggestion]:
    """The models of the program's provider, with window and price."""
    provider = FAMILIES.get(name)
    for model in model_names():
        limits = get_model_limits(model)
        if provider is not None and limits.provider != provider:
            continue
        prefix = f"{limits.provider}/" if name == "opencode" else ""
        prices = [limits.input_price, limits.output_price]
        cost = (
            ""
            if None in prices
            else f" · ${limits.input_price:g} in, ${limits.output_price:g} out per million"
        )
        yield _suggest_text(f"{prefix}{model}", f"{limits.context_window:,} tokens{cost}")


def _tools(question: Question, name: str) -> Iterator[Suggestion]:
    """Its tools: those that its last sessions here called, the most frequent first, then all others."""
    scene, calls = question.scene, Counter[str]()
    home, environ, folder = (
        scene.surroundings.user_home,
        scene.surroundings.environ,
        scene.surroundings.folder,
    )
    place = Place(home, environ, reads_conversations(scene.snapshot.effective))
    listed = find_sessions(place, folder, assistants=(name,)).sessions
    for session in [each for each in listed if each.parent is None][:MOST_SESSIONS]:
        try:
            report = question.followers.report(session, place, listed)
        except apsw.Error:
            continue
        calls.update({each.tool: each.calls for each in report.tools})
    for tool, count in calls.most_common():
        yield _suggest_text(tool, f"{count:,} calls in the last sessions here")
    yield from (_suggest_text(tool) for tool in sorted(tool_names() - calls.keys()))


# ---------------------------------------------------------------- front matter


def _complete_matter(question: Question, place: MatterPlace) -> list[dict[str, Any]]:
    """The fields of front matter that are not there yet, or the values of one."""
    document = question.document
    fields = matter_fields(document.path)
    if place.field is None:
        suggestions = [
            Suggestion(each.name, f"{each.name}: ", text=each.text)
            for each in fields
            if each.name not in place.names
        ]
    else:
        values = next((each.values for each in fields if each.name == place.field), ())
        suggestions = [Suggestion(value) for value in values]
    return value_items(document, place.written, suggestions, form=question.form)


# ---------------------------------------------------------------- imports


def _complete_import(question: Question, offset: int) -> list[dict[str, Any]]:
    """The files and directories that an `@path` may go on with, without those that git ignores."""
    document, disk = question.document, question.scene.disk
    line_start = document.text.rfind("\n", 0, offset) + 1
    match = _IMPORT.search(document.text, line_start, offset)
    if match is None:
        return []
    above, _, written = match[1].replace("\\ ", " ").rpartition("/")
    base = os.path.dirname(document.path)
    from_home = above == "~" or above.startswith("~/")
    directory = os.path.normpath(
        os.path.join(document.user_home, above[2:]) if from_home else os.path.join(base, above)
    )
    ignore = GitIgnore(disk, directory)
    suggestions = list[Suggestion]()
    for name, entry in sorted(disk.entries(directory)):
        path, is_directory = os.path.join(directory, name), entry == "directory"
        is_hidden = name.startswith(".") and not written.startswith(".")
        if is_hidden or name in LEFT_OUT or path == document.path:
            continue
        if not ignore.ignores(path, is_directory=is_directory):
            text = name.replace(" ", "\\ ")
            counted = "" if is_directory or len(suggestions) >= MOST_COUNTED else _tokens(question, path)
            kind = "folder" if is_directory else "file"
            suggestions.append(Suggestion(f"{text}/" if is_directory else text, kind=kind, detail=counted))
    span = Span(offset - len(written.replace(" ", "\\ ")), offset)
    return value_items(document, span, suggestions, form=question.form)


def _tokens(question: Question, path: str) -> str:
    disk = question.scene.disk
    size = disk.size(path)
    text = disk.text(path) if size is not None and size <= LONGEST_COUNTED else None
    return "" if text is None else f"≈ {TiktokenCounter().count(text):,} tokens"
