"""Limits the lengths of lists in the settings, counted over all layers.

1. Items past the limit do not count, and the first of them is reported as an error. The file stays in force.
2. What those items would have read is not read, and what they would have allowed is not allowed.
3. Cutting a list of refusals would allow more. Such a list refuses everything instead: `*`.
4. An agent with a list past its limit may do nothing, and neither may an agent past MOST_AGENTS.
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate, islice
from typing import Any

import msgspec

from nexus_context.config.merge import Effective, Provenance
from nexus_context.errors import Problem, Severity
from nexus_context.text.json import JsonDocument, Pointer, parse_pointer, pointer_text

MOST_PATTERNS = 1_000  # in one list
MOST_PATHS = 100  # and file names, and custom sections: each is searched in each layer
MOST_AGENTS = 1_000

ENDS: Mapping[str, int] = {
    "/permissions/allow": MOST_PATTERNS,
    "/skills/include": MOST_PATTERNS,
    "/skills/paths": MOST_PATHS,
    "/context/instruction_files": MOST_PATHS,
    "/context/sections": MOST_PATHS,
    "/memory/knowledge/paths": MOST_PATHS,
}
"""Maximum items of the lists of what is allowed or read."""
REFUSES: Mapping[str, int] = {
    "/permissions/deny": MOST_PATTERNS,
    "/tools/disabled": MOST_PATTERNS,
    "/skills/exclude": MOST_PATTERNS,
}
"""Maximum items of the lists of what is refused."""
EVERYTHING = "*"
LAYER = "limit"
"""The layer name of a value that is in force because a list is too long."""

_AGENT_LISTS = (("tools",), ("permissions", "allow"), ("permissions", "deny"))
_NOTHING = {"permissions": {"level": "worker", "allow": [], "deny": [EVERYTHING]}, "tools": []}


class Excess(msgspec.Struct, frozen=True):
    """The problem of a list that is too long. `document` is the text that the problem is about."""

    document: JsonDocument
    problem: Problem


def bounded(effective: Effective) -> tuple[Effective, tuple[Excess, ...]]:
    """Apply all limits to the settings, and return them with the problems.

    If nothing exceeds a limit, the settings are the same object.
    """
    ended = {
        setting_pointer: max_items
        for setting_pointer, max_items in ENDS.items()
        if _length(effective, setting_pointer) > max_items
    }
    closed = {
        setting_pointer: max_items
        for setting_pointer, max_items in REFUSES.items()
        if _length(effective, setting_pointer) > max_items
    }
    agents = _excessive_agents(effective)
    if not ended and not closed and not agents:
        return effective, ()
    excesses = [*_past(effective, ended, "the rest does not count")]
    excesses += _past(effective, closed, "until it is shorter it stands for everything")
    excesses += _past_agents(effective, agents)
    values = dict(effective.values)
    for setting_pointer, max_items in ended.items():
        values = _with(values, setting_pointer, effective.get(setting_pointer)[:max_items])
    for setting_pointer in closed:
        values = _with(values, setting_pointer, [EVERYTHING])
    if agents:
        every = values["agents"].items()
        values["agents"] = {name: {**agent, **_NOTHING} if name in agents else agent for name, agent in every}
    instead: dict[str, tuple[Any, Pointer]] = {
        setting_pointer: ([EVERYTHING], parse_pointer(setting_pointer)) for setting_pointer in closed
    }
    for name in agents:
        instead[_agent_pointer(name)] = (values["agents"][name], ("agents", name))
    return Effective(values, _provenance(effective, ended, instead)), tuple(excesses)


def _length(effective: Effective, setting_pointer: str) -> int:
    value = effective.get(setting_pointer)
    return len(value) if isinstance(value, list) else 0


def _excessive_agents(effective: Effective) -> dict[str, tuple[str, ...] | None]:
    """The agents that may do nothing, each with its list that is too long; None: too many agents."""
    agents = effective.get("/agents")
    excessive: dict[str, tuple[str, ...] | None] = {}
    for number, (name, agent) in enumerate(agents.items() if isinstance(agents, dict) else ()):
        too_long = None if number >= MOST_AGENTS else _too_long(agent)
        if number >= MOST_AGENTS or too_long is not None:
            excessive[name] = too_long
    return excessive


def _agent_pointer(agent: str) -> str:
    return pointer_text(("agents", agent))


def _too_long(agent: Any) -> tuple[str, ...] | None:
    """Which list of an agent is too long."""
    for steps in _AGENT_LISTS:
        value = agent
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, list) and len(value) > MOST_PATTERNS:
            return steps
    return None


def _past_agents(effective: Effective, agents: Mapping[str, tuple[str, ...] | None]) -> Iterator[Excess]:
    for name, steps in agents.items():
        if steps is None:  # the first one reports all
            message = (
                f"There are more than {MOST_AGENTS:,} agents: this one and those after it may do nothing."
            )
            yield from _at(effective, _agent_pointer(name), message)
            return
        message = f'"{steps[-1]}" has more than {MOST_PATTERNS:,} items: until it is shorter the agent may do'
        setting_pointer = pointer_text(("agents", name, *steps, MOST_PATTERNS))
        yield from _at(effective, setting_pointer, f"{message} nothing. Remove some.")


def _past(effective: Effective, max_items: Mapping[str, int], consequence: str) -> Iterator[Excess]:
    for setting_pointer, limit in max_items.items():
        message = f"{_name(setting_pointer)} has more than {limit:,} items: {consequence}. Remove some."
        yield from _at(effective, f"{setting_pointer}/{limit}", message)


def _name(setting_pointer: str) -> str:
    return f'"{parse_pointer(setting_pointer)[-1]}"'


def _at(effective: Effective, setting_pointer: str, message: str) -> Iterator[Excess]:
    """The problem at a setting, or at the first setting inside it."""
    chain = effective.provenance.get(setting_pointer)
    if chain is None:
        inside = (
            inner_chain
            for inner_pointer, inner_chain in effective.provenance.items()
            if inner_pointer.startswith(f"{setting_pointer}/")
        )
        chain = next(
            (inner_chain for inner_chain in inside if any(entry.document for entry in inner_chain)), ()
        )
    origin = next((entry for entry in chain if entry.document is not None), None)
    if origin is None or origin.document is None:
        return
    document, pointer = origin.document, parse_pointer(setting_pointer)
    key = document.key_span(origin.pointer[:2]) if pointer[0] == "agents" and len(pointer) == 2 else None
    span = origin.span if key is None else key
    yield Excess(document, Problem(document.path, span, "config.too-many", Severity.ERROR, message=message))


def _with(values: dict[str, Any], setting_pointer: str, value: Any) -> dict[str, Any]:
    """A copy of the settings with another value at a place."""
    step, *steps = (str(step) for step in parse_pointer(setting_pointer))
    inner_pointer = pointer_text(tuple(steps))
    return {**values, step: _with(values[step], inner_pointer, value) if steps else value}


def _provenance(
    effective: Effective, ended: Mapping[str, int], instead: Mapping[str, tuple[Any, Pointer]]
) -> dict[str, tuple[Provenance, ...]]:
    """The chains of the remaining settings, and of those in force `instead`: value and pointer."""
    past = {
        f"{setting_pointer}/{index}"
        for setting_pointer in ended
        for index in range(ended[setting_pointer], _length(effective, setting_pointer))
    }
    chains = {
        setting_pointer: chain
        for setting_pointer, chain in effective.provenance.items()
        if setting_pointer not in past
        and not any(outer_pointer in instead for outer_pointer in _above(setting_pointer))
    }
    for setting_pointer, (value, pointer) in instead.items():
        overridden = (
            msgspec.structs.replace(entry, wins=False)
            for entry in effective.provenance.get(setting_pointer, ())
        )
        chains[setting_pointer] = (*overridden, Provenance(LAYER, None, pointer, value, wins=True))
    return chains


def _above(setting_pointer: str) -> Iterator[str]:
    """A place and the places that contain it, of up to two steps."""
    return islice(accumulate(setting_pointer.split("/"), "{}/{}".format), 1, 3)
