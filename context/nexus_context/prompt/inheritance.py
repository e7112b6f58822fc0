"""What an agent has from the agents above it, and what of its own folder's files is new to its prompt.

1. A file is in the prompt once, by real path: what an agent above has brought is not brought again.
2. A worker's identity is that of the agent above it: of its own folder's AGENT.md, SOUL.md and IDENTITY.md
   none counts. Its own definition, `AGENT.<name>.md`, does.
3. A manager or unified agent is who its own folder says; those files replace the ones of the same kind above.
   One without text replaces none, as between layers.
4. A system prompt that is given replaces all files and custom sections.
"""

import os

import msgspec

from nexus_context.layers.bootstrap import agent_file, is_blank
from nexus_context.layers.model import Kind, Layer, LayerFile
from nexus_context.layers.walk import RealPath
from nexus_context.prompt.blocks import WORKER, AgentGrant, Generation, blocks_of, paths_of

IDENTITY: tuple[Kind, ...] = ("agent", "soul", "identity")
"""Kinds of files that say who an agent is."""

PromptFiles = list[tuple[Layer, LayerFile]]


def divided(
    files: PromptFiles, grant: AgentGrant, real_path: RealPath
) -> tuple[PromptFiles, tuple[Generation, ...], set[str]]:
    """Of an agent's files those that are new, what stays of those above, and the real paths of that."""
    if grant.text is not None:
        return [], (), set()
    loaded = _real_paths(grant.above, real_path)
    new_files = [
        (layer, file) for layer, file in files if _counts(file, grant) and real_path(file.path) not in loaded
    ]
    replaced = {file.kind for _, file in new_files if file.kind in IDENTITY and not is_blank(file)}
    if not replaced:
        return new_files, grant.above, loaded
    above = tuple(_without(generation, replaced) for generation in grant.above)
    return new_files, above, _real_paths(above, real_path)


def _counts(file: LayerFile, grant: AgentGrant) -> bool:
    if grant.role != WORKER or file.kind not in IDENTITY or not grant.above:
        return True
    return os.path.basename(file.path) == agent_file(grant.agent)


def _without(generation: Generation, kinds: set[Kind]) -> Generation:
    blocks = tuple(block for block in generation.bootstrap if block.kind not in kinds)
    return msgspec.structs.replace(generation, bootstrap=blocks)


def _real_paths(generations: tuple[Generation, ...], real_path: RealPath) -> set[str]:
    return {real_path(path) for path in set(paths_of(blocks_of(generations)))}
