"""Roles of Codex for its agents: each has its name and description in the definition of a tool.

1. Each directory of settings has them in `agents/**/*.toml`, and its `config.toml` in `[agents.NAME]`; of
   several of a name the nearest counts. `agents.enabled = false` turns them off.
2. A file needs `name`, `description` and `developer_instructions`, and may set what `config.toml` may. Codex
   leaves out a whole file with anything else, or with a value of the wrong type.
"""

import os
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.codex.settings import SCHEMA
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import settings_problem
from nexus_context.assistants.reading.model import AssistantSettings, SentBlock, SentPart
from nexus_context.assistants.reading.toml import TomlDocument, read_toml
from nexus_context.config.check import find_mismatches, load_schema
from nexus_context.errors import Problem, Span

DEEPEST = 6
_OWN_KEYS = ("name", "description", "nickname_candidates")
_NEEDED = ("name", "description", "developer_instructions")


def codex_agents(disk: Disk, settings: AssistantSettings, problems: list[Problem]) -> Iterator[SentBlock]:
    """The block of roles, if there are any."""
    if settings.value("agents", "enabled") is False:
        return
    roles: dict[str, tuple[str, str]] = {}  # description and file
    for file in settings.files:
        tables = file.values.get("agents")
        for name, table in tables.items() if isinstance(tables, dict) else ():
            if isinstance(table, dict):
                _add_table(disk, roles, file.path, name, table=table)
        for path in _role_files(disk, os.path.join(os.path.dirname(file.path), "agents"), DEEPEST):
            document = read_toml(disk, path)
            failure = _failure(document)
            if failure is None:
                roles[document.value["name"].strip()] = (document.value["description"].strip(), path)
            else:
                place, reason = failure
                message = f"Codex leaves this agent out: {reason}"
                problems.append(settings_problem(document, "void", place, message))
    parts = []
    for name, (description, path) in sorted(roles.items()):
        text = f"{name}: {{\n{description}\n}}"
        parts.append(SentPart(f"{text}\n", "agent", path, content=Span(0, len(text))))
    if parts:
        yield SentBlock("agents", "system", tuple(parts), complete=False)


def _add_table(
    disk: Disk, roles: dict[str, tuple[str, str]], path: str, name: str, *, table: dict[str, Any]
) -> None:
    """Add the role of a table `agents.NAME`, whose description may be in the file that it names."""
    description, config = table.get("description"), table.get("config_file")
    if isinstance(config, str):
        config = os.path.join(os.path.dirname(path), config)
        if not disk.is_file(config):
            return
        description = description or read_toml(disk, config).value.get("description")
    if isinstance(description, str) and description.strip():
        roles[name] = (description.strip(), path)


def _role_files(disk: Disk, directory: str, deepest: int) -> Iterator[str]:
    for name, kind in sorted(disk.entries(directory)):
        path = os.path.join(directory, name)
        if kind == "directory" and deepest:
            yield from _role_files(disk, path, deepest - 1)
        elif name.endswith(".toml") and disk.is_file(path):
            yield path


def _failure(document: TomlDocument) -> tuple[Any, str] | None:
    """Why Codex leaves a file out, and where."""
    if document.failure is not None:
        span, reason = document.failure
        return span, f"this is no valid TOML. {reason}. Correct the line."
    own = {key: value for key, value in document.value.items() if key not in _OWN_KEYS}
    for finding in find_mismatches(own, load_schema(SCHEMA)):
        if finding.detail == "unknown-key":
            return finding.pointer, f"it knows no key `{finding.pointer[-1]}` there. Remove it."
        return finding.pointer, finding.message
    for key in _NEEDED:
        value = document.value.get(key)
        if not isinstance(value, str) or not value.strip():
            return (key,) if key in document.value else (), f"it needs a text for `{key}`."
    return None
