"""Reports hooks that void the settings file, hooks that Claude Code leaves out, and hooks that never run or
fail.

1. Hooks of PreToolUse and PermissionRequest may guard what the file allows. If one of them cannot be loaded,
   or is declared outside of `hooks`, Claude Code ignores the whole file. A hook of another event is ignored
   alone.
2. A matcher of letters, digits, `_`, `-`, commas, blanks and `|` is a list of names, compared as a whole. Any
   other matcher is a regular expression of JavaScript; it matches nothing if it is not valid.
3. `if` is a permission rule. A hook never runs if this is not a rule, or is about another tool than the
   matcher, or if the event is not about a tool.
4. A command fails if its script does not exist or cannot be executed; nothing is stopped by it then. The
   grammar of the shell tells which word is the script.
5. A secret that a command assigns to a variable is reported, but never shown.
"""

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nexus_context.assistants.claude_code.rule_syntax import may_be_tool, near_tool, parse_rule, table
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.expressions import is_valid_expression
from nexus_context.assistants.reading.findings import Effect, settings_problem
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.config.check import Node, conform
from nexus_context.config.fixes import meant
from nexus_context.errors import Edit, Fix, Problem, Span
from nexus_context.text.json import JsonDocument, Pointer
from nexus_context.text.redact import secrets_in

if TYPE_CHECKING:
    from nexus_context.assistants.permissions.shell import ShellScript

