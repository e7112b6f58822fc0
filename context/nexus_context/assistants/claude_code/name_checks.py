"""Names in Claude Code's settings that are spelled almost like one that a file has.

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
from nexus_context.assistants.claude_code.rule_syntax import parse_rule
from nexus_context.assistants.claude_code.settings import config_directory, read_state
from nexus_context.assistants.claude_code.skills import list_built_in_skills
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import name_problem, value_at
from nexus_context.assistants.reading.markdown import split_front_matter
from nexus_context.assistants.reading.model import AssistantSettings, Surroundings
from nexus_context.assistants.reading.servers import server_names
from nexus_context.assistants.reading.working_tree import parents
from nexus_context.config.fixes import as_json, meant
from nexus_context.errors import Problem
from nexus_context.text.json import Pointer

OWN_AGENTS = ("Explore", "Plan", "claude-code-guide", "general-purpose", "statusline-setup")
MOST_AGENTS = 500  # files whose names are read
_NAMED = ("mcp__", "Skill(", "Agent(", "Task(")
_OF_OTHERS = re.compile(r".*[:* ].*|plugin_.*|claude_ai_.*", re.DOTALL)
"""Names of what plugins and the account bring, and patterns."""


class _Use(NamedTuple):
    """A name in a file: what it is of, and what stands before and behind it in its text."""

    kind: str
    name: str
    pointer: Pointer
    before: str = ""
    behind: str = ""


def check_names(disk: Disk, settings: AssistantSettings) -> Iterator[Problem]:
    """The names in settings that no file has, where one has a name that is almost the same."""
    names: dict[str, list[str]] = {}
    for file in settings.files:
        for use in _uses(file.values):
            if use.kind not in names:
                names[use.kind] = sorted(set(_names(disk, settings.where, use.kind)))
            if use.name in names[use.kind] or _OF_OTHERS.fullmatch(use.name) or file.document is None:
                continue
            close = meant(use.name, names[use.kind])
            if close is None or disk.text(file.path) is None:
                continue
            key = file.document.key_span(use.pointer) if use.pointer[0] == "skillOverrides" else None
            span = key or file.document.span(use.pointer)
            message = f"No file has a {use.kind} `{use.name}`."
            text = as_json(use.before + close + use.behind)
            yield name_problem(file.path, span, message, close, text=text)


def _uses(values: Any) -> Iterator[_Use]:
    for kind in KINDS:
        for index, text in _items(value_at(values, ("permissions", kind))):
            rule = parse_rule(text, kind) if text.startswith(_NAMED) else None
            pointer = ("permissions", kind, index)
            if rule is not None and rule.tool.startswith("mcp__"):
                name, separator, tool = rule.tool.removeprefix("mcp__").partition("__")
                yield _Use("server", name, pointer, before="mcp__", behind=separator + tool)
            elif rule is not None and rule.content and rule.tool in ("Skill", "Agent"):
                yield _Use(rule.tool.lower(), rule.content, pointer, before=f"{rule.tool}(", behind=")")
    for key in ("enabledMcpjsonServers", "disabledMcpjsonServers"):
        for index, name in _items(values.get(key)):
            yield _Use(f"server of {NAME}", name, (key, index))
    overrides = values.get("skillOverrides")
    for name in overrides if isinstance(overrides, dict) else ():
        yield _Use("skill", name, ("skillOverrides", name))


def _items(value: Any) -> list[tuple[int, str]]:
    """The texts of a list, with their places."""
    items = enumerate(value if isinstance(value, list) else ())
    return [(index, each) for index, each in items if isinstance(each, str) and each]


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
            each for above in parents(where.folder) for each in read_mcp_file(disk, f"{above}/{NAME}").servers
        ]
        if kind == "server":
            _, state = read_state(disk, where)
            projects = state.get("projects")
            states = [state, *(projects.values() if isinstance(projects, dict) else ())]
            names += [name for each in states if isinstance(each, dict) for name in server_names(each)]
            names = [re.sub(r"[^a-zA-Z0-9_-]", "_", name) for name in names]
        yield from names


def _entries(disk: Disk, where: Surroundings, kind: str) -> list[str]:
    """The paths in the directories of a kind."""
    above = (os.path.join(each, ".claude") for each in parents(where.folder))
    places = [os.path.join(each, kind) for each in (config_directory(where), *above)]
    return [os.path.join(place, name) for place in places for name, _ in disk.entries(place)]
