"""Find the directory in whose context a file is checked, whatever folders the editor has opened.

1. Settings in `.nexus3`, and `.mcp.json`, belong to the directory that has them.
2. An instruction file belongs to its directory, but one in `.claude` or `.agents` to the directory above.
3. A skill lies in `skills` of a directory whose name begins with a dot. It belongs to the directory above
   that one.
"""

import os

from nexus_context.folder.layers.bootstrap import BOOTSTRAP_FILES
from nexus_context.folder.layers.instructions import TOOL_DIRECTORIES
from nexus_context.folder.layers.unread import SHARED
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.folder.skills import SKILL_FILE

_NAMES = frozenset((*(name for name in SHARED if "/" not in name), ".mcp.json"))
_TOOLS = frozenset((CONFIG_DIRECTORY, *TOOL_DIRECTORIES.values()))
_OTHER_TOOLS = " and ".join(TOOL_DIRECTORIES.values())


def misplaced(path: str) -> str | None:
    """Say why a file with a name of Nexus is not checked in its directory. None for other names."""
    name = os.path.basename(path)
    if name == SKILL_FILE:
        skill = os.path.basename(os.path.dirname(path))
        return f"a skill is read at {CONFIG_DIRECTORY}/skills/{skill}/{name}, or likewise in {_OTHER_TOOLS}"
    return f"it is read in {CONFIG_DIRECTORY} alone" if name in BOOTSTRAP_FILES else None


def directory_of(path: str) -> str | None:
    """Return the directory to check a file in. None if its name and location do not suggest a Nexus file."""
    directory, name = os.path.split(path)
    if os.path.basename(directory) == CONFIG_DIRECTORY:
        return os.path.dirname(directory)
    if name == SKILL_FILE:
        skills = os.path.dirname(directory)
        tool = os.path.dirname(skills)
        is_skill = os.path.basename(skills) == "skills" and os.path.basename(tool).startswith(".")
        return os.path.dirname(tool) if is_skill else None
    if name not in _NAMES:
        return None
    return os.path.dirname(directory) if os.path.basename(directory) in _TOOLS else directory