_NAMES = re.compile(r"[a-zA-Z0-9_|, -]+")
_RULE = re.compile(r"([A-Z]\w*)\([^|()[? :/]+[ :/][^|()[?]*\)")
_SPECIAL = frozenset("\\^$.|?*+()[]{}")
_LONGEST = 1_000  # characters of a matcher that is compiled
_FOLDERS = ("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
"""Variables for the folder: a plugin is checked where it is that, too."""
_RUNNERS = frozenset({"bash", "sh", "zsh", "python", "python3", "node", "bun", "deno", "ruby", "perl", "tsx"})
_BUILT = frozenset({"node_modules", ".venv", "venv", "dist", "build", "target", "bin", "out"})
"""Directories of what is built or installed, perhaps later: nothing is said of scripts there."""


def hook_faults(document: JsonDocument, value: dict[str, Any], schema: dict[str, Any]) -> Iterator[Problem]:
    """Report hooks that cannot be loaded. The problem is `void` if Claude Code then ignores the whole file,
    else it leaves out the entry alone.

    `value` is what the file holds, `schema` the schema of Claude Code's settings.
    """
    guards = table()["guards"]
    holders = [((key,), member) for key, member in value.items() if key not in table()["noHooksIn"]]
    for outer_pointer, holder in ((), value), *holders:
        for name in guards if isinstance(holder, dict) else ():
            if holder.get(name):
                message = f"`{name}` is declared outside of `hooks`."
                yield settings_problem(document, "void", (*outer_pointer, name), message)
    hooks = value.get("hooks")
    if isinstance(hooks, list) and any(isinstance(group, dict) for group in hooks):
        yield settings_problem(document, "void", ("hooks",), '"hooks" must be an object of events.')
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        pointer = ("hooks", event)
        if event not in schema["hookEvents"]:
            nested_guards = [guard for guard in guards if isinstance(groups, dict) and groups.get(guard)]
            if nested_guards or (event == "hooks" and isinstance(groups, list) and groups):
                message = (
                    f"There is no hook event `{event}`, so its hooks never run. Use one such as `PreToolUse`."
                )
                yield settings_problem(document, "void", pointer, message)
        elif isinstance(groups, list):
            yield from _event_faults(document, event, groups, schema)
        else:
            effect: Effect = "void" if event in guards and groups is not None else "no-effect"
            message = f"`{event}` must be a list of matchers."
            yield settings_problem(document, effect, document.span(pointer), message)


def _event_faults(
    document: JsonDocument, event: str, groups: list[Any], schema: dict[str, Any]
) -> Iterator[Problem]:
    effect: Effect = "void" if event in table()["guards"] else "no-effect"
    for index, group in enumerate(groups):
        pointer = ("hooks", event, index)
        problems = conform(document, pointer, schema["hookGroup"])
        for number, hook in enumerate(() if problems else group["hooks"]):
            kind = hook.get("type") if isinstance(hook, dict) else None
            node: Node = schema["hookTypes"].get(kind if isinstance(kind, str) else None, schema["hookType"])
            problems += conform(document, (*pointer, "hooks", number), node)[:1]
        yield from (settings_problem(document, effect, problem.span, problem.message) for problem in problems)


def check_hooks(
    document: JsonDocument, hooks: dict[str, Any], disk: Disk, where: Surroundings
) -> Iterator[Problem]:
    """Report hooks that are loaded but never run, or whose command fails."""
    groups = [
        (event, indexed_group)
        for event, event_groups in hooks.items()
        for indexed_group in _listed(event_groups)
    ]
    for event, (index, group) in groups:
        pointer: Pointer = ("hooks", event, index)
        matcher = group.get("matcher") or "*"
        if isinstance(matcher, str) and matcher != "*":
            yield from _check_matcher(document, event, (*pointer, "matcher"), matcher)
        for number, hook in _listed(group.get("hooks")):
            condition, command = hook.get("if"), hook.get("command")
            if isinstance(condition, str) and condition and isinstance(matcher, str):
                message = _dead_condition(event, matcher, condition)
                if message is not None:
                    span = document.span((*pointer, "hooks", number, "if"))
                    yield settings_problem(document, "no-effect", span, f"This hook never runs: {message}")
            if isinstance(command, str) and hook.get("type") == "command" and "args" not in hook:
                yield from check_command(
                    document, (*pointer, "hooks", number, "command"), command, disk=disk, where=where
                )


def _listed(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list, with their places."""
    return (
        [indexed_object for indexed_object in enumerate(value) if isinstance(indexed_object[1], dict)]
        if isinstance(value, list)
        else []
    )


def _check_matcher(document: JsonDocument, event: str, pointer: Pointer, matcher: str) -> Iterator[Problem]:
    """Report a matcher that matches nothing, and names in a list that are of nothing but meant so."""
    span, values = document.span(pointer), table()["matchers"].get(event, [])
    is_tool, message = event in table()["toolEvents"], None
    if event in table()["unmatched"]:
        message = f"Claude Code ignores the matcher of `{event}`: its hooks always run. Remove it."
    elif (is_tool or values) and _NAMES.fullmatch(matcher):
        names = [name.strip() for name in re.split(r"[|,]", matcher) if name.strip()]
        dead = [name for name in names if not (_is_tool(name) if is_tool else name in values)]
        for name in dead:
            close = near_tool(name) if is_tool else meant(name.lower(), values)
            close = f"{name}__.*" if name.startswith("mcp__") else close
            if len(dead) == len(names) or close is not None:
                absent_kind = f"no {'tool' if is_tool else f'cause of {event}'}"
                yield _dead_name(document, span, name, close=close, absent_kind=absent_kind)
    elif is_tool:
        message = _dead_expression(matcher)
    if message is not None:
        yield settings_problem(document, "no-effect", span, message)


def _is_tool(name: str) -> bool:
    """Whether a name of a matcher may be that of a call; a server's alone is none."""
    return "__" in name[5:] if name.startswith("mcp__") else may_be_tool(name)


def _dead_name(
    document: JsonDocument, span: Span, name: str, *, close: str | None, absent_kind: str
) -> Problem:
    text, fix = document.text[span.start : span.end], None
    at = span.start + text.find(name)
    message = f"`{name}` is {absent_kind}: this hook never runs for it. Names are compared as a whole."
    if text.count(name) == 1:
        span = Span(at, at + len(name))
        is_list = "," in text and "*" in (close or "")  # an expression may have no commas
        fix = None if close is None or is_list else Fix(f"Write `{close}`", (Edit(span, close),))
    message += "" if close is None else f" Write `{close}`."
    return settings_problem(document, "no-effect", span, message, fix=fix)


def _dead_expression(matcher: str) -> str | None:
    """Why a regular expression matches the name of no tool."""
    rule = _RULE.fullmatch(matcher)
    if rule is not None and may_be_tool(rule[1]):
        return f"`{matcher}` matches no tool: this hook never runs. Write `{rule[1]}`, and the rule as `if`."
    if not set(matcher) & _SPECIAL or re.fullmatch(r"/[\w|]+/", matcher):
        return f"`{matcher}` is in the name of no tool: this hook never runs. Separate names by `|`."
    if len(matcher) <= _LONGEST and not is_valid_expression(matcher):
        return f"`{matcher}` is not a valid regular expression of JavaScript: this hook never runs."
    return None


def _dead_condition(event: str, matcher: str, condition: str) -> str | None:
    """Why no call fulfils the `if` of a hook."""
    if event in table()["conditionless"]:
        return f"`if` is about calls of tools, and `{event}` is about none. Remove it."
    if event not in table()["toolEvents"]:
        return None
    rule = parse_rule(condition.removesuffix("()"), "allow")
    if rule is None or "*" in rule.tool or not may_be_tool(rule.tool):
        return f"`{condition}` is not a permission rule. Write one such as `Bash(git *)`."
    names = re.split(r"[|,]\s*", matcher) if matcher != "*" and _NAMES.fullmatch(matcher) else []
    if names and rule.tool not in [table()["aliases"].get(name, name) for name in names]:
        return f"its matcher does not let `{rule.tool}` through."
    return None


def check_command(
    document: JsonDocument, pointer: Pointer, command: str, *, disk: Disk, where: Surroundings
) -> Iterator[Problem]:
    """Report secrets in a command, and a script in the project that does not exist or cannot be executed.

    `pointer` leads to the command in the settings file.
    """
    from nexus_context.assistants.permissions.shell import read_script  # with a grammar that few need

    script = read_script(command, dict.fromkeys(_FOLDERS, where.folder))
    for name in dict.fromkeys(_secret_variables(script)):
        message = f"This looks like a secret: set {name} for the program that starts this, not here."
        yield settings_problem(document, "secret", document.span(pointer), message)
    path, is_run = _script_path(script, where)
    roots = tuple(folder.rstrip(os.sep) + os.sep for folder in (where.folder, where.user_home))
    name = path.removeprefix(roots[0])
    if not path.startswith(roots) or disk.hides(path) or _BUILT & set(name.split(os.sep)):
        return
    if disk.is_file(path):
        if not is_run or disk.is_executable(path):
            return
        message = f"{name} cannot be executed, so this command fails. Make it executable: `chmod +x`."
    elif disk.is_directory(path):
        message = f"{name} is a directory, so this command fails."
    else:
        close = meant(
            os.path.basename(path), [entry_name for entry_name, _ in disk.entries(os.path.dirname(path))]
        )
        remedy = f"Did you mean `{close}`?" if close else "Correct the path, or create the file."
        message = f"{name} does not exist, so this command fails. {remedy}"
    yield settings_problem(document, "missing-file", document.span(pointer), message)


def _secret_variables(script: "ShellScript") -> Iterator[str]:
    """The variables that commands of a script assign a secret."""
    for command in script.commands:
        for name, word in command.assignments:
            if word.text and secrets_in(word.text, name):
                yield name


def _script_path(script: "ShellScript", where: Surroundings) -> tuple[str, bool]:
    """The path of what a single command runs, empty if only the shell knows; whether itself is executed."""
    command = script.commands[0] if script.commands and len(script.statements) == 1 else None
    if command is None or script.is_broken or command.inside or not command.words:
        return "", False
    is_run = os.path.basename(command.name or "") not in _RUNNERS
    word = "".join(
        shell_word.text or "" for shell_word in command.words[not is_run :][:1] if not shell_word.is_glob
    )
    if "/" not in word or word.startswith("-") or "\0" in word:
        return "", is_run
    path = where.user_home + word[1:] if word.startswith("~/") else word
    return os.path.normpath(os.path.join(where.folder, path)), is_run
