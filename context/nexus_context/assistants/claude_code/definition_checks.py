"""Reports what Claude Code ignores in the front matter of agents, skills and commands.

By runs of 2.1.330, whose log names what it leaves out of an agent:

1. A tool that does not exist is ignored in `tools` and `allowed-tools`, and in `disallowedTools` it takes
   nothing away. Names are compared as a whole, with their case.
2. A mode, memory, isolation or effort that Claude Code does not know is ignored.
3. Hooks of an agent are read like those of settings. An event that does not exist is ignored.
4. An unknown skill, server or agent is reported only if a file defines almost that name, because plugins and
   the account bring others.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from nexus_context.assistants.claude_code.directories import definition_directories, markdown_files
from nexus_context.assistants.claude_code.front_matter import NO_FIELDS, read_matter, tool_names
from nexus_context.assistants.claude_code.hook_checks import check_hooks
from nexus_context.assistants.claude_code.name_checks import SERVER, FileNames
from nexus_context.assistants.claude_code.rule_syntax import rule_fault
from nexus_context.assistants.claude_code.settings import hook_events
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import Effect, name_problem
from nexus_context.assistants.reading.markdown import split_front_matter
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.config.fixes import listed, meant
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text.json import parse

_WORDS = {
    "permissionMode": ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"),
    "memory": ("user", "project", "local"),
    "isolation": ("worktree", "remote"),
    "effort": ("low", "medium", "high", "xhigh", "max"),
}
"""The fields of an agent that have one of some words."""
_EARLIER_MODE = "manual"
_ALL_TOOLS = re.compile(r"\s*all(?:\s+tools)?\s*", re.IGNORECASE)
_TOOLS = {
    "agents": {"tools": "the agent does not get it", "disallowedTools": "this takes nothing away"},
    "skills": {"allowed-tools": "this allows nothing"},
    "commands": {"allowed-tools": "this allows nothing"},
}
_NAMED = {
    "agents": (("skills", "skill"), ("mcpServers", SERVER)),
    "skills": (("agent", "agent"),),
    "commands": (("agent", "agent"),),
}
"""The fields that name what files have."""


class _Matter(NamedTuple):
    """The front matter of a file: where it ends, its fields and the places of their names."""

    path: str
    text: str
    fields: dict[str, Any]
    places: dict[str, Span]

    def span(self, field: str, word: str = "") -> Span:
        """The place of a word in a field; that of the field's name if it is not found."""
        name = self.places.get(field)
        if name is None:
            return Span(0, 3)
        match = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])").search(self.text, name.end)
        return Span(*match.span()) if match is not None and word else name


def check_definitions(disk: Disk, where: Surroundings, names: FileNames) -> Iterator[Problem]:
    """Report what is wrong with the front matter of agents, skills and commands, except those of plugins."""
    for kind, matter in _matters(disk, where):
        for field, follows in _TOOLS[kind].items():
            yield from _check_tools(matter, field, follows, names)
        if kind == "agents":
            yield from _check_words(matter)
            yield from _check_hooks(matter, disk, where)
        for field, name_kind in _NAMED[kind]:
            yield from _check_names(matter, field, name_kind, names)


def find_field_uses(kind: str, name: str, disk: Disk, where: Surroundings) -> Iterator[tuple[str, Span]]:
    """Yield the places in front matter that name a skill or an agent, as (path, span). `kind` says which."""
    for definitions, matter in _matters(disk, where):
        for field, name_kind in _NAMED[definitions]:
            if name_kind == kind and name in _field_names(matter, field, kind):
                span = matter.span(field, name)
                yield from [(matter.path, span)] if matter.text[span.start : span.end] == name else []


def _matters(disk: Disk, where: Surroundings) -> Iterator[tuple[str, _Matter]]:
    """The front matter of each file, with the kind of its definition."""
    for kind in _TOOLS:
        for file in markdown_files(disk, definition_directories(disk, where, kind), []):
            if kind != "skills" or os.path.basename(file.path) == "SKILL.md":
                yield kind, _read(disk, file.path)


