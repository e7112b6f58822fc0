"""Reads the settings of Cursor that Nexus knows: `mcp.json` and permissions of its CLI, by its
documentation.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import name_problem, shadow_problem, value_at
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    AssistantSettingsFile,
    Surroundings,
)
from nexus_context.assistants.reading.server_checks import ServerFile, check_server_file, judge_variable
from nexus_context.assistants.reading.servers import settings_places
from nexus_context.assistants.reading.settings import read_document, texts_of
from nexus_context.config.fixes import as_json
from nexus_context.errors import Problem
from nexus_context.text.json import JsonDocument

KNOWN = frozenset(("userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/"))
"""What Cursor replaces besides `${env:NAME}`: https://cursor.com/docs/context/mcp."""

_RULE = re.compile(r"(\w+)(\(.+\))")
_OF_OTHERS = {
    **{tool.lower(): tool for tool in ("Shell", "Read", "Write", "WebFetch", "Mcp")},
    "bash": "Shell",
    "edit": "Write",
}
"""The rules of Cursor, by what they are called in lower case, here and in Claude Code."""


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """Read the settings that hold in a folder, and what is wrong with their files."""
    form = ServerFile(
        "Cursor",
        "mcpServers",
        ("servers", "mcp_servers"),
        lambda name: judge_variable("Cursor", name, surroundings.environ, KNOWN),
    )
    files: list[AssistantSettingsFile] = []
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for directory, scope in reversed(settings_places(surroundings.folder, surroundings.user_home)):
        document = read_document(disk, os.path.join(directory, ".cursor", "mcp.json"))
        if document is not None:
            values = document.value if isinstance(document.value, dict) else {}
            files.append(AssistantSettingsFile(document.path, scope, values, document))
            file_problems = list(check_server_file(document, form))
            problems.extend(file_problems)
            if file_problems:
                texts[document.path] = document.text
    for name, directory in (("cli-config.json", surroundings.user_home), ("cli.json", surroundings.folder)):
        document = read_document(disk, os.path.join(directory, ".cursor", name))
        if document is not None:
            texts[document.path] = document.text
            problems.extend(_check_permissions(document))
    return AssistantSettings(surroundings, tuple(files), tuple(problems), texts=texts)


def settings_schema() -> dict[str, Any]:
    """Return an empty schema, because the keys of these settings are not known."""
    return {}


def _check_permissions(document: JsonDocument) -> Iterator[Problem]:
    """Rules of another program, and those that are denied: https://cursor.com/docs/cli/reference/permissions."""
    denied = texts_of(value_at(document.value, ("permissions", "deny")))
    for key in ("allow", "deny"):
        rules = value_at(document.value, ("permissions", key))
        for index, text in enumerate(rules if isinstance(rules, list) else ()):
            match = _RULE.fullmatch(text) if isinstance(text, str) else None
            if match is None:
                continue
            span = document.span(("permissions", key, index))
            close = _OF_OTHERS.get(match[1].lower())
            if close is not None and close != match[1]:
                message = f"Cursor knows no rule for `{match[1]}`: this one counts for nothing."
                fixed = as_json(f"{close}{match[2]}")
                yield name_problem(document.path, span, message, close, effect="no-effect", text=fixed)
            elif key == "allow" and (text in denied or text.partition(":")[0] + ")" in denied):
                by = text if text in denied else text.partition(":")[0] + ")"
                yield shadow_problem(document.path, span, f"`{by}`", "denies before", is_same=False)
