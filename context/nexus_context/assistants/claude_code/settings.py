"""Reads the settings of Claude Code in a folder: the user's, the project's, this machine's, the
organization's.

1. The files are, the least important first: `settings.json` of the user's directory, `.claude/settings.json`
   and `.claude/settings.local.json` of the folder, and the organization's `managed-settings.json`. In a
   worktree, the local file of the main working tree comes before the worktree's own.
2. A file is strict JSON. One value of a wrong type voids the whole file. A few keys are exceptions, of which
   only the value is ignored (`settings.schema.json`, made from the schema in the program, and by runs).
3. The value of a later file counts; lists of all files are joined. The variables in `env` are added as if the
   process had them.
"""

import functools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nexus_context.assistants.claude_code.hook_checks import hook_faults
from nexus_context.assistants.claude_code.lints import check_settings
from nexus_context.assistants.claude_code.mcp_file import NAME, check_unread_files, read_mcp_file
from nexus_context.assistants.claude_code.plugin_checks import check_plugin
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import name_problem
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    AssistantSettingsFile,
    Scope,
    Surroundings,
    join_lists,
)
from nexus_context.assistants.reading.settings import read_document
from nexus_context.assistants.reading.working_tree import find_working_tree, parents
from nexus_context.config.check import conform, schema_text
from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.config.fixes import meant
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text.json import JsonDocument, Pointer, parse

VERSION = "2.1.330"
MANAGED = {"darwin": "/Library/Application Support/ClaudeCode", "win32": "C:\\Program Files\\ClaudeCode"}
SCHEMA = str(Path(__file__).with_name("settings.schema.json"))
NO_EFFECT = "assistant.no-effect"
_RULES = ("allow", "ask", "deny")


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """Read the settings that hold in a folder, and what is wrong with their files."""
    files: list[AssistantSettingsFile] = []
    problems: list[Problem] = []
    for path, scope in _settings_places(disk, surroundings).items():
        document = read_document(disk, path)
        file_problems = [] if document is None else list(_check(document))
        problems += file_problems
        value = None if document is None else document.value
        is_void = any(problem.code == "assistant.void" for problem in file_problems)
        values = value if isinstance(value, dict) and not is_void else {}
        files.append(AssistantSettingsFile(path, scope, values, document))
    for directory in parents(surroundings.folder):
        problems += read_mcp_file(disk, os.path.join(directory, NAME)).problems
    problems += check_unread_files(disk, surroundings.folder)
    problems += check_plugin(disk, surroundings, _schema())
    problems += check_settings(disk, AssistantSettings(surroundings, tuple(files)))
    texts = {problem.path: disk.texts[problem.path] for problem in problems}
    settings = AssistantSettings(surroundings, tuple(files), tuple(problems), texts=texts, combine=join_lists)
    environ = {**surroundings.environ, **_variables(settings)}
    return replace(settings, where=replace(surroundings, environ=environ))


def config_directory(surroundings: Surroundings) -> str:
    """Return the directory of the user's settings, `~/.claude` unless `CLAUDE_CONFIG_DIR` names another."""
    return surroundings.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(surroundings.user_home, ".claude")


def managed_directory() -> str:
    """Return the directory in which an organization puts its settings on this system."""
    return MANAGED.get(sys.platform, "/etc/claude-code")


def read_state(disk: Disk, surroundings: Surroundings) -> tuple[str, dict[str, Any]]:
    """Read `.claude.json`, in which Claude Code keeps its own state: its path and its values. The file may
    have megabytes.
    """
    is_moved = "CLAUDE_CONFIG_DIR" in surroundings.environ
    directory = config_directory(surroundings) if is_moved else surroundings.user_home
    path = os.path.join(directory, ".claude.json")
    try:
        value = json.loads(disk.text(path) or "{}")
    except (ValueError, RecursionError):
        value = {}
    return path, value if isinstance(value, dict) else {}


def is_set(surroundings: Surroundings, name: str) -> bool:
    """Whether Claude Code takes an environment variable for switched on."""
    return surroundings.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def are_agent_hooks(value: Any) -> bool:
    """Whether Claude Code accepts an agent that has these hooks. It drops the agent if a hook that guards
    calls is not valid.
    """
    hooks = {"hooks": value}
    return isinstance(value, dict | None) and not _refused(parse("", json.dumps(hooks)), hooks)


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file. A value that breaks it voids the whole file."""
    schema: dict[str, Any] = _schema()["void"]
    return schema


@functools.cache
def keys_schema() -> dict[str, Any]:
    """Return a schema of all keys that a settings file may have, those of hooks among them."""
    schema = _schema()
    hooks = {name: hook_type["properties"] for name, hook_type in schema["hookTypes"].items()}
    hook = {
        "type": "object",
        "properties": {
            key: node for hook_properties in hooks.values() for key, node in hook_properties.items()
        },
    }
    hook["properties"] |= schema["hookType"]["properties"]
    group = {**schema["hookGroup"]["properties"], "hooks": {"type": "array", "items": hook}}
    event = {"type": "array", "items": {"type": "object", "properties": group}}
    properties = schema["void"]["properties"] | schema["skipped"]["properties"]
    properties["permissions"] = schema["void"]["properties"]["permissions"]
    properties["hooks"] = {"type": "object", "properties": dict.fromkeys(schema["hookEvents"], event)}
    return {"type": "object", "properties": properties}


def hook_events() -> list[str]:
    """List the names of the events that hooks may be for."""
    return list(_schema()["hookEvents"])


def _settings_places(disk: Disk, surroundings: Surroundings) -> dict[str, Scope]:
    """The paths of settings; in the user's home, the user's file is the folder's, too.

    In all of a repository the local settings at the root of the main working tree count.
    """
    folder = surroundings.folder
    repository = find_working_tree(disk, folder)
    places: dict[str, Scope] = {os.path.join(config_directory(surroundings), "settings.json"): "user"}
    places.setdefault(os.path.join(folder, ".claude", "settings.json"), "project")
    if repository is not None:
        places[os.path.join(repository.main, ".claude", "settings.local.json")] = "local"
    places[os.path.join(folder, ".claude", "settings.local.json")] = "local"
    places[os.path.join(managed_directory(), "managed-settings.json")] = "managed"
    return places


def _variables(settings: AssistantSettings) -> dict[str, str]:
    """What `env` adds; the user's directory was found before."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for values in settings.each("env")
        for name, value in values.items()
        if name != "CLAUDE_CONFIG_DIR" and isinstance(value, str | int | float)
    }


