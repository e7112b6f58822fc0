"""Reads the settings of opencode in a folder, as version 1.18.33 does.

Its source can be read in its binary (`Config.loadInstanceState`); `opencode debug config` showed the same.

1. The files are, the least important first: config.json, opencode.json and opencode.jsonc of the user's
   directory; the file that OPENCODE_CONFIG names; opencode.json and opencode.jsonc in each directory from the
   working tree's root down to the folder; both in `.opencode` of each of these directories, from the folder
   up, in `.opencode` of the home, and in OPENCODE_CONFIG_DIR; the text in OPENCODE_CONFIG_CONTENT; the
   organization's.
2. A file is JSON with comments and trailing commas. An empty file counts as missing; a blank one is not
   valid.
3. `{env:NAME}` stands for the text of a variable, empty if it is not set; `{file:PATH}` stands for a file's
   text, trimmed.
4. Unknown keys are ignored. Everything else that is wrong in a file stops opencode: its syntax, a type, or a
   `{file:}` that names no existing file. The only exception is a server with `enabled`, which is just not
   started.
5. Objects merge, and lists are replaced, except that the `instructions` of all files after the user's are
   joined.
6. Names of opencode 2 are taken over as far as possible, but its `permissions` stops opencode.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nexus_context.assistants.opencode.agents import HIDDEN, OWN_MODES, agents_of, read_agent_files
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    AssistantSettingsFile,
    Keys,
    Scope,
    Surroundings,
    join_lists,
)
from nexus_context.assistants.reading.working_tree import find_working_tree, parents
from nexus_context.config.check import JSONC, Node, conform, load_schema
from nexus_context.config.fast_check import acceptor
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text import json as jsontext
from nexus_context.text.json import JsonDocument

CONTENT = "OPENCODE_CONFIG_CONTENT"
FILES = ("opencode.json", "opencode.jsonc")
MANAGED = "/etc/opencode"
SCHEMA = str(Path(__file__).with_name("settings.schema.json"))
JOINED_LISTS = (("instructions",),)

_ENV = re.compile(r"\{env:([^}]+)\}")
_FILE = re.compile(r"\{file:([^}]+)\}")
_COMMENT = re.compile(r"^[ \t]*//[^\n]*", re.MULTILINE)
_OTHERS_SERVERS = ("mcpServers", "servers", "mcp_servers")
_NEXT = ("plugins", "providers", "websearch", "warming")
"""Keys of opencode 2 that 1.18 leaves out."""


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """Read the settings that hold in a folder, and what is wrong with their files."""
    files: list[AssistantSettingsFile] = []
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for path, scope in _places(disk, surroundings):
        text = surroundings.environ.get(CONTENT) if path == CONTENT else disk.text(path)
        if path != CONTENT and disk.is_directory(path):
            message = "opencode does not start: this is a directory, not a file. Remove it."
            problems.append(Problem(path, Span(0, 0), "assistant.stops", Severity.ERROR, message=message))
        if text:
            reading = _FileReading(disk, surroundings, path, text)
            document = reading.document
            values = _taken_over(document.value) if isinstance(document.value, dict) else {}
            files.append(AssistantSettingsFile(path, scope, values, document if reading.is_exact else None))
            file_problems = reading.problems()
            problems.extend(file_problems)
            if file_problems or "instructions" in values:  # which may name no file
                texts[path] = reading.text
    schema = settings_schema()
    for file, file_problems in read_agent_files(disk, config_directories(disk, surroundings), schema):
        files.append(replace(file, values=_taken_over(dict(file.values))))
        problems.extend(file_problems)
        if file_problems:
            texts[file.path] = (disk.text(file.path) or "").removeprefix("\ufeff")
    if CONTENT in texts:  # which is no file, and may hold secrets
        del texts[CONTENT]
        problems = [
            replace(
                problem,
                path=surroundings.folder,
                span=Span(0, 0),
                fix=None,
                message=f"{CONTENT}: {problem.message}",
            )
            if problem.path == CONTENT
            else problem
            for problem in problems
        ]
    settings = AssistantSettings(surroundings, tuple(files), texts=texts, combine=_combine)
    problems.extend(_agent_problems(settings))
    stop = next((problem for problem in problems if problem.code == "assistant.stops"), None)
    return replace(settings, problems=tuple(problems), stop=stop)


def _combine(keys: Keys, less: list[Any], more: list[Any]) -> list[Any]:
    return join_lists(keys, less, more) if keys in JOINED_LISTS else more


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file."""
    return load_schema(SCHEMA)


