"""The tools of a request by name and first sentence, with `tools.summary`.

1. The tools of the request are listed by name. The section changes only when they do, and then the cached
   prefix changes anyway.
2. A prompt without a request with tools (a preview) has no such section.
3. The text belongs to the request: it is traced to no file.
"""

import re
from collections.abc import Sequence

from nexus_context.prompt import texts
from nexus_context.prompt.environment import one_line
from nexus_context.prompt.sections import Part
from nexus_context.prompt.texts import Piece

MAX_SENTENCE = 200  # characters of a tool's description

_END = re.compile(r"[.!?](?=\s+[^\Wa-z\d_]|\s*$)|。|\n\s*\n")  # "e.g. v1.2" ends no sentence


def section(tools: Sequence[tuple[str, str]]) -> list[Part]:
    """The section of tools, each a name and a description; empty without tools."""
    if not tools:
        return []
    rows = "\n".join(_row(one_line(name), _sentence(description)) for name, description in tools)
    filled = texts.fill("tools", {"rows": [Piece(rows)]})
    return [Part("tools", None, "Tools", [Piece(piece.text) for piece in filled])]


def _row(name: str, sentence: str) -> str:
    row = texts.text("tool_row").format(name=name, description=sentence)
    return row if sentence else row.rstrip(" :")


def _sentence(description: str) -> str:
    end = _END.search(description.strip())
    first = one_line(description.strip()[: end.end()] if end is not None else description)
    return first if len(first) <= MAX_SENTENCE else f"{first[: MAX_SENTENCE - 1]}…"
