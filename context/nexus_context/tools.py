"""Tool definitions: merged by name, filtered, in an order that never changes by itself.

1. A later source replaces a tool of the same name. The order is that of the names: providers cache a
   request's prefix, and tools come first in it.
2. `disabled` holds names or patterns of tools. `deny`, `allow` and `only` hold patterns of permissions, such
   as `fs.read` or `network.*`. A tool needs those that its field `permissions` names, else one of its own
   name. What is denied is not offered; with `allow`, of the tools that say what they need, by that field or
   by a name with a dot, only what is allowed, and of all tools where it is `strict`, as for an agent that was
   given what it may do; with `only`, which a request sets, the same of all tools.
3. In a sandbox only tools are offered that say of themselves that they change nothing (MCP's
   `annotations.readOnlyHint`); `inside` leaves out those, too, that say that they reach outside, into the
   network (`annotations.openWorldHint`).
4. An agent's tools are those that it and each agent above it were given, by name or pattern.
5. What is not offered is told, with the reason.
6. A definition without a name is refused: nobody could call it, and two of them would replace one another.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.budget import UsageRow
from nexus_context.config.patterns import Patterns
from nexus_context.errors import RequestError
from nexus_context.tokens import TokenCounter, memo

Tool = dict[str, Any]

NOT_SENT = frozenset({"annotations", "permissions"})
"""Fields of a definition that filter it, and that no model is sent."""


class Filter(msgspec.Struct, frozen=True):
    """What leaves tools out. An empty `allow` allows everything, as does `only` when it is None.

    `named` are lists of patterns of names: a tool is offered if each list has one for it.
    """

    disabled: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    strict: bool = False
    only: tuple[str, ...] | None = None
    sandbox: bool = False
    inside: bool = False
    named: tuple[tuple[str, ...], ...] = ()


class Selection(NamedTuple):
    """The tools that are offered, and for each that is not, by name, the reason."""

    tools: list[Tool]
    left_out: dict[str, str]


def name_of(tool: Mapping[str, Any]) -> str:
    """The name of a tool definition, in the neutral and Anthropic form or in OpenAI's two; "" without one.

    A tool that a provider has built in may have a type alone: then that is its name.
    """
    kind = tool.get("type")
    inner = next((tool[key] for key in _FORMS if isinstance(tool.get(key), Mapping)), None)
    name = tool.get("name") if inner is None else inner.get("name")
    if name is None and inner is None and kind not in _FORMS:
        name = kind
    return name if isinstance(name, str) and name.strip() else ""


def description_of(tool: Mapping[str, Any]) -> str:
    """What a tool definition says of the tool, in any of the forms of `name_of`; "" where it says nothing."""
    inner = next((tool[key] for key in _FORMS if isinstance(tool.get(key), Mapping)), tool)
    description = inner.get("description")
    return description if isinstance(description, str) else ""


def check_tool(tool: Any, place: str) -> None:
    """Raise RequestError for what is no tool definition with a name; `place` says where it stands."""
    if not isinstance(tool, Mapping):
        raise RequestError(
            f"{place} is of the type {type(tool).__name__}; a tool definition is a JSON object.",
            code="bad-tool",
        )
    if not name_of(tool):
        raise RequestError(f'{place} has no name. Give it one: {{"name": "…", …}}.', code="bad-tool")


def select(*sources: Iterable[Tool], rules: Filter | None = None) -> Selection:
    """All tools by name, a later source replacing an earlier one, without those that a rule leaves out.

    Raises RequestError for a definition that has no name, or is no object.
    """
    by_name: dict[str, Tool] = {}
    for source in sources:
        for number, tool in enumerate(source, 1):
            check_tool(tool, f"Tool {number} of the request")
            by_name[name_of(tool)] = tool
    rules = rules or Filter()
    patterns = functools.cache(Patterns)  # of this one selection
    offered: list[Tool] = []
    left_out: dict[str, str] = {}
    for name, tool in sorted(by_name.items()):
        reason = _reason(name, tool, rules, patterns)
        if reason is None:
            offered.append(tool)
        else:
            left_out[name] = reason
    return Selection(offered, left_out)


def tool_rows(tools: Sequence[Tool], counter: TokenCounter) -> list[UsageRow]:
    """A row for each tool: the tokens of what a model is sent of its definition, as JSON.

    A definition is counted once.
    """
    return [UsageRow("tools", name_of(tool), _tokens(tool, counter), counter.exact) for tool in tools]


def _tokens(tool: Tool, counter: TokenCounter) -> int:
    text = msgspec.json.encode({key: value for key, value in tool.items() if key not in NOT_SENT}).decode()
    return memo.recall(f"tools in {counter.name}", text, counter.count)


def _reason(
    name: str, tool: Tool, rules: Filter, patterns: Callable[[tuple[str, ...]], Patterns]
) -> str | None:
    if patterns(rules.disabled).matches(name):
        return "disabled"
    if not all(patterns(tools).matches(name) for tools in rules.named):
        return "not among the agent's tools"
    names = tool.get("permissions")
    needs = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    says = rules.strict or bool(needs) or "." in name
    for need in needs or [name]:
        if patterns(rules.deny).matches(need):
            return f"{need} is denied"
        if says and rules.allow and not patterns(rules.allow).matches(need):
            return f"{need} is not allowed"
        if rules.only is not None and not patterns(rules.only).matches(need):
            return f"the request does not allow {need}"
    if rules.sandbox and not _hints(tool, "readOnlyHint"):
        return "not in a sandbox: it does not say that it only reads"
    if rules.inside and _hints(tool, "openWorldHint"):
        return "not at this level: it says that it reaches outside"
    return None


def _hints(tool: Tool, hint: str) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, dict) and annotations.get(hint) is True


_FORMS = ("function", "custom")  # types of OpenAI's tools, and the keys that these are under
