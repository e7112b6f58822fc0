"""The tools of a server as a model is offered them: names that every provider takes, and what they cost.

1. A tool is called `mcp__<server>__<tool>`, as Claude Code does. Characters that a provider refuses become
   `_`. A name that was changed, or is too long, ends with a part of its hash: it depends on no other tool.
2. Its description and schema are the server's own, in a definition that says so.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nexus_context.conversation.revealed_tools import PREFIX
from nexus_context.conversation.tools import tool_rows
from nexus_context.servers.definitions import ServerDefinitions
from nexus_context.tokens import TokenCounter

LONGEST_NAME = 64
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool of a server under the `name` that a model is told; `tool` is its name at the server.

    `only_reads`: its server says that it changes nothing.
    """

    name: str
    server: str
    tool: str
    definition: dict[str, Any]
    only_reads: bool = False


def offered_tools(server: str, definitions: ServerDefinitions) -> list[OfferedTool]:
    """The tools of a server, in its order."""
    offered = []
    for tool in definitions.tools:
        name = _name(server, tool["name"])
        schema = tool.get("inputSchema")
        definition = {
            "name": name,
            "description": str(tool.get("description") or tool.get("title") or ""),
            "parameters": schema if isinstance(schema, dict) else {"type": "object"},
        }
        hints = tool.get("annotations")
        only_reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        offered.append(OfferedTool(name, server, tool["name"], definition, only_reads=only_reads))
    return offered


def count_tools(offered: Iterable[OfferedTool], counter: TokenCounter) -> Mapping[str, int]:
    """The tokens of each definition in every request, by the tool's name at the server."""
    offered = list(offered)
    rows = tool_rows([tool.definition for tool in offered], counter)
    return {tool.tool: row.tokens for tool, row in zip(offered, rows, strict=True)}


def prefix_of(server: str) -> str:
    """What the names of a server's tools begin with."""
    return _REFUSED.sub("_", f"{PREFIX}{server}__")


def _name(server: str, tool: str) -> str:
    exact = f"{PREFIX}{server}__{tool}"
    name = _REFUSED.sub("_", exact)
    if name == exact and len(name) <= LONGEST_NAME and "__" not in server:
        return name
    mark = "_" + hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return name[: LONGEST_NAME - len(mark)] + mark
