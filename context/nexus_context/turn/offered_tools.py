"""Determines which tools a request offers, and what an agent may do without asking."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.config.patterns import Patterns
from nexus_context.conversation import tools as tool_sets
from nexus_context.folder.layers.layer_types import GLOBAL
from nexus_context.folder.request_prompt import active_skills
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import ModelLimits
from nexus_context.turn.models import NO_TOOLS
from nexus_context.turn.request import Options

SANDBOXED, WORKER = "sandboxed", "worker"
"""Permission levels that imply a sandbox; the second is narrower."""


class OfferedTools(NamedTuple):
    """The tools of a request. `left_out` maps the names of other tools to the reason why they are not
    offered.

    `brought` are the names of the tools that do not come from a skill. `rules` say which tools may be offered
    at all.
    """

    tools: Sequence[dict[str, Any]]
    left_out: dict[str, str]
    brought: set[str]
    rules: tool_sets.Filter


def offered_tools(snapshot: Snapshot, options: Options, model: ModelLimits) -> OfferedTools:
    """Return the tools that a request with these options offers a model."""
    active = active_skills(
        snapshot, options.skills, skip_skills=options.skip_skills, skill_filter=options.skill_filter
    )
    rules = _tool_rules(snapshot, options)
    own_tools = [*_memory_tools(options), *_skill_tools(snapshot, options), *_agent_tools(snapshot, options)]
    selection = tool_sets.select(
        [tool for layer_skill in active for tool in layer_skill.skill.tools],
        own_tools,
        options.server_tools,
        options.additional_tools,
        rules=rules,
    )
    tools, left_out = selection.tools, selection.left_out
    if not model.can("tools"):
        reason = NO_TOOLS.format(model=model.given)
        tools, left_out = [], left_out | {tool_sets.name_of(tool): reason for tool in tools}
    brought = {
        tool_sets.name_of(tool) for tool in (*own_tools, *options.server_tools, *options.additional_tools)
    }
    return OfferedTools(tools, left_out, brought, rules)


def permissions(snapshot: Snapshot, options: Options, left_out: Mapping[str, str]) -> dict[str, Any]:
    """Return the permissions of the model's tools: level, allowed and denied patterns, and tools that need no
    confirmation.

    `left_out` are the tools that are not offered.
    """
    get = snapshot.effective.get
    granted = {name: get(f"/permissions/{name}") for name in ("level", "allow", "deny")}
    if options.permissions is not None:
        granted["narrowedTo"] = list(options.permissions)
    approved = _approved(snapshot, options, left_out)
    return granted | {"preapproved": approved} if approved else granted


def _approved(snapshot: Snapshot, options: Options, left_out: Mapping[str, str]) -> list[str]:
    """The tools of active skills that may run without confirmation, as the skills write them.

    Only the user's own skills count: a workspace may narrow permissions, not widen them. Empty in a sandbox;
    disabled tools are left out.
    """
    rules = _tool_rules(snapshot, options)
    if rules.sandbox or rules.only is not None:
        return []
    active = active_skills(
        snapshot, options.skills, skip_skills=options.skip_skills, skill_filter=options.skill_filter
    )
    named = dict.fromkeys(
        tool
        for layer_skill in active
        if layer_skill.layer == GLOBAL
        for tool in layer_skill.skill.allowed_tools
    )
    off = Patterns((*rules.disabled, *rules.deny))
    names = {tool: tool.partition("(")[0] for tool in named}
    return [tool for tool, name in names.items() if name not in left_out and not off.matches(name)]


def _memory_tools(options: Options) -> list[dict[str, Any]]:
    if not options.memory_tools:
        return []
    from nexus_context.memory.queries import definitions  # rarely needed

    return definitions()


def _skill_tools(snapshot: Snapshot, options: Options) -> list[dict[str, Any]]:
    if not options.skill_tools:
        return []
    from nexus_context.turn.skill_tool import definitions  # rarely needed

    return definitions(snapshot, skip_skills=options.skip_skills, skill_filter=options.skill_filter)


def _agent_tools(snapshot: Snapshot, options: Options) -> list[dict[str, Any]]:
    if not options.agent_tools:
        return []
    from nexus_context.folder.prompt.agent_tools import definitions  # rarely needed

    return definitions(snapshot.contents.grant)


def offered_agent_tools(snapshot: Snapshot, options: Options) -> tool_sets.Selection:
    """Return the agent tools that the snapshot's agent may be offered, even if these options do not ask for
    them.
    """
    options = msgspec.structs.replace(options, agent_tools=True)
    return tool_sets.select(_agent_tools(snapshot, options), rules=_tool_rules(snapshot, options))


def _tool_rules(snapshot: Snapshot, options: Options) -> tool_sets.Filter:
    get = snapshot.effective.get
    level, grant = get("/permissions/level"), snapshot.contents.grant
    return tool_sets.Filter(
        disabled=(*get("/tools/disabled"), *options.disabled_tools),
        deny=tuple(get("/permissions/deny")),
        allow=tuple(get("/permissions/allow")),
        strict=grant is not None and grant.strict,
        only=None if options.permissions is None else tuple(options.permissions),
        sandbox=bool(options.sandbox) or level in (SANDBOXED, WORKER),
        inside=level == WORKER,
        named=() if grant is None else grant.tools,
    )
