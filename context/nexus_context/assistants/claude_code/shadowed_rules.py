"""Permission rules of Claude Code that decide nothing, because another rule has decided before.

1. Deny counts before ask, ask before allow, whatever the files: a rule that one of these covers is shadowed.
   One of the user's that a project's file restricts is not reported: elsewhere it counts.
   An ask of some of the commands that a deny is about counts before that deny, and is not shadowed.
2. A rule that another one of the same list and file covers says nothing new.
3. A rule covers another one if that matches no call that the first does not match. This is claimed for whole
   tools, servers, beginnings of commands, and paths without patterns; for anything else only of equal rules.
4. Each rule is looked up in sorted beginnings or by its directories: no rule is compared with all others.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nexus_context.assistants.claude_code.permission_rules import PermissionSettings
from nexus_context.assistants.claude_code.rule_syntax import LONGEST
from nexus_context.assistants.permissions.decision import PermissionRule, RuleKind

STRONGER: dict[RuleKind, tuple[RuleKind, ...]] = {"allow": ("deny", "ask"), "ask": ("deny",), "deny": ()}
_PATTERN = frozenset("*?[]{}!\\")
_PATHS = ("Read", "Edit")


class Shadow(NamedTuple):
    """A rule, and the one before it that decides all of its calls, of a stronger list or of the same one."""

    rule: PermissionRule
    by: PermissionRule


def find_shadowed(settings: PermissionSettings) -> Iterator[Shadow]:
    """The rules that decide nothing."""
    order = {path: at for at, path in enumerate(settings.bases)}  # of an organization none is above
    indexes = {kind: _Index(settings, rules) for kind, rules in settings.rules.items()}
    for kind, rules in settings.rules.items():
        own = {path: _Index(settings, [each for each in rules if each.path == path]) for path in order}
        for rule in rules:
            stronger = [by for each in STRONGER[kind] if (by := indexes[each].covering(rule))]
            by = next((each for each in stronger if order[each.path] <= order[rule.path]), None)
            by = by or own[rule.path].covering(rule)
            if by is not None and by is not rule:
                yield Shadow(rule, by)


class _Index:
    """Rules of one kind, by what they cover; of several that cover the same the first."""

    def __init__(self, settings: PermissionSettings, rules: Sequence[PermissionRule]) -> None:
        self._settings = settings
        self._whole: dict[str, PermissionRule] = {}  # by tool or server
        self._equal: dict[tuple[str, str], PermissionRule] = {}  # by tool and text
        self._paths: dict[tuple[str, str], PermissionRule] = {}  # by tool and path, or name at every depth
        beginnings: dict[str, PermissionRule] = {}  # of commands
        for rule in rules:
            if len(rule.text) > LONGEST:
                continue
            if rule.pattern is None:
                self._whole.setdefault(_whole_name(rule.tool), rule)
                continue
            self._equal.setdefault((rule.tool, rule.pattern), rule)
            if rule.tool in _PATHS and (place := self._place(rule)):
                self._paths.setdefault((rule.tool, place), rule)
            beginning = _beginning(rule) if rule.tool == "Bash" else None
            if beginning:
                beginnings.setdefault(beginning, rule)
        self._beginnings = _without_longer(beginnings)
        self._rules = beginnings

    def covering(self, rule: PermissionRule) -> PermissionRule | None:
        """A rule that covers another one; of the same rules the first."""
        if len(rule.text) > LONGEST:
            return None
        whole = next((by for name in _wholes(rule) if (by := self._whole.get(name))), None)
        if whole is not None or rule.pattern is None:
            return whole
        if rule.tool == "Bash" and (by := self._covering_command(rule)):
            return by if rule.kind in ("allow", by.kind) or by.pattern == rule.pattern else None
        if rule.tool in _PATHS and (by := self._covering_path(rule)):
            return by
        return self._equal.get((rule.tool, rule.pattern))

    def _covering_command(self, rule: PermissionRule) -> PermissionRule | None:
        pattern = rule.pattern or ""
        if "\\" in pattern:
            return None
        start = _beginning(rule) or (pattern.partition("*")[0] if "*" in pattern else f"{pattern} ")
        at = bisect_right(self._beginnings, start) - 1
        found = at >= 0 and start.startswith(self._beginnings[at])
        return self._rules[self._beginnings[at]] if found else None

    def _covering_path(self, rule: PermissionRule) -> PermissionRule | None:
        place = self._place(rule)
        if place is None:
            return None
        tools = (rule.tool, "Read") if rule.kind != "deny" else (rule.tool,)
        above = place
        while above not in ("", os.sep):
            for key in (above, os.path.basename(above)):
                for tool in tools:
                    by = self._paths.get((tool, key))
                    if by is not None and (tool == rule.tool or by.kind == "deny"):
                        return by
            above = os.path.dirname(above)
        return None

    def _place(self, rule: PermissionRule) -> str | None:
        """The absolute path that a rule is about, or the name at every depth; None for a pattern."""
        text = (rule.pattern or "").removeprefix("./").removesuffix("/**").lower()
        if not text.strip("/") or _PATTERN & set(text) or os.pardir in text.split("/"):
            return None
        if text.startswith("//"):
            return os.path.normpath(text[1:])
        if text.startswith("~/"):
            return os.path.normpath(self._settings.user_home.lower() + text[1:])
        if text.startswith("/"):
            return os.path.normpath(self._settings.bases[rule.path].lower() + text)
        if "/" not in text.rstrip("/"):
            return text.rstrip("/")
        return os.path.normpath(os.path.join(self._settings.folder.lower(), text))


def _beginning(rule: PermissionRule) -> str | None:
    """What every command begins with that a rule covers, and every other begins with is covered.

    A blank at its end stands for the end of a word: `rm:*` is `rm `.
    """
    pattern = rule.pattern or ""
    text = pattern[:-2] if pattern.endswith((":*", " *")) else pattern.removesuffix("*")
    if text == pattern or "*" in text or "\\" in text or not text:
        return None
    return f"{text} " if pattern.endswith((":*", " *")) else text


def _without_longer(beginnings: dict[str, PermissionRule]) -> list[str]:
    """The beginnings in order, without those that begin with another one."""
    kept: list[str] = []
    for text in sorted(beginnings):
        if not kept or not text.startswith(kept[-1]):
            kept.append(text)
    return kept


def _whole_name(tool: str) -> str:
    return tool.removesuffix("__*") if tool.startswith("mcp__") else tool


def _wholes(rule: PermissionRule) -> Iterator[str]:
    """The names of tools and servers of which a rule is a part, the widest first.

    Rules for paths are about more tools than the one that they name.
    """
    yield "*"
    if rule.tool.startswith("mcp__"):
        yield "mcp"  # `mcp__*`
        name = _whole_name(rule.tool)
        if "*" not in name:
            yield f"mcp__{name.split('__')[1]}"
        yield name
    elif rule.pattern is None or rule.tool not in _PATHS:
        yield rule.tool
