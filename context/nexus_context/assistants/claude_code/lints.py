"""Reports settings of Claude Code that have no effect, or another one than it seems: rules, modes, hooks,
commands.

Each check says only what the program was seen to do (2.1.330).
"""

import os
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from nexus_context.assistants.claude_code.hook_checks import check_command, check_hooks
from nexus_context.assistants.claude_code.permission_rules import KINDS, read_permissions
from nexus_context.assistants.claude_code.rule_syntax import rule_fault
from nexus_context.assistants.claude_code.shadowed_rules import find_shadowed
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import Effect, settings_problem, shadow_problem, value_at
from nexus_context.assistants.reading.profile_types import AssistantSettings, AssistantSettingsFile
from nexus_context.config.fixes import as_json
from nexus_context.errors import Edit, Fix, Problem, Severity
from nexus_context.text.json import JsonDocument

MOST_FINDINGS = 200
"""Rules of one list that are reported."""
_COMMANDS = (
    *(("statusLine", "command"), ("subagentStatusLine", "command"), ("fileSuggestion", "command")),
    *((key,) for key in ("apiKeyHelper", "awsAuthRefresh", "gcpAuthRefresh", "otelHeadersHelper")),
)
_OPENINGS = {
    "left-out": "Claude Code ignores this rule. ",
    "matches-nothing": "This rule matches nothing. ",
}


def check_settings(disk: Disk, settings: AssistantSettings) -> Iterator[Problem]:
    """Report what is wrong in the settings files that count, their rules, hooks and commands."""
    for file in settings.files:
        if file.document is None or not file.values:
            continue
        for kind in KINDS:
            yield from _check_rules(file.document, file, kind)
        mode = value_at(file.values, ("permissions", "defaultMode"))
        if mode == "bypassPermissions" and file.scope in ("project", "local"):
            message = (
                "Claude Code ignores `bypassPermissions` here. To turn it on, set it in the user's settings."
            )
            span = file.document.span(("permissions", "defaultMode"))
            yield settings_problem(file.document, "no-effect", span, message)
        hooks = file.values.get("hooks")
        if isinstance(hooks, dict):
            yield from check_hooks(file.document, hooks, disk, settings.where)
        for keys in _COMMANDS:
            command = value_at(file.values, keys)
            if isinstance(command, str):
                yield from check_command(file.document, keys, command, disk=disk, where=settings.where)
    yield from _check_shadows(disk, settings)


def _check_rules(document: JsonDocument, file: AssistantSettingsFile, kind: str) -> Iterator[Problem]:
    """Rules that are left out, match nothing, or say more than they seem to."""
    rules = value_at(file.values, ("permissions", kind))
    faults = (
        (index, fault)
        for index, text in enumerate(rules if isinstance(rules, list) else ())
        if isinstance(text, str) and (fault := rule_fault(text, kind)) is not None
    )
    for _, (index, fault) in zip(range(MOST_FINDINGS), faults, strict=False):
        span, fix = document.span(("permissions", kind, index)), None
        message = _OPENINGS.get(fault.effect, "") + fault.reason
        if fault.meant is not None:
            message += f" Write `{fault.meant}`."
            fix = Fix(f"Write `{fault.meant}`", (Edit(span, as_json(fault.meant)),))
        effect: Effect = "reads-otherwise" if fault.effect == "reads-otherwise" else "no-effect"
        problem = settings_problem(document, effect, span, message, fix=fix)
        yield replace(problem, severity=Severity.INFORMATION) if fault.effect == "gone" else problem


def _check_shadows(disk: Disk, settings: AssistantSettings) -> Iterator[Problem]:
    """Report rules whose calls another rule decides first."""
    documents = {file.path: file.document for file in settings.files}
    home, counts = settings.where.user_home + os.sep, Counter[tuple[str, str]]()
    for rule, by in find_shadowed(read_permissions(settings, disk.real)):
        fault = rule_fault(rule.text, rule.kind)
        if fault is not None and fault.effect == "matches-nothing":
            continue  # which is what to mend
        document = documents[rule.path]
        counts[rule.path, rule.kind] += 1
        if document is None or counts[rule.path, rule.kind] > MOST_FINDINGS:
            continue
        path = f"~/{by.path[len(home) :]}" if by.path.startswith(home) else by.path
        suffix = "" if by.path == rule.path else f" of {path}"
        is_same = by.kind == rule.kind
        text = f"`{by.text}`" if is_same else f"`{by.text}` in `{by.kind}`{suffix}"
        yield shadow_problem(
            document.path, rule.span, text, "counts first", is_same=is_same, by_place=(by.path, by.span)
        )
