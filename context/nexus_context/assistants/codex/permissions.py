"""Decides what Codex does with a call of a tool: by its public source, and seen in runs of 0.169.0.

1. Codex runs commands and applies patches; it has no tools that read or fetch. Reading a file is decided as
   `cat`.
2. A script of plain words joined with `&&`, `||`, `;`, `|` and line ends is taken apart into its commands. A
   script with a redirection, a variable, a substitution, brackets, or a bare `*`, `?`, `~` or backslash is
   one command of the shell, and no rule for a command in it counts.
3. The strictest rule of the `.rules` files decides on a command (`permission_rules`). If no rule covers it,
   Codex asks about `rm -f`, and about everything in a project that the user distrusts; other commands run in
   the sandbox.
4. A patch is applied in the folder and in directories that the sandbox can write to, but not in their `.git`,
   `.codex` and `.agents`. Codex asks about patches elsewhere.
5. With `approval_policy = "never"`, what would be asked is denied.
"""

import os
import re
import shlex
from typing import Any

import msgspec
from tree_sitter import Node

from nexus_context.assistants.codex.permission_rules import CommandRule, CommandRules, read_rules
from nexus_context.assistants.codex.requirements import PATH as REQUIREMENTS
from nexus_context.assistants.codex.requirements import (
    UNKNOWN_PERMISSIONS,
    UNKNOWN_RULES,
    read_requirements,
)
from nexus_context.assistants.codex.settings import default_modes, trust_of
from nexus_context.assistants.permissions.decision import (
    Decision,
    ExplainedCall,
    Outcome,
    PermissionReader,
    PermissionRule,
    RuleKind,
)
from nexus_context.assistants.permissions.shell import nodes_below, parse_bash, text_of
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import value_at
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.assistants.reading.toml import read_toml

VERSION = "0.169.0"
_PLAIN = ("program", "list", "pipeline", "command", "command_name", "word", "string", "string_content")
_PLAIN_NODES = frozenset((*_PLAIN, "raw_string", "number", "concatenation", "&&", "||", ";", "|", '"', "'"))
_NOT_LITERAL = re.compile(r"[?*\[\]{}~\\^#$`]|\A=")
_ESCAPED = re.compile(r"\\[$`\"\\\n]")
_STRICTEST: tuple[RuleKind, ...] = ("deny", "ask", "allow")
_PROTECTED = (".git", ".codex", ".agents")
_KINDS: dict[Outcome, RuleKind] = {"allowed": "allow", "asks": "ask", "denied": "deny"}
_UNKNOWN = "It is not known what Codex does"


class CodexPermissions(msgspec.Struct, frozen=True):
    """What decides in a folder. `policy` says when Codex asks, `sandbox` what commands may reach.

    `settings` are the settings that set these two, as rules. `roots` are the directories that the sandbox can
    write to, with links resolved. `has_network` is true if a command in the sandbox reaches the network.
    """

    rules: CommandRules
    policy: str
    sandbox: str
    settings: dict[str, PermissionRule]
    refused_questions: frozenset[str]
    roots: tuple[str, ...]
    has_network: bool
    servers: dict[str, Any]
    has_profile: bool
    folder: str
    disk: Disk