def _agent_problems(settings: AssistantSettings) -> Iterator[Problem]:
    """A `default_agent` that cannot run, in the last file that has one."""
    values = settings.merged()
    name = values.get("default_agent")
    naming = [file for file in settings.files if "default_agent" in file.values]
    agents = agents_of(values)
    agent = agents.get(name, {}) if isinstance(name, str) else {}
    if not isinstance(name, str):
        return
    if name not in {*OWN_MODES, *agents} or agent.get("disable") is True:
        why = f"there is no agent `{name}`"
    elif agent.get("mode", OWN_MODES.get(name)) == "subagent":
        why = f"the agent `{name}` is a subagent"
    elif agent.get("hidden", name in HIDDEN) is True:
        why = f"the agent `{name}` is hidden"
    else:
        return
    file = naming[-1]
    span = Span(0, 0) if file.document is None else file.document.span(("default_agent",))
    message = f"opencode does not run: {why}. Correct `default_agent`."
    yield Problem(file.path, span, "assistant.stops", Severity.ERROR, message=message)


def instruction_entries(settings: AssistantSettings) -> Iterator[tuple[str, AssistantSettingsFile, Span]]:
    """Yield each entry of `instructions` with its file and its place there. Of the user's files only the most
    important one counts.
    """
    home = config_home(settings.where)
    files = [file for file in settings.files if "instructions" in file.values]
    user_files = [file for file in files if os.path.dirname(file.path) == home]
    for file in (*user_files[-1:], *files[len(user_files) :]):
        for index, text in enumerate(file.values.get("instructions", ())):
            if isinstance(text, str):
                document = file.document
                span = Span(0, 0) if document is None else document.span(("instructions", index))
                yield text, file, span


def config_home(surroundings: Surroundings) -> str:
    """Return the directory of the user's settings."""
    base = surroundings.environ.get("XDG_CONFIG_HOME") or os.path.join(surroundings.user_home, ".config")
    return os.path.join(base, "opencode")


def config_directories(disk: Disk, surroundings: Surroundings) -> list[str]:
    """List the directories in which opencode looks for settings, agents and skills, the least important
    first.
    """
    chosen_path = surroundings.environ.get("OPENCODE_CONFIG_DIR")
    project_directories = (
        [] if is_on(surroundings, "OPENCODE_DISABLE_PROJECT_CONFIG") else directories(disk, surroundings)
    )
    dot_directories = [
        os.path.join(directory, ".opencode") for directory in (*project_directories, surroundings.user_home)
    ]
    chosen_directories = [os.path.join(surroundings.folder, chosen_path)] if chosen_path else []
    return list(dict.fromkeys((config_home(surroundings), *dot_directories, *chosen_directories)))


def directories(disk: Disk, surroundings: Surroundings) -> tuple[str, ...]:
    """List the directories from the folder up to the root of the working tree. Without a repository, the list
    goes up to the root of the file system.
    """
    repository = find_working_tree(disk, surroundings.folder)
    chain = parents(surroundings.folder)
    return chain if repository is None else chain[: chain.index(repository.root) + 1]


def is_on(surroundings: Surroundings, *names: str) -> bool:
    """Whether one of these environment variables is `1` or `true`."""
    return any(surroundings.environ.get(name, "").lower() in ("1", "true") for name in names)


def _places(disk: Disk, surroundings: Surroundings) -> Iterator[tuple[str, Scope]]:
    """The settings files, the least important first; CONTENT stands for the variable."""
    environ, folder = surroundings.environ, surroundings.folder
    home = config_home(surroundings)
    yield os.path.join(home, "config.json"), "user"
    yield from _files_in(home, "user")
    if environ.get("OPENCODE_CONFIG"):
        yield os.path.join(folder, environ["OPENCODE_CONFIG"]), "user"
    if not is_on(surroundings, "OPENCODE_DISABLE_PROJECT_CONFIG"):
        for directory in reversed(directories(disk, surroundings)):
            yield from _files_in(directory, "project" if directory == folder else "parent")
    for directory in config_directories(disk, surroundings)[1:]:
        owner = os.path.dirname(directory)
        is_above = owner in parents(folder) and owner != surroundings.user_home
        yield from _files_in(directory, "project" if owner == folder else "parent" if is_above else "user")
    yield CONTENT, "user"
    yield from _files_in(environ.get("OPENCODE_TEST_MANAGED_CONFIG_DIR") or MANAGED, "managed")


