"""What `init` puts into a folder's `.nexus3/` or into the global directory; this module writes nothing."""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os

import msgspec

from nexus_context.files import PROMPT_LIMIT, exists, read_text
from nexus_context.layers.read_layers import DEFAULTS_DIRECTORY
from nexus_context.layers.walk import CONFIG_DIRECTORY

FILES = ("NEXUS.md", "config.json", "mcp.json")
INSTRUCTIONS = (
    "NEXUS.md",
    "AGENTS.override.md",
    "AGENTS.md",
    ".agents/AGENTS.md",
    "CLAUDE.md",
    ".claude/CLAUDE.md",
)
"""Where a folder may have instructions without `.nexus3`, the most important first."""


class InitPlan(msgspec.Struct, frozen=True):
    """`create` are absolute paths and texts of files to write; `existing` are paths to leave alone."""

    directory: str
    create: tuple[tuple[str, str], ...]
    existing: tuple[str, ...]


def plan_init(folder: str) -> InitPlan:
    """The templates for a project: `<folder>/.nexus3/`.

    The new NEXUS.md wins over the folder's existing instructions, so it begins by importing them.
    """
    plan = _plan(os.path.join(folder, CONFIG_DIRECTORY), os.path.join(DEFAULTS_DIRECTORY, "templates"))
    already = next((name for name in INSTRUCTIONS if exists(os.path.join(folder, name))), None)
    if already is None:
        return plan
    create = [
        (path, f"@../{already}\n\n{text}" if os.path.basename(path) == "NEXUS.md" else text)
        for path, text in plan.create
    ]
    return InitPlan(plan.directory, tuple(create), plan.existing)


def plan_global_init(home: str, *, replace: bool = False) -> InitPlan:
    """The packaged defaults for the global directory `home`, for the user to change there."""
    return _plan(home, DEFAULTS_DIRECTORY, replace=replace)


def _plan(directory: str, templates: str, *, replace: bool = False) -> InitPlan:
    create = []
    existing = []
    for name in FILES:
        path = os.path.join(directory, name)
        if exists(path) and not replace:
            existing.append(path)
        else:
            create.append((path, _text(os.path.join(templates, name))))
    return InitPlan(directory, tuple(create), tuple(existing))


def _text(path: str) -> str:
    text = read_text(path, limit=PROMPT_LIMIT).text
    if text is None:
        raise FileNotFoundError(
            f"the installation is incomplete: {path} cannot be read; install nexusd again"
        )
    return text