def read_permissions(settings: AssistantSettings, disk: Disk) -> CodexPermissions:
    """Read what the settings and `.rules` files say of commands, patches and servers."""
    where = settings.where
    default_policy, default_mode = default_modes(trust_of(disk, settings))
    requirements = read_requirements(disk).value
    policy = settings.value("approval_policy")
    granular = policy.get("granular", {}) if isinstance(policy, dict) else {}
    sandbox = settings.value("sandbox_mode") or default_mode
    options = settings.value("sandbox_workspace_write") or {}
    roots = [where.folder, *map(str, options.get("writable_roots") or ())]
    roots += [] if options.get("exclude_slash_tmp") else ["/tmp"]  # noqa: S108 - Codex names it
    temporary = where.environ.get("TMPDIR")
    roots += [temporary] if temporary and not options.get("exclude_tmpdir_env_var") else []
    servers: dict[str, Any] = {}
    for values in settings.each("mcp_servers"):
        for name, server in values.items() if isinstance(values, dict) else ():
            servers[name] = {**servers.get(name, {}), **server} if isinstance(server, dict) else {}
    rules = read_rules(settings, disk)
    if any(key in requirements for key in UNKNOWN_RULES):
        rules = rules._replace(unread=REQUIREMENTS)
    return CodexPermissions(
        rules=rules,
        policy="granular" if granular else str(policy or default_policy),
        sandbox=str(sandbox),
        settings={
            key: rule
            for key in ("approval_policy", "sandbox_mode")
            if (rule := _setting(settings, disk, key)) is not None
        },
        refused_questions=frozenset(key for key, is_on in granular.items() if is_on is False),
        roots=tuple(disk.real(os.path.join(where.folder, root)) for root in roots),
        has_network=options.get("network_access") is True,
        servers=servers,
        has_profile=any(settings.value(key) for key in ("default_permissions", "permissions"))
        or any(key in requirements for key in UNKNOWN_PERMISSIONS),
        folder=where.folder,
        disk=disk,
    )


def decide(settings: CodexPermissions, call: ExplainedCall) -> Decision:
    """Decide what Codex does with a call."""
    if settings.has_profile:
        return Decision("asks", f"{_UNKNOWN} with profiles of permissions.")
    path = str(call.inputs.get("file_path", "")).replace("\0", "")
    match call.tool:
        case "Bash":
            return _decide_script(settings, str(call.inputs.get("command", "")))
        case "Read":
            decision = _decide_script(settings, f"cat {shlex.quote(path)}")
            reason = f"Codex reads files with commands, such as `cat`. {decision.reason}"
            return msgspec.structs.replace(decision, reason=reason)
        case "Edit" | "Write":
            return _decide_patch(settings, path)
        case tool if tool.startswith("mcp__"):
            return _decide_server(settings, *_server_and_tool(tool))
        case "WebSearch" | "Agent" | "Skill":
            return Decision("asks", f"{_UNKNOWN} with {call.tool}.")
        case _:
            return Decision("denied", f"Codex has no tool for {call.tool}.", is_offered=False)


def _decide_script(settings: CodexPermissions, script: str) -> Decision:
    if settings.rules.unread is not None:
        path = os.path.basename(settings.rules.unread)
        return Decision("asks", f"{_UNKNOWN}: {path} has more than plain rules.")
    root = parse_bash(script)
    if root is None:
        return Decision("asks", f"The command is too long. {_UNKNOWN}.")
    commands = _plain_commands(root)
    is_plain = commands is not None
    if commands is None:
        commands = [["bash", "-lc", script]]
    decisions = [_decide_command(settings, words, root, is_plain=is_plain) for words in commands]
    order: list[Outcome] = ["denied", "asks", "allowed"]
    strictest_index = min(range(len(decisions)), key=lambda index: order.index(decisions[index].outcome))
    decision = decisions[strictest_index]
    if len(decisions) > 1:
        decision = msgspec.structs.replace(decision, part=" ".join(commands[strictest_index]))
    if decision.outcome == "allowed":
        is_ruled = all(decision.rule is not None and decision.rule.tool == "Bash" for decision in decisions)
        where = "outside of the sandbox" if is_ruled else _sandbox(settings)
        return msgspec.structs.replace(decision, reason=f"{decision.reason} It runs {where}.")
    return decision


