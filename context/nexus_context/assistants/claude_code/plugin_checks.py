"""Checks a folder that is a plugin of Claude Code: what keeps the plugin, or parts of it, from being loaded.

1. If `.claude-plugin/plugin.json` has a value of a wrong type, or a path that does not begin with `./`,
   nothing of the plugin is loaded.
2. A path that does not exist, or leads out of the plugin, is ignored; the rest is loaded.
3. `hooks/hooks.json` has its events below `hooks`. If a hook in `guards` cannot be loaded, nothing of the
   plugin is.

Source: sessions of 2.1.330 with `--plugin-dir`, and the words of `claude plugin validate`.
"""

import os
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from nexus_context.assistants.claude_code.hook_checks import check_hooks, hook_faults
from nexus_context.assistants.claude_code.rule_syntax import table
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import mismatch_problem, settings_problem
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.reading.settings import read_document
from nexus_context.config.check import find_mismatches
from nexus_context.errors import Edit, Fix, Problem, Severity
from nexus_context.text.json import JsonDocument, Pointer

MANIFEST = os.path.join(".claude-plugin", "plugin.json")
HOOKS = os.path.join("hooks", "hooks.json")
_REFUSED = "Claude Code loads nothing of this plugin: "


def check_plugin(disk: Disk, where: Surroundings, schema: dict[str, Any]) -> Iterator[Problem]:
    """Report what is wrong with the plugin in a folder, if the folder is one. `schema` is the schema of
    Claude Code's settings.
    """
    document = read_document(disk, os.path.join(where.folder, MANIFEST))
    if document is None:
        return
    yield from _check_manifest(document, disk, where.folder)
    hooks = read_document(disk, os.path.join(where.folder, HOOKS))
    if hooks is not None and isinstance(hooks.value, dict):
        yield from _check_hooks(hooks, hooks.value, disk, where=where, schema=schema)


def _check_manifest(document: JsonDocument, disk: Disk, folder: str) -> Iterator[Problem]:
    error = next((problem for problem in document.problems if problem.severity is Severity.ERROR), None)
    if error is not None or not isinstance(document.value, dict):
        message = _REFUSED + ("the manifest must be an object." if error is None else error.message)
        span = document.span(()) if error is None else error.span
        yield settings_problem(document, "void", span, message)
        return
    name = document.value.get("name")
    if isinstance(name, str) and (not name or " " in name):
        message = f"{_REFUSED}its name must not be empty, and have no blanks: `my-plugin`."
        yield settings_problem(document, "void", document.span(("name",)), message)
    for finding in find_mismatches(document.value, table()["plugin"]):
        yield mismatch_problem(document, finding, "void", _REFUSED)
    known_keys = table()["plugin"]["properties"]
    for key in document.value:
        if key not in known_keys:
            message = f"Claude Code has no key `{key}` in a manifest, and ignores it."
            yield settings_problem(document, "no-effect", (key,), message)
    for key, suffix in table()["pluginPaths"].items():
        value = document.value.get(key)
        indexed_values = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, text in indexed_values:
            if isinstance(text, str):
                pointer: Pointer = (key,) if index is None else (key, index)
                yield from _check_path(document, pointer, text, suffix=suffix, disk=disk, folder=folder)


def _check_path(
    document: JsonDocument, pointer: Pointer, text: str, *, suffix: str, disk: Disk, folder: str
) -> Iterator[Problem]:
    span = document.span(pointer)
    path = os.path.normpath(os.path.join(folder, text))
    if not text.startswith("./"):
        fix = None
        if not text.startswith(("/", "..", "~")):
            fix = Fix("Begin with `./`", (Edit(span, f'"./{text}"'),))
        message = f"{_REFUSED}the path must begin with `./`: it is one from the plugin's folder."
        yield settings_problem(document, "void", span, message, fix=fix)
    elif not text.endswith(suffix):
        message = f"{_REFUSED}`{pointer[0]}` are files: the path must end with `{suffix}`."
        yield settings_problem(document, "void", span, message)
    elif ".." in text.split("/"):
        message = "Claude Code loads nothing from outside of the plugin: the path must have no `..`."
        yield settings_problem(document, "no-effect", span, message)
    elif not disk.exists(path):
        message = f"{text} does not exist, so nothing is loaded from there. Correct the path."
        yield settings_problem(document, "missing-file", span, message)


def _check_hooks(
    document: JsonDocument, value: dict[str, Any], disk: Disk, *, where: Surroundings, schema: dict[str, Any]
) -> Iterator[Problem]:
    for fault in hook_faults(document, value, schema):
        opening = _REFUSED if fault.code == "assistant.void" else "Claude Code ignores this hook: "
        yield replace(fault, message=opening + fault.message)
    for key in value:
        if key in schema["hookEvents"] and key not in table()["guards"]:
            message = f"Claude Code ignores `{key}` here. It belongs in `hooks`."
            yield settings_problem(document, "no-effect", (key,), message)
    if isinstance(value.get("hooks"), dict):
        yield from check_hooks(document, value["hooks"], disk, where)
