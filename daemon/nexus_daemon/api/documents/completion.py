"""Complete at a position of an open document: keys, values, paths, fields."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import apsw

from nexus_context.assistants.claude_code.rule_syntax import tool_names
from nexus_context.assistants.reading.front_matter import MatterPlace, find_matter_place, matter_fields
from nexus_context.assistants.reading.git_ignored import GitIgnore
from nexus_context.assistants.reading.toml_cursor import find_place as find_toml_place
from nexus_context.assistants.reading.working_tree import LEFT_OUT
from nexus_context.assistants.sessions.session_types import Place
from nexus_context.assistants.tracking import find_sessions
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
"""The most sessions of a program whose tool calls are counted: the last ones."""
MOST_COUNTED = 40
"""The most files of a directory whose tokens are shown."""
LONGEST_COUNTED = 64 << 10  # bytes
FAMILIES = {"claude-code": "anthropic", "codex": "openai", "gemini": "google"}
"""The provider of a program's models."""
_VARIABLE = re.compile(r"(?:\$\{(?:env:)?|\{env:)(\w*)$")
_IMPORT = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\ )*)$")
_RULES = tuple(("permissions", kind) for kind in ("allow", "ask", "deny"))
_SERVER_LISTS = ("enabledMcpjsonServers", "disabledMcpjsonServers")


def complete(question: Question, params: PositionParams) -> list[dict[str, Any]]:
    """Return the completion items at a position."""
    document, offset = question.document, question.offset(params.position)
    if document.kind == "instructions":
        matter = find_matter_place(document.text, offset)
        return _complete_import(question, offset) if matter is None else _complete_matter(question, matter)
    find = find_place if document.kind == "json" else find_toml_place
    cursor = find(document.text, offset)
    if cursor is None:
        return []
    readers = question.readers()
    names = _vocabularies(question, readers)
    if cursor.is_object and cursor.key is None:
        keys = chain.from_iterable(keys_below(name, cursor.container) for name in names)
        return key_items(document, cursor, keys, form=question.form)
    if (variable := _VARIABLE.search(cursor.prefix)) is not None:
        span = Span(offset - len(variable[1]), offset)
        names = sorted(question.scene.surroundings.environ)
        variables = (Suggestion(name, kind="variable") for name in names)
        return value_items(document, span, variables, form=question.form)
    suggestions = chain.from_iterable(_value_suggestions(question, name, cursor, readers) for name in names)
    unique = {suggestion.label: suggestion for suggestion in suggestions}
    return value_items(document, cursor.written, unique.values(), form=question.form)


def _vocabularies(question: Question, readers: Sequence[SettingsReader]) -> list[str]:
    """List the vocabularies whose keys the document may have."""
    names = [reader.program for reader in readers if reader.has_keys]
    nexus_vocabulary = question.nexus_keys
    if nexus_vocabulary is not None:
        names.append(nexus_vocabulary)
    elif any(not reader.has_keys for reader in readers):
        names.append(MCP_SERVERS)
    return names


# ---------------------------------------------------------------- values


def _value_suggestions(
    question: Question, name: str, cursor: CursorPlace, readers: Sequence[SettingsReader]
) -> Iterator[Suggestion]:
    pointer = cursor.pointer
    key = key_at(name, pointer)
    if key is not None:
        yield from (Suggestion(str(_display_text(value)), as_json(value)) for value in key.values)
        if key.name.lower().endswith("model") and not key.values:
            yield from _models(name)
    last_key = next((step for step in reversed(pointer) if isinstance(step, str)), "")
    if name == "claude-code" and (
        last_key in _SERVER_LISTS or pointer[:2] in _RULES or last_key == "matcher"
    ):
        servers = next((reader.servers for reader in readers if reader.program == name), ())
        if last_key in _SERVER_LISTS:
            yield from (_suggest_text(server.name, "MCP server") for server in servers)
        else:
            yield from _tools(question, name)
            yield from (
                _suggest_text(f"mcp__{server.name}", "all tools of the MCP server") for server in servers
            )


def _display_text(value: object) -> object:
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
    """Suggest the program's tools: the most frequent ones of its last sessions here, then the others."""
    scene, calls = question.scene, Counter[str]()
    home, environ, folder = (
        scene.surroundings.user_home,
        scene.surroundings.environ,
        scene.surroundings.folder,
    )
    place = Place(home, environ, reads_conversations(scene.snapshot.effective))
    listed_sessions = find_sessions(place, folder, assistants=(name,)).sessions
    for session in [candidate for candidate in listed_sessions if candidate.parent is None][:MOST_SESSIONS]:
        try:
            report = question.followers.report(session, place, listed_sessions)
        except apsw.Error:
            continue
        calls.update({tool_use.tool: tool_use.calls for tool_use in report.tools})
    for tool, count in calls.most_common():
        yield _suggest_text(tool, f"{count:,} calls in the last sessions here")
    yield from (_suggest_text(tool) for tool in sorted(tool_names() - calls.keys()))


# ---------------------------------------------------------------- front matter


def _complete_matter(question: Question, matter: MatterPlace) -> list[dict[str, Any]]:
    """Suggest the fields that the front matter lacks, or the values of the field at the cursor."""
    document = question.document
    fields = matter_fields(document.path)
    if matter.field is None:
        suggestions = [
            Suggestion(field.name, f"{field.name}: ", text=field.text)
            for field in fields
            if field.name not in matter.names
        ]
    else:
        values = next((field.values for field in fields if field.name == matter.field), ())
        suggestions = [Suggestion(value) for value in values]
    return value_items(document, matter.written, suggestions, form=question.form)


# ---------------------------------------------------------------- imports


def _complete_import(question: Question, offset: int) -> list[dict[str, Any]]:
    """The files and directories that an `@path` may go on with, without those that git ignores."""
    document, disk = question.document, question.scene.disk
    line_start = document.text.rfind("\n", 0, offset) + 1
    match = _IMPORT.search(document.text, line_start, offset)
    if match is None:
        return []
    written_directory, _, name_start = match[1].replace("\\ ", " ").rpartition("/")
    base = os.path.dirname(document.path)
    from_home = written_directory == "~" or written_directory.startswith("~/")
    directory = os.path.normpath(
        os.path.join(document.user_home, written_directory[2:])
        if from_home
        else os.path.join(base, written_directory)
    )
    ignore = GitIgnore(disk, directory)
    suggestions = list[Suggestion]()
    for name, entry in sorted(disk.entries(directory)):
        path, is_directory = os.path.join(directory, name), entry == "directory"
        is_hidden = name.startswith(".") and not name_start.startswith(".")
        if is_hidden or name in LEFT_OUT or path == document.path:
            continue
        if not ignore.ignores(path, is_directory=is_directory):
            text = name.replace(" ", "\\ ")
            token_detail = "" if is_directory or len(suggestions) >= MOST_COUNTED else _tokens(question, path)
            kind = "folder" if is_directory else "file"
            suggestions.append(
                Suggestion(f"{text}/" if is_directory else text, kind=kind, detail=token_detail)
            )
    span = Span(offset - len(name_start.replace(" ", "\\ ")), offset)
    return value_items(document, span, suggestions, form=question.form)


def _tokens(question: Question, path: str) -> str:
    disk = question.scene.disk
    size = disk.size(path)
    text = disk.text(path) if size is not None and size <= LONGEST_COUNTED else None
    return "" if text is None else f"≈ {TiktokenCounter().count(text):,} tokens"
