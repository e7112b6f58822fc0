"""Turns a server's answer into a text for a model: the result of a tool, or the contents of a resource.

1. Its first line says whose data it is, and that it is not an instruction.
2. Then come its texts as the server sent them. A part that is not text is replaced by a note that says what
   it is.
"""

from collections.abc import Iterable
from typing import Any, Literal

from nexus_context.folder.prompt import texts
from nexus_context.text.visible import visible_line


def result_text(
    server: str, name: str, content: Iterable[dict[str, Any]], *, kind: Literal["tool", "resource"] = "tool"
) -> str:
    """Return the text of an answer whose parts, `content`, have the form of MCP."""
    head = texts.text("server_result").format(kind=kind, name=visible_line(name), server=visible_line(server))
    return "\n".join((head, *(part_text(part) for part in content)))


def part_text(part: dict[str, Any]) -> str:
    """Return the text of a part, or a note in brackets if it has none."""
    resource = part.get("resource")
    text = part.get("text", resource.get("text") if isinstance(resource, dict) else None)
    if isinstance(text, str):
        return text
    kind, name = part.get("type", "part"), part.get("mimeType") or part.get("uri") or "data"
    return f"[{visible_line(str(kind))}: {visible_line(str(name))}]"
