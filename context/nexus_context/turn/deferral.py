"""Decides which tools of MCP servers a model gets only when it searches for them, and runs that search.

1. With `tools.defer: auto`, they are deferred if all their definitions together cost more than SHARE of the
   tokens that a request may take. A conversation that began with deferred tools continues with them.
2. If the provider searches tools itself, the body has all definitions, and those of servers stand behind the
   provider's search tool with `defer_loading`. The model reads a definition when a search refers to it.
3. Otherwise the model gets the tool `search_tools`, which lists the names. Tools that the conversation has
   revealed (`conversation/revealed_tools`) are offered after all others, in the order of their revelation.
   `search_tools` does not depend on them, so that a later request begins with what was sent before.
4. A search ranks tools by the words of the query in name, parameters and description. A word counts for more
   the fewer tools have it, by the formula of BM25. Equal tools stay in their order.

Sources: "Tool search tool" in the documentation of the Claude API (from Claude 4 on) and "Tool search" in
that of OpenAI (from GPT-5.4 on); their shapes are those of the packages anthropic 2.12 and openai 3.54.
"""

import math
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.bodies.parameter_fields import searches_tools
from nexus_context.conversation.provider_tools import SCHEMAS
from nexus_context.conversation.revealed_tools import SEARCH
from nexus_context.conversation.tools import Tool, description_of, name_of, tool_rows
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.sections import first_sentence
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import ModelLimits, TokenCounter
from nexus_context.turn.request import Options

SHARE = 0.1
"""Of the tokens that a request may take: what definitions may cost with `auto`."""
MOST_FOUND = 5
"""Tools that a search lists."""
LONGEST_LIST = 12_000
"""Characters of the list in `search_tools`: beyond, it has names alone, and then fewer of them."""

_PROVIDER_SEARCH: Mapping[str, Tool] = {
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    "openai-responses": {"type": "tool_search"},
}
_SEARCH_TYPES = frozenset(
    (
        "tool_search",
        *(f"tool_search_tool_{kind}" for kind in ("bm25", "bm25_20251119", "regex", "regex_20251119")),
    )
)
_WORD = re.compile(r"[^\W_]+")
_LEAST_BEGINNING = 4  # characters of a word that stands for longer ones
_BEGINNING = 0.8  # what such a word counts
_WEIGHTS = (3.0, 1.5, 1.0)  # of the name, the parameters and the description


class Deferral(msgspec.Struct, frozen=True):
    """The tools that are sent, in their order, and the definitions that are `waiting` and not sent.

    `search` is the name of the search tool among `tools`, or "". `revealed` names the tools at the end of
    `tools` that the search tool has found: earlier requests of the conversation did not have them.
    """

    tools: Sequence[Tool]
    waiting: Sequence[Tool] = ()
    search: str = ""
    revealed: Collection[str] = ()

    @property
    def stable(self) -> list[Tool]:
        """The tools without the revealed ones. A system prompt may list them, since they stay the same during
        the conversation.
        """
        revealed = set(self.revealed)
        return [tool for tool in self.tools if name_of(tool) not in revealed]


class Room(NamedTuple):
    """The model of a request, the counter of its tokens, and how many tokens the request may take."""

    model: ModelLimits
    counter: TokenCounter
    available: int


class EarlierTools(NamedTuple):
    """The names of the tools that a conversation was sent before, and of the tools that it `revealed`, in
    order.
    """

    tools: Sequence[str] = ()
    revealed: Iterable[str] = ()


NOTHING_SENT = EarlierTools()


def is_deferred(snapshot: Snapshot, tools: Sequence[Tool], room: Room) -> bool:
    """Whether a new conversation gets these tools of servers only when it searches for them."""
    mode = snapshot.effective.get("/tools/defer")
    if not tools or mode == "never" or not room.model.can("tools"):
        return False
    cost = sum(row.tokens for row in tool_rows(tools, room.counter))
    return mode == "always" or cost > SHARE * room.available


