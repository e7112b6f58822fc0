"""Parses permission rules as Claude Code does, and says which it leaves out and which match nothing or too
much.

1. A rule is `Tool` or `Tool(content)`, from the first parenthesis to the last, which ends the rule. `Tool(*)`
   means `Tool`. A rule that Claude Code's own check refuses is ignored, and the rest of the file counts.
2. A rule for a tool that does not exist, or whose content names an argument, is accepted but matches nothing.
3. `lints.json` has the forms that the program's check (2.1.330) refuses, by tool and content; the first that
   fits counts. What is not such a form is checked in this module. `claude doctor` says the same of each rule.
"""

import functools
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from nexus_context.config.fixes import meant
from nexus_context.disk.files import read_text

LINTS = str(Path(__file__).with_name("lints.json"))
LONGEST = 10_000  # characters of a rule that is judged
_SHELLS = ("Bash", "PowerShell")
PREFIX_ENDS = (":*", " *")
"""How a rule for `Skill` ends that is about each skill whose name begins with the text before."""
RuleEffect = Literal["left-out", "matches-nothing", "gone", "reads-otherwise"]
_OPERATOR = re.compile(r"[|&;<>]|\d+[<>]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_ARGUMENT = re.compile(r"(?![A-Za-z]:[\\/])\s*[A-Za-z_]\w*\s*:", re.ASCII)

_UNBRACKETED = re.compile(r"(?P<tool>[A-Z][A-Za-z]*)(?::\s*|\s+)(?P<content>[^\s()][^()]*)")
_FROM_ROOT = re.compile(
    r"(?P<tool>Edit|Read)\((?P<path>/(?:tmp|home|Users|etc|var|opt|usr|root|mnt|private|Volumes|Library)(?:/.*)?)\)"
)
"""A rule whose path hardly is in the project, although it begins there."""


class ParsedRule(NamedTuple):
    """A parsed rule. `tool` is the tool's present name; `content` stands in the parentheses, and is None if
    the rule covers every call.
    """

    tool: str
    content: str | None


class RuleFault(NamedTuple):
    """What is wrong with a rule: `reason` is one or two sentences. `meant` is the rule to write instead, if
    one is known.
    """

    effect: RuleEffect
    reason: str
    meant: str | None = None


class _Form(NamedTuple):
    """A form of rules in `lints.json`; rules of a form without an effect work."""

    tool: str = ".*"
    content: str | None = None
    lists: tuple[str, ...] = ("allow", "ask", "deny")
    effect: RuleEffect | None = None
    reason: str = ""
    meant: str | None = None


@functools.cache
def table() -> dict[str, Any]:
    """Read the tool names and rule forms that Claude Code knows (`lints.json`)."""
    value: dict[str, Any] = msgspec.json.decode(read_text(LINTS, limit=1 << 20).text or "")
    return value


def parse_rule(text: str, kind: str) -> ParsedRule | None:
    """Parse a text of `allow`, `ask` or `deny`. Return None if Claude Code leaves the rule out."""
    parts = _split(text)
    fault = _fault(text, parts, kind) if len(text) <= LONGEST else None
    return None if parts is None or (fault is not None and fault.effect == "left-out") else _parsed(*parts)


def rule_fault(text: str, kind: str) -> RuleFault | None:
    """Explain what is wrong with a text of `allow`, `ask` or `deny`. Return None if the rule works as
    written.
    """
    fault = _fault(text, _split(text), kind) if len(text) <= LONGEST else None
    is_right = fault is None or fault.meant is None or _fault(fault.meant, _split(fault.meant), kind) is None
    return fault if fault is None or is_right else fault._replace(meant=None)


@functools.cache
def tool_names() -> frozenset[str]:
    """List Claude Code's own tools, under their names and under the other names that rules may use."""
    return frozenset((*table()["tools"], *table()["aliases"]))


def may_be_tool(name: str) -> bool:
    """Whether a tool of this name may exist. Tools of MCP servers may have any name with an underscore."""
    return name in tool_names() or "_" in name


def near_tool(name: str) -> str | None:
    """Return the tool that a misspelt name most likely means, else None."""
    names = sorted(tool_names())
    return next((tool for tool in names if tool.lower() == name.strip().lower()), meant(name, names))


def _split(text: str) -> tuple[str, str | None] | None:
    """Split a rule into its name and its content, both unchecked; None if the text is not a rule."""
    start, end = _find_sign(text, "("), _find_sign(text, ")", from_end=True)
    if start == end == -1:
        return text, None
    name = text[: max(start, 0)]
    is_rule = start >= 0 and end == len(text) - 1 and not set(name) & set("()")
    return (name, text[start + 1 : end]) if is_rule else None


def _find_sign(text: str, sign: str, *, from_end: bool = False) -> int:
    """The position of the first sign that is not escaped, or `from_end` of the last; -1 without one."""
    if "\\" not in text:
        return text.rfind(sign) if from_end else text.find(sign)
    return next(iter(_sign_positions(text, sign)[-1 if from_end else 0 :]), -1)


def _sign_positions(text: str, sign: str) -> list[int]:
    return [match.start(1) for match in re.finditer(rf"(?<!\\)(?:\\\\)*({re.escape(sign)})", text)]


def _parsed(name: str, content: str | None) -> ParsedRule:
    tool = table()["aliases"].get(name, name)
    if content is None or content in ("", "*") or not name:
        return ParsedRule(tool if name or content is None else f"({content})", None)
    return ParsedRule(tool, content.replace("\\(", "(").replace("\\)", ")").replace("\\\\", "\\"))


@functools.lru_cache(maxsize=4096)
def _fault(text: str, parts: tuple[str, str | None] | None, kind: str) -> RuleFault | None:
    if parts is None:
        reason = "A rule is `Tool` or `Tool(content)`, and ends with the closing parenthesis."
        return RuleFault("left-out", reason, text.strip() if _split(text.strip()) else None)
    name, content = parts
    tool = _parsed(*parts).tool
    for form in _forms_of(tool, kind):
        match = re.fullmatch(form.content or "", content or "", re.DOTALL) if content is not None else None
        if match or form.content is None:
            groups = {
                "tool": tool,
                "content": content,
                "name": name,
                **(match.groupdict("") if match else {}),
            }
            reason, rule = form.reason.format_map(groups), form.meant and form.meant.format_map(groups)
            outside = _FROM_ROOT.fullmatch(rule or "")
            if outside is not None:
                end = "" if re.search(r"[*?\[]|\.\w+$", outside["path"]) else "/**"
                rule = f"{outside['tool']}(/{outside['path'].rstrip('/')}{end})"
                reason += " A path with a single `/` is in the project."
            return form.effect and RuleFault(form.effect, reason, rule)
    close = None if "*" in tool or may_be_tool(tool) else near_tool(name)
    near = close and close + text[len(name) :]
    unbracketed = _UNBRACKETED.fullmatch(text)
    is_unbracketed = unbracketed is not None and unbracketed["tool"] in tool_names()
    if unbracketed is not None and is_unbracketed:
        is_prefix = unbracketed["tool"] in _SHELLS and kind != "allow" and "*" not in text
        near = f"{unbracketed['tool']}({unbracketed['content']}{':*' if is_prefix else ''})"
    if name and "_" not in tool and tool[0] != tool[0].upper():
        return RuleFault("left-out", "The name of a tool begins with a capital letter.", near)
    is_escaped = content and re.search(r"(?:^|[^\\])\\[()]", content)
    if content and is_escaped and len(_sign_positions(content, "(")) != len(_sign_positions(content, ")")):
        return RuleFault("left-out", "`\\(` and `\\)` must be in pairs beside other parentheses.")
    if is_unbracketed or ("*" not in tool and not may_be_tool(tool)):
        is_path = content is None and tool.startswith(("/", "./", "../", "~/", "**/"))
        remedy = f" A rule for a file is `Read({tool})` or `Edit({tool})`." if is_path else ""
        return RuleFault("matches-nothing", f"Claude Code has no tool `{tool}`.{remedy}", near)
    is_open = tool == "Bash" and kind == "allow" and content and not _ARGUMENT.match(content)
    return _opening(content) if is_open and content and not content.endswith(":*") else None


@functools.lru_cache(maxsize=1024)
def _forms_of(tool: str, kind: str) -> tuple[_Form, ...]:
    """The forms of rules for a tool in a list."""
    forms = (_Form(**row) for row in table()["forms"])
    return tuple(form for form in forms if kind in form.lists and re.fullmatch(form.tool, tool, re.DOTALL))


def _opening(content: str) -> RuleFault | None:
    """Report a rule for commands whose stars allow other commands, too."""
    words = content.split()
    command_at = next((at for at, word in enumerate(words) if not _ASSIGNMENT.match(word)), -1)
    command = words[command_at] if command_at >= 0 else ""
    if not _OPERATOR.match(command) and any(_find_sign(word, "*") >= 0 for word in words[:command_at]):
        reason = f"`*` is also blanks: the rule may allow another command with `{command}` later in its line."
        return RuleFault("reads-otherwise", reason)
    if len(words) < 3 or _find_sign(words[0], "*") >= 0:
        return None
    for at, word in enumerate(words[1:], 1):
        if _OPERATOR.match(word):
            return None
        if _find_sign(word, "*") < 0 and not word.startswith("-"):
            reason = (
                f"`*` before the rest of the command is any option of `{words[0]}`, too. Write what you mean."
            )
            is_open = any(_find_sign(word, "*") >= 0 for word in words[:at])
            return RuleFault("reads-otherwise", reason) if is_open else None
    return None
