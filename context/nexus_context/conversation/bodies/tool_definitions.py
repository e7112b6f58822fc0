"""Converts tools of any format to a form that a provider accepts: definitions, arguments, names and call ids.

1. A definition has a name and a JSON Schema of an object. All providers reject anything else, and they reject
   choices (`oneOf` …) at the top level of the schema.
2. Valid names and ids stay unchanged. In a name, other characters become `_`. A name that is too long ends in
   a hash of the whole name.
3. Two tools never have the same name. If a changed name is already taken, it ends in a hash of the original
   name.
4. An invalid id becomes the nearest valid one and always ends in a hash, because people do not read it.
5. The same original always gives the same result. For a name, the result also depends on the names of the
   other tools.
6. A provider's own tool is sent to that provider unchanged, and so are the fields of a definition that the
   provider knows. Other fields are reported, except those that are for people and programs.
7. `server_rules` changes what a provider's server refuses in a definition.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2s
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.bodies import server_rules
from nexus_context.conversation.message import ToolCall
from nexus_context.conversation.parts import is_blank
from nexus_context.conversation.provider_tools import OWNER_NAMES, SCHEMAS, Owner, hosted_name, owner_of
from nexus_context.conversation.repair import RepairLog, clean, is_clean, quote_name

_encode = msgspec.json.Encoder().encode
_CHOICES = ("oneOf", "anyOf", "allOf", "enum", "not")
_FIELDS: dict[Owner, dict[str, type]] = {
    "anthropic": {
        "strict": bool,
        "defer_loading": bool,
        "allowed_callers": list,
        "input_examples": list,
        "eager_input_streaming": bool,
    },
    "openai": {"strict": bool},
    "openai-responses": {
        "strict": bool,
        "defer_loading": bool,
        "allowed_callers": list,
        "output_schema": dict,
        "async": bool,
    },
    "gemini": {"behavior": str, "response": dict, "responseJsonSchema": dict, "response_json_schema": dict},
}
"""The fields of a function that a provider takes beside name, description and schema, and their types."""
_CALLERS: dict[Owner, re.Pattern[str]] = {
    "anthropic": re.compile(r"direct|code_execution_\d+"),
    "openai-responses": re.compile(r"direct|programmatic"),
}
_NOT_SENT = frozenset(
    (
        *("type", "name", "description", "function", "cache_control", *SCHEMAS),
        *("annotations", "permissions", "title", "outputSchema", "_meta", "icons", "execution"),
    )
)
"""Fields that are sent in another form, that filter tools, or that MCP has for people and programs."""

_HOSTED_NOT_SENT = ("cache_control", "annotations", "permissions")
_VALID = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_OTHER = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_NAMELESS = "tool"
_NOT_FIRST = "0123456789-"


class Naming:
    """Converts the names and ids of one body. Lengths are in characters; None means unlimited."""

    def __init__(
        self,
        log: RepairLog,
        *,
        longest_name: int,
        longest_id: int | None,
        any_id: bool,
        letter_first: bool = False,
    ) -> None:
        """`any_id`: ids may hold any character. `letter_first`: a name starts with a letter or `_`."""
        self._log = log
        self._letter_first = letter_first
        self._longest_name = longest_name
        self._longest_id = longest_id
        self._any_id = any_id
        self._names: dict[str, str] = {}

    def define(self, names: Iterable[str]) -> None:
        """Register the names of all tool definitions. Call it before `name`."""
        originals = list(dict.fromkeys(names))
        taken = {name for name in originals if self._fits(name)}
        for name in originals:
            if name in taken:
                self._names[name] = name
                continue
            sent_name = self._fitting(name)
            if sent_name in taken:
                sent_name = _hashed(sent_name, name, self._longest_name)
            taken.add(sent_name)
            self._names[name] = sent_name
            self._log_renamed(name, sent_name)

    def name(self, original: str) -> str:
        """Return the name with which a call of this tool is sent."""
        sent_name = self._names.get(original)
        if sent_name is None:
            sent_name = self._names[original] = original if self._fits(original) else self._fitting(original)
            if sent_name != original:
                self._log_renamed(original, sent_name)
        return sent_name

    def id(self, original: str) -> str:
        """Return the id with which a call, or the result that answers it, is sent."""
        longest = self._longest_id
        if (longest is None or len(original) <= longest) and (self._any_id or _VALID.fullmatch(original)):
            return original
        clean = original if self._any_id else _OTHER.sub("_", original)
        sent_id = _hashed(clean, original, longest or len(original) + 9)
        self._log.add(
            "id-changed",
            "Call ids that the provider rejects are replaced, in calls and in results.",
            tool_call_id=original,
            given=original,
            sent=sent_id,
        )
        return sent_id

    def _fits(self, name: str) -> bool:
        is_valid = len(name) <= self._longest_name and _VALID.fullmatch(name) is not None
        return is_valid and not (self._letter_first and name[0] in _NOT_FIRST)

    def _fitting(self, name: str) -> str:
        clean = _OTHER.sub("_", name) or _NAMELESS
        if self._letter_first and clean[0] in _NOT_FIRST:
            clean = f"_{clean}"
        return clean if len(clean) <= self._longest_name else _hashed(clean, name, self._longest_name)

    def _log_renamed(self, original: str, sent_name: str) -> None:
        text = f"The provider rejects the tool name {quote_name(original)}; it is sent as {sent_name}."
        self._log.add("tool-renamed", text, given=original, sent=sent_name)


class ToolDefinition(NamedTuple):
    """A tool as it is sent. If only this provider knows it, `provider_form` is its definition, and `schema`
    is empty.

    `fields` are other fields that the provider takes. `renamed` maps the tool's argument names to the names
    that are sent.
    """

    name: str
    description: str
    schema: dict[str, Any]
    fields: Mapping[str, Any] = {}
    renamed: Mapping[str, str] = {}
    provider_form: dict[str, Any] | None = None

    @property
    def is_called(self) -> bool:
        """Whether a model calls the tool by its name."""
        form = self.provider_form
        return form is None or "name" in form or "custom" in form


def definitions(tools: Iterable[Mapping[str, Any]], provider: Owner, log: RepairLog) -> list[ToolDefinition]:
    """Return the tools that the provider accepts. Tools that it does not accept are logged."""
    by_name: dict[str, ToolDefinition] = {}
    for original in tools:
        encoded = _encoded(original)
        tool = original if encoded else clean(dict(original))
        definition = _definition(tool, provider, log, encoded or _encode(tool))
        if definition is None:
            continue
        if definition.name in by_name:
            text = f"Two tools are called {quote_name(definition.name)}; the later one is sent."
            log.add("tool-repeated", text, given=definition.name)
        by_name[definition.name] = definition
    defined = list(by_name.values())
    max_tools = server_rules.RULES[provider].tools
    if max_tools is not None and len(defined) > max_tools:
        names = ", ".join(quote_name(tool.name) for tool in defined[max_tools:])
        log.add("tools-over-limit", f"The provider takes {max_tools} tools; these are left out: {names}.")
        del defined[max_tools:]
    return _some_loaded(defined, log)


def arguments(call: ToolCall, log: RepairLog) -> dict[str, Any]:
    """Return the arguments of a call as an object. A text is parsed as JSON, and a value that is not an
    object is put inside one.
    """
    value: Any = call.arguments
    if value.__class__ is dict:
        return value  # clean, because the history is repaired
    return _object(value, call.id, log)


def arguments_text(call: ToolCall, log: RepairLog) -> str:
    """Return the arguments of a call as the JSON text of an object. A text that already is one stays
    unchanged.
    """
    value = call.arguments
    if value.__class__ is not dict:
        wrapped = _object(value, call.id, log)
        if isinstance(value, str) and wrapped.keys() != {"arguments"} and not is_blank(value):
            return value
        value = wrapped
    return _encode(value).decode()


def _object(original: Any, tool_call_id: str, log: RepairLog) -> dict[str, Any]:
    value = original
    if isinstance(value, str):
        try:
            value = {} if is_blank(value) else msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            value = original
    if value is None:
        return {}
    if not is_clean(value):
        value = clean(value)
    if isinstance(value, dict):
        return value
    text = 'Call arguments that are not a JSON object are sent inside one: {"arguments": …}.'
    log.add("arguments-wrapped", text, tool_call_id=tool_call_id)
    return {"arguments": value}


def _some_loaded(defined: list[ToolDefinition], log: RepairLog) -> list[ToolDefinition]:
    """The tools, one of them loaded at once: the provider refuses a request that defers all."""
    if not defined or not all(
        (tool.fields if tool.provider_form is None else tool.provider_form).get("defer_loading")
        for tool in defined
    ):
        return defined
    log.add("tools-all-deferred", "The provider rejects defer_loading of all tools; none is deferred.")
    return [
        tool._replace(
            fields={name: value for name, value in tool.fields.items() if name != "defer_loading"},
            provider_form=tool.provider_form and tool.provider_form | {"defer_loading": False},
        )
        for tool in defined
    ]


def _definition(
    tool: Mapping[str, Any], provider: Owner, log: RepairLog, encoded: bytes
) -> ToolDefinition | None:
    function = tool.get("function")
    source = function if isinstance(function, dict) else tool
    owner = owner_of(tool)
    custom = tool.get("custom")
    name = custom.get("name") if isinstance(custom, dict) else source.get("name")
    name = hosted_name(tool) if owner is not None and name is None else name
    if not isinstance(name, str) or not name:
        log.add("tool-left-out", "A tool without a name is left out.")
        return None
    if owner is not None:
        is_own = owner == provider or (owner == "openai" and provider == "openai-responses")
        if is_own and not any(key in source for key in ("parameters", "inputSchema")):
            provider_form = {key: value for key, value in tool.items() if key not in _HOSTED_NOT_SENT}
            return ToolDefinition(name, "", {}, provider_form=provider_form)
        if not any(key in source for key in SCHEMAS):
            tool_type = f" of the type {quote_name(tool['type'])}" if "type" in tool else ""
            text = f"The tool {quote_name(name)}{tool_type} is left out: only {OWNER_NAMES[owner]} has such."
            log.add("tool-left-out", text, given=name)
            return None
    description = source.get("description")
    schema, renamed = server_rules.accepted_schema(
        _schema(source, name, log), provider, name, log=log, encoded=encoded
    )
    return ToolDefinition(
        name,
        description if isinstance(description, str) and not description.isspace() else "",
        schema,
        fields=_fields(tool, source, schema, provider=provider, log=log),
        renamed=renamed,
    )


def _fields(
    tool: Mapping[str, Any],
    source: Mapping[str, Any],
    schema: Mapping[str, Any],
    *,
    provider: Owner,
    log: RepairLog,
) -> dict[str, Any]:
    """The fields of a definition that the provider takes; the others are logged."""
    types = _FIELDS[provider]
    if _NOT_SENT.issuperset(source) and (source is tool or _NOT_SENT.issuperset(tool)):
        return {}  # nearly always
    fields: dict[str, Any] = {}
    lost: list[str] = []
    for key, value in {**tool, **source}.items():
        if key in _NOT_SENT or value in (None, False) or value == []:
            if key == "strict" and value is False and key in types:
                fields[key] = value
        elif isinstance(value, types.get(key, ())) and (
            key != "allowed_callers" or all(map(_CALLERS[provider].fullmatch, map(str, source[key])))
        ):
            fields[key] = value
        else:
            lost.append(key)
    name = quote_name(source.get("name"))
    if fields.get("strict") and not server_rules.is_strict_schema(
        schema, all_required=provider != "anthropic"
    ):
        fields["strict"] = False
        text = f"The tool {name} is not sent as strict: the provider rejects that with an open schema."
        log.add("strict-off", text, given=source.get("name"))
    if lost:
        text = f"Fields of the tool {name} are left out, which the provider does not take: {', '.join(lost)}."
        log.add("tool-fields-left-out", text, given=source.get("name"))
    return fields


def _schema(source: Mapping[str, Any], name: str, log: RepairLog) -> dict[str, Any]:
    """The schema of a tool's arguments: of an object, without choices at the top."""
    schema: dict[str, Any] = next((source[key] for key in SCHEMAS if isinstance(source.get(key), dict)), {})
    if schema.get("type") == "object" and "properties" in schema and schema.keys().isdisjoint(_CHOICES):
        return schema  # nearly always
    if schema.get("type", "object") != "object":
        text = f"The schema of the tool {quote_name(name)} is not that of an object; any object is accepted."
        log.add("schema-changed", text, given=name)
        schema = {}
    if not schema.keys().isdisjoint(_CHOICES):
        text = f"Choices at the top of the schema of {quote_name(name)} are left out: providers reject them."
        log.add("schema-changed", text, given=name)
    allowed = {key: value for key, value in schema.items() if key not in _CHOICES}
    if not isinstance(allowed.get("properties", {}), dict):
        allowed["properties"] = {}
    return {"type": "object", "properties": {}} | allowed


def _encoded(tool: Mapping[str, Any]) -> bytes | None:
    try:
        return _encode(tool)
    except (UnicodeEncodeError, RecursionError, TypeError):
        return None


def _hashed(name: str, original: str, longest: int) -> str:
    """`name` followed by a hash of `original`, in at most `longest` characters."""
    suffix = "-" + blake2s(original.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return name[: longest - len(suffix)] + suffix
