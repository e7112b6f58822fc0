"""Answer `nexus/workspace/*`: write templates into a folder."""

from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_context.folder.init import InitPlan, plan_init
from nexus_daemon import protocol
from nexus_daemon.lsp import convert
from nexus_daemon.workspace.scaffold import Scaffolded, scaffold

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection


async def init(client: "Connection", params: protocol.InitParams) -> protocol.InitResult:
    """Write templates into the folder's `.nexus3/`. Existing files are never changed."""
    folder = client.folders.at(params.workspace_folder)
    if folder is not client.folders.get(params.workspace_folder):
        raise RequestError(
            f"{params.workspace_folder} lies inside {folder.uri}. Nothing was written: name the workspace "
            "folder itself, or add this folder to the workspace first.",
            code="not-a-workspace-folder",
        )

    def write() -> tuple[InitPlan, Scaffolded]:
        plan = plan_init(folder.path, adopt=params.adopt)
        if params.preview:
            return plan, Scaffolded(tuple(path for path, _ in plan.create), plan.existing)
        return plan, scaffold(plan, umask=client.umask)

    plan, scaffolded = await client.work(write)
    if not params.preview:
        for window in client.daemon.windows.of(folder):
            window.reload.request("layers")
    uri = convert.path_to_uri
    return protocol.InitResult(
        created=[uri(path) for path in scaffolded.created],
        existing=[uri(path) for path in scaffolded.existing],
        adopted=[
            protocol.AdoptedServer(server.name, uri(server.path), list(server.variables))
            for server in plan.adopted
        ],
        left=[protocol.LeftServer(server.name, uri(server.path), server.reason) for server in plan.left],
    )
