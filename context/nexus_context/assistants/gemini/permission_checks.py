"""Reports policies and lists of Gemini CLI that decide nothing, and names in them that nothing has.

By its bundle (0.61.0), which warns of names of tools in policies that are almost those of its own:

1. The first rule that matches in the order of priorities decides, so a rule never does if one of a higher
   priority covers it. A rule of the user that one of the folder overrides is not reported, since it counts
   elsewhere.
2. If a rule in a policy file is not valid, the whole file is not read.
3. A name without `mcp_` is the name or the class of one of Gemini CLI's own tools; in `tools.exclude` it may
   also be a tool of a server. Names of servers are compared without regard to case.
"""

import re
from collections.abc import Iterator

from nexus_context.assistants.gemini.mcp_servers import SERVERS
from nexus_context.assistants.gemini.policies import (
    EXCLUDED,
    PolicyRule,
    invalid_place,
    list_entries,
    policy_files,
    read_rules,
    tables,
)
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import name_problem, settings_problem, shadow_problem
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.config.fixes import as_json, meant
from nexus_context.errors import Problem, Span

MOST_RULES = 400
"""Rules that are compared with each other."""
_OWN_NAME = re.compile(r"(?!mcp_|discovered_tool_)[a-z_]*[a-z](?<!__)")
_POLICY = ".toml"
_REPORTED = ("tools.allowed ", "tools.confirmationRequired ")
"""The lists whose entries are rules, and nothing else besides."""
_LISTS = ("allowed", "confirmationRequired", "core", "exclude")


def check_permissions(disk: Disk, settings: AssistantSettings) -> Iterator[Problem]:
    """Report what is wrong with the policy files, and with the lists of tools and servers in settings."""
    for document, _ in policy_files(settings, disk):
        invalid_span = invalid_place(document)
        if invalid_span is not None:
            why = "each needs a `toolName`, a `decision` and a `priority` from 0 to 999."
            if document.failure is not None:
                why = f"it is not valid TOML. {document.failure[1]}."
            yield settings_problem(
                document, "void", invalid_span, f"Gemini CLI takes no rule of this file: {why}"
            )
    rules = [rule for rule in read_rules(settings, disk)[0] if rule.rule is not None]
    yield from _check_shadows(settings, rules[:MOST_RULES])
    servers = {_bare(server.name): server.name for server in SERVERS.read(disk, settings)}
    in_files = dict.fromkeys((rule.tool, rule.rule) for rule in rules if _is_policy(rule))
    in_lists = (
        (text, make_rule("allow"))
        for key in _LISTS
        for text, make_rule in list_entries(settings, ("tools", key))
        if key != "exclude" or not servers  # which may have a tool of the name
    )
    for text, make_rule in list_entries(settings, ("tools", "exclude")):
        if "(" in text:
            path, span = make_rule("deny").path, make_rule("deny").span
            message = "This does nothing: `tools.exclude` has whole tools. A policy denies calls."
            yield name_problem(path, span, message, None, effect="no-effect")
    for text, rule in (*in_files, *in_lists):
        name, parenthesis, arguments = text.partition("(")
        is_near = name not in tables()["names"] and _OWN_NAME.fullmatch(name)
        close = meant(name, tables()["names"]) if is_near else None
        if rule is not None and close is not None:
            message = f"This matches nothing: Gemini CLI has no tool `{name}`."
            fixed = "" if rule.path.endswith(_POLICY) else as_json(close + parenthesis + arguments)
            yield name_problem(rule.path, rule.span, message, close, text=fixed)
    for key in ("allowed", "excluded"):
        for text, make_rule in list_entries(settings, ("mcp", key)):
            close = None if _bare(text) in servers else meant(text, servers.values())
            if close is not None:
                path, span = make_rule("allow").path, make_rule("allow").span
                message = f"No file has the server `{text}`."
                yield name_problem(path, span, message, close, text=as_json(close))


def _check_shadows(settings: AssistantSettings, rules: list[PolicyRule]) -> Iterator[Problem]:
    """Rules of policies and of lists that others cover, with all their tools and prefixes."""
    of_folder = {file.path for file in settings.files if file.scope == "project"}
    covering: dict[tuple[str, Span], list[tuple[PolicyRule, PolicyRule | None]]] = {}
    for at, rule in enumerate(rules):
        by = next((earlier_rule for earlier_rule in rules[:at] if _covers(earlier_rule, rule)), None)
        if rule.rule is not None:
            covering.setdefault((rule.rule.path, rule.rule.span), []).append((rule, by))
    for (path, span), pairs in covering.items():
        (rule, by), *_ = pairs
        is_reported = path.endswith(_POLICY) or (rule.rule and rule.rule.text.startswith(_REPORTED))
        if not is_reported or by is None or by.rule is None or any(cover is None for _, cover in pairs):
            continue
        if path in of_folder or by.rule.path not in of_folder:
            is_same = all(
                covered_rule.decision == cover.decision for covered_rule, cover in pairs if cover is not None
            )
            why = "has a higher priority"
            by_place = by.rule.path, by.rule.span
            yield shadow_problem(path, span, f"`{by.rule.text}`", why, is_same=is_same, by_place=by_place)


def _covers(by: PolicyRule, rule: PolicyRule) -> bool:
    """Whether `by` covers every call that `rule` covers, and has a higher priority."""
    if by.priority <= rule.priority or rule.priority == EXCLUDED:  # which takes tools of servers out, too
        return False
    if by.modes and not set(by.modes).issuperset(rule.modes or ("default", "autoEdit", "yolo", "plan")):
        return False
    if by.tool not in ("*", rule.tool) or by.server not in (None, rule.server):
        return False
    if by.prefix is not None:
        return rule.prefix is not None and f"{rule.prefix} ".startswith(f"{by.prefix} ")
    return by.pattern is None or by.pattern == rule.pattern


def _is_policy(rule: PolicyRule) -> bool:
    return rule.rule is not None and rule.rule.path.endswith(_POLICY)


def _bare(name: str) -> str:
    return name.lower().strip()
