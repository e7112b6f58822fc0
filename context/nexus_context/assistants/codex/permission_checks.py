"""Reports rules for commands of Codex that decide nothing, because a stricter rule covers them or Codex takes
no rule.

`codex execpolicy check` (0.169.0) names all rules that match a command, of which the strictest decides.
"""

import os
from collections.abc import Iterator

from nexus_context.assistants.codex.permission_rules import CommandRule, read_rules
from nexus_context.assistants.permissions.decision import RuleKind
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import SEVERITIES, shadow_problem
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.errors import Problem

MOST_RULES = 400
"""Rules about one command that are compared with each other."""
_STRICTNESS: tuple[RuleKind, ...] = ("allow", "ask", "deny")


def check_rules(disk: Disk, settings: AssistantSettings) -> Iterator[Problem]:
    """Report the rules that decide nothing, and the rule for which Codex takes none at all."""
    rules = read_rules(settings, disk)
    if rules.refused is not None:
        path, span, why = rules.refused
        message = f"Codex takes none of the rules for commands, of any file: {why}"
        yield Problem(path, span, "assistant.void", SEVERITIES["void"], message=message)
    directories = dict.fromkeys(os.path.dirname(file.path) for file in settings.files)
    order = {directory: at for at, directory in enumerate(directories)}
    for name, command_rules in rules.by_name.items():
        compared_rules = command_rules[:MOST_RULES]
        for at, rule in enumerate(compared_rules):
            covering_rules = (
                other_rule
                for other_at, other_rule in enumerate(compared_rules)
                if _covers(other_rule, rule)
                and (_strictness(other_rule), other_at < at or not _covers(rule, other_rule))
                > (_strictness(rule), False)
            )
            by = max(covering_rules, key=_strictness, default=None)
            if by is None or name != rule.pattern[0][0]:  # a rule is in the list of each of its first words
                continue
            by_home, rule_home = (
                os.path.dirname(os.path.dirname(command_rule.rule.path)) for command_rule in (by, rule)
            )
            if order[by_home] <= order[rule_home]:
                is_same, text = by.rule.kind == rule.rule.kind, f"`{by.rule.text}`"
                by_place = by.rule.path, by.rule.span
                yield shadow_problem(
                    rule.rule.path, rule.rule.span, text, "is stricter", is_same=is_same, by_place=by_place
                )


def _strictness(rule: CommandRule) -> int:
    return _STRICTNESS.index(rule.rule.kind)


def _covers(by: CommandRule, rule: CommandRule) -> bool:
    """Whether `by` covers every command that `rule` covers."""
    return len(by.pattern) <= len(rule.pattern) and all(
        set(words) <= set(by_words) for words, by_words in zip(rule.pattern, by.pattern, strict=False)
    )
