"""Finds permission rules of Claude Code that decide nothing, because another rule has decided before.

1. Deny rules count before ask rules, and these before allow rules, whatever file they are in. A rule that a
   stronger one covers is shadowed. A rule of the user that a project's file restricts is not reported, since
   it counts in other projects. An ask rule for some of the commands that a deny rule covers counts before
   that, and is not shadowed.
2. A rule that another rule of the same list and file covers says nothing new.
3. A rule is compared as a text that covers all texts that begin with it: `Bash(rm:*)` becomes `Bash rm `, and
   a path ends with `/`. This is done for whole tools, servers, beginnings of commands and plain paths; other
   rules cover only equal ones.
4. Each text is looked up among the sorted others, so no rule is compared with all of them.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nexus_context.assistants.claude_code.permission_rules import PermissionSettings
from nexus_context.assistants.claude_code.rule_syntax import LONGEST
from nexus_context.assistants.permissions.decision import PermissionRule, RuleKind

STRONGER: dict[RuleKind, tuple[RuleKind, ...]] = {"allow": ("deny", "ask"), "ask": ("deny",), "deny": ()}
_PATTERN = frozenset("*?[]{}!\\")
_END = "\0"  # no rule has it: what ends with it covers only what is equal


class Shadow(NamedTuple):
    """A rule that decides nothing, and the rule `by` which all of its calls are decided first."""

    rule: PermissionRule
    by: PermissionRule


class _Index(NamedTuple):
    """Rules by their texts, and the sorted texts that do not begin with another of them."""

    rules: dict[str, PermissionRule]
    texts: list[str]

    def covering(self, starts: Iterable[str]) -> PermissionRule | None:
        """Find a rule whose text is a prefix of one of `starts`."""
        for start in starts:
            at = bisect_right(self.texts, start) - 1
            if at >= 0 and start.startswith(self.texts[at]):
                return self.rules[self.texts[at]]
        return None


def find_shadowed(settings: PermissionSettings) -> Iterator[Shadow]:
    """Yield the rules that decide nothing, each with the rule that decides instead."""
    order = {path: at for at, path in enumerate(settings.bases)}
    short: dict[RuleKind, list[PermissionRule]] = {
        kind: [rule for rule in rules if len(rule.text) <= LONGEST] for kind, rules in settings.rules.items()
    }
    indexes: dict[RuleKind, _Index] = {kind: _index(settings, rules) for kind, rules in short.items()}
    for kind, rules in short.items():
        file_indexes = {
            path: _index(settings, [rule for rule in rules if rule.path == path]) for path in order
        }
        for rule in rules:
            stronger = (
                indexes[stronger_kind].covering(_starts(settings, rule, stronger_kind))
                for stronger_kind in STRONGER[kind]
            )
            for by in (*stronger, file_indexes[rule.path].covering(_starts(settings, rule, kind))):
                is_before = by is not None and by is not rule and order[by.path] <= order[rule.path]
                if by is not None and is_before and not _counts_first(rule, by):
                    yield Shadow(rule, by)
                    break


def _counts_first(rule: PermissionRule, by: PermissionRule) -> bool:
    """Whether a rule asks about some of the commands that the other one denies."""
    is_narrower = by.pattern is not None and by.pattern != rule.pattern
    return rule.tool == "Bash" and (rule.kind, by.kind) == ("ask", "deny") and is_narrower


def _index(settings: PermissionSettings, rules: Iterable[PermissionRule]) -> _Index:
    texts: dict[str, PermissionRule] = {}
    for rule in rules:
        texts.setdefault(_text(settings, rule), rule)
    shortest_texts: list[str] = []
    for text in sorted(texts):
        if not shortest_texts or not text.startswith(shortest_texts[-1]):
            shortest_texts.append(text)
    return _Index(texts, shortest_texts)


def _text(settings: PermissionSettings, rule: PermissionRule) -> str:
    """The text with which every call begins that a rule covers."""
    tool, pattern = rule.tool, rule.pattern
    if tool.startswith("mcp__"):
        server = f"{tool.removesuffix('*').removesuffix('__')}__"
        return server if "__" not in server[5:-2] and "*" not in server else tool + _END
    if pattern is None:  # rules for paths are about more tools than the one that they name
        return "" if tool == "*" else f"{tool} " if tool not in ("Read", "Edit") else tool + _END
    if tool == "Bash" and "\\" not in pattern:
        start = pattern[:-2] if pattern.endswith((":*", " *")) else pattern.removesuffix("*")
        if start and start != pattern and "*" not in start:
            return f"Bash {start}{' ' if pattern.endswith((':*', ' *')) else ''}"
    if tool not in ("Read", "Edit"):
        return f"{tool} {pattern}{_END}"
    target = _target_path(settings, rule)
    return f"{tool} {target}/" if target else f"{tool} glob {pattern}{_END}"  # which is below no place


def _starts(settings: PermissionSettings, rule: PermissionRule, by: RuleKind) -> Iterator[str]:
    """Yield the texts that a covering rule's text may be a prefix of."""
    yield _text(settings, rule)
    pattern = rule.pattern or ""
    if rule.tool == "Bash" and pattern and "\\" not in pattern:
        yield f"Bash {pattern.partition('*')[0]}" if "*" in pattern else f"Bash {pattern} "
    target = _target_path(settings, rule) if rule.tool in ("Read", "Edit") and pattern else None
    for tool in ("Read", "Edit") if target else ():
        if target and (tool == rule.tool or (tool == "Read" and by == "deny")):
            yield f"{tool} {target}/"
            relative_path = target.removeprefix(f"{settings.folder.lower()}/")
            yield from (
                f"{tool} {name}/" for name in relative_path.split("/") if not relative_path.startswith("/")
            )


def _target_path(settings: PermissionSettings, rule: PermissionRule) -> str | None:
    """The absolute path that a rule is about, or the name at every depth; None for a pattern."""
    text = (rule.pattern or "").removeprefix("./").removesuffix("/**").rstrip("/").lower()
    if not text or _PATTERN & set(text) or os.pardir in text.split("/"):
        return None
    base = settings.folder if "/" in text else ""
    if text.startswith(("//", "~/")):
        base, text = ("", text[1:]) if text[0] == "/" else (settings.user_home, text[2:])
    elif text.startswith("/"):
        base, text = settings.bases[rule.path], text[1:]
    return os.path.normpath(os.path.join(base.lower(), text))
