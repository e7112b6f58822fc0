"""Answer `nexus/skill/*`: the skills of a folder, for clients that run a model's calls."""

from typing import TYPE_CHECKING

from nexus_context.turn import skill_tool
from nexus_daemon import protocol
from nexus_daemon.api import resolve

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection


async def read(client: "Connection", params: protocol.SkillReadParams) -> protocol.SkillReadResult:
    """Run a call of `read_skill`, for a client that runs the model's calls (`options.skillTools` offers it).

    It reads a skill that the folder offers, from the folder's snapshot, and no other file. An unknown skill
    and an invalid argument are errors that name it.
    """
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    return protocol.SkillReadResult(await client.work(skill_tool.run, snapshot, params.arguments))
