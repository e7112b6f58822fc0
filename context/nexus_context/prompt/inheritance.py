"""What an agent inherits from the agents above it, and which of its own folder's files are new to its prompt.

1. A file is in the prompt once, by real path: a file that an agent above brought is not repeated.
2. A worker has the identity of the agent above it: its own folder's AGENT.md, SOUL.md and IDENTITY.md do not
   count. Its own definition, `AGENT.<name>.md`, does.
3. A manager or unified agent has its own folder's identity, which replaces the files of the same kind above.
   An empty file replaces none, as between layers.
4. A system prompt in the request replaces all files and custom sections.
"""

import os

import msgspec

from nexus_context.layers.bootstrap import agent_file, is_blank
from nexus_context.layers.model import Kind, Layer, LayerFile
from nexus_context.layers.walk import RealPath
from nexus_context.prompt.blocks import WORKER, AgentGrant, Generation, blocks_of, paths_of

IDENTITY: tuple[Kind, ...] = ("agent", "soul", "identity")
"""Kinds of files that define an agent's identity."""

PromptFiles = list[tuple[Layer, LayerFile]]


def divided(
    files: PromptFiles, grant: AgentGrant, real_path: RealPath
) -> tuple[PromptFiles, tuple[Generation, ...], set[str]]:
    """An agent's new files, what remains of those above, and the real paths of the latter."""
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
