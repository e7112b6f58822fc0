"""What files put into a prompt, as values; and what an agent's prompt has besides those of its own folder."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from nexus_context.config.mcp import McpServer
from nexus_context.errors import Span
from nexus_context.layers.model import Kind, Layer
from nexus_context.prompt.texts import DIRECTORY, Piece

UNIFIED = "unified"
WORKER = "worker"
MANAGER = "manager"

OWN_TEXTS = str(DIRECTORY)
"""Where the sentences of Nexus itself are; no file of the user's."""


class Block(msgspec.Struct, frozen=True):
    """One file of a layer as it stands in the prompt; `pieces` are not empty."""

    kind: Kind
    layer: Layer
    path: str
    pieces: tuple[Piece, ...]


class Conditional(msgspec.Struct, frozen=True):
    """A file that is sent with turns about files that the globs `applies_to` stand for."""

    block: Block
    applies_to: str


class CustomSection(msgspec.Struct, frozen=True):
    """A custom section of `context.sections`. `path` and `span` are where it is defined."""

    name: str
    priority: int
    layer: str
    path: str
    span: Span
    pieces: tuple[Piece, ...]


class Generation(msgspec.Struct, frozen=True):
    """The files that one agent brings into a prompt, without those of the agents above it.

    `agent` is its name; None for the workspace folder itself, whose files stand as in its own prompt. `text`
    is a system prompt that was given in place of files.
    """

    agent: str | None = None
    bootstrap: tuple[Block, ...] = ()
    blocks: tuple[Block, ...] = ()
    text: str | None = None


class AgentGrant(msgspec.Struct, frozen=True):
    """What an agent is among others, as far as its snapshot tells.

    `above` are the files of the agents above it, the nearest first, and `sections` their custom sections;
    `texts` are those files by path. `text` is a system prompt given in place of all files. A tool is offered
    if its name matches one pattern of each list in `tools`. `servers` are the MCP servers that the agent was
    granted, `settings` the values, by JSON pointer, that replace those of its folder. `strict`: what it may
    do was said of it, or of one above it; tools that do not say what they need are not offered then.
    """

    agent: str
    role: str = UNIFIED
    task: str | None = None
    reports_to: str | None = None
    text: str | None = None
    above: tuple[Generation, ...] = ()
    sections: tuple[CustomSection, ...] = ()
    texts: dict[str, str] = {}
    tools: tuple[tuple[str, ...], ...] = ()
    servers: tuple[McpServer, ...] = ()
    settings: dict[str, Any] = {}
    strict: bool = False


def paths_of(blocks: Iterable[Block | CustomSection]) -> Iterator[str]:
    """The paths of the files whose text is in the blocks, what they import included; some more than once."""
    for block in blocks:
        for piece in block.pieces:
            if piece.path is not None and not piece.path.startswith(OWN_TEXTS):
                yield piece.path


def blocks_of(generations: Iterable[Generation]) -> Iterator[Block]:
    """All blocks of some generations."""
    for generation in generations:
        yield from generation.bootstrap
        yield from generation.blocks
