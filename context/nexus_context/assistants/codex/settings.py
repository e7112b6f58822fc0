"""Reads the settings of Codex in a folder: the system's, the user's, and a trusted project's.

The types in `settings.schema.json` are those that Codex 0.169.0 names when it is given a value of another
type, for each identifier in its program as a key of each table; a table is closed if no other is heeded
there. `codex exec` names the keys that it ignores.

1. Codex does not start if a file is not TOML or has a value of a wrong type. It warns of keys that it does
   not know, and of keys that it does not take from a project (PROJECT_IGNORES).
2. Tables of several files are joined, so whether a server is complete depends on all files together.
3. The settings of a project that the user does not trust are not read. What would keep Codex from starting
   there is a problem all the same.
4. What an organization requires counts more than all files (`requirements`).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nexus_context.assistants.codex.requirements import (
    read_requirements,
    required_values,
    requirement_problems,
)
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
    Scope,
    Surroundings,
)
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.toml import TomlDocument, read_toml
from nexus_context.assistants.reading.working_tree import find_working_tree, parents
from nexus_context.config.check import find_mismatches, load_schema
from nexus_context.errors import Problem
from nexus_context.text.redact import secrets_in

SYSTEM_CONFIG = "/etc/codex/config.toml"
SCHEMA = str(Path(__file__).with_name("settings.schema.json"))
MARKERS = (".git",)
PROJECT_IGNORES = (
    "openai_base_url",
    "chatgpt_base_url",
    "apps_mcp_product_sku",
    "responses_api_metadata",
    "model_provider",
    "model_providers",
    "notify",
    "profile",
    "profiles",
    "experimental_realtime_webrtc_call_base_url",
    "experimental_realtime_ws_base_url",
    "otel",
)
BUILT_IN_PROVIDERS = ("openai", "ollama", "lmstudio", "amazon-bedrock")
ONLY_LOCAL = ("args", "env", "env_vars", "cwd")
ONLY_REMOTE = (
    "url",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "http_headers_helper",
    "auth",
    "oauth",
    "oauth_resource",
)
NOT_MODELLED = {
    "plugins": "what plugins add to requests",
    "memories": "what its memories add to requests",
    "model_instructions_file": "the file that replaces its system prompt",
}
VARIABLE_NAMES = {"model_providers": "env_key", "mcp_servers": "bearer_token_env_var"}
"""By table, what names the variable that holds a secret."""
SHELL = "shell_environment_policy"
_STOPS = "Codex does not start: "
_WOULD_STOP = "In a folder that the user trusts, Codex does not start: "


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """Read the settings that hold in a folder, and what is wrong with their files."""
    user_path = os.path.join(codex_home(surroundings), "config.toml")
    base_layers = [_Layer(disk, SYSTEM_CONFIG, "managed"), _Layer(disk, user_path, "user")]
    base_files = tuple(layer.file for layer in base_layers)
    trusted = is_trusted(disk, surroundings, base_files)
    project = [
        _Layer(disk, path, "project" if directory == surroundings.folder else "parent", trusted=trusted)
        for directory, path in project_files(disk, surroundings, base_files)
    ]
    layers = [*base_layers, *project] if trusted else base_layers
    problems = [problem for layer in (*base_layers, *project) for problem in layer.problems]
    if not first_stop(problems):
        problems += _joined_problems(disk, layers)
    requirements = read_requirements(disk)
    problems += requirement_problems(requirements)
    files = tuple(layer.file for layer in layers)
    if requirements.value:
        files += (_required_file(requirements, disk, AssistantSettings(surroundings, files), layers),)
    paths = {problem.path for problem in problems}
    return AssistantSettings(
        surroundings,
        files,
        problems=tuple(problems),
        stop=first_stop([problem for problem in problems if not problem.message.startswith(_WOULD_STOP)]),
        texts={
            document.path: document.text
            for document in (*(layer.document for layer in (*base_layers, *project)), requirements)
            if document.path in paths
        },
    )


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file."""
    return load_schema(SCHEMA)


