"""Turns the tools of a server into definitions for a model, with names that every provider accepts.

1. A tool is called `mcp__<server>__<tool>`, as Claude Code does. Characters that a provider refuses become
   `_`. A name that was changed, or is too long, ends with a part of its hash, so that it does not depend on
   other tools.
2. Its description and schema are the server's own.
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
    """A tool of a server. `name` is the name that a model is told; `tool` is its name at the server.

    `only_reads` is true if the server says that the tool changes nothing.
    """

    name: str
    server: str
    tool: str
    definition: dict[str, Any]
    only_reads: bool = False


def offered_tools(server: str, definitions: ServerDefinitions) -> list[OfferedTool]:
    """Return the tools of a server as a model is offered them, in the server's order."""
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
    """Count the tokens of each tool's definition in every request: the tool's name at the server → tokens."""
    offered = list(offered)
    rows = tool_rows([tool.definition for tool in offered], counter)
    return {tool.tool: row.tokens for tool, row in zip(offered, rows, strict=True)}


def prefix_of(server: str) -> str:
    """Return what the names of a server's offered tools begin with."""
    return _REFUSED.sub("_", f"{PREFIX}{server}__")


def _name(server: str, tool: str) -> str:
    exact = f"{PREFIX}{server}__{tool}"
    name = _REFUSED.sub("_", exact)
    if name == exact and len(name) <= LONGEST_NAME and "__" not in server:
        return name
    mark = "_" + hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return name[: LONGEST_NAME - len(mark)] + mark
