"""Reads the settings of VS Code that decide what GitHub Copilot reads, by its documentation and source.

1. The files are `settings.json` of the user, then `.vscode/settings.json` of the folder, whose values count
   more. Objects are merged. A few keys count only in the user's file (`settings.schema.json`: `x-scope`).
2. VS Code does not check the type of a switch: a text, also `"false"`, is on.
3. MCP servers are in `mcp.json` of the user and in `.vscode/mcp.json`.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.expressions import is_valid_expression
from nexus_context.assistants.reading.findings import mismatch_problem, settings_problem, shadow_problem
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
from nexus_context.config.check import find_mismatches, load_schema
from nexus_context.errors import Problem, Severity
from nexus_context.text.json import JsonDocument

SCHEMA = str(Path(__file__).with_name("settings.schema.json"))
DOCS = str(Path(__file__).with_name("settings.docs.json"))
SWITCHES: Mapping[str, bool] = {
    "github.copilot.chat.codeGeneration.useInstructionFiles": True,
    "chat.useAgentsMdFile": True,
    "chat.useClaudeMdFile": True,
    "chat.useNestedAgentsMdFiles": False,
    "chat.includeApplyingInstructions": True,
    "chat.useAgentSkills": True,
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
_SWITCH_TEXTS = {"true": True, "false": False}
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

_PORTABLE = ServerFile("VS Code", "mcpServers", (), lambda _: None)
"""What it replaces in them is not documented."""


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
                file = AssistantSettingsFile(document.path, scope, _counting(values, scope), document)
                files.append(file)
                if name == "mcp.json":
                    problems.extend(_check_servers(file, surroundings))
                else:
                    problems.extend(_check_settings(document, values, scope))
                texts[document.path] = document.text
    problems.extend(_check_approvals(files))
    for document, _ in portable_documents(disk, surroundings):
        problems.extend(check_server_file(document, _PORTABLE))
        texts[document.path] = document.text
    return AssistantSettings(surroundings, tuple(files), tuple(problems), texts=texts)


def portable_documents(disk: Disk, surroundings: Surroundings) -> Iterator[tuple[JsonDocument, Scope]]:
    """Yield the files of MCP servers that other programs read, too: the folder's, then the user's."""
    home = surroundings.environ.get("COPILOT_HOME") or os.path.join(surroundings.user_home, ".copilot")
    paths: list[tuple[str, Scope]] = [
        (os.path.join(surroundings.folder, ".mcp.json"), "project"),
        (os.path.join(home, "mcp-config.json"), "user"),
    ]
    for path, scope in paths:
        document = read_document(disk, path)
        if document is not None:
            yield document, scope


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of the keys of `settings.json` that are about Copilot, without VS Code's own."""
    return load_schema(SCHEMA)


def user_directory(surroundings: Surroundings) -> str:
    """Return the directory of the user's settings of VS Code on this system."""
    names = USER_DIRECTORIES.get(sys.platform, (".config", "Code", "User"))
    return os.path.join(surroundings.user_home, *names)


def is_on(settings: AssistantSettings, switch: str) -> bool:
    """Whether a setting in SWITCHES is on. A value of another type counts as JavaScript takes it."""
    values = [file.values[switch] for file in settings.files if switch in file.values]
    return _is_truthy(values[-1]) if values else SWITCHES[switch]


def instruction_locations(settings: AssistantSettings) -> list[str]:
    """List the directories or files of instructions that are on, as the settings write them. There are none
    if the value in force is not an object.
    """
    value = settings.merged().get(LOCATIONS, {})
    locations = dict.fromkeys(DEFAULT_LOCATIONS if isinstance(value, dict) else (), True)
    for name, text in value.items() if isinstance(value, dict) else ():
        location_is_on = _SWITCH_TEXTS.get(str(text).strip().lower())
        if location_is_on is not None:
            # a default location is switched off only by its exact name
            locations[name.strip().rstrip("/") if location_is_on else name.strip()] = location_is_on
    return [name for name, location_is_on in locations.items() if location_is_on]


def _is_truthy(value: Any) -> bool:
    return value not in (None, False, "", 0)


def _counting(values: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """The values of a file without those that count only in the user's file."""
    schema = settings_schema()["properties"]
    ignored = {key for key in values if scope == "project" and "x-scope" in schema.get(key, ())}
    return {key: value for key, value in values.items() if key not in ignored} if ignored else values


def _check_settings(document: JsonDocument, values: dict[str, Any], scope: Scope) -> Iterator[Problem]:
    schema, docs = settings_schema(), load_schema(DOCS)["own"]
    for finding in find_mismatches(values, schema):
        key = str(finding.pointer[0])
        opening = "VS Code warns of this, and may not use it: "
        if finding.pointer == (LOCATIONS,):
            opening = "VS Code looks for instructions in no directory because of this: "
        elif key in SWITCHES:
            opening = f"VS Code takes this for {'true' if _is_truthy(values[key]) else 'false'}: "
        yield mismatch_problem(document, finding, "reads-otherwise", opening)
    for key in values:
        node = schema["properties"].get(key, {})
        if scope == "project" and "x-scope" in node:
            message = f"VS Code ignores `{key}` in a folder. Set it in the settings of the user."
            yield settings_problem(document, "no-effect", (key,), message)
        elif node.get("x-nexus") == "not-modelled" and values[key] != docs[f"/{key}"].get("default"):
            message = f"`{key}` changes what Copilot reads or may do. Nexus does not show that."
            yield settings_problem(document, "not-modelled", (key,), message)


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
