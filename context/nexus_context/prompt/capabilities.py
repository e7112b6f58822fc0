"""What the model can work with: skills, tools, MCP servers and credentials by name; a summary of tools.

1. At most MOST names of each kind are listed. An empty section is left out.
2. Tools are those that the request offers, sorted by name. The sections change only when the tools do, and
   tools precede the prompt in what providers cache anyway. A prompt without a request with tools (a preview)
   mentions none.
3. With `tools.summary`, the tools follow with the first sentence of their descriptions.
4. The text of the summary belongs to the request: it is traced to no file.
"""

import re
from collections.abc import Sequence

from nexus_context.layers.model import Layers
from nexus_context.prompt import texts
from nexus_context.prompt.environment import one_line
from nexus_context.prompt.gather import Credential
from nexus_context.prompt.sections import Facts, Part
from nexus_context.prompt.skill_sections import offered_skills
from nexus_context.prompt.texts import Piece

MOST = 20
MAX_SENTENCE = 200  # characters of a tool's description

_END = re.compile(r"[.!?](?=\s+[^\Wa-z\d_]|\s*$)|。|\n\s*\n")  # "e.g. v1.2" ends no sentence


def section(layers: Layers, credentials: Sequence[Credential], facts: Facts) -> list[Part]:
    """The section; empty if there is nothing to list."""
    servers = [server for server in layers.servers if server.shadowed_by is None]
    skills = [one.skill.name for one in offered_skills(layers, facts)]
    values = {
        "count": [Piece(str(len(skills)))] if skills else None,
        "skills": _listed(skills),
        "tool_count": [Piece(str(len(facts.tools)))] if facts.tools else None,
        "tools": _listed([name for name, _ in facts.tools]),
        "configured_servers": _listed([server.name for server in servers if server.enabled]),
        "disabled": _listed([server.name for server in servers if not server.enabled]),
        "configured": _listed([one.variable for one in credentials if one.configured]),
        "broken": _listed([one.variable for one in credentials if not one.configured]),
    }
    if all(value is None for value in values.values()):
        return []
    return [Part("capabilities", None, "Capabilities", texts.fill("capabilities", values))]


def _listed(names: Sequence[str]) -> list[Piece] | None:
    if not names:
        return None
    lines = [one_line(name) for name in names[:MOST]]
    return [Piece(", ".join(lines) + (", …" if len(names) > MOST else ""))]


def tool_summary(tools: Sequence[tuple[str, str]]) -> list[Part]:
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
