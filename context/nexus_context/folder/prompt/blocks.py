"""Defines what files contribute to a prompt, and what an agent's prompt has besides its folder's files."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from nexus_context.config.mcp import McpServer
from nexus_context.errors import Span
from nexus_context.folder.layers.layer_types import Kind, Layer
from nexus_context.folder.prompt.texts import DIRECTORY, Piece

UNIFIED = "unified"
WORKER = "worker"
MANAGER = "manager"

OWN_TEXTS = str(DIRECTORY)
"""The directory of Nexus's own sentences, which are no files of the user."""


class Block(msgspec.Struct, frozen=True):
    """One file of a layer as the prompt contains it. None of its `pieces` is empty."""

    kind: Kind
    layer: Layer
    path: str
    pieces: tuple[Piece, ...]


class Conditional(msgspec.Struct, frozen=True):
    """A file that is sent with turns about files that match the globs `applies_to`."""

    block: Block
    applies_to: str


class PromptSection(msgspec.Struct, frozen=True):
    """A custom section of `context.sections`, defined at `path` and `span`."""

    name: str
    priority: int
    layer: str
    path: str
    span: Span
    pieces: tuple[Piece, ...]


class Generation(msgspec.Struct, frozen=True):
    """The files that one agent brings into a prompt, without those of the agents above it.

    `agent` is its name, or None for the workspace folder itself. The folder's files stand where they stand in
    its own prompt. `text` is a system prompt that replaces the files, or None.
    """

    agent: str | None = None
    bootstrap: tuple[Block, ...] = ()
    blocks: tuple[Block, ...] = ()
    text: str | None = None


class AgentGrant(msgspec.Struct, frozen=True):
    """What an agent has besides its folder: its role, depth and task, and what the agents above it grant.

    `above` are the files of the agents above it, nearest first; `sections` are their custom sections; `texts`
    are those files by path. `text` is a system prompt that replaces all files, or None. A tool is offered if
    its name matches one pattern of each list in `tools`. `servers` are the granted MCP servers. `settings`
    maps JSON pointers to values that replace the folder's. If `strict`, permissions were set for the agent or
    one above it, so tools without declared permissions are not offered.
    """

    agent: str
    role: str = UNIFIED
    depth: int = 1
    task: str | None = None
    reports_to: str | None = None
    text: str | None = None
    above: tuple[Generation, ...] = ()
    sections: tuple[PromptSection, ...] = ()
    texts: dict[str, str] = {}
    tools: tuple[tuple[str, ...], ...] = ()
    servers: tuple[McpServer, ...] = ()
    settings: dict[str, Any] = {}
    strict: bool = False


def paths_of(blocks: Iterable[Block | PromptSection]) -> Iterator[str]:
    """Yield the paths of the files whose text is in the blocks, including imports. Some may repeat."""
    for block in blocks:
        for piece in block.pieces:
            if piece.path is not None and not piece.path.startswith(OWN_TEXTS):
                yield piece.path


def blocks_of(generations: Iterable[Generation]) -> Iterator[Block]:
    """Yield all blocks of some generations."""
    for generation in generations:
        yield from generation.bootstrap
        yield from generation.blocks
