"""Computes what Claude Code sends of agents and output styles.

1. An agent is a Markdown file in or below a directory of agents; it needs a name and a description. If
   several have one name, the organization's counts, then the nearest project's, then the user's, and within
   one directory the last by path. A deny rule `Agent(name)` removes the agent, `Agent` removes all. The
   prompt of the agent that the setting `agent` names is sent, too.
2. The text of the style that the setting `outputStyle` names is sent with every request. A style of the
   project counts before one of the user with the same name.
"""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from nexus_context.assistants.claude_code.directories import (
    DefinitionFile,
    definition_directories,
    markdown_files,
    not_heeded,
    plugin_files,
)
from nexus_context.assistants.claude_code.front_matter import is_true, read_matter, text_of, tool_names
from nexus_context.assistants.claude_code.plugins import enabled_plugins
from nexus_context.assistants.claude_code.settings import are_agent_hooks
from nexus_context.assistants.reading.alphabetical import alphabetical
from nexus_context.assistants.reading.definitions import Preference, choose
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    IgnoredFile,
    Scope,
    SentBlock,
    SentPart,
)
from nexus_context.errors import Problem, Span

ALL_TOOLS = "All tools"
_TOOL = ("Agent", "Task")
_REMINDER = " output style is active. Remember to follow the specific guidelines for this style."
_MEMORIES = ("user", "project", "local")
_MEMORY_TOOLS = ("Write", "Edit", "Read")
_WHY = "Of one name the nearest counts, then the user's; in one directory the last by its path."
_AGENTS = Preference("Claude Code", "agent", _WHY)
_STYLES = Preference("Claude Code", "output style", _WHY)


class _Definition(NamedTuple):
    """An agent or a style: `text` is that of its file, `line` what a list has of it."""

    name: str
    text: str
    path: str
    scope: Scope
    line: str = ""


def claude_agents(
    disk: Disk, settings: AssistantSettings, *, ignored: list[IgnoredFile], problems: list[Problem]
) -> Iterator[SentBlock]:
    """Yield the prompt of the running agent, then the list of agents that the model may call. Claude Code's
    own agents are not in that list.
    """
    denied_rules = {rule for value in settings.each("permissions", "deny") for rule in value}
    candidates = [
        agent for file in _files(disk, settings, "agents", problems) for agent in _agent(file, problems)
    ]
    for plugin in enabled_plugins(disk, settings):
        for file in plugin_files(disk, plugin, "agents", problems):
            *parent_steps, name = file.steps
            prefix = ":".join((plugin.name, *parent_steps, ""))
            description = f"Agent from {plugin.name} plugin"
            fields = {"name": name.removesuffix(".md"), "description": description, **file.fields}
            candidates.extend(_agent(file._replace(fields=fields), problems, prefix))
    agents = choose(candidates, _AGENTS, settings.where, disk=disk, ignored=ignored, problems=problems)
    for agent in agents:
        if agent.name == settings.value("agent") and agent.text:
            part = SentPart(agent.text, "agent", agent.path, content=Span(0, len(agent.text)))
            yield SentBlock("instructions", "system", (part,), complete=False)
    if not denied_rules.isdisjoint(_TOOL):
        return
    listed_agents = (
        agent for agent in agents if denied_rules.isdisjoint(f"{tool}({agent.name})" for tool in _TOOL)
    )
    parts = tuple(
        SentPart(f"{agent.line}\n", "agent", agent.path, content=Span(0, len(agent.line)))
        for agent in sorted(listed_agents, key=lambda agent: _order(agent.name))
    )
    if parts:
        yield SentBlock("agents", "system", parts, complete=False)


def read_output_style(
    disk: Disk, settings: AssistantSettings, *, ignored: list[IgnoredFile], problems: list[Problem]
) -> Iterator[SentBlock]:
    """Yield the text of the chosen output style and the reminder of it, if a file defines that style. Claude
    Code's own styles have no file.
    """
    style_name = settings.value("outputStyle")
    styles = [("", file) for file in _files(disk, settings, "output-styles", [])]
    for plugin in enabled_plugins(disk, settings):
        for file in plugin_files(disk, plugin, "output-styles", []):
            styles.append((f"{plugin.name}:", file))
            if style_name is None and is_true(file.fields.get("force-for-plugin")):
                style_name = f"{plugin.name}:{_style_name(file)}"
    style_definitions = [
        _Definition(f"{prefix}{_style_name(file)}", file.body.strip(), file.path, file.scope)
        for prefix, file in styles
        if f"{prefix}{_style_name(file)}" == style_name
    ]
    for style in choose(
        style_definitions, _STYLES, settings.where, disk=disk, ignored=ignored, problems=problems
    ):
        header = f"<system-reminder>\n# Output Style: {style.name}\n"
        text = SentPart(style.text, "settings", style.path, content=Span(0, len(style.text)))
        parts = (SentPart(header, "program"), text, SentPart("\n</system-reminder>", "program"))
        yield SentBlock("instructions", "system", parts)
        reminder = SentPart(f"{style.name}{_REMINDER}", "program")
        yield SentBlock("instructions", "user", (reminder,), complete=False)


def _style_name(file: DefinitionFile) -> str:
    return text_of(file.fields.get("name")) or os.path.basename(file.path).removesuffix(".md")


def _files(
    disk: Disk, settings: AssistantSettings, kind: str, problems: list[Problem]
) -> Iterator[DefinitionFile]:
    """The files of a kind, the most important first."""
    managed, user, *projects = definition_directories(disk, settings.where, kind)
    for directory in (managed, *projects, user):
        yield from reversed(list(markdown_files(disk, [directory], problems)))


def _agent(file: DefinitionFile, problems: list[Problem], prefix: str = "") -> Iterator[_Definition]:
    """The agent of a file, if it is one."""
    fields = file.fields
    name, description, hooks = (fields.get(key) for key in ("name", "description", "hooks"))
    if not (isinstance(name, str) and name and isinstance(description, str) and description):
        can_be_read = file.matter is not None and read_matter(file.matter) is not None
        message = "it needs a `name` and a `description`, each a string." if can_be_read else None
    elif not prefix and (name.startswith("-") or ":" in name):
        message = "a `name` must not start with `-`, nor have a `:`."
    elif hooks is not None and not are_agent_hooks(hooks):
        message = "its `hooks` are not valid."
    else:
        allowed = tool_names(fields.get("tools"))
        if allowed and fields.get("memory") in _MEMORIES:
            allowed.extend(tool for tool in _MEMORY_TOOLS if tool not in allowed)
        tools = _tools(allowed, tool_names(fields.get("disallowedTools")))
        text = description.replace("\\n", "\n")
        name = f"{prefix}{name}"
        line = f"- {name}: {text} (Tools: {tools})"
        yield _Definition(name, file.body.strip(), file.path, file.scope, line=line)
        return
    if message is not None:
        problems.append(not_heeded(file.path, f"Claude Code skips this agent: {message}"))


def _order(name: str) -> tuple[bool, Any]:
    """The order of agents: names in ASCII first, by the alphabet; the others by their characters."""
    return (False, alphabetical(name)) if name.isascii() else (True, name)


def _tools(allowed: list[str], denied: list[str]) -> str:
    """What the line of an agent says of its tools."""
    if not allowed:
        return f"{ALL_TOOLS} except {', '.join(denied)}" if denied else ALL_TOOLS
    return ", ".join(name for name in allowed if name not in denied) or "None"
