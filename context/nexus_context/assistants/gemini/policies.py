"""Reads the policy rules of Gemini CLI: its own, those of `policies/*.toml`, and those that settings stand
for.

1. The priority of a rule is the tier of its source (1 for Gemini CLI, 4 for the user, 5 for the machine) plus
   its own value in thousandths. The first rule that matches in the order of priorities decides.
2. Each entry of `tools` and `mcp` in settings is a rule of the user's tier, whichever file has it. If several
   files have a list, only the last one counts, but the lists of `exclude` are joined. `exclude` denies first,
   then `confirmationRequired` asks, then `allowed` and `core` allow. `core` denies all tools that it does not
   name, and `run_shell_command(x)` in `allowed` denies all other commands.
3. A file with a rule that is not valid is not read at all. `.gemini/policies` of a folder is never read.
"""

import functools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nexus_context.assistants.gemini.settings import home_directory
from nexus_context.assistants.permissions.decision import PermissionRule, RuleKind
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, AssistantSettingsFile
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.toml import TomlDocument, read_toml
from nexus_context.config.check import schema_text
from nexus_context.errors import Span
from nexus_context.text.json import Pointer

SHELL = "run_shell_command"
SYSTEM_POLICIES = "/etc/gemini-cli/policies"
EXCLUDED = 4.4
"""The priority of `tools.exclude`, which is also about the tools of servers by their own names."""
MODES = {"default": "default", "auto_edit": "autoEdit", "plan": "plan"}
KINDS: dict[str, RuleKind] = {"allow": "allow", "ask_user": "ask", "deny": "deny"}
_JOINED = (("tools", "exclude"), ("mcpServers",))
_WORKING = ("default", "autoEdit", "yolo")
_ENTRY = re.compile(r"([a-zA-Z0-9_-]+)\((.*)\)")
_UNSAFE = re.compile(r"\([^)]*[*+?{].*\)[*+?{]")
_TABLES = str(Path(__file__).with_name("permissions.json"))


class PolicyRule(NamedTuple):
    """A policy rule. It covers commands that begin with `prefix`, or arguments that match `pattern`; None
    stands for any.

    `server` is the MCP server that the rule is about, or `*` for any server. `rule` is None for a rule of
    Gemini CLI's own.
    """

    tool: str
    decision: str
    priority: float
    modes: tuple[str, ...] = ()
    prefix: str | None = None
    pattern: re.Pattern[str] | None = None
    server: str | None = None
    redirects: bool = False
    rule: PermissionRule | None = None

    @property
    def has_arguments(self) -> bool:
        """Whether the rule covers only some calls of its tool."""
        return self.prefix is not None or self.pattern is not None

    def covers_tool(self, tool: str, server: str | None, mode: str) -> bool:
        """Whether the rule is about a tool in a mode, whatever the arguments of the call. `server` is None
        for tools of no server.
        """
        if (self.modes and mode not in self.modes) or (
            self.server is not None and (server is None or self.server not in ("*", server))
        ):
            return False
        if self.tool in ("*", tool):
            return True
        if self.tool == "mcp_*":
            return server is not None
        return server is not None and self.tool == f"mcp_{server}_*"

    def covers_arguments(self, arguments: str) -> bool:
        """Whether the rule covers the arguments of a call, as `write_arguments` gives them."""
        if self.prefix is None:
            return self.pattern is None or self.pattern.search(arguments) is not None
        start = arguments.find(self.prefix)
        while start >= 0:
            next_characters = arguments[start + len(self.prefix) :][:2]
            if next_characters[:1] == '"' or next_characters[:1].isspace() or next_characters == '\\"':
                return True
            start = arguments.find(self.prefix, start + 1)
        return False


def write_arguments(arguments: dict[str, Any]) -> str:
    """Write the arguments of a call as the text that patterns are matched with."""
    pairs = (
        f"\0{json.dumps(name)}:{json.dumps(value, ensure_ascii=False)}\0"
        for name, value in sorted(arguments.items())
    )
    return "{" + ",".join(pairs) + "}"


def read_rules(settings: AssistantSettings, disk: Disk) -> tuple[list[PolicyRule], str | None]:
    """Read all rules, the highest priority first. Also return the path of a file with a pattern that Python
    cannot read, else None.
    """
    rules, unread = list[PolicyRule](), None
    for document, tier in policy_files(settings, disk):
        try:
            rules += _file_rules(document, tier)
        except re.error:
            unread = document.path
    rules += _own_rules()
    rules += _settings_rules(settings)
    return sorted(rules, key=lambda rule: -rule.priority), unread