def _decide_command(settings: CodexPermissions, words: list[str], root: Node, *, is_plain: bool) -> Decision:
    rules = sorted(settings.rules.covering(words), key=lambda rule: _STRICTEST.index(rule.rule.kind))
    shadowed = tuple(rule.rule for rule in rules[1:] if rule.rule.kind != rules[0].rule.kind)
    if rules:
        return _ruled(settings, rules[0], shadowed)
    command = " ".join(words)
    note = ""
    if settings.rules.refused is not None:
        path, _, why = settings.rules.refused
        note = f" Codex takes none of the rules, since one is not valid. {os.path.basename(path)}: {why}"
    if not is_plain and settings.rules.by_name:
        note = " A redirection, variable, pattern or bracket keeps Codex from comparing it with rules."
    if _is_forced_removal(words) or (not is_plain and _removes_by_force(root)):
        return _question(settings, f"Codex asks before `rm -f`.{note}", "")
    if settings.policy == "untrusted":
        return _question(settings, f"No rule allows `{command}` in a project that you distrust.", "")
    rule = settings.settings.get("approval_policy")
    return Decision("allowed", f"No rule stops it.{note}", None if rule is None else _as(rule, "allowed"))


def _ruled(
    settings: CodexPermissions, command_rule: CommandRule, shadowed: tuple[PermissionRule, ...]
) -> Decision:
    rule = command_rule.rule
    if rule.kind == "ask":
        decision = _question(settings, f"`{rule.text}` asks.", "rules")
        return msgspec.structs.replace(decision, rule=rule, shadowed=shadowed)
    verb, outcome = ("denies", "denied") if rule.kind == "deny" else ("allows", "allowed")
    return Decision(
        "denied" if outcome == "denied" else "allowed", f"`{rule.text}` {verb} it.", rule, shadowed
    )


def _question(settings: CodexPermissions, reason: str, kind: str) -> Decision:
    """The decision where Codex asks, if its policy lets it."""
    rule = settings.settings.get("approval_policy")
    if settings.policy == "never" or kind in settings.refused_questions:
        denied = None if rule is None else _as(rule, "denied")
        return Decision("denied", f"{reason} Here nothing of the kind is asked, so it is denied.", denied)
    return Decision("asks", reason)


def _decide_patch(settings: CodexPermissions, path: str) -> Decision:
    path = settings.disk.real(os.path.normpath(os.path.join(settings.folder, path)))
    sandbox = settings.settings.get("sandbox_mode")
    if settings.policy == "untrusted":
        return _question(
            settings, "Codex asks before each patch in a project that you distrust.", "sandbox_approval"
        )
    if settings.sandbox == "danger-full-access":
        return Decision(
            "allowed", "There is no sandbox.", None if sandbox is None else _as(sandbox, "allowed")
        )
    if settings.sandbox == "read-only":
        decision = _question(settings, "The sandbox is read-only.", "sandbox_approval")
        rule = decision.rule or (None if sandbox is None else _as(sandbox, decision.outcome))
        return msgspec.structs.replace(decision, rule=rule)
    for root in settings.roots:
        if path == root or path.startswith(root.rstrip("/") + "/"):
            first_step = os.path.relpath(path, root).split("/", 1)[0]
            if first_step in _PROTECTED:
                return _question(
                    settings, f"Codex asks before it changes `{first_step}`.", "sandbox_approval"
                )
            return Decision(
                "allowed", "Codex applies patches in the folder, and where its sandbox can write."
            )
    return _question(settings, "The file is outside of what the sandbox can write to.", "sandbox_approval")


def _decide_server(settings: CodexPermissions, server: str, tool: str) -> Decision:
    entry = settings.servers.get(server)
    if entry is None or entry.get("enabled") is False:
        return Decision("denied", f"No settings of Codex start a server `{server}`.", is_offered=False)
    enabled = entry.get("enabled_tools")
    if (isinstance(enabled, list) and tool not in enabled) or tool in (entry.get("disabled_tools") or ()):
        return Decision("denied", f"The settings of `{server}` leave `{tool}` out.", is_offered=False)
    mode = (
        value_at(entry, ("tools", tool, "approval_mode"))
        or entry.get("default_tools_approval_mode")
        or "auto"
    )
    if mode == "approve":
        return Decision("allowed", f"The settings of `{server}` approve it.")
    if mode == "prompt":
        return _question(settings, f"The settings of `{server}` ask.", "mcp_elicitations")
    if settings.policy == "never" and settings.sandbox == "danger-full-access":
        return Decision("allowed", "There is no sandbox, and nothing is asked.")
    reason = f"Codex asks, unless `{server}` says of the tool that it only reads."
    return _question(settings, reason, "mcp_elicitations")


