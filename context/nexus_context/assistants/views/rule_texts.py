"""Describes a permission rule of a settings file in words: the calls that the rule is about.

1. Claude Code: an entry of `permissions.allow`, `ask` or `deny`. opencode: a key of `permission`, also of an
   agent, whose value is an action. Gemini CLI: an entry of `tools.allowed`, `core`, `exclude` or
   `confirmationRequired`.
2. The sentences say what the rule covers by itself. Whether it works at all, and whether another rule decides
   first, is found by the checks of each program's settings.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.assistants.claude_code.rule_syntax import PREFIX_ENDS, parse_rule
from nexus_context.assistants.permissions.decision import RuleKind

_VERBS: dict[RuleKind, str] = {"allow": "Allows", "ask": "Asks before", "deny": "Denies"}
_KINDS: dict[str, RuleKind] = {"allow": "allow", "ask": "ask", "deny": "deny"}
_IN_SCRIPTS: dict[RuleKind, str] = {
    "allow": " It allows a script only if each other command of the script is allowed, too.",
    "ask": " It counts wherever the command is in a script.",
    "deny": " It counts wherever the command is in a script.",
}
_PATH_TOOLS = {"Read": "reads of", "Edit": "edits of"}
_NAMED = {"Skill": "the skill `{}`", "Agent": "agents of the type `{}`"}
_OPENCODE_SUBJECTS = {
    "edit": "edits of files whose path in the repository is {}",
    "external_directory": "access to directories outside of the folder, if their path is {}",
    "read": "reads of files whose path in the repository is {}",
    "skill": "the skill {}",
    "task": "the agent {}",
    "webfetch": "reads of web pages whose address is {}",
}
_GEMINI_ENTRY = re.compile(r"(?:run_shell_command|ShellTool)\((.+)\)")


class RuleText(NamedTuple):
    """What a rule does, in sentences. `tool` is the name of the tool that the rule is about."""

    kind: RuleKind
    tool: str
    sentences: str


def describe_rule(program: str, path: Sequence[str | int], value: object) -> RuleText | None:
    """Describe the rule at a path of keys in a program's settings, whose value is `value`.

    None if there is no rule.
    """
    match program, path, value:
        case "claude-code", ("permissions", ("allow" | "ask" | "deny") as kind, int()), str():
            return _claude_rule(value, _KINDS[kind])
        case "opencode", ("permission",), str():
            return _opencode_rule("*", "*", value)
        case "opencode", ("permission", str(tool)), str():
            return _opencode_rule(tool, "*", value)
        case "opencode", ("permission", str(tool), str(pattern)), str():
            return _opencode_rule(tool, pattern, value)
        case "opencode", ("agent" | "mode", str(), *rest), str() if rest[:1] == ["permission"]:
            return describe_rule(program, tuple(rest), value)
        case "gemini", ("tools", str(key), int()), str():
            return _gemini_rule(key, value)
    return None


def _claude_rule(text: str, kind: RuleKind) -> RuleText | None:
    rule = parse_rule(text, kind)
    if rule is None:
        return RuleText(kind, "", "Claude Code ignores this rule.")
    tool, content, suffix = rule.tool, rule.content, ""
    if tool == "Bash" and content is not None:
        subject, suffix = (
            _commands(content.removesuffix(":*"), is_start=content.endswith(":*")),
            _IN_SCRIPTS[kind],
        )
    elif tool in _PATH_TOOLS and content is not None:
        verb = "reads and edits of" if (tool, kind) == ("Read", "deny") else _PATH_TOOLS[tool]
        subject = f"{verb} {_files(content.removeprefix('./'))}"
    elif tool == "WebFetch" and content is not None:
        subject = f"reads of web pages of the host {_form(content.removeprefix('domain:'))}"
    elif tool == "Skill" and content is not None and content.endswith(PREFIX_ENDS):
        subject = f"skills whose name begins with `{content[:-2].removeprefix('/')}`"
    elif content is not None:
        subject = _NAMED.get(tool, f"calls of the tool `{tool}` with `{{}}`").format(content)
    else:
        subject = _claude_tool(tool)
        suffix = " The model is not told of it." if kind == "deny" else ""
    return RuleText(kind, tool, f"{_VERBS[kind]} {subject}.{suffix}")


def _claude_tool(tool: str) -> str:
    """The calls that a rule without parentheses covers."""
    if not tool.startswith("mcp__"):
        return "every tool" if tool == "*" else f"each call of the tool {_form(tool)}"
    server, _, name = tool.removeprefix("mcp__").partition("__")
    return (
        f"{f'the tool {_form(name)}' if name.strip('*') else 'each tool'} of the MCP server {_form(server)}"
    )


def _opencode_rule(tool: str, pattern: str, action: str) -> RuleText | None:
    kind = _KINDS.get(action)
    if kind is None:
        return None
    suffix = ""
    if pattern == "*":
        subject = "every tool" if tool == "*" else f"each call of {_form(tool)}"
    elif tool == "bash":
        subject, suffix = _commands(pattern), _IN_SCRIPTS[kind]
    else:
        words = _OPENCODE_SUBJECTS.get(tool, f"calls of `{tool}` with {{}}")
        subject = words.format(_form(pattern))
    return RuleText(kind, tool, f"{_VERBS[kind]} {subject}.{suffix} The last rule that matches decides.")


def _gemini_rule(key: str, text: str) -> RuleText | None:
    entry = _GEMINI_ENTRY.fullmatch(text)
    tool = "run_shell_command" if entry or text == "ShellTool" else text
    subject = f"each call of the tool `{tool}`" if entry is None else _commands(entry[1], is_start=True)
    match key:
        case "allowed" if entry is not None:
            ending = " Commands that no entry of this list allows are denied."
        case "allowed" | "confirmationRequired":
            ending = ""
        case "core":
            ending = " Tools that this list does not name are denied."
        case "exclude":
            return RuleText("deny", tool, f"Denies {subject}. The model is not told of the tool.")
        case _:
            return None
    kind: RuleKind = "ask" if key == "confirmationRequired" else "allow"
    in_scripts = _IN_SCRIPTS[kind] if entry is not None else ""
    return RuleText(kind, tool, f"{_VERBS[kind]} {subject}.{in_scripts}{ending}")


def _commands(pattern: str, *, is_start: bool = False) -> str:
    """The commands that a pattern covers. With `is_start` the pattern is a plain text, and more words may
    follow.
    """
    start = pattern if is_start else pattern.removesuffix(" *")
    if is_start or (start != pattern and not set("*?") & set(start)):
        return f"the command `{start}`, alone or with more arguments"
    return f"the command {_form(pattern)}"


def _files(pattern: str) -> str:
    """The files that a path of Claude Code covers."""
    if pattern.startswith("//"):
        pattern, base = pattern[1:], "from the root of the disk"
    elif pattern.startswith("~/"):
        base = "from the home directory"
    elif pattern.startswith("/"):
        base = "from the folder, in the user's settings from their own directory"
    elif "/" in pattern.rstrip("/"):
        base = "from the folder"
    else:
        base = "at each depth of the folder"
    return f"files that match `{pattern}` as a line of `.gitignore` does, {base}"


def _form(pattern: str) -> str:
    """A pattern, with the meaning of its signs."""
    return f"`{pattern}`, where `*` is any text" if "*" in pattern else f"`{pattern}`"