def policy_files(settings: AssistantSettings, disk: Disk) -> Iterator[tuple[TomlDocument, int]]:
    """Yield each policy file with its tier: 5 for the machine's, 4 for the user's."""
    user = os.path.join(home_directory(settings.where), ".gemini", "policies")
    for tier, directory in ((5, SYSTEM_POLICIES), (4, user)):
        for name, _ in disk.entries(directory):
            if name.endswith(".toml"):
                yield read_toml(disk, os.path.join(directory, name)), tier


def invalid_place(document: TomlDocument) -> Span | None:
    """Return the place of what keeps Gemini CLI from reading a policy file, None if it reads the file."""
    if document.failure is not None:
        return document.failure[0]
    rules = enumerate(_listed(document))
    wrong_at = next((at for at, entry in rules if not (isinstance(entry, dict) and _is_valid(entry))), None)
    return None if wrong_at is None else document.span(("rule", wrong_at))


@functools.cache
def tables() -> dict[str, Any]:
    """Read what is built into Gemini CLI: its rules, its tools, and the commands that it considers safe."""
    read: dict[str, Any] = msgspec.json.decode(schema_text(_TABLES))
    return read


def _own_rules() -> Iterator[PolicyRule]:
    for entry in tables()["rules"]:
        yield from _rules_of(entry, 1, None, "")


def _file_rules(document: TomlDocument, tier: int) -> list[PolicyRule]:
    """The rules of a file; none if one of them is not valid."""
    if invalid_place(document) is not None:
        return []
    rules = list[PolicyRule]()
    for index, entry in enumerate(_listed(document)):
        if (
            entry.get("interactive") is not False
            and not entry.get("toolAnnotations")
            and not entry.get("subagent")
        ):
            template = PermissionRule(
                kind=KINDS[entry["decision"]],
                text="",
                tool="",
                pattern=None,
                path=document.path,
                span=document.span(("rule", index)),
            )
            rules += _rules_of(entry, tier, template, _arguments_text(entry))
    return rules


def _listed(document: TomlDocument) -> list[Any]:
    values = document.value.get("rule")
    return values if isinstance(values, list) else []


def _is_valid(entry: dict[str, Any]) -> bool:
    names, priority, modes = entry.get("toolName"), entry.get("priority"), entry.get("modes", [])
    tool_names = [names] if isinstance(names, str) else names
    return (
        isinstance(tool_names, list)
        and all(isinstance(name, str) for name in tool_names)
        and entry.get("decision") in KINDS
        and type(priority) is int
        and 0 <= priority <= 999
        and isinstance(modes, list)
        and all(mode in ("default", "autoEdit", "yolo", "plan") for mode in modes)
        and all(isinstance(entry.get(key, ""), str) for key in ("argsPattern", "commandRegex", "mcpName"))
        and isinstance(entry.get("commandPrefix", ""), str | list)
    )


def _arguments_text(entry: dict[str, Any]) -> str:
    value = entry.get("commandPrefix") or entry.get("commandRegex") or entry.get("argsPattern") or ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rules_of(
    entry: dict[str, Any], tier: int, template: PermissionRule | None, text: str
) -> Iterator[PolicyRule]:
    """A rule for each tool and each prefix of an entry."""
    prefixes = entry.get("commandPrefix") or [None]
    pattern = None
    if prefixes == [None]:
        pattern = (
            f'"command":"{entry["commandRegex"]}' if entry.get("commandRegex") else entry.get("argsPattern")
        )
    if pattern is not None and (len(pattern) > 2048 or _UNSAFE.search(pattern)):
        return
    compiled = None if pattern is None else _expression(pattern)
    server = entry.get("mcpName")
    for prefix in [prefixes] if isinstance(prefixes, str) else prefixes:
        for name in [entry["toolName"]] if isinstance(entry["toolName"], str) else entry["toolName"]:
            tool = name if not server else f"mcp_{server}_{name}" if server != "*" else "mcp_*"
            rule_name = f"{tool}({text})" if text else tool
            permission_rule = template and msgspec.structs.replace(
                template, text=rule_name, tool=tool, pattern=text or None
            )
            yield PolicyRule(
                tool,
                entry["decision"],
                tier + entry["priority"] / 1000,
                tuple(entry.get("modes") or ()),
                prefix=None if prefix is None else _needle(str(prefix)),
                pattern=compiled,
                server=server,
                redirects=bool(entry.get("allowRedirection", entry.get("allow_redirection"))),
                rule=permission_rule,
            )


