"""What the model can work with, in a few lines: skills, tools, MCP servers, credentials.

1. At most MOST names of each kind are shown. Without anything to tell, there is no section.
2. Tools are those that the request offers, by name and in their order, which is that of their names: the line
   changes only when they do, and they stand before the prompt in what providers cache. A prompt that no
   request with tools asked for (a preview) has no such line.
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
    """The section; nothing where there is nothing to tell."""
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
