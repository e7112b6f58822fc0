"""Skills: what a SKILL.md says, by the public Agent Skills specification (agentskills.io/specification).

Reading order: front_matter, allowed_tools, skill. Where skills are found is in `layers/skills`, how the model
is told of them in `prompt/skill_sections`.
"""

from nexus_context.skills.skill import SKILL_FILE, ReadSkill, Skill, read_skill

__all__ = ["SKILL_FILE", "ReadSkill", "Skill", "read_skill"]