class _Layer:
    """A settings file with what is wrong with it."""

    def __init__(self, disk: Disk, path: str, scope: Scope, *, trusted: bool = True) -> None:
        self.document = read_toml(disk, path)
        self.is_project = scope in ("project", "parent")
        self.opening = _STOPS if trusted else _WOULD_STOP
        values = self.document.value
        ignored = PROJECT_IGNORES if self.is_project else ()
        self.problems = list(self._problems())
        self.file = AssistantSettingsFile(
            path, scope, {key: value for key, value in values.items() if key not in ignored}
        )

    def _problems(self) -> Iterator[Problem]:
        document, schema = self.document, settings_schema()
        if document.failure is not None:
            span, reason = document.failure
            message = f"{self.opening}this is not valid TOML. {reason}. Correct the line."
            yield settings_problem(document, "stops", span, message)
        for finding in find_mismatches(document.value, schema):
            if finding.detail == "unknown-key":
                value = value_at(document.value, finding.pointer)
                yield unknown_key_problem(document, finding, "Codex", schema, value=value)
            elif not (self.is_project and finding.pointer[0] in PROJECT_IGNORES):
                as_table = finding._replace(message=finding.message.replace("an object", "a table"))
                yield mismatch_problem(document, as_table, "stops", self.opening)
        yield from self._project_problems() if self.is_project else self._user_problems()
        old_keys = [key for key in ("exclude", "include_only") if self._value(SHELL, key) is not None]
        if old_keys and self._value(SHELL, "filters") is not None:
            message = (
                f"{self.opening}`filters` does not go with `{old_keys[0]}`. Write all of them to `filters`."
            )
            yield settings_problem(document, "stops", (SHELL, old_keys[0]), message)
        yield from self._secret_problems()
        for key, description in NOT_MODELLED.items():
            if key in document.value:
                yield settings_problem(
                    document, "not-modelled", (key,), f"Nexus does not count {description}."
                )

    def _secret_problems(self) -> Iterator[Problem]:
        """Keys and tokens where the name of their variable belongs."""
        for tables, key in VARIABLE_NAMES.items():
            value = self._value(tables)
            for name, table in value.items() if isinstance(value, dict) else ():
                text = table.get(key) if isinstance(table, dict) else None
                if isinstance(text, str) and text and not _is_variable(text):
                    message = f"`{key}` must name a variable. Put this value into one, and write its name."
                    yield settings_problem(self.document, "secret", (tables, name, key), message)

    def _project_problems(self) -> Iterator[Problem]:
        document = self.document
        for key in PROJECT_IGNORES:
            if key in document.value:
                message = f"Codex ignores `{key}` in a project. Set it in ~/.codex/config.toml."
                yield settings_problem(document, "no-effect", (key,), message)
        if self._value("skills", "config") is not None:
            message = "Codex takes `skills.config` only from the user's settings: these skills stay listed."
            yield settings_problem(document, "no-effect", ("skills", "config"), message)

    def _user_problems(self) -> Iterator[Problem]:
        document = self.document
        name = self._value("profile")
        if isinstance(name, str):
            message = (
                f"{self.opening}`profile` is no longer supported. Remove it, write the profile's settings to "
                f"{name}.config.toml beside this file, and start `codex --profile {name}`."
            )
            yield settings_problem(document, "stops", ("profile",), message)
        elif self._value("profiles") is not None:
            message = (
                "Codex ignores `profiles`. Write the settings of a profile to NAME.config.toml beside this "
                "file, and start `codex --profile NAME`."
            )
            yield settings_problem(document, "no-effect", ("profiles",), message)
        if self._value("instructions") is not None:
            message = (
                "Codex ignores `instructions`. Write them to AGENTS.md beside this file, or to "
                "`developer_instructions`."
            )
            yield settings_problem(document, "no-effect", ("instructions",), message)

    def _value(self, *keys: str) -> Any:
        return value_at(self.document.value, keys)


