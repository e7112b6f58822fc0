"""`nexus/workspace/*`: write templates into a folder."""

from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_context.init import plan_init
from nexus_daemon import protocol
from nexus_daemon.lsp import convert
from nexus_daemon.workspace.scaffold import scaffold

if TYPE_CHECKING:
    from nexus_daemon.connection import Connection


async def init(client: "Connection", params: protocol.FolderParams) -> protocol.InitResult:
    """Write templates into the folder's `.nexus3/`. Existing files are never changed."""
    folder = client.daemon.folders.at(params.workspace_folder)
    if folder is not client.daemon.folders.get(params.workspace_folder):
        raise RequestError(
            f"{params.workspace_folder} lies inside {folder.uri}. Nothing was written: name the workspace "
            "folder itself, or add this folder to the workspace first.",
            code="not-a-workspace-folder",
        )
    done = await client.work(lambda: scaffold(plan_init(folder.path)))
    folder.reload.request("layers")
    return protocol.InitResult(
        created=[convert.path_to_uri(path) for path in done.created],
        existing=[convert.path_to_uri(path) for path in done.existing],
    )