def _settings_rules(settings: AssistantSettings) -> Iterator[PolicyRule]:
    for name, make_rule in list_entries(settings, ("mcp", "excluded")):
        yield PolicyRule(
            "mcp_*" if name == "*" else f"mcp_{name}_*", "deny", 4.9, server=name, rule=make_rule("deny")
        )
    for name, make_rule in list_entries(settings, ("tools", "exclude")):
        yield PolicyRule(name, "deny", EXCLUDED, rule=make_rule("deny"))
    yield from _allowed(settings, "allowed", 4.3, ())
    for name, make_rule in list_entries(settings, ("tools", "confirmationRequired")):
        yield PolicyRule(_shell(name), "ask_user", 4.35, rule=make_rule("ask"))
    yield from _allowed(settings, "core", 4.25, _WORKING)
    for name, make_rule in list_entries(settings, ("mcpServers",)):
        if settings.value("mcpServers", name, "trust"):
            yield PolicyRule(f"mcp_{name}_*", "allow", 4.2, _WORKING, server=name, rule=make_rule("allow"))
    for name, make_rule in list_entries(settings, ("mcp", "allowed")):
        tool = "mcp_*" if name == "*" else f"mcp_{name}_*"
        yield PolicyRule(tool, "allow", 4.1, _WORKING, server=name, rule=make_rule("allow"))


def _allowed(
    settings: AssistantSettings, key: str, priority: float, modes: tuple[str, ...]
) -> Iterator[PolicyRule]:
    narrowing: PermissionRule | None = None
    last_rule: PermissionRule | None = None
    for text, make_rule in list_entries(settings, ("tools", key)):
        match = _ENTRY.fullmatch(text)
        tool, last_rule = _shell(match[1] if match else text), make_rule("allow")
        prefix = None
        if match and tool == SHELL:
            narrowing = msgspec.structs.replace(make_rule("deny"), text=f"tools.{key} has no other command")
            prefix = _needle(match[2]) if match[2] else None
            if prefix is None:
                continue
        yield PolicyRule(tool, "allow", priority, modes, prefix=prefix, rule=last_rule)
    if key == "core" and last_rule is not None:
        denial = msgspec.structs.replace(last_rule, kind="deny", text="tools.core has no other tool")
        yield PolicyRule("*", "deny", priority - 0.01, modes, rule=denial)
    elif narrowing is not None:
        yield PolicyRule(SHELL, "deny", priority - 0.01, modes, rule=narrowing)


def list_entries(settings: AssistantSettings, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield each text of the list that settings have at `keys`, with a function that makes a rule of it. The
    function gets the kind of rule.

    Only the list in force is read, but the lists of all files if `keys` are in _JOINED.
    """
    effective_value = settings.value(*keys)
    for file in settings.files:
        value: Any = file.values
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not effective_value and keys not in _JOINED:
            continue
        if isinstance(value, dict):
            located_texts = [(name, (*keys, name)) for name in value]
        else:
            located_texts = [(text, (*keys, index)) for index, text in enumerate(texts_of(value))]
        for text, pointer in located_texts:
            yield text, functools.partial(_setting, text, file, pointer)


def _setting(text: str, file: AssistantSettingsFile, pointer: Pointer, kind: RuleKind) -> PermissionRule:
    span = Span(0, 0)
    if file.document is not None:
        span = file.document.key_span(pointer) or file.document.span(pointer)
    rule_text = f"{'.'.join(map(str, pointer[:-1]))} {text}"
    return PermissionRule(kind=kind, text=rule_text, tool=text, pattern=None, path=file.path, span=span)


def _shell(tool: str) -> str:
    return SHELL if tool == "ShellTool" else tool


def _needle(prefix: str) -> str:
    """How the arguments of a command begin that has a prefix."""
    return f'"command":{json.dumps(prefix, ensure_ascii=False)[:-1]}'


@functools.lru_cache(maxsize=4096)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(
        pattern.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!"), re.ASCII
    )
