"""Decides what opencode does with a call of a tool: by the source in its binary (1.18.33), and runs.

1. A rule has a permission, a pattern and an action; the first two may contain `*` and `?`. The **last** rule
   that matches decides, whatever file or pattern it has; if none does, opencode asks. opencode's own rules
   come first, then those of its agent, then `permission` of all settings, then that of the agent in settings.
2. The objects of several files are joined. A key keeps the place that it had in the first file.
3. Each command of a script, wherever it stands, is compared with the rules for `bash`, with its redirections.
   `cd`, `export`, `unset` and `[ … ]` are not compared. A command that is denied denies the call.
4. If a path is outside of the folder, its directory is compared with the rules for `external_directory`. This
   counts for the path of a file tool, and for the arguments of a few commands, such as `cat` and `cp`, that
   are plain text. Redirections and other commands are not looked at.
5. A tool is not in the request if the last rule for it denies `*`.
"""

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from tree_sitter import Node

from nexus_context.assistants.opencode.agents import agents_of, running_agent
from nexus_context.assistants.opencode.permission_rules import OpencodeRule, matches, settings_rules
from nexus_context.assistants.opencode.settings import CONTENT
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
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.assistants.reading.working_tree import find_working_tree
from nexus_context.config.check import schema_text
from nexus_context.errors import Span

VERSION = "1.18.33"
_TABLES = str(Path(__file__).with_name("permissions.json"))
_OUTCOMES: dict[str, Outcome] = {"allow": "allowed", "ask": "asks", "deny": "denied"}
_WORDS = ("command_name", "word", "string", "raw_string", "concatenation")
_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class OpencodePermissions(msgspec.Struct, frozen=True):
    """The rules in a folder, the most important last, and the directories that paths are compared with."""

    rules: tuple[OpencodeRule, ...]
    folder: str
    worktree: str
    user_home: str
    servers: frozenset[str]
    disk: Disk

    def matching(self, permission: str, subject: str) -> Iterator[OpencodeRule]:
        """Yield the rules that cover a subject, such as a command or a path. The first one decides."""
        return (
            rule
            for rule in reversed(self.rules)
            if matches(rule.permission, permission) and matches(rule.pattern, subject)
        )


def read_permissions(settings: AssistantSettings, disk: Disk) -> OpencodePermissions:
    """Read the rules that hold for the agent that runs."""
    where, values, tables = settings.where, settings.merged(), _tables()
    data = where.environ.get("XDG_DATA_HOME") or os.path.join(where.user_home, ".local", "share")
    places = {
        "{data}": os.path.join(data, "opencode"),
        "{tmp}": where.environ.get("TMPDIR", "/tmp").rstrip("/"),  # noqa: S108 - opencode names it
    }
    agent = running_agent(values)
    rules = [
        OpencodeRule(
            name,
            functools.reduce(lambda text, replacement: text.replace(*replacement), places.items(), pattern),
            action,
        )
        for own_rules in (tables["defaults"], tables["agents"].get(agent, {}))
        for name, patterns in own_rules.items()
        for pattern, action in (patterns if isinstance(patterns, dict) else {"*": patterns}).items()
    ]
    rules += settings_rules(settings, ())
    if agent in agents_of(values):
        rules += settings_rules(settings, (agent,))
    repository = find_working_tree(disk, where.folder)
    return OpencodePermissions(
        rules=tuple(rules),
        folder=where.folder,
        worktree="/" if repository is None else repository.root,
        user_home=where.user_home,
        servers=frozenset(_NAME.sub("_", name) for name in values.get("mcp", {})),
        disk=disk,
    )


def decide(settings: OpencodePermissions, call: ExplainedCall) -> Decision:
    """Decide what opencode does with a call."""
    permission, subject_name = _tables()["tools"].get(call.tool, ("", ""))
    subject = str(call.inputs.get(subject_name, "")).replace("\0", "")
    if call.tool.startswith("mcp__"):
        server, _, tool = call.tool.removeprefix("mcp__").partition("__")
        if _NAME.sub("_", server) not in settings.servers:
            return Decision("denied", f"No settings of opencode have a server `{server}`.", is_offered=False)
        permission, subject = f"{_NAME.sub('_', server)}_{_NAME.sub('_', tool)}", "*"
    elif not permission:
        provider_dependent = ("WebSearch",)  # it depends on the provider
        if call.tool in provider_dependent:
            return Decision("asks", f"It is not known what opencode does with {call.tool}.")
        return Decision("denied", f"opencode has no tool for {call.tool}.", is_offered=False)
    last_rule = next(
        (rule for rule in reversed(settings.rules) if matches(rule.permission, permission)), None
    )
    if last_rule is not None and last_rule.action == "deny" and last_rule.pattern == "*":
        return _removed(_decision(last_rule, [], None), settings, permission)
    match permission:
        case "bash":
            return _decide_script(settings, subject)
        case "read" | "edit":
            path = os.path.normpath(os.path.join(settings.folder, subject))
            relative = os.path.relpath(path, settings.worktree)
            is_directory = permission == "read" and settings.disk.is_directory(path)
            outside = [] if _is_inside(settings, path) else [path if is_directory else os.path.dirname(path)]
            return _strictest(settings, outside, [(permission, "" if relative == "." else relative)])
        case _:
            return _strictest(settings, [], [(permission, subject)])


