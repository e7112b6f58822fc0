"""Plans what `init` puts into a folder's `.nexus3/` or into the global directory.

This module writes nothing.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os

import msgspec

from nexus_context.config.adopt import AdoptedServer, LeftServer, adopt_servers
from nexus_context.disk.files import JSON_LIMIT, PROMPT_LIMIT, exists, read_text
from nexus_context.folder.layers.read_layers import DEFAULTS_DIRECTORY
from nexus_context.folder.layers.template import TEMPLATES
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY, within
from nexus_context.text.json import parse

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


MCP_SOURCES = (".mcp.json", ".vscode/mcp.json")
"""Where a folder may have MCP servers already, the most important first."""


class InitPlan(msgspec.Struct, frozen=True):
    """What `init` would do. `create` has absolute paths and texts of files to write.

    `existing` are paths to leave alone. `adopted` are servers of other programs that the new mcp.json has,
    `left` those that it does not have. `replaced` are paths of `create` that exist as untouched templates.
    """

    directory: str
    create: tuple[tuple[str, str], ...]
    existing: tuple[str, ...]
    adopted: tuple[AdoptedServer, ...] = ()
    left: tuple[LeftServer, ...] = ()
    replaced: tuple[str, ...] = ()


def plan_init(folder: str, *, adopt: bool = False) -> InitPlan:
    """Plan the templates for a project: `<folder>/.nexus3/`.

    Nothing is written: the plan is a preview as well. The new NEXUS.md wins over the folder's existing
    instructions, so it begins by importing them. With `adopt`, a new mcp.json, or one that is still the
    template, has the servers of `.mcp.json` and `.vscode/mcp.json`, without their secrets (`config.adopt`).
    These files stay as they are. The plan lists the servers that are `adopted` and `left`.
    """
    plan = _plan_project(folder)
    return _adopt(plan, folder) if adopt else plan


def _adopt(plan: InitPlan, folder: str) -> InitPlan:
    target = os.path.join(plan.directory, "mcp.json")
    template = _text(os.path.join(TEMPLATES, "mcp.json"))
    if target in plan.existing and read_text(target, limit=JSON_LIMIT).text == template:
        existing = tuple(path for path in plan.existing if path != target)
        create = (*plan.create, (target, template))
        plan = msgspec.structs.replace(plan, create=create, existing=existing, replaced=(target,))
    documents, left_servers = [], []
    for name in MCP_SOURCES:
        path = os.path.join(folder, *name.split("/"))
        if not exists(path):
            continue
        if target in plan.existing:
            left_servers.append(LeftServer("", path, f"{target} exists already, and is never changed."))
            continue
        is_inside = within(os.path.realpath(path), os.path.realpath(folder))
        read = read_text(path, limit=JSON_LIMIT) if is_inside else None
        if read is None or read.text is None:
            left_servers.append(LeftServer("", path, "It cannot be read, or lies outside the folder."))
            continue
        documents.append(parse(path, read.text))
    adoption = adopt_servers(documents, folder)
    text = adoption.text if adoption.adopted else None
    if text is None and plan.replaced:
        plan = _plan_project(folder)
    create = tuple(
        (path, text if text and path == target else planned_text) for path, planned_text in plan.create
    )
    return msgspec.structs.replace(
        plan, create=create, adopted=adoption.adopted, left=(*left_servers, *adoption.left)
    )


def _plan_project(folder: str) -> InitPlan:
    plan = _plan(os.path.join(folder, CONFIG_DIRECTORY), TEMPLATES)
    already = next((name for name in INSTRUCTIONS if exists(os.path.join(folder, name))), None)
    if already is None:
        return plan
    create = [
        (path, f"@../{already}\n\n{text}" if os.path.basename(path) == "NEXUS.md" else text)
        for path, text in plan.create
    ]
    return InitPlan(plan.directory, tuple(create), plan.existing)


def plan_global_init(home: str, *, replace: bool = False) -> InitPlan:
    """Plan the packaged defaults for the global directory `home`, for the user to change there."""
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
