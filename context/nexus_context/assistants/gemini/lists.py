"""Computes what the system prompt of Gemini CLI has of each skill and agent.

`SkillManager`, `AgentRegistry` and `agentLoader` of its bundle (0.61.0):

1. A skill is a SKILL.md that has a name and a description. It lies in `skills` or in a directory there, of an
   extension, of the user's `.gemini` and `.agents`, or of those of the folder. If several have one name, the
   last of these places counts, and the skill is listed where the first would be. `skills.disabled` and
   `skills.enabled` of the settings turn skills off.
2. An agent is a Markdown file in `agents` of the user's `.gemini` or of an extension, all of whose fields are
   known. Agents of the folder count only after the user has approved them. `agents.overrides` and
   `experimental.enableAgents` turn agents off.
3. The skills of one directory are listed by the names of their own directories, the last name first. If
   several agents have one name, the first file counts.
"""

import functools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from nexus_context.assistants.gemini.settings import home_directory, read_extensions
from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.definitions import ListEntry, Preference, choose
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    IgnoredFile,
    LaterFile,
    Scope,
    SentBlock,
    SentPart,
)
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.yaml_fields import UnreadableError, read_fields
from nexus_context.config.check import schema_text
from nexus_context.errors import Problem, Severity, Span

SKILL = "SKILL.md"
AGENT_FIELDS = str(Path(__file__).with_name("agent_fields.json"))
_TOOL_PREFIXES = ("mcp_", "discovered_tool_")
_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n---(?:\r?\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^\s*(name|description):\s*(.*)$")
_UNSAFE = re.compile(r'[:\\/<>*?"|]')
_AGENT_NAME = re.compile(r"[a-z0-9_-]+")
_PREFERENCE = Preference(
    "Gemini CLI",
    "skill",
    "Of one name that of the folder counts, then the user's, and `.agents` before `.gemini`.",
)
_AGENTS = Preference("Gemini CLI", "agent", "Of one name the first file counts.")


def gemini_skills(
    disk: Disk, settings: AssistantSettings, *, ignored: list[IgnoredFile], problems: list[Problem]
) -> Iterator[SentBlock]:
    """Yield the list of skills that is sent, if there are any. Gemini CLI's own skills are not in it."""
    if settings.value("skills", "enabled") is False:
        return
    skills = list(_skills(disk, settings, problems))
    disabled = {name.lower() for value in settings.each("skills", "disabled") for name in texts_of(value)}
    winners = choose(
        reversed(skills), _PREFERENCE, settings.where, disk=disk, ignored=ignored, problems=problems
    )
    chosen_skills = {skill.name: skill for skill in winners}
    parts = []
    for name in dict.fromkeys(skill.name for skill in skills):
        skill = chosen_skills[name]
        if name.lower() in disabled:
            continue
        parts.append(SentPart(skill.text, "skill", skill.path, content=Span(0, len(skill.text) - 1)))
    if parts:
        yield SentBlock("skills", "system", tuple(parts), complete=False)


def gemini_agents(
    disk: Disk,
    settings: AssistantSettings,
    *,
    later: list[LaterFile],
    ignored: list[IgnoredFile],
    problems: list[Problem],
) -> Iterator[SentBlock]:
    """Yield the list of agents that is sent, if there are any. Gemini CLI's own agents are not in it."""
    if settings.value("experimental", "enableAgents") is False:
        return
    folder = os.path.join(settings.where.folder, ".gemini", "agents")
    when = "once the user has approved it"
    later.extend(LaterFile(path, "agent", when) for path in _agent_files(disk, folder))
    home = os.path.join(home_directory(settings.where), ".gemini", "agents")
    extension_directories = (
        os.path.dirname(extension.path) for extension in read_extensions(disk, settings.where)
    )
    directories = [home, *(os.path.join(directory, "agents") for directory in extension_directories)]
    agents = [
        agent
        for directory in directories
        for path in _agent_files(disk, directory)
        for agent in _agent(disk, path, problems)
    ]
    chosen_agents = choose(agents, _AGENTS, settings.where, disk=disk, ignored=ignored, problems=problems)
    parts = []
    for agent in chosen_agents:
        if any(
            override.get("enabled") is False for override in settings.each("agents", "overrides", agent.name)
        ):
            continue
        parts.append(SentPart(agent.text, "agent", agent.path, content=Span(0, len(agent.text) - 1)))
    if parts:
        yield SentBlock("agents", "system", tuple(parts), complete=False)


def _skills(disk: Disk, settings: AssistantSettings, problems: list[Problem]) -> Iterator[ListEntry]:
    """The skills, the least important first."""
    home, folder = home_directory(settings.where), settings.where.folder
    roots: list[tuple[str, Scope]] = [
        (os.path.dirname(extension.path), "user") for extension in read_extensions(disk, settings.where)
    ]
    bases: list[tuple[str, Scope]] = [(home, "user")]
    if folder != home:
        bases.append((folder, "project"))
    for base, scope in bases:
        roots.extend([(os.path.join(base, ".gemini"), scope), (os.path.join(base, ".agents"), scope)])
    for root, scope in roots:
        directory = os.path.join(root, "skills")
        names = sorted((name for name, _ in disk.entries(directory) if name[0] != "."), reverse=True)
        for path in (os.path.join(directory, name, SKILL) for name in ("", *names) if name != "node_modules"):
            texts = _texts(disk, path)
            if texts is not None and len(texts) == len(("name", "description")):
                name = _UNSAFE.sub("-", texts["name"])
                text = (
                    f"  <skill>\n    <name>{name}</name>\n"
                    f"    <description>{texts['description']}</description>\n"
                    f"    <location>{path}</location>\n  </skill>\n"
                )
                yield ListEntry(name, path, scope, text)
            elif disk.is_file(path):
                message = "Gemini CLI does not list this skill: it needs a `name` and a `description`."
                problems.append(_void(path, message))


def _texts(disk: Disk, path: str) -> dict[str, str] | None:
    """The name and the description of a skill: as YAML, else line by line; None without front matter."""
    match = _MATTER.match(disk.text(path) or "") if disk.is_file(path) else None
    if match is None:
        return None
    try:
        fields = read_fields(f"{match[1]}\n").values
    except UnreadableError:
        fields = {}
    texts = {key: fields.get(key) for key in ("name", "description")}
    if all(isinstance(text, str) for text in texts.values()):
        return {key: str(value) for key, value in texts.items()}
    return dict(_plain_fields(match[1].splitlines()))


def _plain_fields(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The fields of text that is not YAML; indented lines continue a description."""
    index = 0
    while index < len(lines):
        match = _FIELD.match(lines[index])
        index += 1
        if match is None:
            continue
        texts = [match[2].strip()]
        while match[1] == "description" and index < len(lines) and re.match(r"[ \t]+\S", lines[index]):
            texts.append(lines[index].strip())
            index += 1
        yield match[1], " ".join(filter(None, texts))


def _agent_files(disk: Disk, directory: str) -> Iterable[str]:
    names = sorted(name for name, kind in disk.entries(directory) if kind == "file")
    return [os.path.join(directory, name) for name in names if name.endswith(".md") and name[0] != "_"]


def _agent(disk: Disk, path: str, problems: list[Problem]) -> Iterator[ListEntry]:
    """The agent of a file, if its fields are known and of the right kind."""
    matter, _ = markdown.split_front_matter(disk.text(path) or "")
    try:
        fields: dict[str, Any] = {} if matter is None else read_fields(matter).values
    except UnreadableError:
        fields = {}
    name, description = fields.get("name"), fields.get("description")
    if fields.get("kind") == "remote" or "agent_card_url" in fields:
        return  # the program asks its address, which is not known
    turns = [fields[key] for key in ("max_turns", "timeout_mins") if key in fields]
    are_numbers = all(type(number) is int and number > 0 for number in turns)
    is_named = isinstance(name, str) and _AGENT_NAME.fullmatch(name) and isinstance(description, str)
    tools = texts_of(fields.get("tools"))
    unknown_names = [key for key in fields if key not in _agent_fields()["fields"]]
    unknown_names += [
        tool for tool in tools if not tool.startswith(_TOOL_PREFIXES) and tool not in _agent_fields()["tools"]
    ]
    if name in _agent_fields()["own_agents"]:
        problems.append(
            _void(path, f"Gemini CLI has an agent `{name}` of its own, and does not use this one.")
        )
    elif is_named and description and are_numbers and not unknown_names:
        yield ListEntry(str(name), path, "user", f"- {name} -> {description}\n")
    else:
        reason = "it needs a `name` (a-z, 0-9, - and _), a `description`, and turns and minutes above 0."
        if unknown_names:
            reason = f"it knows no {', '.join(f'`{unknown_name}`' for unknown_name in unknown_names)}."
        problems.append(_void(path, f"Gemini CLI leaves this agent out: {reason}"))


@functools.cache
def _agent_fields() -> dict[str, list[str]]:
    fields: dict[str, list[str]] = msgspec.json.decode(schema_text(AGENT_FIELDS))
    return fields


def _void(path: str, message: str) -> Problem:
    return Problem(path, Span(0, 0), "assistant.void", Severity.ERROR, message=message)