def _removed(decision: Decision, settings: OpencodePermissions, permission: str) -> Decision:
    """The decision on a tool that is taken out of the request."""
    allowing = [
        rule for rule in settings.rules if matches(rule.permission, permission) and rule.action != "deny"
    ]
    return Decision(
        "denied",
        f"{decision.reason.removesuffix(' denies it.')} takes the tool out of the request.",
        decision.rule,
        tuple(rule for rule in map(_rule, allowing) if rule is not None),
        is_offered=False,
    )


def _decide_script(settings: OpencodePermissions, script: str) -> Decision:
    root = parse_bash(script)
    if root is None:
        return Decision("asks", "The command is too long: it is not known what opencode does with it.")
    directories, parts = dict[str, None](), dict[tuple[str, str], None]()
    for node in nodes_below(root):
        if node.type != "command":
            continue
        words = [text_of(child) for child in node.children if child.type in _WORDS]
        if words and words[0] in _tables()["fileCommands"]:
            directories |= dict.fromkeys(_directories(settings, words))
        if words and words[0] not in _tables()["directoryCommands"]:
            parts["bash", _source(node)] = None
    if not directories and not parts:
        return Decision(
            "allowed", "opencode looks at no part of this: neither `cd` nor `export` nor `[ … ]`."
        )
    return _strictest(settings, list(directories), list(parts))


def _source(node: Node) -> str:
    parent = node.parent
    return text_of(parent if parent is not None and parent.type == "redirected_statement" else node).strip()


def _directories(settings: OpencodePermissions, words: list[str]) -> Iterator[str]:
    """The directories outside of the folder that the plain arguments of a command name."""
    for word in words[1:]:
        if word.startswith("-") or (words[0] == "chmod" and word.startswith("+")):
            continue
        if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
            word = word[1:-1]
        if word == "~" or word.startswith("~/"):
            word = settings.user_home + word[1:]
        plain = re.split(r"[?*\[]", word, maxsplit=1)[0]
        if not plain or "$" in plain or "`" in plain or plain.startswith(("(", "@(")):
            continue
        path = os.path.normpath(os.path.join(settings.folder, plain))
        if not _is_inside(settings, path):
            yield path if settings.disk.is_directory(path) else os.path.dirname(path)


def _is_inside(settings: OpencodePermissions, path: str) -> bool:
    roots = (settings.folder, *(() if settings.worktree == "/" else (settings.worktree,)))
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def _strictest(
    settings: OpencodePermissions, directories: list[str], parts: list[tuple[str, str]]
) -> Decision:
    """The strictest decision on the parts of a call; of the equally strict ones the first."""
    outside = [("external_directory", os.path.join(directory, "*")) for directory in directories]
    decisions = []
    for permission, subject in (*outside, *parts):
        matching_rules = settings.matching(permission, subject)
        rule = next(matching_rules, OpencodeRule(permission, "*", "ask"))
        subject_text = f"`{subject}` outside of the folder" if permission == "external_directory" else None
        shadowed = (
            []
            if rule.file is None
            else [other_rule for other_rule in matching_rules if other_rule.action != rule.action]
        )
        decision = _decision(rule, shadowed, subject_text)
        if len(outside) + len(parts) > 1:
            decision = msgspec.structs.replace(decision, part=subject)
        decisions.append(decision)
    order: list[Outcome] = ["denied", "asks", "allowed"]
    return min(decisions, key=lambda decision: order.index(decision.outcome))


def _decision(rule: OpencodeRule, shadowed: list[OpencodeRule], about: str | None) -> Decision:
    rule_name = f"`{rule.text}`" if rule.file is not None else f"opencode's own rule `{rule.text}`"
    if rule.file is not None and rule.file.path == CONTENT:
        rule_name = f"`{rule.text}` of {CONTENT}"
    verb = {"allow": "allows", "ask": "asks about", "deny": "denies"}.get(rule.action, "asks about")
    return Decision(
        _OUTCOMES.get(rule.action, "asks"),
        f"{rule_name} {verb} {about or 'it'}.",
        _rule(rule),
        tuple(permission_rule for permission_rule in map(_rule, shadowed) if permission_rule is not None),
    )


def _rule(rule: OpencodeRule) -> PermissionRule | None:
    if rule.file is None or rule.file.path == CONTENT:
        return None
    kinds: dict[str, RuleKind] = {"allow": "allow", "deny": "deny"}
    document = rule.file.document
    return PermissionRule(
        kind=kinds.get(rule.action, "ask"),
        text=rule.text,
        tool=rule.permission,
        pattern=None if rule.pattern == "*" else rule.pattern,
        path=rule.file.path,
        span=Span(0, 0) if document is None else document.span(rule.pointer),
    )


@functools.cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = msgspec.json.decode(schema_text(_TABLES))
    return tables


PERMISSIONS = PermissionReader(VERSION, read_permissions, decide)
