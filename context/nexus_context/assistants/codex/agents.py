"""Computes what Codex sends of its roles for agents: the name and description of each, in the definition of a
tool.

1. A directory of settings has roles in `agents/**/*.toml`, and in the tables `[agents.NAME]` of its
   `config.toml`. The `config_file` of a table may have another name and description. If several roles have
   one name, the nearest counts. `agents.enabled = false` turns them off.
2. A file needs `name`, `description` and `developer_instructions`, and may set what `config.toml` may set.
   Codex ignores a file that has anything else, or a value of a wrong type. A file that `config_file` names
   gets the name and description of the table. What it says of the model is sent, too.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from nexus_context.assistants.codex.requirements import PATH as REQUIREMENTS
from nexus_context.assistants.codex.settings import SCHEMA
from nexus_context.assistants.reading.definitions import ListEntry, Preference, choose
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import settings_problem
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    AssistantSettingsFile,
    IgnoredFile,
    Scope,
    SentBlock,
    SentPart,
)
from nexus_context.assistants.reading.toml import TomlDocument, read_toml
from nexus_context.config.check import find_mismatches, load_schema
from nexus_context.errors import Problem, Span

DEEPEST = 6
_OWN_KEYS = ("name", "description", "nickname_candidates")
_FIXED = {"model": "model", "model_reasoning_effort": "reasoning effort"}
_PREFERENCE = Preference(
    "Codex",
    "agent",
    "Of one name the nearest settings count, and in them `config.toml`, then the first file.",
)
_NEEDED = ("name", "description", "developer_instructions")


def codex_agents(
    disk: Disk, settings: AssistantSettings, *, ignored: list[IgnoredFile], problems: list[Problem]
) -> Iterator[SentBlock]:
    """Yield the list of roles that Codex sends, if there are any."""
    if settings.value("agents", "enabled") is False:
        return
    files = [file for file in reversed(settings.files) if file.path != REQUIREMENTS]
    candidates = [role for file in files for role in _roles(disk, file, problems)]
    roles = choose(candidates, _PREFERENCE, settings.where, disk=disk, ignored=ignored, problems=problems)
    parts = [
        SentPart(f"{role.text}\n", "agent", role.path, content=Span(0, len(role.text)))
        for role in sorted(roles, key=lambda role: role.name)
    ]
    if parts:
        yield SentBlock("agents", "system", tuple(parts), complete=False)


def _roles(disk: Disk, file: AssistantSettingsFile, problems: list[Problem]) -> Iterator[ListEntry]:
    """The roles of a file of settings and of the directory beside it."""
    tables = file.values.get("agents")
    directory, config_paths = os.path.dirname(file.path), set[str]()
    for name, table in tables.items() if isinstance(tables, dict) else ():
        config = table.get("config_file") if isinstance(table, dict) else None
        path = os.path.join(directory, config) if isinstance(config, str) else None
        config_paths |= set() if path is None else {path}
        if isinstance(table, dict) and (path is None or disk.is_file(path)):
            values = {"name": name, **table, **({} if path is None else read_toml(disk, path).value)}
            if isinstance(values.get("description"), str) and values["description"].strip():
                yield _role(values, path or file.path, file.scope)
    for path in _role_files(disk, os.path.join(directory, "agents"), DEEPEST):
        document = read_toml(disk, path)
        is_named = path in config_paths and "name" not in document.value
        failure = _failure(document, _NEEDED[2:] if is_named else _NEEDED)
        if failure is None and is_named:
            continue
        if failure is None:
            yield _role(document.value, path, file.scope)
        else:
            location, reason = failure
            message = f"Codex leaves this agent out: {reason}"
            problems.append(settings_problem(document, "void", location, message))


def _role(values: dict[str, Any], path: str, scope: Scope) -> ListEntry:
    description = values["description"].strip()
    fixed = [f"{words} is set to `{values[key]}`" for key, words in _FIXED.items() if key in values]
    if fixed:
        ending = ". These settings cannot be changed." if len(fixed) > 1 else " and cannot be changed."
        description += f"\n- This role's {' and its '.join(fixed)}{ending}"
    name = str(values["name"]).strip()
    return ListEntry(name, path, scope, f"{name}: {{\n{description}\n}}")


def _role_files(disk: Disk, directory: str, deepest: int) -> Iterator[str]:
    for name, kind in sorted(disk.entries(directory)):
        path = os.path.join(directory, name)
        if kind == "directory" and deepest:
            yield from _role_files(disk, path, deepest - 1)
        elif name.endswith(".toml") and disk.is_file(path):
            yield path


def _failure(document: TomlDocument, needed: Iterable[str]) -> tuple[Any, str] | None:
    """Explain where and why Codex leaves a file out; None if it reads the file."""
    if document.failure is not None:
        span, reason = document.failure
        return span, f"this is not valid TOML. {reason}. Correct the line."
    config_values = {key: value for key, value in document.value.items() if key not in _OWN_KEYS}
    for finding in find_mismatches(config_values, load_schema(SCHEMA)):
        if finding.detail == "unknown-key":
            return finding.pointer, f"it knows no key `{finding.pointer[-1]}` there. Remove it."
        return finding.pointer, finding.message
    for key in needed:
        value = document.value.get(key)
        if not isinstance(value, str) or not value.strip():
            return (key,) if key in document.value else (), f"it needs a text for `{key}`."
    return None