def _read(disk: Disk, path: str) -> _Matter:
    text = disk.text(path) or ""
    matter, body = split_front_matter(text)
    read = read_matter(matter) or NO_FIELDS
    start = max(text.find(matter or ""), 0)
    places = {name: Span(start + span.start, start + span.end) for name, span in read.places.items()}
    return _Matter(path, text[: len(text) - len(body)], read.values, places)


def _check_tools(matter: _Matter, field: str, follows: str, names: FileNames) -> Iterator[Problem]:
    servers = matter.fields.get("mcpServers")
    items = servers if isinstance(servers, list) else ()
    value = matter.fields.get(field)
    if isinstance(value, str) and value.startswith("["):
        return  # its bracket is not closed, which is a problem of its own
    if field == "tools" and isinstance(value, str) and _ALL_TOOLS.fullmatch(value):
        message = (
            f"Claude Code takes `{value}` for names of tools: {follows}. For all tools, leave `tools` out."
        )
        yield _named(matter, field, value, message, close=None, effect="no-effect")
        return
    own_servers = {name for item in items if isinstance(item, dict) for name in item}
    for text in tool_names(value):
        name = text.partition("(")[0]
        fault = None if "*" in name or not name else rule_fault(name, "deny")
        server, _, tool = name.removeprefix("mcp__").partition("__")
        close = (
            names.near("server", server) if name.startswith("mcp__") and server not in own_servers else None
        )
        if close is not None:
            corrected_name = f"mcp__{close}__{tool}" if tool else f"mcp__{close}"
            yield _named(
                matter, field, name, f"No file has the server `{server}`: {follows}.", close=corrected_name
            )
        elif fault is not None and fault.effect != "reads-otherwise":
            message = f"Claude Code has no tool `{name}`: {follows}."
            problem = _named(matter, field, name, message, close=fault.meant, effect="no-effect")
            yield replace(problem, severity=Severity.INFORMATION) if fault.effect == "gone" else problem


def _check_words(matter: _Matter) -> Iterator[Problem]:
    for field, words in _WORDS.items():
        value = matter.fields.get(field)
        if not isinstance(value, str):
            continue
        text = value.lower() if field == "effort" else value
        if text not in ("", *words, _EARLIER_MODE) and not text.isdecimal():
            message = f"Claude Code ignores this `{field}`: it is {listed(words)}."
            close = next((word for word in words if word.lower() == value.lower()), None)
            yield _named(matter, field, value, message, close=close, effect="no-effect")


def _check_hooks(matter: _Matter, disk: Disk, where: Surroundings) -> Iterator[Problem]:
    hooks = matter.fields.get("hooks")
    if not isinstance(hooks, dict):
        return
    for event in hooks:
        if isinstance(event, str) and event not in hook_events():
            message = f"Claude Code has no hook event `{event}`, and ignores it."
            close = meant(event, hook_events())
            yield _named(matter, "hooks", event, message, close=close, effect="no-effect")
    document = parse(matter.path, json.dumps({"hooks": hooks}))
    for problem in check_hooks(document, hooks, disk, where):
        yield replace(problem, span=matter.span("hooks"), fix=None)


def _check_names(matter: _Matter, field: str, kind: str, names: FileNames) -> Iterator[Problem]:
    for name in filter(None, _field_names(matter, field, kind)):
        close = names.near(kind, name)
        if close is not None:
            yield _named(matter, field, name, f"No file has the {kind} `{name}`.", close=close)


def _field_names(matter: _Matter, field: str, kind: str) -> list[str]:
    value = matter.fields.get(field)
    return texts_of([value] if kind == "agent" else value) or (tool_names(value) if kind == "skill" else [])


def _named(
    matter: _Matter,
    field: str,
    word: str,
    message: str,
    *,
    close: str | None,
    effect: Effect = "unknown-name",
) -> Problem:
    """A problem of a word in a field."""
    span = matter.span(field, word)
    text = close if matter.text[span.start : span.end] == word else None
    return name_problem(matter.path, span, message, close, effect=effect, text=text or "")
