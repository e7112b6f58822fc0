"""Computes what opencode sends of its agents: the prompt of the one that runs, and the list of the others.

`ConfigAgent.load`, `Agent.state` and `ToolRegistry.describeTask` of opencode 1.18.33:

1. A file `agent/**/*.md` or `agents/**/*.md` in a directory of settings is an agent, named by its path there
   or by its `name`. It counts like the same fields in `agent` of the settings, with its text as `prompt`. A
   value of a wrong type stops opencode, also in the file of a command. A file whose front matter cannot be
   read is ignored.
2. The agent that runs is `default_agent`, else `build`. Its prompt replaces opencode's own.
3. An agent is listed by its name and description, unless its mode is `primary` or `permission.task` denies
   it.
"""

import os
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.opencode.front_matter import read_markdown
from nexus_context.assistants.opencode.visits import Visits
from nexus_context.assistants.reading.alphabetical import alphabetical
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettingsFile, SentBlock, SentPart
from nexus_context.config.check import Node, conform
from nexus_context.config.fixes import as_json
from nexus_context.config.patterns import Patterns
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text import json as jsontext

OWN_MODES = {
    **dict.fromkeys(("build", "plan", "compaction", "title", "summary"), "primary"),
    **dict.fromkeys(("general", "explore"), "subagent"),
}
HIDDEN = ("compaction", "title", "summary")
FOLDERS = (("agent", "agents"), ("agent", "agent"), ("command", "commands"), ("command", "command"))
UNDESCRIBED = "This subagent should only be called manually by the user."


def read_agent_files(
    disk: Disk, directories: list[str], schema: Node
) -> Iterator[tuple[AssistantSettingsFile, list[Problem]]]:
    """Yield each file of an agent or command as a settings file, with what is wrong with it. The least
    important comes first.
    """
    visits = Visits()
    for directory in directories:
        for key, folder in FOLDERS:
            root = os.path.join(directory, folder)
            for path in reversed(list(visits.below(disk, root))):
                if path.endswith(".md") and disk.is_file(path):
                    text = (disk.text(path) or "").removeprefix("\ufeff")
                    name = os.path.relpath(path, root)[: -len(".md")].replace(os.sep, "/")
                    yield _markdown_settings(path, (key, name), text, schema)


def prompt_blocks(values: dict[str, Any], files: tuple[AssistantSettingsFile, ...]) -> Iterator[SentBlock]:
    """Yield the prompt of the agent that runs, if the settings give it one."""
    agent_name = running_agent(values)
    prompt = agents_of(values).get(agent_name, {}).get("prompt")
    if prompt:
        part = SentPart(prompt, "agent", _file_of(agent_name, files, "prompt"), content=Span(0, len(prompt)))
        yield SentBlock("instructions", "system", (part,), complete=False)


def agent_blocks(values: dict[str, Any], files: tuple[AssistantSettingsFile, ...]) -> Iterator[SentBlock]:
    """Yield the list of the agents that the running one may call. opencode's own agents are in it only if the
    settings describe them.
    """
    agents = agents_of(values)
    parts = []
    for name in sorted(agents, key=alphabetical):
        agent = agents[name]
        mode = agent.get("mode", OWN_MODES.get(name, "all"))
        is_own = name in OWN_MODES and "description" not in agent
        if mode == "primary" or is_own or agent.get("disable") is True:
            continue
        if permission_of("task", name, values) == "deny":
            continue
        line = f"- {agent.get('name', name)}: {agent.get('description', UNDESCRIBED)}\n"
        parts.append(
            SentPart(line, "agent", _file_of(name, files, "description"), content=Span(0, len(line) - 1))
        )
    if parts:
        yield SentBlock("agents", "system", tuple(parts), complete=False)


def agents_of(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the agents that settings define or change: each name → its fields. Those defined in `mode` have
    the mode "primary".
    """
    modes = {name: {**agent, "mode": "primary"} for name, agent in values.get("mode", {}).items()}
    agents: dict[str, dict[str, Any]] = dict(values.get("agent", {}))
    for name, mode in modes.items():
        agents[name] = {**agents.get(name, {}), **mode}
    return agents


def running_agent(values: dict[str, Any]) -> str:
    """Return the name of the agent that runs unless the user picks another."""
    chosen = values.get("default_agent")
    return chosen if isinstance(chosen, str) else "build"


def permission_of(kind: str, name: str, values: dict[str, Any]) -> str:
    """Return what the last matching rule for the running agent says of a skill or agent: `allow`, `ask` or
    `deny`. `kind` is the permission, such as "task".
    """
    action = "allow"
    for owner in (values, agents_of(values).get(running_agent(values), {})):
        switched = {tool: "allow" if on else "deny" for tool, on in owner.get("tools", {}).items()}
        for pattern, rule in {**switched, **owner.get("permission", {})}.items():
            for target, verdict in ({"*": rule} if isinstance(rule, str) else rule).items():
                if _matches(pattern, kind) and _matches(target, name):
                    action = verdict
    return action


def _markdown_settings(
    path: str, key_and_name: tuple[str, str], text: str, schema: Node
) -> tuple[AssistantSettingsFile, list[Problem]]:
    file = read_markdown(text)
    if file.fields is None:
        message = "opencode leaves this file out: its front matter is not valid YAML. Put texts in quotes."
        problem = Problem(path, Span(0, 3), "assistant.void", Severity.ERROR, message=message)
        return AssistantSettingsFile(path, "agent", {}), [problem]
    key, name = key_and_name
    problems = []
    node = schema["properties"][key]["additionalProperties"]
    for field, value in file.fields.items():  # each alone, so that what is wrong has a place
        document = jsontext.parse(path, as_json({field: value}))
        for problem in conform(document, (), {**node, "required": ()}):
            message = f"opencode does not start: {problem.message}"
            problems.append(
                Problem(path, file.places[field], "assistant.stops", Severity.ERROR, message=message)
            )
    body = "template" if key == "command" else "prompt"
    values = {key: {str(file.fields.get("name", name)): {**file.fields, body: file.body}}}
    return AssistantSettingsFile(path, "agent", values), problems


def _file_of(name: str, files: tuple[AssistantSettingsFile, ...], field: str) -> str | None:
    """The most important file that sets a field of an agent."""
    paths = [
        file.path
        for file in files
        for key in ("agent", "mode")
        if field in file.values.get(key, {}).get(name, {})
    ]
    return paths[-1] if paths else None


def _matches(pattern: str, name: str) -> bool:
    return Patterns((pattern.replace("[", "[[]"),)).matches(name)