def _check(document: JsonDocument) -> Iterator[Problem]:
    """What Claude Code refuses of a file: all of it (one problem), or single entries."""
    value = document.value if isinstance(document.value, dict) else {}
    if not document.text.strip():
        return
    if voiding_problems := _refused(document, value):
        yield _void(document, voiding_problems, value)
        return
    yield from _left_out(document, value)
    properties = _schema()["void"]["properties"]
    for key in value:
        if key.startswith(COMMENT_PREFIX):
            continue
        if key == "mcpServers":
            message = "Claude Code reads no servers here. Those of a project are in `.mcp.json`."
            yield _no_effect(document, (key,), message)
        elif key not in properties:
            message = f"Claude Code {VERSION} has no setting `{key}`: it has no effect."
            home = _home(key)
            close = _close(key, properties, value) if home is None else None
            yield _no_effect(document, (key,), message + (home or ""), close)
        elif key in _schema()["notModelled"]:
            message = f"`{key}` can change what Claude Code sends, and Nexus does not model it."
            span = document.key_span((key,)) or Span(0, 0)
            code, level = "assistant.not-modelled", Severity.INFORMATION
            yield Problem(document.path, span, code, level, message=message)
    permissions, permission_keys = value.get("permissions"), properties["permissions"]["properties"]
    permissions = permissions if isinstance(permissions, dict) else {}
    for key in permissions:
        if key not in permission_keys and not key.startswith(COMMENT_PREFIX):
            message = f"Claude Code {VERSION} has no setting `permissions.{key}`: it has no effect."
            yield _no_effect(
                document, ("permissions", key), message, _close(key, permission_keys, permissions)
            )


def _refused(document: JsonDocument, value: dict[str, Any]) -> list[Problem]:
    """What voids a file."""
    syntax = [problem for problem in document.problems if problem.severity is Severity.ERROR]
    problems = syntax or conform(document, (), _schema()["void"], family="assistant")
    if problems:
        return problems
    return [
        problem for problem in hook_faults(document, value, _schema()) if problem.code == "assistant.void"
    ]


def _left_out(document: JsonDocument, value: dict[str, Any]) -> Iterator[Problem]:
    """Single entries that Claude Code leaves out, while the rest counts."""
    for problem in conform(document, (), _schema()["skipped"], family="assistant"):
        message = f"Claude Code ignores this value: {problem.message}"
        yield replace(problem, code=NO_EFFECT, severity=Severity.WARNING, message=message)
    for fault in hook_faults(document, value, _schema()):
        yield replace(fault, message=f"Claude Code ignores this hook: {fault.message}")
    events, hooks = _schema()["hookEvents"], value.get("hooks")
    hooks = hooks if isinstance(hooks, dict) else {}
    for event in hooks:
        if event not in events:
            message = f"Claude Code has no hook event `{event}`, and ignores it."
            yield _no_effect(document, ("hooks", event), message, _close(event, events, hooks))


def _home(key: str) -> str | None:
    """A sentence that says below which key another key belongs; None if there is no such key."""
    if key in _schema()["void"]["properties"]["permissions"]["properties"]:
        return " It belongs in `permissions`."
    return " It belongs in `hooks`." if key in _schema()["hookEvents"] else None


def _close(word: str, known_keys: Iterable[str], value: Mapping[str, Any]) -> str | None:
    """The key that is meant, of those that an object does not have."""
    return meant(word, [key for key in known_keys if key not in value])


def _void(document: JsonDocument, refused: list[Problem], value: dict[str, Any]) -> Problem:
    """One error for a void file, at its first mistake; it names the settings that are not in force."""
    first_problem = min(refused, key=lambda problem: problem.span)
    more = f" {len(refused) - 1} more of its values are wrong, too." if len(refused) > 1 else ""
    lost = ", ".join(_lost(value))
    follows = f" Not in force: {lost}." if lost else ""
    message = f"Claude Code ignores this whole file. {first_problem.message}{more}{follows}"
    return Problem(
        document.path,
        first_problem.span,
        "assistant.void",
        Severity.ERROR,
        message=message,
        fix=first_problem.fix,
    )


def _lost(value: dict[str, Any]) -> Iterator[str]:
    """Name what a file would have set: its permission rules, hooks and other keys, without their values."""
    for key, setting_value in value.items():
        if key == "permissions" and isinstance(setting_value, dict):
            for kind in _RULES:
                rules = setting_value.get(kind)
                if isinstance(rules, list) and rules:
                    yield f"{len(rules)} {kind} {'rule' if len(rules) == 1 else 'rules'}"
        elif not key.startswith("$"):
            yield f"`{key}`"


def _no_effect(document: JsonDocument, pointer: Pointer, message: str, close: str | None = None) -> Problem:
    span = document.key_span(pointer)
    text = f'"{close}"' if close and span is not None else ""
    return name_problem(document.path, span or Span(0, 0), message, close, effect="no-effect", text=text)


@functools.cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = msgspec.json.decode(schema_text(SCHEMA))
    return schema