def _required_file(
    requirements: TomlDocument, disk: Disk, settings: AssistantSettings, layers: Sequence[_Layer]
) -> AssistantSettingsFile:
    policy, mode = default_modes(trust_of(disk, settings))
    servers = {name: server for name, server, _ in _joined(layers, "mcp_servers")}
    policy = settings.value("approval_policy") or policy
    return required_values(requirements, policy, settings.value("sandbox_mode") or mode, servers)


def _joined_problems(disk: Disk, layers: Sequence[_Layer]) -> Iterator[Problem]:
    """Report what is wrong with the values of all files together, each in the last file that has it."""
    yield from _server_problems(layers)
    yield from _provider_problems(layers)
    for key in ("model_instructions_file", "experimental_compact_prompt_file"):
        for layer, value in _last_value(layers, key):
            path = os.path.join(os.path.dirname(layer.document.path), os.path.expanduser(str(value)))
            if not (disk.text(path) or "").strip():
                message = f"{_STOPS}{path} cannot be read, or is empty. Correct the path."
                yield settings_problem(layer.document, "stops", (key,), message)
    for layer, names in _last_value(layers, "project_doc_fallback_filenames"):
        for index, name in enumerate(texts_of(names)):
            if not is_file_name(name):
                message = "Codex ignores this name: it must be that of a file, without a directory."
                pointer = ("project_doc_fallback_filenames", index)
                yield settings_problem(layer.document, "no-effect", pointer, message)


def _server_problems(layers: Sequence[_Layer]) -> Iterator[Problem]:
    for name, server, layer in _joined(layers, "mcp_servers"):
        kind, excluded_keys = ("command", ONLY_REMOTE) if "command" in server else ("url", ONLY_LOCAL)
        excluded_key = next((key for key in (*excluded_keys, "bearer_token") if key in server), None)
        pointer: tuple[str, ...] = ("mcp_servers", name)
        if "command" not in server and "url" not in server:
            message = f"the server `{name}` needs `command` or `url`, here or in ~/.codex/config.toml."
        elif excluded_key == "bearer_token":
            pointer = (*pointer, excluded_key)
            message = (
                "`bearer_token` is not supported. Put the token into a variable, and name that in "
                "`bearer_token_env_var`."
            )
        elif excluded_key is not None:
            pointer = (*pointer, excluded_key)
            message = (
                f"the server `{name}` has `{kind}`, with which `{excluded_key}` is not allowed. Remove one."
            )
        else:
            continue
        yield settings_problem(layer.document, "stops", pointer, _STOPS + message)


def _provider_problems(layers: Sequence[_Layer]) -> Iterator[Problem]:
    providers = list(_joined(layers, "model_providers"))
    for name, provider, layer in providers:
        if name in BUILT_IN_PROVIDERS[:-1]:
            message = f"`{name}` is a provider of its own, which settings cannot change. Rename yours."
        elif not provider.get("name") and name not in BUILT_IN_PROVIDERS:
            message = f"the provider `{name}` needs a `name`."
        else:
            continue
        yield settings_problem(layer.document, "stops", ("model_providers", name), _STOPS + message)
    for layer, value in _last_value(layers, "model_provider"):
        if value not in (*BUILT_IN_PROVIDERS, *(name for name, _, _ in providers)):
            message = f"{_STOPS}no provider `{value}` is in `model_providers`. Add it, or correct the name."
            yield settings_problem(layer.document, "stops", ("model_provider",), message)


def _last_value(layers: Sequence[_Layer], key: str) -> Iterator[tuple[_Layer, Any]]:
    """The last file that has a key, and its value."""
    having = [layer for layer in layers if layer.file.values.get(key) is not None]
    if having:
        yield having[-1], having[-1].file.values[key]


