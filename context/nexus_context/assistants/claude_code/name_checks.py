"""Reports names in Claude Code's settings that are spelled almost like one that a file has.

Servers, skills and agents come from plugins and the account, too, so that a name which no file has may be
right. One that differs from a file's by a letter or its case is reported: names are compared as a whole.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from nexus_context.assistants.claude_code.front_matter import fields_of, text_of
from nexus_context.assistants.claude_code.mcp_file import NAME, read_mcp_file
from nexus_context.assistants.claude_code.permission_rules import KINDS
from nexus_context.assistants.claude_code.rule_syntax import PREFIX_ENDS, parse_rule
from nexus_context.assistants.claude_code.settings import config_directory, read_state
from nexus_context.assistants.claude_code.skills import list_built_in_skills
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import name_problem, value_at
from nexus_context.assistants.reading.markdown import split_front_matter
from nexus_context.assistants.reading.profile_types import AssistantSettings, Surroundings
from nexus_context.assistants.reading.servers import server_names
from nexus_context.assistants.reading.settings import read_document
from nexus_context.assistants.reading.working_tree import parents
from nexus_context.config.fixes import as_json, meant
from nexus_context.errors import Problem
from nexus_context.text.json import JsonDocument, Pointer

OWN_AGENTS = ("Explore", "Plan", "claude-code-guide", "general-purpose", "statusline-setup")
SERVER = "MCP server"
"""A server by its own name, not by that in rules."""
MOST_AGENTS = 500  # files whose names are read
_NAMED = ("mcp__", "Skill(", "Agent(", "Task(")
_OF_OTHERS = re.compile(r".*[:* ].*|plugin_.*|claude_ai_.*", re.DOTALL)
"""Names of what plugins and the account bring, and patterns."""


class _Use(NamedTuple):
    """A name in a file: the kind of thing it names, and the text before and behind it."""

    kind: str
    name: str
    pointer: Pointer
    before: str = ""
    behind: str = ""


class FileNames:
    """The names that files around a folder define, by kind, such as "skills". The files of a kind are read
    once.
    """

    def __init__(self, disk: Disk, where: Surroundings) -> None:
        self.disk = disk
        self.where = where
        self._names: dict[str, list[str]] = {}

    def near(self, kind: str, name: str) -> str | None:
        """Return the name that `name` probably misspells, else None. A name that a file defines, or that a
        plugin or the account may bring, counts as right.
        """
        if kind not in self._names:
            self._names[kind] = sorted(set(_names(self.disk, self.where, kind)))
        is_right = name in self._names[kind] or _OF_OTHERS.fullmatch(name) is not None
        return None if is_right else meant(name, self._names[kind])


def check_names(disk: Disk, settings: AssistantSettings, names: FileNames) -> Iterator[Problem]:
    """Report names in settings that no file defines, if a file defines almost the same one."""
    for file in settings.files:
        if file.document is not None:
            yield from _check_uses(disk, file.document, file.values, names)
    path, state = read_state(disk, settings.where)
    pointer = ("projects", settings.where.folder)
    values = value_at(state, pointer)
    if isinstance(values, dict) and any(names.near(use.kind, use.name) for use in _uses(values)):
        document = read_document(disk, path)  # which may have megabytes
        if document is not None:
            yield from _check_uses(disk, document, values, names, base_pointer=pointer)


def _check_uses(
    disk: Disk, document: JsonDocument, values: Any, names: FileNames, *, base_pointer: Pointer = ()
) -> Iterator[Problem]:
    for use in _uses(values):
        close = names.near(use.kind, use.name)
        if close is None or disk.text(document.path) is None:
            continue
        pointer = (*base_pointer, *use.pointer)
        key = document.key_span(pointer) if use.pointer[0] == "skillOverrides" else None
        span = key or document.span(pointer)
        text = as_json(use.before + close + use.behind)
        message = f"No file has the {use.kind} `{use.name}`."
        yield name_problem(document.path, span, message, close, text=text)


def _uses(values: Any) -> Iterator[_Use]:
    for kind in KINDS:
        for index, text in _items(value_at(values, ("permissions", kind))):
            rule = parse_rule(text, kind) if text.startswith(_NAMED) else None
            pointer = ("permissions", kind, index)
            if rule is not None and rule.tool.startswith("mcp__"):
                name, separator, tool = rule.tool.removeprefix("mcp__").partition("__")
                yield _Use("server", name, pointer, before="mcp__", behind=separator + tool)
            elif rule is not None and rule.content and rule.tool == "Agent":
                yield _Use("agent", rule.content, pointer, before="Agent(", behind=")")
            elif rule is not None and rule.content and not rule.content.endswith(PREFIX_ENDS):
                name = rule.content.removeprefix("/")
                slash = "/" if name != rule.content else ""
                yield _Use("skill", name, pointer, before=f"Skill({slash}", behind=")")
    for key in ("enabledMcpjsonServers", "disabledMcpjsonServers"):
        for index, name in _items(values.get(key)):
            yield _Use(f"server of {NAME}", name, (key, index))
    for index, name in _items(values.get("disabledMcpServers")):
        yield _Use(SERVER, name, ("disabledMcpServers", index))
    if isinstance(values.get("agent"), str):
        yield _Use("agent", values["agent"], ("agent",))
    overrides = values.get("skillOverrides")
    for name in overrides if isinstance(overrides, dict) else ():
        yield _Use("skill", name, ("skillOverrides", name))


def _items(value: Any) -> list[tuple[int, str]]:
    """The texts of a list, each with its index."""
    items = enumerate(value if isinstance(value, list) else ())
    return [(index, text) for index, text in items if isinstance(text, str) and text]


def _names(disk: Disk, where: Surroundings, kind: str) -> Iterator[str]:
    """The names of a kind that the files around a folder have."""
    if kind == "agent":
        yield from OWN_AGENTS
        paths = [path for path in _entries(disk, where, "agents") if path.endswith(".md")]
        for path in paths[:MOST_AGENTS]:
            yield text_of(fields_of(split_front_matter(disk.text(path) or "")[0]).get("name")) or ""
    elif kind == "skill":
        yield from list_built_in_skills()
        for path in (*_entries(disk, where, "skills"), *_entries(disk, where, "commands")):
            yield os.path.basename(path).removesuffix(".md")
    else:
        names = [
            server_name
            for directory in parents(where.folder)
            for server_name in read_mcp_file(disk, f"{directory}/{NAME}").servers
        ]
        if kind in ("server", SERVER):
            _, state = read_state(disk, where)
            projects = state.get("projects")
            states = [state, *(projects.values() if isinstance(projects, dict) else ())]
            names += [
                name
                for project_state in states
                if isinstance(project_state, dict)
                for name in server_names(project_state)
            ]
        yield from (re.sub(r"[^a-zA-Z0-9_-]", "_", name) if kind == "server" else name for name in names)


def _entries(disk: Disk, where: Surroundings, kind: str) -> list[str]:
    """The paths in the directories of a kind."""
    project_directories = (os.path.join(folder, ".claude") for folder in parents(where.folder))
    directories = [os.path.join(root, kind) for root in (config_directory(where), *project_directories)]
    return [os.path.join(directory, name) for directory in directories for name, _ in disk.entries(directory)]
