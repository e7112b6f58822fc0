"""What the model can work with, in a few lines: skills, tools, MCP servers, credentials.

1. At most MOST names of each kind are listed. An empty section is left out.
2. Tools are those that the request offers, sorted by name. The line changes only when they do, and tools
   precede the prompt in what providers cache anyway. A prompt without a request with tools (a preview) has no
   such line.
"""

from collections.abc import Sequence

from nexus_context.layers.model import Layers
from nexus_context.prompt import texts
from nexus_context.prompt.credentials import Credential
from nexus_context.prompt.environment import one_line
from nexus_context.prompt.sections import Facts, Part
from nexus_context.prompt.skill_sections import offered
from nexus_context.prompt.texts import Piece

MOST = 20


def section(layers: Layers, credentials: Sequence[Credential], facts: Facts) -> list[Part]:
    """The section; empty if there is nothing to list."""
    servers = [server for server in layers.servers if server.shadowed_by is None]
    skills = [one.skill.name for one in offered(layers, facts)]
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