def _files_in(directory: str, scope: Scope) -> list[tuple[str, Scope]]:
    return [(os.path.join(directory, name), scope) for name in FILES]


def _taken_over(values: dict[str, Any]) -> dict[str, Any]:
    """Normalize the values of a file: a setting with several spellings gets one of them."""
    normalized = dict(values)
    if isinstance(values.get("permission"), str):
        normalized["permission"] = {"*": values["permission"]}
    if isinstance(values.get("skills"), list):
        normalized["skills"] = {"paths": values["skills"]}
    for key in ("agent", "mode"):
        if isinstance(values.get(key), dict):
            normalized[key] = {
                name: _taken_over(agent) if isinstance(agent, dict) else {}
                for name, agent in values[key].items()
            }
    servers = values.get("mcp")
    if isinstance(servers, dict):
        nested_servers = servers.get("servers")
        is_server = isinstance(nested_servers, dict) and (
            "type" in nested_servers or "enabled" in nested_servers
        )
        if isinstance(nested_servers, dict) and not is_server:
            servers = {
                **nested_servers,
                **{name: server for name, server in servers.items() if name != "servers"},
            }
        normalized["mcp"] = {
            name: _server(server) for name, server in servers.items() if isinstance(server, dict)
        }
    return normalized


def _server(server: dict[str, Any]) -> dict[str, Any]:
    """The values of a server that opencode takes; of an invalid server, only whether it is on."""
    kind = server.get("type")
    node = settings_schema()["x-servers"].get(kind) if isinstance(kind, str) else None
    if node is None or not acceptor(node)({key: server[key] for key in server if key in node["properties"]}):
        return {key: server[key] for key in ("enabled",) if key in server}
    if "disabled" not in server:
        return server
    return {**server, "enabled": server.get("enabled", server["disabled"] is not True)}