def _server_and_tool(name: str) -> tuple[str, str]:
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return server, tool


def _sandbox(settings: CodexPermissions) -> str:
    network_words = "and reach the network" if settings.has_network else "and has no network"
    match settings.sandbox:
        case "danger-full-access":
            return "without a sandbox"
        case "read-only":
            return "in a sandbox: it can read everything, write nothing, and has no network"
        case _:
            other_roots = dict.fromkeys(root for root in settings.roots if root != settings.folder)
            places = ", ".join(("the folder", *other_roots))
            return f"in a sandbox: it can read everything, write in {places}, {network_words}"


def _plain_commands(root: Node) -> list[list[str]] | None:
    """The words of each command of a script; None unless all of them are plain words."""
    if root.has_error:
        return None
    commands = []
    for node in nodes_below(root):
        if node.type not in _PLAIN_NODES and node.type.strip():
            return None
        if node.type == "command":
            words = [_word(child) for child in node.named_children]
            if any(word is None for word in words):
                return None
            commands.append([word for word in words if word is not None])
    return commands or None


def _word(node: Node) -> str | None:
    """The text of a plain word."""
    match node.type:
        case "command_name":
            name_node = node.named_children[0] if node.named_children else None
            return text_of(name_node) if name_node is not None and name_node.type == "word" else None
        case "word" | "number":
            text = text_of(node)
            return None if _NOT_LITERAL.search(text) else text
        case "string":
            text = text_of(node)[1:-1]
            return None if _ESCAPED.search(text) else text
        case "raw_string":
            return text_of(node)[1:-1]
        case "concatenation":
            parts = [_word(child) for child in node.named_children]
            return None if None in parts else "".join(filter(None, parts)) or None
        case _:
            return None


def _removes_by_force(root: Node | None) -> bool:
    """Whether a command with a literal name anywhere in a script is `rm -f`."""
    if root is None or root.has_error:
        return False
    for node in nodes_below(root):
        if node.type == "command":
            words = [
                _word(child.named_children[0] if child.type == "command_name" else child) or ""
                for child in node.named_children
                if (child.type != "variable_assignment" and child.named_children != [])
                or child.type in ("word", "number", "string", "raw_string")
            ]
            if _is_forced_removal(words):
                return True
    return False


def _is_forced_removal(words: list[str]) -> bool:
    """Whether a command is `rm -f`, as it is or after `sudo`, `env`, or in `bash -c`."""
    name = os.path.basename(words[0]) if words else ""
    while name in ("sudo", "env"):
        words = words[1:]
        while name == "env" and words and (words[0].startswith("-") or "=" in words[0]):
            words = words[1:]
        name = os.path.basename(words[0]) if words else ""
    if name in ("bash", "sh", "zsh") and len(words) == 3 and words[1] in ("-c", "-lc"):
        return _removes_by_force(parse_bash(words[2]))
    if name != "rm":
        return False
    options = words[1 : words.index("--")] if "--" in words else words[1:]
    return any(
        option == "--force" or (option[:1] == "-" and option[:2] != "--" and "f" in option)
        for option in options
    )


def _as(rule: PermissionRule, outcome: Outcome) -> PermissionRule:
    return msgspec.structs.replace(rule, kind=_KINDS[outcome])


def _setting(settings: AssistantSettings, disk: Disk, key: str) -> PermissionRule | None:
    """The place of a setting that decides, in the most important file that has it."""
    file = next((file for file in reversed(settings.files) if key in file.values), None)
    if file is None:
        return None
    value = file.values[key]
    text = f"{key} = {value}" if isinstance(value, str) else key
    return PermissionRule(
        kind="ask",
        text=text,
        tool=key,
        pattern=None,
        path=file.path,
        span=read_toml(disk, file.path).span((file.written_keys.get(key, key),)),
    )


PERMISSIONS = PermissionReader(VERSION, read_permissions, decide)
