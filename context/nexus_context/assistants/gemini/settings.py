"""Reads the settings of Gemini CLI in a folder, and its extensions, by its bundle (0.61.0).

1. The files are, the least important first: the system's defaults, the user's, the folder's, the system's.
   Tables are joined; of other values the last one counts.
2. Comments are allowed, but not a trailing comma or a byte order mark. Gemini CLI does not start if it cannot
   read a file, not even the folder's. It warns of a value of a wrong type, and ignores a key that it does not
   know.
3. `$NAME`, `${NAME}` and `${NAME:-otherwise}` in texts stand for variables, if they are set.
4. An extension is a directory in `~/.gemini/extensions` whose `gemini-extension.json` has a name and a
   version; `extension-enablement.json` beside them turns it off for directories.

`settings.schema.json` is SETTINGS_SCHEMA of the bundle in the words of `config/check`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import (
    first_stop,
    mismatch_problem,
    settings_problem,
    unknown_key_problem,
    value_at,
)
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    AssistantSettingsFile,
    Keys,
    Scope,
    Surroundings,
    join_lists,
)
from nexus_context.assistants.reading.server_checks import misnamed_key
from nexus_context.assistants.reading.settings import read_json, texts_of
from nexus_context.config import fixes
from nexus_context.config.check import find_mismatches, load_schema
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text import json as jsontext
from nexus_context.text.json import JsonDocument

SCHEMA = str(Path(__file__).with_name("settings.schema.json"))
JOINED_LISTS = frozenset(
    tuple(name.split("."))
    for name in (
        *("advanced.excludedEnvVars", "context.fileFiltering.customIgnoreFilePaths"),
        *("context.includeDirectories", "extensions.disabled", "extensions.workspacesWithMigrationNudge"),
        *("hooksConfig.disabled", "skills.disabled", "tools.exclude", "mcp.excluded"),
    )
)
"""The lists whose `mergeStrategy` in the bundle is `union` or `concat`, as in `hooks`; by runs, the last."""
ALLOWED_SERVERS = ("mcp", "allowed")
"""By runs, a server has to be in each file's list; an empty one allows all."""
SYSTEM_PATH = "/etc/gemini-cli/settings.json"
BOM = "\ufeff"
FORMS = frozenset({"json.comment", "json.duplicate-key"})
"""Problems of JSON that do not matter to Gemini CLI."""
MOVED = {
    "contextFileName": "context.fileName",
    "memoryImportFormat": "context.importFormat",
    "memoryDiscoveryMaxDirs": "context.discoveryMaxDirs",
    "coreTools": "tools.core",
    "allowedTools": "tools.allowed",
    "excludeTools": "tools.exclude",
    "allowMCPServers": "mcp.allowed",
    "excludeMCPServers": "mcp.excluded",
    "mcpServerCommand": "mcp.serverCommand",
    "selectedAuthType": "security.auth.selectedType",
    "enforcedAuthType": "security.auth.enforcedType",
    "folderTrust": "security.folderTrust.enabled",
    "sandbox": "tools.sandbox",
    "toolDiscoveryCommand": "tools.discoveryCommand",
    "toolCallCommand": "tools.callCommand",
    "ideMode": "ide.enabled",
    "excludedProjectEnvVars": "advanced.excludedEnvVars",
}
"""Keys of versions before 0.3, which 0.61.0 does not move any more."""
EVENTS_OF_OTHERS = {
    "PreToolUse": "BeforeTool",
    "PostToolUse": "AfterTool",
    "UserPromptSubmit": "BeforeAgent",
    "Stop": "AfterAgent",
    "PreCompact": "PreCompress",
}
APPROVAL_MODE = ("general", "defaultApprovalMode")
CAUSES = {
    "SessionStart": ("startup", "resume", "clear"),
    "SessionEnd": ("exit", "clear", "logout", "prompt_input_exit", "other"),
    "PreCompress": ("manual", "auto"),
}
"""What a hook's matcher is compared with as a whole, by its event."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^}]+?)(?::-([^}]*))?\})", re.ASCII)
_STOPS = "Gemini CLI does not start: "
_NAME = re.compile(r"[a-zA-Z0-9-]+")


class GeminiExtension(msgspec.Struct, frozen=True):
    """An extension that is on in the folder. `path` is its `gemini-extension.json`, `values` what that
    holds.
    """

    path: str
    values: Mapping[str, Any]

    def context_files(self, disk: Disk) -> Iterator[str]:
        """Yield the instruction files of the extension that exist."""
        names = self.values.get("contextFileName") or "GEMINI.md"
        for name in [names] if isinstance(names, str) else texts_of(names):
            path = os.path.join(os.path.dirname(self.path), name)
            if name.strip() and not os.path.isabs(name) and ".." not in name and disk.exists(path):
                yield path


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """Read the settings that hold in a folder, and what is wrong with their files."""
    files, problems, texts = [], list[Problem](), dict[str, str]()
    for path, scope in _settings_places(surroundings):
        text = disk.text(path)
        if text is None:
            continue
        document = jsontext.parse(path, text)
        file_problems = list(_file_problems(document))
        values = document.value if isinstance(document.value, dict) else {}
        if first_stop(file_problems) is None:
            values = expand_variables(values, surroundings.environ)
            file_problems.extend(_value_problems(document, values))
        files.append(AssistantSettingsFile(path, scope, values, document))
        problems += file_problems
        texts[path] = text
    paths = {problem.path for problem in problems}
    return AssistantSettings(
        surroundings,
        tuple(files),
        problems=tuple(problems),
        stop=first_stop(problems),
        combine=_combine,
        texts={path: text for path, text in texts.items() if path in paths},
    )


def _combine(keys: Keys, less: list[Any], more: list[Any]) -> list[Any]:
    if keys == ALLOWED_SERVERS:
        return [name for name in more if name in less]
    return join_lists(keys, less, more) if keys[0] == "hooks" or keys in JOINED_LISTS else more


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file."""
    return load_schema(SCHEMA)


