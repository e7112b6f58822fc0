"""The answer of a server's tool as a text for a model.

1. Its first line says whose data it is, and that it is no instruction.
2. Then come its texts as the server sent them. Of a part that is no text, a note says what it is.
"""

from collections.abc import Iterable
from typing import Any

from nexus_context.folder.prompt import texts
from nexus_context.text.visible import visible_line


def result_text(server: str, tool: str, content: Iterable[dict[str, Any]]) -> str:
    """The text of an answer; `content` are its parts as in MCP."""
    head = texts.text("server_result").format(tool=visible_line(tool), server=visible_line(server))
    return "\n".join((head, *(_part_text(part) for part in content)))


def _part_text(part: dict[str, Any]) -> str:
    resource = part.get("resource")
    text = part.get("text", resource.get("text") if isinstance(resource, dict) else None)
    if isinstance(text, str):
        return text
    kind, name = part.get("type", "part"), part.get("mimeType") or part.get("uri") or "data"
    return f"[{visible_line(str(kind))}: {visible_line(str(name))}]"