def _joined(layers: Sequence[_Layer], key: str) -> Iterator[tuple[str, Mapping[str, Any], _Layer]]:
    """The tables in a table, each with the keys of all files, and the last file that has it."""
    tables: dict[str, dict[str, Any]] = {}
    last_layers: dict[str, _Layer] = {}
    for layer in layers:
        value = layer.file.values.get(key)
        for name, table in value.items() if isinstance(value, dict) else ():
            if isinstance(table, dict):
                tables[name] = {**tables.get(name, {}), **table}
                last_layers[name] = layer
    for name, table in tables.items():
        yield name, table, last_layers[name]


def _is_variable(text: str) -> bool:
    """Whether a text may be the name of a variable: it is in capitals, or does not look like a secret."""
    is_name = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text)
    return is_name is not None and (text.isupper() or not secrets_in(text, "key"))


def is_file_name(name: str) -> bool:
    """Whether Codex accepts a name in `project_doc_fallback_filenames`."""
    return bool(name.strip()) and name not in (".", "..") and "/" not in name


def codex_home(surroundings: Surroundings) -> str:
    """Return the directory of the user's settings, `~/.codex` unless `CODEX_HOME` names another."""
    return surroundings.environ.get("CODEX_HOME") or os.path.join(surroundings.user_home, ".codex")


def project_files(
    disk: Disk, surroundings: Surroundings, base_files: tuple[AssistantSettingsFile, ...]
) -> list[tuple[str, str]]:
    """List the directories from the project's root down to the folder, each with the path of the settings
    file that it may have.
    """
    user_path = os.path.join(codex_home(surroundings), "config.toml")
    root = project_root(disk, AssistantSettings(surroundings, base_files))
    chain = parents(surroundings.folder)
    settings_files = (
        (directory, os.path.join(directory, ".codex", "config.toml"))
        for directory in chain[chain.index(root) :: -1]
    )
    return [settings_file for settings_file in settings_files if settings_file[1] != user_path]


def project_root(disk: Disk, settings: AssistantSettings) -> str:
    """Return the nearest directory that has a marker of a project's root, else the folder itself."""
    folder, value = settings.where.folder, settings.value("project_root_markers")
    markers = texts_of(value) if isinstance(value, list) else list(MARKERS)
    for directory in parents(folder) if markers else ():
        if any(disk.exists(os.path.join(directory, marker)) for marker in markers):
            return directory
    return folder


def is_trusted(disk: Disk, surroundings: Surroundings, base_files: tuple[AssistantSettingsFile, ...]) -> bool:
    """Whether the user trusts the folder. Settings of a project count only then."""
    return surroundings.trusted or "trusted" in trust_levels(disk, surroundings, base_files)


def trust_of(disk: Disk, settings: AssistantSettings) -> str:
    """Return the trust level of the folder, empty if the user's settings give it none."""
    if settings.where.trusted:
        return "trusted"
    return next(iter(trust_levels(disk, settings.where, settings.files[:2])), "")


def default_modes(trust: str) -> tuple[str, str]:
    """Return the approval policy and the sandbox mode that Codex takes where no settings have them."""
    policy = "untrusted" if trust == "untrusted" else "on-request"
    return policy, "workspace-write" if trust else "read-only"


def trust_levels(
    disk: Disk, surroundings: Surroundings, base_files: Sequence[AssistantSettingsFile]
) -> list[str]:
    """List the trust levels that the user's settings give to the folder, its project and its working tree."""
    projects: Any = base_files[-1].values.get("projects")
    repository = find_working_tree(disk, surroundings.folder)
    root = project_root(disk, AssistantSettings(surroundings, tuple(base_files)))
    keys = (
        surroundings.folder,
        root,
        *(() if repository is None else (repository.root, repository.main)),
    )
    entries = [projects.get(key) for key in keys] if isinstance(projects, Mapping) else []
    return [str(entry.get("trust_level")) for entry in entries if isinstance(entry, Mapping)]
