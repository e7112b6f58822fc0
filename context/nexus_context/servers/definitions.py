"""Holds what a running MCP server offers: tools, prompts, resources and instructions, as it listed them.

1. All of it is text of somebody else. It is decoded from JSON, bounded, and never followed.
2. The pin is the SHA-256 of a canonical form (RFC 8785) of everything that a model is told: of each tool its
   name, title, description, schemas and annotations, and the server's instructions. A tool at another place
   in the list changes nothing.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nexus_context.errors import RequestError

MOST_TOOLS = 1_000
MOST_BYTES = 8 << 20
"""Of all definitions of a server, as JSON."""
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class DefinitionsError(RequestError):
    """Raised if what a server lists cannot be used. The message says why."""


class ServerDefinitions(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a server has listed. `tools`, `prompts` and `resources` are JSON objects as they came.

    `title` and `version` are what the server calls itself.
    """

    tools: tuple[dict[str, Any], ...] = ()
    instructions: str = ""
    prompts: tuple[dict[str, Any], ...] = ()
    resources: tuple[dict[str, Any], ...] = ()
    title: str = ""
    version: str = ""

    @property
    def pin(self) -> str:
        """The hash that an approval keeps (rule 2).

        DefinitionsError if the definitions have no canonical form.
        """
        pinned = {
            "instructions": self.instructions,
            "tools": sorted(
                ({key: tool[key] for key in PINNED if tool.get(key) is not None} for tool in self.tools),
                key=lambda tool: str(tool.get("name")),
            ),
        }
        return hashlib.sha256(_canonical(pinned)).hexdigest()

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Yield (place, value) for each value that a model is told.

        The place is for people, such as `tool.title`.
        """
        if self.instructions:
            yield "instructions", self.instructions
        for tool in self.tools:
            yield from _leaves(str(tool.get("name")), {key: tool[key] for key in PINNED if key in tool})


def checked(definitions: ServerDefinitions) -> ServerDefinitions:
    """Return the definitions if they can be used.

    DefinitionsError if they are too many or too large, or if a tool has no name or the name of another one.
    """
    if len(definitions.tools) > MOST_TOOLS:
        raise DefinitionsError(
            f"The server lists more than {MOST_TOOLS:,} tools. No model can choose among so many: none of "
            "them is offered.",
            code="mcp-too-many-tools",
        )
    names = [tool.get("name") for tool in definitions.tools]
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise DefinitionsError(
            "The server lists a tool without a name, or two of one name.", code="mcp-bad-tool"
        )
    size = len(msgspec.json.encode(definitions))
    if size > MOST_BYTES:
        raise DefinitionsError(
            f"The definitions of the server have {size >> 20} MiB; at most {MOST_BYTES >> 20} MiB are read.",
            code="mcp-too-large",
        )
    return definitions


def _canonical(value: Any) -> bytes:
    import rfc8785  # only who starts servers needs it

    try:
        return rfc8785.dumps(_comparable(value))
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise DefinitionsError(
            f"A schema of the server cannot be compared with later ones ({type(error).__name__}): its tools "
            "are not offered.",
            code="mcp-not-comparable",
        ) from None


def _comparable(value: Any) -> Any:
    """A value in which integers that the canonical form does not have are texts."""
    if isinstance(value, Mapping):
        return {key: _comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(item) for item in value]
    is_large = isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53
    return f"integer {value}" if is_large else value


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    stack: list[tuple[str, Any]] = [(place, value)]
    while stack:
        where, item = stack.pop()
        if isinstance(item, Mapping) and item:
            stack.extend((f"{where}.{key}", child) for key, child in reversed(list(item.items())))
        elif isinstance(item, list) and item:
            stack.extend((where, child) for child in reversed(item))
        else:
            yield where, item
