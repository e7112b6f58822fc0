"""Reads skills: SKILL.md by the public Agent Skills specification (agentskills.io/specification).

Reading order: front_matter, allowed_tools, skill. `layers/skills` finds skills, `prompt/sections` writes them
into the prompt, `prompt/token_attribution` counts their tokens there.
"""

from nexus_context.folder.skills.skill import (
    PROGRAMS,
    SKILL_FILE,
    ReadSkill,
    Skill,
    is_skill_name,
    read_skill,
)

__all__ = ["PROGRAMS", "SKILL_FILE", "ReadSkill", "Skill", "is_skill_name", "read_skill"]
