"""Reports permission rules of opencode that never decide, and names in its settings that nothing has.

By the source in its binary (1.18.33), and runs of `opencode debug agent` and `opencode run`:

1. The last rule that matches decides, so a rule never does if a later one of the same table covers it. A rule
   of the user that one of a project overrides is not reported, since it counts elsewhere.
2. The tools `write` and `apply_patch` ask for `edit`, so rules with their own names match nothing.
3. A model is written `provider/model`; a name without a slash is none. A command whose agent does not exist
   fails.
4. Plugins bring tools and agents of any name. If there are plugins, unknown names are not reported.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from nexus_context.assistants.opencode.agents import OWN_MODES, agents_of
from nexus_context.assistants.opencode.front_matter import read_markdown
from nexus_context.assistants.opencode.permission_rules import OpencodeRule, matches, settings_rules
from nexus_context.assistants.opencode.settings import CONTENT, config_directories
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import Effect, name_problem, shadow_problem, value_at
from nexus_context.assistants.reading.profile_types import AssistantSettings, AssistantSettingsFile
from nexus_context.config.fixes import as_json, meant
from nexus_context.errors import Problem, Span
from nexus_context.text.json import Pointer

PERMISSIONS = (
    *("bash", "doom_loop", "edit", "external_directory", "glob", "grep", "lsp", "plan_enter", "plan_exit"),
    *("question", "read", "skill", "task", "todowrite", "webfetch", "websearch", "workflow_tool_approval"),
)
"""What its tools ask for."""
_EARLIER = ("codesearch", "invalid", "list", "todoread")
"""Names in its documentation, and of earlier versions."""
_EDITING = ("write", "apply_patch")
_PLUGIN_FOLDERS = ("plugin", "plugins", "tool", "tools")
MOST_RULES = 400
"""Rules of one table that are looked at."""


def check_permissions(disk: Disk, settings: AssistantSettings) -> Iterator[Problem]:
    """Report rules that never decide, and names that nothing has. Call it only for settings with which
    opencode starts.
    """
    values = settings.merged()
    agents = agents_of(values)
    has_plugins = bool(values.get("plugin")) or any(
        disk.entries(os.path.join(directory, folder))
        for directory in config_directories(disk, settings.where)
        for folder in _PLUGIN_FOLDERS
    )
    names = [] if has_plugins else sorted({*OWN_MODES, *agents})
    for agent in ((), *((name,) for name in agents)):
        rules = list(islice(settings_rules(settings, agent), MOST_RULES))
        yield from _check_shadows(disk, settings, rules)
        for rule in rules:
            yield from _check_name(disk, rule, names)
    for file in settings.files:
        for pointer, model in _texts(file, "model"):
            if "/" not in model:
                message = f"opencode has no model `{model}`: a model is `provider/model`."
                yield from _named(disk, file, pointer, message, effect="no-effect")
        for pointer, agent_name in _texts(file, "agent"):
            if names and agent_name not in names:
                message = f"opencode cannot run this command: there is no agent `{agent_name}`."
                yield from _named(disk, file, pointer, message, close=meant(agent_name, names))


def _check_shadows(disk: Disk, settings: AssistantSettings, rules: list[OpencodeRule]) -> Iterator[Problem]:
    """Rules that a later one covers."""
    order = {file.path: at for at, file in enumerate(settings.files)}
    for at, rule in enumerate(rules):
        by = next(
            (later_rule for later_rule in reversed(rules[at + 1 :]) if _covers_rule(later_rule, rule)), None
        )
        if rule.file is None or by is None or by.file is None or order[by.file.path] > order[rule.file.path]:
            continue
        if (span := _span(disk, rule.file, rule.pointer)) is not None:
            why = "comes later: the last one counts"
            is_same = by.action == rule.action
            by_span = _span(disk, by.file, by.pointer)
            by_place = None if by_span is None else (by.file.path, by_span)
            yield shadow_problem(
                rule.file.path, span, f"`{by.text}`", why, is_same=is_same, by_place=by_place
            )


def _covers_rule(by: OpencodeRule, rule: OpencodeRule) -> bool:
    return covers(by.permission, rule.permission) and covers(by.pattern, rule.pattern)


def covers(pattern: str, other_pattern: str) -> bool:
    """Whether `pattern` is known to match all that `other_pattern` matches."""
    texts = (
        (other_pattern, other_pattern.removesuffix(" *"))
        if other_pattern.endswith(" *")
        else (other_pattern,)
    )
    return "?" not in pattern and all(matches(pattern, text.replace("*", "\0")) for text in texts)


def _check_name(disk: Disk, rule: OpencodeRule, agents: list[str]) -> Iterator[Problem]:
    """A rule about no tool, or about an agent that has almost this name."""
    name, file = rule.permission, rule.file
    if file is None:
        return
    key = rule.pointer if rule.pointer[-1] == name else rule.pointer[:-1]
    if name in _EDITING:
        message = f"This rule matches nothing: the tool `{name}` asks for `edit`."
        yield from _named(disk, file, key, message, effect="no-effect", close="edit")
    elif name == "task" and (close := _near(rule.pattern, agents)):
        message = f"This rule matches nothing: there is no agent `{rule.pattern}`."
        yield from _named(disk, file, rule.pointer, message, close=close)
    elif agents and name not in _EARLIER and "_" not in name and (close := _near(name, PERMISSIONS)):
        message = f"This rule matches nothing: opencode has no tool `{name}`."
        yield from _named(disk, file, key, message, close=close)


def _near(name: str, names: Sequence[str]) -> str | None:
    """The name that a misspelt one means; None if it is one of `names`, or a pattern."""
    return None if name in names or {"*", "?"} & set(name) else meant(name, names)


def _texts(file: AssistantSettingsFile, field: str) -> Iterator[tuple[Pointer, str]]:
    """The values of a field in agents and commands, and at the top, with their places."""
    pointers: list[Pointer] = [(field,)] if field == "model" else []
    for table in ("agent", "mode", "command") if field == "model" else ("command",):
        members = file.values.get(table)
        pointers += [(table, name, field) for name in members] if isinstance(members, dict) else []
    values = ((pointer, value_at(file.values, pointer)) for pointer in pointers)
    yield from ((pointer, value) for pointer, value in values if isinstance(value, str) and value)


def _named(
    disk: Disk,
    file: AssistantSettingsFile,
    pointer: Pointer,
    message: str,
    *,
    effect: Effect = "unknown-name",
    close: str | None = None,
) -> Iterator[Problem]:
    """A problem of a key or value."""
    span = _span(disk, file, pointer)
    if span is not None:
        text = as_json(close) if close and file.document is not None else ""
        yield name_problem(file.path, span, message, close, effect=effect, text=text)


def _span(disk: Disk, file: AssistantSettingsFile, pointer: Pointer) -> Span | None:
    """Where a key or value is, in front matter that of its field; None for a variable's."""
    text = None if file.path == CONTENT else disk.text(file.path)
    if text is None:
        return None
    if file.document is not None:
        is_key = pointer[-1] not in ("model", "agent")
        return (is_key and file.document.key_span(pointer)) or file.document.span(pointer)
    return read_markdown(text).places.get(str(*pointer[2:3]), Span(0, 3))