def defer(
    snapshot: Snapshot,
    tools: Sequence[Tool],
    options: Options,
    *,
    room: Room,
    sent: EarlierTools = NOTHING_SENT,
) -> Deferral:
    """Decide which of the tools of a request with these options are sent, and which wait for a search."""
    names = set(map(name_of, options.server_tools)) - set(map(name_of, options.additional_tools))
    of_servers = {name_of(tool): tool for tool in tools if name_of(tool) in names}
    other_tools = [tool for tool in tools if name_of(tool) not in of_servers]
    definitions = list(of_servers.values())
    began_so = SEARCH in sent.tools and snapshot.effective.get("/tools/defer") == "auto"
    if not definitions or SEARCH in map(name_of, other_tools):
        return Deferral(tools)
    if not began_so and not is_deferred(snapshot, definitions, room):
        return Deferral(tools)
    form, own_server = options.tool_format, snapshot.effective.get("/provider/base_url")
    if searches_tools(form, room.model.given) and not own_server:
        read = set(sent.revealed)
        return Deferral(
            [*other_tools, _PROVIDER_SEARCH[form], *(tool | {"defer_loading": True} for tool in definitions)],
            [tool for name, tool in of_servers.items() if name not in read],
            search=name_of(_PROVIDER_SEARCH[form]),
            revealed=list(of_servers),
        )
    revealed_before = sent.tools if SEARCH in sent.tools else ()
    revealed = [name for name in dict.fromkeys((*revealed_before, *sent.revealed)) if name in of_servers]
    return Deferral(
        [
            *sorted([*other_tools, _search_tool(definitions)], key=name_of),
            *(of_servers[name] for name in revealed),
        ],
        [tool for name, tool in of_servers.items() if name not in set(revealed)],
        search=SEARCH,
        revealed=revealed,
    )


def unread(tools: Sequence[Tool], form: str, revealed: Container[str]) -> set[str]:
    """Return the names of the tools in a body that the model reads only when a search refers to them.
    `revealed` are names that a search already referred to.
    """
    if form in ("openai", "gemini") or not any(tool.get("type") in _SEARCH_TYPES for tool in tools):
        return set()
    return {
        name_of(tool) for tool in tools if tool.get("defer_loading") is True and name_of(tool) not in revealed
    }


def search(tools: Sequence[Tool], query: str, *, limit: int = MOST_FOUND) -> list[Tool]:
    """Return at most `limit` tools that match a query, best first (rule 4)."""
    from nexus_context.memory.knowledge.terms import query_terms  # only a search needs it

    terms = query_terms(query) or _words(query)
    fields = [_fields(tool) for tool in tools]
    scores = [0.0] * len(tools)
    for term in terms:
        hits = [_weight(term, words) for words in fields]
        count = sum(1 for hit in hits if hit)
        rarity = math.log(1 + (len(tools) - count + 0.5) / (count + 0.5))
        scores = [score + hit * rarity for score, hit in zip(scores, hits, strict=True)]
    named = set(query.split())
    ranked = sorted(range(len(tools)), key=lambda at: (name_of(tools[at]) not in named, -scores[at], at))
    return [tools[at] for at in ranked if scores[at] or name_of(tools[at]) in named][:limit]


def search_answer(tools: Sequence[Tool]) -> str:
    """Return the text that tells a model which tools its search found."""
    sentences = texts.table("tool_search")
    return "\n".join([sentences["found"], *map(_line, tools)]) if tools else sentences["none"]


# ---------------------------------------------------------------- parts


def _search_tool(tools: Sequence[Tool]) -> Tool:
    sentences = texts.table("tool_search")
    lines = list(map(_line, tools))
    if sum(map(len, lines)) > LONGEST_LIST:
        lines = list(map(name_of, tools))
    length = 0
    for at, line in enumerate(lines):
        length += len(line) + 1
        if length > LONGEST_LIST:
            lines[at:] = [sentences["more"].format(count=f"{len(lines) - at:,}")]
            break
    return {
        "name": SEARCH,
        "description": "\n".join([sentences["description"], *lines]),
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": sentences["query"]}},
            "required": ["query"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True},
    }


def _line(tool: Tool) -> str:
    sentence = first_sentence(description_of(tool))
    return f"{name_of(tool)}: {sentence}" if sentence else name_of(tool)


def _fields(tool: Tool) -> tuple[list[str], ...]:
    """The words of the name, of the parameters and of the description."""
    schema: Any = next((tool[key] for key in SCHEMAS if key in tool), None)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    parameters = " ".join(properties) if isinstance(properties, dict) else ""
    return _words(name_of(tool)), _words(parameters), _words(description_of(tool))


def _words(text: str) -> list[str]:
    from nexus_context.memory.knowledge.terms import searchable

    return list(dict.fromkeys(_WORD.findall(searchable(text).lower())))


def _weight(term: str, fields: Iterable[Sequence[str]]) -> float:
    """The weight of the best field that has a term; less if only one of them begins with the other."""
    return max(
        weight * max((_likeness(term, word) for word in words), default=0.0)
        for weight, words in zip(_WEIGHTS, fields, strict=True)
    )


def _likeness(term: str, word: str) -> float:
    short, long = sorted((term, word), key=len)
    if short == long:
        return 1.0
    return _BEGINNING if len(short) >= _LEAST_BEGINNING and long.startswith(short) else 0.0
