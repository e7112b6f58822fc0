"""Merges tool definitions by name, filters them, and puts them into a stable order.

1. If two sources have a tool with the same name, the later source counts. Tools are sorted by name, because
   providers cache a request's prefix, which begins with the tools.
2. `disabled` holds names or patterns of tools. `deny`, `allow` and `only` hold patterns of permissions, such
   as `fs.read` or `network.*`. A tool needs the permissions that its field `permissions` names. Without that
   field it needs a permission with its own name. A denied tool is not offered. `allow` restricts only tools
   that declare permissions, by that field or by a name with a dot. With `strict`, for an agent whose
   permissions were set, it restricts all tools. `only`, which a request sets, always restricts all tools.
3. In a sandbox, a tool is offered only if it declares that it changes nothing (MCP's
   `annotations.readOnlyHint`). With `inside`, a tool is left out if it declares that it reaches outside, into
   the network (`annotations.openWorldHint`).
4. An agent's tools are those that it and each agent above it were granted, by name or pattern.
5. Tools that are not offered are reported with the reason.
6. A definition without a name is refused: nobody could call the tool, and two such tools would replace one
   another.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.config.patterns import Patterns
from nexus_context.conversation.budget import UsageRow
from nexus_context.conversation.provider_tools import hosted_name
from nexus_context.errors import RequestError
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.tokens.counter import measure_cached

Tool = dict[str, Any]

SENT = frozenset(
    (
        *("type", "name", "description", "input_schema", "inputSchema", "parameters", "function", "custom"),
        *("format", "strict", "defer_loading", "allowed_callers", "input_examples"),
    )
)
"""Fields of a tool that the program runs which are sent; a provider's own tool is sent whole."""

_OWN_TYPES = ("function", "custom", None)  # of tools that the program runs


class Filter(msgspec.Struct, frozen=True):
    """Rules that leave tools out. An empty `allow` allows everything, and so does `only` if it is None.

    `named` are lists of patterns of names. A tool is offered only if each list has a pattern that matches it.
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
    """The offered tools. `left_out` maps the names of the other tools to the reasons."""

    tools: list[Tool]
    left_out: dict[str, str]


def name_of(tool: Mapping[str, Any]) -> str:
    """Return the name in a tool definition of any form: neutral, Anthropic's, or OpenAI's two. Return "" if
    it has none.

    A provider's own tool may have only a type or a key of Gemini, which is then its name.
    """
    kind = tool.get("type")
    inner = next((tool[key] for key in _FORMS if isinstance(tool.get(key), Mapping)), None)
    name = tool.get("name") if inner is None else inner.get("name")
    if name is None and inner is None and kind not in _FORMS:
        name = hosted_name(tool)
    return name if isinstance(name, str) and name.strip() else ""


def description_of(tool: Mapping[str, Any]) -> str:
    """Return the description in a tool definition, which may have any form of `name_of`. Return "" if it has
    none.
    """
    inner = next((tool[key] for key in _FORMS if isinstance(tool.get(key), Mapping)), tool)
    description = inner.get("description")
    return description if isinstance(description, str) else ""


def sent_fields(tool: Mapping[str, Any]) -> Tool:
    """Return the fields of a definition that are sent to a model."""
    if tool.get("type") not in _OWN_TYPES and not any(key in tool for key in _SCHEMAS):
        return {key: value for key, value in tool.items() if key not in _FILTERS}
    return {
        key: sent_fields(value) if key in _FORMS and isinstance(value, Mapping) else value
        for key, value in tool.items()
        if key in SENT
    }


def check_tool(tool: Any, value_path: str) -> None:
    """Raise RequestError if the value is not a tool definition with a name. `value_path` says where the value
    stands.
    """
    if not isinstance(tool, Mapping):
        raise RequestError(
            f"{value_path} is of type {type(tool).__name__}; a tool definition is a JSON object.",
            code="bad-tool",
        )
    if not name_of(tool):
        raise RequestError(f'{value_path} has no name. Give it one: {{"name": "…", …}}.', code="bad-tool")


def select(*sources: Iterable[Tool], rules: Filter | None = None) -> Selection:
    """Select the tools that no rule leaves out, sorted by name. If two sources have a tool with the same
    name, the later one counts.

    Raise RequestError for a definition that has no name or is not an object.
    """
    by_name: dict[str, Tool] = {}
    for source in sources:
        for number, tool in enumerate(source, 1):
            check_tool(tool, f"Tool {number} of the request")
            by_name[name_of(tool)] = tool
    rules = rules or Filter()
    patterns = functools.cache(Patterns)  # of this selection
    offered: list[Tool] = []
    left_out: dict[str, str] = {}
    for name, tool in sorted(by_name.items()):
        reason = _reason(name, tool, rules, patterns)
        if reason is None:
            offered.append(tool)
        else:
            left_out[name] = reason
    return Selection(offered, left_out)


def fixed_rows(system_prompt: str, tools: Sequence[Tool], counter: TokenCounter) -> tuple[UsageRow, ...]:
    """Return the rows of tools, after a row of the system prompt if there is one."""
    rows = tool_rows(tools, counter)
    if system_prompt:
        tokens = count_message(counter, system_prompt, role="system")
        rows.insert(0, UsageRow("system", "system prompt", tokens, counter.exact))
    return tuple(rows)


def tool_rows(tools: Sequence[Tool], counter: TokenCounter) -> list[UsageRow]:
    """Return a row for each tool, with the tokens of its definition as it is sent, as JSON.

    Each definition is counted once.
    """
    return [UsageRow("tools", name_of(tool), _tokens(tool, counter), counter.exact) for tool in tools]


def _tokens(tool: Tool, counter: TokenCounter) -> int:
    fields = sent_fields(tool)
    fields.pop("defer_loading", None)  # for the provider, not the model
    text = msgspec.json.encode(fields).decode()
    return measure_cached(f"tools in {counter.name}", text, counter.count)


def _reason(
    name: str, tool: Tool, rules: Filter, patterns: Callable[[tuple[str, ...]], Patterns]
) -> str | None:
    if patterns(rules.disabled).matches(name):
        return "disabled"
    if not all(patterns(tools).matches(name) for tools in rules.named):
        return "not among the agent's tools"
    names = tool.get("permissions")
    needs = (
        [permission for permission in names if isinstance(permission, str)] if isinstance(names, list) else []
    )
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


_SCHEMAS = ("input_schema", "inputSchema", "parameters")
_FILTERS = ("annotations", "permissions", "cache_control")
_FORMS = ("function", "custom")  # types of OpenAI's tools, and the keys that these are under