def home_directory(surroundings: Surroundings) -> str:
    """Return the directory that holds the user's `.gemini`."""
    return surroundings.environ.get("GEMINI_CLI_HOME") or surroundings.user_home


def read_extensions(disk: Disk, surroundings: Surroundings) -> Iterator[GeminiExtension]:
    """Yield the extensions that are on in a folder."""
    directory = os.path.join(home_directory(surroundings), ".gemini", "extensions")
    enablement = read_json(disk, os.path.join(directory, "extension-enablement.json"))
    for entry, _ in sorted(disk.entries(directory)):
        path = os.path.join(directory, entry, "gemini-extension.json")
        values = expand_variables(read_json(disk, path), surroundings.environ)
        name = values.get("name")
        if isinstance(name, str) and _NAME.fullmatch(name) and values.get("version"):
            rules = texts_of(value_at(enablement, (name, "overrides")))
            if _is_on(rules, surroundings.folder):
                yield GeminiExtension(path, values)


def expand_variables(value: Any, environ: Mapping[str, str]) -> Any:
    """Replace the variables in all texts of a value. A variable that is not set becomes its default, or stays
    as written.
    """
    if isinstance(value, dict):
        return {key: expand_variables(item, environ) for key, item in value.items()}
    if isinstance(value, list):
        return [expand_variables(item, environ) for item in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        otherwise = match[0] if match[3] is None else match[3]
        return environ.get(match[1] or match[2], otherwise)

    return _VARIABLE.sub(replaced, value)


def _settings_places(surroundings: Surroundings) -> Iterator[tuple[str, Scope]]:
    system = surroundings.environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or SYSTEM_PATH
    defaults = surroundings.environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    yield defaults or os.path.join(os.path.dirname(system), "system-defaults.json"), "managed"
    home = home_directory(surroundings)
    yield os.path.join(home, ".gemini", "settings.json"), "user"
    if home != surroundings.folder:
        yield os.path.join(surroundings.folder, ".gemini", "settings.json"), "project"
    yield system, "managed"


def _file_problems(document: JsonDocument) -> Iterator[Problem]:
    """Why Gemini CLI cannot read a file."""
    broken = next((problem for problem in document.problems if _matters(problem)), None)
    if document.text.startswith(BOM):
        message = f"{_STOPS}the file begins with a byte order mark. Save it as UTF-8 without one."
        yield settings_problem(document, "stops", Span(0, 1), message)
    elif document.empty:
        message = f"{_STOPS}the file is empty. Write `{{}}`, or remove it."
        yield settings_problem(document, "stops", Span(0, 0), message)
    elif broken is not None:
        message = f"{_STOPS}{broken.message}"
        yield settings_problem(document, "stops", broken.span, message, fix=broken.fix)
    elif not isinstance(document.value, dict):
        message = f"{_STOPS}the file must be an object. Write `{{…}}`."
        yield settings_problem(document, "stops", (), message)


def _matters(problem: Problem) -> bool:
    return problem.code not in FORMS and (
        problem.severity is Severity.ERROR or problem.code == "json.trailing-comma"
    )


def _value_problems(document: JsonDocument, values: dict[str, Any]) -> Iterator[Problem]:
    schema = settings_schema()
    servers = values.get("mcpServers")
    misnamed_keys = {
        name: misnamed
        for name, server in (servers.items() if isinstance(servers, dict) else ())
        if isinstance(server, dict) and not is_complete(server)
        if (misnamed := misnamed_key(document, ("mcpServers", name), server)) is not None
    }
    misnamed_pointers = {("mcpServers", name, misnamed.key) for name, misnamed in misnamed_keys.items()}
    for finding in find_mismatches(values, schema):
        pointer = finding.pointer
        value = value_at(values, pointer)
        if pointer in misnamed_pointers:
            continue
        if finding.detail == "unknown-key":
            yield unknown_key_problem(document, finding, "Gemini CLI", schema, value=value, moved=MOVED)
        elif pointer[:2] == ("context", "fileName") or (pointer == APPROVAL_MODE and value != "yolo"):
            yield mismatch_problem(document, finding, "stops", _STOPS)
        elif not (isinstance(value, str) and finding.fixed and not isinstance(finding.fixed[0], str | list)):
            yield mismatch_problem(document, finding, "no-effect", "Gemini CLI warns, and cannot use it: ")
    yield from _hook_problems(document, values.get("hooks"), schema["properties"]["hooks"]["properties"])
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if isinstance(server, dict) and not is_complete(server):
            message = f"Gemini CLI cannot start `{name}`: it needs `command`, `url` or `httpUrl`."
            misnamed = misnamed_keys.get(name)
            if misnamed is None:
                yield settings_problem(document, "no-effect", ("mcpServers", name), message)
            else:
                message += f" {misnamed.remedy}"
                yield settings_problem(document, "no-effect", misnamed.span, message, fix=misnamed.fix)
        elif (
            isinstance(server, dict) and "command" in server and (server.get("url") or server.get("httpUrl"))
        ):
            message = f"Gemini CLI ignores `command` of `{name}`, because it has an address. Remove one."
            yield settings_problem(document, "no-effect", ("mcpServers", name, "command"), message)


def _hook_problems(document: JsonDocument, hooks: Any, events: Mapping[str, Any]) -> Iterator[Problem]:
    """Report hooks that never run: their event does not exist, or their matcher is not one of its causes."""
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        if event not in events and isinstance(groups, list) and event not in ("disabled", "notifications"):
            close = EVENTS_OF_OTHERS.get(event) or fixes.meant(
                event, [event_name for event_name in events if event_name not in hooks]
            )
            remedy = f" It is `{close}` here." if close else ""
            message = f"Gemini CLI has no hook event `{event}`: these hooks never run.{remedy}"
            yield settings_problem(document, "no-effect", ("hooks", event), message)
        for index, group in enumerate(groups if event in CAUSES and isinstance(groups, list) else ()):
            matcher = group.get("matcher") if isinstance(group, dict) else None
            if isinstance(matcher, str) and matcher not in ("", "*", *CAUSES[event]):
                message = f"This hook never runs: a matcher of `{event}` is {fixes.listed(CAUSES[event])}."
                span = document.span(("hooks", event, index, "matcher"))
                yield settings_problem(document, "no-effect", span, message)


def is_complete(server: Mapping[str, Any]) -> bool:
    """Whether a server's entry has a command or an address."""
    return any(isinstance(server.get(key), str) and server[key] for key in ("command", "url", "httpUrl"))


def _is_on(rules: list[str], folder: str) -> bool:
    """Whether an extension is on; the last rule that matches counts."""
    is_on = True
    for rule in rules:
        pattern = re.sub(r"(/?)\\\*", r"(\1.*)?", re.escape(rule.removeprefix("!")))
        if re.fullmatch(pattern, f"{folder.rstrip('/')}/"):
            is_on = not rule.startswith("!")
    return is_on
