"""Offers memory as tools that a model calls: `query_l2_memory`, `query_l3_memory`, `query_l4_memory`.

1. Definitions are in the neutral form, with a JSON Schema of their arguments. They are marked as read-only.
2. An invalid argument raises an error that names it, so that a model can correct its call.
3. The answer is a text: entries with session, turn and time, oldest first, or the hits of a search, best
   first. It has about LONGEST_ANSWER characters at most, and says how many entries are left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.errors import RequestError
from nexus_context.folder.prompt import texts
from nexus_context.memory.levels import Levels, MemorySettings, session_names
from nexus_context.memory.working import Entry

NAMES = ("query_l2_memory", "query_l3_memory", "query_l4_memory")
DEFAULT_LIMIT = 10
MOST = 50
"""Entries of one answer."""
LONGEST_ANSWER = 16_000
"""Characters of one answer."""
LONGEST_QUERY = 1_000
"""Characters of a query."""

_PARAMETERS = {
    "query_l2_memory": ("limit", "session_id"),
    "query_l3_memory": ("limit", "session_id"),
    "query_l4_memory": ("query", "limit", "session_id"),
}


def definitions() -> list[dict[str, Any]]:
    """Return the definitions of the tools, sorted by name."""
    descriptions = texts.table("memory_tools")
    schemas: dict[str, dict[str, Any]] = {
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT_LIMIT},
        "session_id": {"type": "string"},
        "query": {"type": "string"},
    }
    return [
        {
            "name": name,
            "description": descriptions[name],
            "inputSchema": {
                "type": "object",
                "properties": {
                    parameter: schemas[parameter] | _described(descriptions, name, parameter)
                    for parameter in _PARAMETERS[name]
                },
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": True},
        }
        for name in NAMES
    ]


def run(
    tool_name: str,
    arguments: Mapping[str, Any] | str | None,
    *,
    levels: Levels,
    workspace: str,
    session: str | None = None,
    settings: MemorySettings = MemorySettings(),  # noqa: B008 (frozen)
) -> str:
    """Run a memory tool and return its answer. `arguments` is an object, or its JSON text.

    `session` is the current session. Raise RequestError with the code `unknown-tool`, `bad-argument` (which
    names the argument) or `unknown-session`. Raise LedgerError if the ledger cannot be read.
    """
    if tool_name not in NAMES:
        raise RequestError(
            f"There is no memory tool {tool_name!r}. Known: {', '.join(NAMES)}.", code="unknown-tool"
        )
    values = arguments_of(tool_name, arguments, _PARAMETERS[tool_name])
    limit = _limit(tool_name, values)
    named = _text(tool_name, values, "session_id")
    if named is not None and levels.ledger.find(workspace, named) is None:
        names = session_names(levels.sessions(workspace))
        raise RequestError(
            f"{tool_name}: session_id {named!r} is not a session of this workspace. Sessions: {names}.",
            code="unknown-session",
        )
    if tool_name == "query_l2_memory":
        entries = levels.important(workspace, named or session, limit=min(limit, settings.l2_limit))
    elif tool_name == "query_l3_memory":
        entries = levels.summaries(workspace, named or session, limit=min(limit, settings.l3_limit))
    else:
        query = _text(tool_name, values, "query")
        entries = levels.across(workspace, query, limit=limit, only=named, besides=session)
    return rendered(entries) or texts.table("memory_results")[f"none_{tool_name}"]


def rendered(entries: Sequence[Entry]) -> str:
    """Render the entries as one text. Return "" if there are none."""
    templates = texts.table("memory_results")
    blocks: list[str] = []
    room = LONGEST_ANSWER
    for entry in entries:
        form = templates["entry" if entry.seq else "undated"]
        head = form.format(session=entry.session, turn=entry.seq, created=entry.created)
        block = f"{head}\n{entry.text}"
        if len(block) > room and blocks:
            break
        blocks.append(block)
        room -= len(block) + 2
    if len(blocks) < len(entries):
        blocks.append(templates["more"].format(count=len(entries) - len(blocks)))
    return "\n\n".join(blocks)


def _described(descriptions: Mapping[str, str], tool: str, argument: str) -> dict[str, str]:
    return {"description": descriptions.get(f"{argument} of {tool}", descriptions[argument])}


def arguments_of(
    tool: str, arguments: Mapping[str, Any] | str | None, parameters: Sequence[str]
) -> Mapping[str, Any]:
    """Return the arguments of a tool call as a mapping. `parameters` are the names that the tool accepts.

    Raise RequestError, code `bad-argument`, if the arguments are not an object or its JSON text, or have
    another name.
    """
    value: Any = arguments
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value) if value.strip() else {}
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise _bad(f"{tool}: the arguments are not valid JSON: {error}.") from None
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _bad(f"{tool}: the arguments are of type {type(value).__name__}; they must be an object.")
    for name in value:
        if name not in parameters:
            names = ", ".join(parameters)
            remedy = f"Known: {names}." if names else "It takes none."
            raise _bad(f"{tool}: there is no argument {str(name)!r:.60}. {remedy}")
    return value


def _limit(tool: str, values: Mapping[str, Any]) -> int:
    value = values.get("limit")
    if value is None:
        return DEFAULT_LIMIT
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_whole or not 1 <= value <= MOST:
        raise _bad(f"{tool}: limit is {value!r:.60}; it must be a whole number from 1 to {MOST}.")
    return int(value)


def _text(tool: str, values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _bad(f"{tool}: {name} is of type {type(value).__name__}; it must be a string.")
    if len(value) > LONGEST_QUERY:
        raise _bad(f"{tool}: {name} has {len(value):,} characters; it may have {LONGEST_QUERY:,}.")
    return value.strip() or None


def _bad(message: str) -> RequestError:
    return RequestError(message, code="bad-argument")
