"""Collects the tools of MCP servers that a conversation has revealed to its model, in the order of their
revelation.

1. A tool is revealed by the result of a search that lists it, or by a call of it. Both are messages of the
   conversation, so a restart, a fork or another window reveals the same tools.
2. A result of `search_tools` reveals the tools that it lists at the beginning of a line. A result of
   Anthropic's own search reveals the tools that it refers to.
3. A name in a result reveals nothing by itself: it counts only if a server offers that tool (`deferral`).
"""

import re
from typing import Any

from nexus_context.conversation.message import Message, content_of, text_of, type_of

SEARCH = "search_tools"
"""The name of our search tool."""
PREFIX = "mcp__"
"""What the names of tools of MCP servers begin with."""

_LISTED = re.compile(rf"^({PREFIX}[A-Za-z0-9_-]+)", re.MULTILINE)


class RevealedTools:
    """The names of the tools that the messages of a history reveal. Names are only ever added."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._searches: set[str] = set()  # ids of calls of `search_tools`

    def read(self, message: Message) -> None:
        """Add the names that a message reveals. Pass the messages in their order."""
        if message.role == "assistant":
            for call in message.tool_calls:
                if call.name == SEARCH:
                    self._searches.add(call.id)
                elif call.name.startswith(PREFIX):
                    self.names[call.name] = None
            content: Any = content_of(message)
            for part in content if isinstance(content, list) else ():
                if type_of(part) == "tool_search_tool_result":
                    self.names.update(dict.fromkeys(_references(part)))
        elif message.role == "tool" and (message.tool_call_id in self._searches or message.name == SEARCH):
            self.names.update(dict.fromkeys(_LISTED.findall(text_of(message))))


def _references(part: dict[str, Any]) -> list[str]:
    """The tools that a result of Anthropic's search refers to."""
    content = part.get("content")
    references = content.get("tool_references") if isinstance(content, dict) else None
    named = (reference.get("tool_name") for reference in references or () if isinstance(reference, dict))
    return [name for name in named if isinstance(name, str)]
