"""Finds where the settings of programs name an MCP server: its definitions, and the rules and lists that use
it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, Surroundings
from nexus_context.assistants.reading.settings import read_document
from nexus_context.assistants.views.mcp_servers import find_server_keys
from nexus_context.errors import Span
from nexus_context.text.json import JsonDocument
from nexus_context.text.json.spans import texts_in

LISTS = ("enabledMcpjsonServers", "disabledMcpjsonServers")
"""The settings that list servers by name."""
_RULE = "mcp__"
_FORBIDDEN = re.compile(r"[^\w.-]")


class NameUse(NamedTuple):
    """A place that names a server or a skill. `span` is the name itself, without quotes; `defines` is true if
    the thing's own entry is there.
    """

    path: str
    span: Span
    defines: bool


def find_server_uses(name: str, disk: Disk, surroundings: Surroundings) -> list[NameUse]:
    """List the places that name a server, in the settings that programs read in a folder. Each place is there
    once, definitions first.
    """
    uses: dict[tuple[str, Span], NameUse] = {}
    all_settings = {key: program.settings(disk, surroundings) for key, program in PROGRAMS.items()}
    for key, settings in all_settings.items():
        for server in PROGRAMS[key].servers.read(disk, settings):
            if server.name == name:
                text = disk.text(server.path) or ""
                for key_span in find_server_keys(server.path, name, disk):
                    span = _inside(text, key_span)
                    uses.setdefault((server.path, span), NameUse(server.path, span, defines=True))
    for settings in all_settings.values():
        for use in _uses_in(settings, name, disk):
            uses.setdefault((use.path, use.span), use)
    return list(uses.values())


def is_server_name(name: str) -> bool:
    """Whether every program accepts a name for a server: letters, digits, `_`, `-` and dots, and no `__`."""
    return bool(name) and _FORBIDDEN.search(name) is None and "__" not in name


def _inside(text: str, span: Span) -> Span:
    """A span without the quotes at its ends."""
    is_quoted = text[span.start : span.start + 1] in ('"', "'")
    return Span(span.start + 1, span.end - 1) if is_quoted else span


def _uses_in(settings: AssistantSettings, name: str, disk: Disk) -> Iterator[NameUse]:
    for file in settings.files:
        document = file.document or (None if file.path.endswith(".toml") else read_document(disk, file.path))
        if document is None or name not in document.text:
            continue
        for pointer, text in texts_in(document.value):
            start = _start_in(name, pointer, text)
            if start is not None:
                span = span_in(document, pointer, text, start=start, length=len(name))
                if span is not None:
                    yield NameUse(file.path, span, defines=False)


def _start_in(name: str, pointer: tuple[str | int, ...], text: str) -> int | None:
    """The offset at which a text names the server: in a rule for its tools or a list of servers."""
    if text == name and len(pointer) > 1 and pointer[-2] in LISTS:
        return 0
    tool_suffix = text.removeprefix(f"{_RULE}{name}")
    is_rule = tool_suffix != text and (not tool_suffix or tool_suffix.startswith(("__", "(")))
    return len(_RULE) if is_rule else None


def span_in(
    document: JsonDocument, pointer: tuple[str | int, ...], text: str, *, start: int, length: int
) -> Span | None:
    """Return the place of a part of a text; None if the text is written with escapes."""
    span = document.span(pointer)
    if document.text[span.start + 1 : span.end - 1] != text:
        return None
    return Span(span.start + 1 + start, span.start + 1 + start + length)
