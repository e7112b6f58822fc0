"""Reads the settings of VS Code that decide what GitHub Copilot reads, by its documentation.

1. The files are `settings.json` of the user, then `.vscode/settings.json` of the folder, whose values count
   more. Objects are merged.
2. MCP servers are in `mcp.json` of the user and in `.vscode/mcp.json`.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.expressions import is_valid_expression
from nexus_context.assistants.reading.findings import shadow_problem
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    AssistantSettingsFile,
    Scope,
    Surroundings,
)
from nexus_context.assistants.reading.server_checks import (
    Judgement,
    ServerFile,
    check_server_file,
    judge_variable,
)
from nexus_context.assistants.reading.settings import read_document
from nexus_context.errors import Problem, Severity

SWITCHES: Mapping[str, bool] = {
    "github.copilot.chat.codeGeneration.useInstructionFiles": True,
    "chat.useAgentsMdFile": True,
    "chat.useClaudeMdFile": True,
    "chat.useNestedAgentsMdFiles": False,
    "chat.includeApplyingInstructions": True,
}
"""By name, with what counts where nobody sets it."""
APPROVALS = "chat.tools.terminal.autoApprove"
"""Rules for commands, https://code.visualstudio.com/docs/agents/approvals: one that is false counts first."""
LOCATIONS = "chat.instructionsFilesLocations"
DEFAULT_LOCATIONS = (".github/instructions", ".claude/rules", "~/.copilot/instructions", "~/.claude/rules")
USER_DIRECTORIES = {
    "darwin": ("Library", "Application Support", "Code", "User"),
    "win32": ("AppData", "Roaming", "Code", "User"),
}
_PLAIN = re.compile(r"\w(?:[\w -]*\w)?")
_EXPRESSION = re.compile(r"/(.+)/[dgimsuvy]*")
KNOWN = frozenset(
    (
        *("userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/", "cwd", "execPath"),
        *("file", "fileBasename", "fileBasenameNoExtension", "fileDirname", "fileDirnameBasename"),
        *("fileExtname", "fileWorkspaceFolder", "relativeFile", "relativeFileDirname", "lineNumber"),
        *("columnNumber", "selectedText", "defaultBuildTask"),
    )
)
"""What VS Code replaces besides `${env:NAME}`: https://code.visualstudio.com/docs/reference/variables-reference."""


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """Read the settings that hold in a folder, and what is wrong with their files."""
    files: list[AssistantSettingsFile] = []
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    folder = os.path.join(surroundings.folder, ".vscode")
    places: list[tuple[str, Scope]] = [(user_directory(surroundings), "user"), (folder, "project")]
    for directory, scope in places:
        for name in ("settings.json", "mcp.json"):
            document = read_document(disk, os.path.join(directory, name))
            if document is not None:
                values: dict[str, Any] = document.value if isinstance(document.value, dict) else {}
                file = AssistantSettingsFile(document.path, scope, values, document)
                files.append(file)
                check = _check_servers if name == "mcp.json" else _check_switches
                file_problems = check(file, surroundings)
                problems.extend(file_problems)
                texts[document.path] = document.text
    problems.extend(_check_approvals(files))
    return AssistantSettings(surroundings, tuple(files), tuple(problems), texts=texts)


def settings_schema() -> dict[str, Any]:
    """Return an empty schema, because the keys of these settings are not known."""
    return {}


def user_directory(surroundings: Surroundings) -> str:
    """Return the directory of the user's settings of VS Code on this system."""
    names = USER_DIRECTORIES.get(sys.platform, (".config", "Code", "User"))
    return os.path.join(surroundings.user_home, *names)


def is_on(settings: AssistantSettings, switch: str) -> bool:
    """Whether a setting in SWITCHES is on. A value that is not a boolean does not count."""
    values = [value for value in settings.each(switch) if isinstance(value, bool)]
    return values[-1] if values else SWITCHES[switch]


def instruction_locations(settings: AssistantSettings) -> list[str]:
    """List the directories or files of instructions that are on, as the settings write them."""
    locations = dict.fromkeys(DEFAULT_LOCATIONS, True)
    for value in settings.each(LOCATIONS):
        if isinstance(value, dict):
            locations.update({name.rstrip("/"): on is True for name, on in value.items()})
    return [name for name, on in locations.items() if on]


def _check_switches(file: AssistantSettingsFile, _: Surroundings) -> list[Problem]:
    problems = []
    for key in (*SWITCHES, LOCATIONS):
        value_type = dict if key == LOCATIONS else bool
        if key in file.values and not isinstance(file.values[key], value_type) and file.document is not None:
            form = 'an object such as {"docs/ai": true}' if key == LOCATIONS else "true or false"
            message = f"VS Code ignores this: `{key}` must be {form}."
            span = file.document.span((key,))
            problems.append(
                Problem(file.path, span, "assistant.no-effect", Severity.WARNING, message=message)
            )
    return problems


def _check_approvals(files: list[AssistantSettingsFile]) -> Iterator[Problem]:
    """Report rules for commands that match none, and those that another rule denies before."""
    tables = [(file, file.values.get(APPROVALS)) for file in files]
    rules = [(file, table) for file, table in tables if isinstance(table, dict)]
    counting = {name: value for _, table in rules for name, value in table.items()}
    denied_commands: list[str] = []
    for file, table in rules:
        denied_commands += [name for name in table if counting[name] is False and _PLAIN.fullmatch(name)]
        for name, value in table.items():
            pattern = _EXPRESSION.fullmatch(name)
            span = file.document.key_span((APPROVALS, name)) if file.document is not None else None
            by = next((prefix for prefix in denied_commands if f"{name} ".startswith(f"{prefix} ")), None)
            if span is not None and pattern is not None and not is_valid_expression(pattern[1]):
                message = "VS Code matches no command with this: it is not a valid regular expression."
                yield Problem(file.path, span, "assistant.no-effect", Severity.WARNING, message=message)
            elif span is not None and value is True and _PLAIN.fullmatch(name) and by not in (None, name):
                yield shadow_problem(file.path, span, f"`{by}`", "denies before", is_same=False)


def _check_servers(file: AssistantSettingsFile, surroundings: Surroundings) -> list[Problem]:
    inputs = file.values.get("inputs")
    ids = [entry.get("id") for entry in inputs if isinstance(entry, dict)] if isinstance(inputs, list) else []

    def judge(name: str) -> Judgement | None:
        kind, _, identifier = name.partition(":")
        if kind == "input" and identifier not in ids:
            message = f"`inputs` has no `{identifier}`: VS Code cannot ask for it. Add it there."
            return Severity.WARNING, message
        return judge_variable("VS Code", name, surroundings.environ, KNOWN)

    form = ServerFile("VS Code", "servers", ("mcpServers", "mcp_servers"), judge)
    return [] if file.document is None else list(check_server_file(file.document, form))