class _FileReading:
    """Reads one file: its text, the values of its references, and its problems.

    `is_exact` is false if a reference stands outside of a string, so that places in the text are not known.
    """

    def __init__(self, disk: Disk, surroundings: Surroundings, path: str, text: str) -> None:
        self.disk, self.where, self.path = disk, surroundings, path
        self.directory = surroundings.folder if path == CONTENT else os.path.dirname(path)
        self.missing: list[str] = []
        self.text = text.removeprefix("\ufeff")
        document = jsontext.parse(path, self.text)
        self.duplicates = [problem for problem in document.problems if problem.code == "json.duplicate-key"]
        self.is_exact = True
        if _is_valid(document):
            value = self._substituted(document.value)
            self.has_references = value is not document.value
            self.document = copy(document)
            self.document.value = value
        else:
            expanded = jsontext.parse(path, self._expanded(self.text, _as_json_text))
            self.is_exact = not _is_valid(expanded)
            self.has_references = True
            self.document = document if self.is_exact else expanded

    def problems(self) -> list[Problem]:
        """The problems that stop opencode and those that it ignores, in the order of the text.

        A fix could write down what a reference stands for, so that there is none beside references.
        """
        problems = sorted(self._problems(), key=lambda problem: problem.span)
        if self.has_references:
            problems = [replace(problem, fix=None) for problem in problems]
        return problems if self.is_exact else [replace(problem, span=Span(0, 0)) for problem in problems]

    def _problems(self) -> Iterator[Problem]:
        document, value = self.document, self.document.value
        if document.empty:
            yield _stops(self._at(Span(0, 0), "the file is blank. Write `{}`, or delete it."))
        elif not _is_valid(document):
            error = next(problem for problem in document.problems if _is_error(problem))
            yield _stops(replace(error, message=f"this file is not valid JSON. {error.message}"))
        elif not isinstance(value, dict):
            yield _stops(self._at(document.span(()), "the file must be an object. Write `{…}`."))
        else:
            schema = settings_schema()
            for problem in conform(document, (), schema, family="assistant", unknown=Severity.WARNING):
                yield self._judged(problem)
            yield from self._server_problems(value.get("mcp"), schema["x-servers"])
            yield from self._not_modelled(value, schema["properties"])
        for name in self.missing:
            start = max(self.text.find(name), 0)
            message = f"{name} names a file that does not exist. Correct the path, or create the file."
            yield _stops(self._at(Span(start, start + len(name)), message))
        for problem in self.duplicates:
            yield replace(problem, code="assistant.no-effect")

    def _judged(self, problem: Problem) -> Problem:
        """A finding of the schema by its effect: an unknown key has none, everything else stops opencode."""
        if problem.code != "assistant.unknown-key":
            return _stops(problem)
        key = json.loads(self.document.text[slice(*problem.span)])
        if key == "permissions":
            message = "`permissions` is of opencode 2. Write `permission`."
            return _stops(replace(problem, message=message))
        message = f"opencode ignores this. {problem.message}"
        if key in _OTHERS_SERVERS:
            message = (
                f"opencode ignores `{key}` and starts none of its servers. Write them under `mcp`, each with "
                '`"type": "local"` and `command` as a list, or `"type": "remote"` and `url`.'
            )
        elif key in _NEXT:
            message = f"opencode 1 ignores `{key}`, which is of opencode 2."
        return replace(problem, code="assistant.no-effect", message=message)

    def _server_problems(self, servers: Any, schemas: Mapping[str, Node]) -> Iterator[Problem]:
        for name, server in servers.items() if isinstance(servers, dict) else ():
            if not isinstance(server, dict) or name in ("servers", "timeout"):  # of opencode 2
                continue
            pointer = ("mcp", name)
            schema = schemas.get(server["type"]) if isinstance(server.get("type"), str) else None
            if schema is None:
                key = self.document.key_span(pointer) or self.document.span(pointer)
                message = (
                    f'"{name}" needs `"type": "local"` with `command`, or `"type": "remote"` with `url`.'
                )
                server_problems = [self._at(key, message)] if server.keys() != {"enabled"} else []
            else:
                server_problems = conform(
                    self.document, pointer, schema, family="assistant", unknown=Severity.WARNING
                )
            for problem in server_problems:
                if problem.code == "assistant.unknown-key":
                    message = (
                        f"opencode ignores this. {problem.message}{_server_hint(problem, self.document)}"
                    )
                elif isinstance(server.get("enabled"), bool):
                    message = f"opencode does not start this server: {problem.message}"
                else:
                    yield _stops(problem)
                    continue
                yield replace(problem, code="assistant.no-effect", severity=Severity.WARNING, message=message)

    def _not_modelled(self, value: dict[str, Any], schema: Mapping[str, Node]) -> Iterator[Problem]:
        for key in value:
            if schema.get(key, {}).get("x-nexus") == "not-modelled" and value[key]:
                message = f"`{key}` may add to what opencode sends. Nexus does not show that."
                span = self.document.key_span((key,)) or Span(0, 0)
                yield Problem(
                    self.path, span, "assistant.not-modelled", Severity.INFORMATION, message=message
                )

    def _at(self, span: Span, message: str) -> Problem:
        return Problem(self.path, span, "assistant.stops", Severity.ERROR, message=message)

    def _substituted(self, value: Any) -> Any:
        """The value with what its references stand for; the same object if it has none."""
        if isinstance(value, str):
            return self._expanded(value, str) if "{env:" in value or "{file:" in value else value
        if isinstance(value, list):
            items = [self._substituted(item) for item in value]
            return (
                items
                if any(new_item is not old_item for new_item, old_item in zip(items, value, strict=True))
                else value
            )
        if isinstance(value, dict):
            members = {key: self._substituted(member) for key, member in value.items()}
            return members if any(members[key] is not value[key] for key in value) else value
        return value

    def _expanded(self, text: str, escape: Callable[[str], str]) -> str:
        text = _ENV.sub(lambda match: self.where.environ.get(match[1], ""), text)
        comments = [match.span() for match in _COMMENT.finditer(text)] if escape is not str else []

        def content(match: re.Match[str]) -> str:
            if any(start <= match.start() < end for start, end in comments):
                return match[0]
            name = match[1]
            path = os.path.join(self.where.user_home, name[2:]) if name.startswith("~/") else name
            file = self.disk.text(os.path.normpath(os.path.join(self.directory, path)))
            if file is None:
                self.missing.append(match[0])
            return escape((file or "").strip())

        return _FILE.sub(content, text)


def _is_valid(document: JsonDocument) -> bool:
    return not document.empty and not any(map(_is_error, document.problems))


def _is_error(problem: Problem) -> bool:
    return problem.severity is Severity.ERROR and problem.code not in JSONC


def _as_json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _stops(problem: Problem) -> Problem:
    message = f"opencode does not start: {problem.message}"
    return replace(problem, code="assistant.stops", severity=Severity.ERROR, message=message)


def _server_hint(problem: Problem, document: JsonDocument) -> str:
    key = document.text[slice(*problem.span)].strip('"')
    return {
        "env": " Variables are in `environment`.",
        "args": " Arguments are items of `command`.",
    }.get(key, "")
