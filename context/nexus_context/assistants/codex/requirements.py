"""Reads what an organization requires of Codex on this machine, seen in runs of 0.169.0.

1. `allowed_approval_policies`: if the policy in force is another, it is the first of these.
2. `allowed_sandbox_modes`: if the mode in force is another, it is `read-only`, which must be one of them.
3. `mcp_servers`: other servers are off, and also a server whose `command` or `url` is not that of `identity`.
4. Codex does not start if the file is not valid. It ignores keys that it does not know.

What an organization requires from the cloud, or by the management of a device, is not in a file.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import mismatch_problem, settings_problem
from nexus_context.assistants.reading.profile_types import AssistantSettingsFile
from nexus_context.assistants.reading.toml import TomlDocument, read_toml
from nexus_context.config.check import find_mismatches, load_schema
from nexus_context.errors import Problem

PATH = "/etc/codex/requirements.toml"
POLICIES, MODES = "allowed_approval_policies", "allowed_sandbox_modes"
_WRITTEN_KEYS = {"approval_policy": POLICIES, "sandbox_mode": MODES}
"""The requirement that decides, by the setting that it changes."""
UNKNOWN_RULES = ("rules",)
UNKNOWN_PERMISSIONS = (
    "permissions",
    "default_permissions",
    "allowed_permissions",
    "allowed_permission_profiles",
    "remote_sandbox_config",
)
"""What changes the decisions about commands and files in ways that Nexus does not know."""
SCHEMA = str(Path(__file__).with_name("requirements.schema.json"))
_STOPS = "Codex does not start: "


def read_requirements(disk: Disk) -> TomlDocument:
    """Read the requirements of this machine. Without any, the table is empty."""
    return read_toml(disk, PATH)


def requirement_problems(document: TomlDocument) -> Iterator[Problem]:
    """Report what keeps Codex from starting, what it ignores, and what Nexus does not show."""
    if document.failure is not None:
        span, reason = document.failure
        message = f"{_STOPS}this is not valid TOML. {reason}. Correct the line."
        yield settings_problem(document, "stops", span, message)
    schema = load_schema(SCHEMA)
    for finding in find_mismatches(document.value, schema):
        as_table = finding._replace(message=finding.message.replace("an object", "a table"))
        yield mismatch_problem(document, as_table, "stops", _STOPS)
    if document.value.get(POLICIES) == []:
        yield settings_problem(document, "stops", (POLICIES,), f"{_STOPS}`{POLICIES}` must not be empty.")
    modes = document.value.get(MODES)
    if isinstance(modes, list) and "read-only" not in modes:
        message = f'{_STOPS}`{MODES}` must have "read-only". Add it.'
        yield settings_problem(document, "stops", (MODES,), message)
    for key in document.value:
        node = schema["properties"].get(key)
        if node is None:
            message = f"Codex ignores `{key}`: it knows no such requirement. Correct or remove it."
            yield settings_problem(document, "no-effect", (key,), message)
        elif node["x-nexus"] == "not-modelled":
            message = f"Codex heeds `{key}`. Nexus does not show what it changes."
            yield settings_problem(document, "not-modelled", (key,), message)


def required_values(
    document: TomlDocument, policy: Any, mode: Any, servers: Mapping[str, Mapping[str, Any]]
) -> AssistantSettingsFile:
    """Return the requirements as a settings file that counts more than all others: it sets what they change
    of the approval policy, the sandbox mode and the MCP servers in force.
    """
    values: dict[str, Any] = {}
    policies, modes = document.value.get(POLICIES), document.value.get(MODES)
    if isinstance(policies, list) and policies and policy not in policies:
        values["approval_policy"] = policies[0]
    if isinstance(modes, list) and mode not in modes:
        values["sandbox_mode"] = "read-only"
    allowed = document.value.get("mcp_servers")
    if isinstance(allowed, dict):
        off = [name for name, server in servers.items() if not _is_allowed(allowed.get(name), server)]
        values["mcp_servers"] = {name: {"enabled": False} for name in off}
    return AssistantSettingsFile(document.path, "managed", values, written_keys=_WRITTEN_KEYS)


def _is_allowed(requirement: Any, server: Mapping[str, Any]) -> bool:
    identity = requirement.get("identity") if isinstance(requirement, dict) else None
    key = "command" if isinstance(identity, dict) and "command" in identity else "url"
    return isinstance(identity, dict) and key in identity and server.get(key) == identity[key]
