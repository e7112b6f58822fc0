"""What a turn brings besides the conversation: passages of files, the state of git, instruction files.

They are collected at once, before the turn is assembled. The conversation stays locked meanwhile.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from nexus_context import assembly
from nexus_context.assembly.last_message import takes_memory
from nexus_context.conversation.message import text_of
from nexus_context.layers.agent_definitions import MAIN
from nexus_daemon import protocol
from nexus_daemon.sessions.attachments import NO_ATTACHMENTS, Attachments, read_attachments
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:
    from nexus_context.assembly.git import GitState
    from nexus_context.memory.knowledge import Passage


class TurnInputs(msgspec.Struct, frozen=True, kw_only=True):
    """`agent` is whose turn it is: the name that messages wait for. `passages` match the user's message."""

    agent: str = MAIN
    passages: "Sequence[Passage]" = ()
    git: "GitState | None" = None
    attachments: Attachments = NO_ATTACHMENTS


async def collect_inputs(
    scope: SessionScope, request: assembly.Request, params: protocol.AssembleParams
) -> TurnInputs:
    """Read the inputs of a turn; `params` are those of `request`."""
    passages, git, attachments = await asyncio.gather(
        _search_knowledge(scope, request),
        _read_git(scope, request),
        _read_attachments(scope, params.attachments, params.files),
    )
    agent = params.agent or (MAIN if scope.agent is None else scope.agent.id)
    return TurnInputs(agent=agent, passages=passages, git=git, attachments=attachments)


async def _search_knowledge(scope: SessionScope, request: assembly.Request) -> "Sequence[Passage]":
    text = "" if request.message is None else text_of(request.message)
    if not text or not takes_memory(request):
        return ()
    _, counter = assembly.model_of(scope.snapshot, request.options.model)
    with scope.client.daemon.workers.counting():
        return await scope.folder.knowledge.query(text, counter)


async def _read_git(scope: SessionScope, request: assembly.Request) -> "GitState | None":
    """The state of the folder's working tree, unless the turn does not report it."""
    reports_git = takes_memory(request) and "git" not in (request.event or {})
    if not reports_git or not scope.snapshot.effective.get("/context/git"):
        return None
    folder = scope.snapshot.folder
    return await scope.client.daemon.git.state(folder, trusted=scope.client.trusts(folder))


async def _read_attachments(
    scope: SessionScope, attachments: Sequence[protocol.Attachment], files: Sequence[str]
) -> Attachments:
    if not attachments and not scope.snapshot.contents.conditional:
        return NO_ATTACHMENTS
    overlays = dict(scope.client.daemon.folders.overlays)
    return await scope.client.daemon.workers.run(
        read_attachments, scope.snapshot, attachments, overlays=overlays, files=files
    )
