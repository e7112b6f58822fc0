"""Answer `nexus/view/*`: which views of a folder are in use, and which is shown first."""

from typing import TYPE_CHECKING

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.tracking.in_use import NEXUS, FolderView, read_views
from nexus_context.tokens import get_model_limits
from nexus_daemon import protocol
from nexus_daemon.api import resolve

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection


async def list_views(client: "Connection", params: protocol.FolderParams) -> protocol.ViewListResult:
    """List Nexus's own chat and the assistants in a folder: which are in use, why, and which to show
    first.
    """
    folder, inputs = client.folders.at(params.workspace_folder), client.folders.load_inputs
    snapshot = await resolve.snapshot_of(client, folder, None)
    surroundings = Surroundings(folder.path, inputs.user_home, inputs.environ)
    settings, disk = snapshot.effective, Disk(dict(client.folders.overlays))
    views = (await client.read(read_views, surroundings, disk, settings)).views
    own_model = settings.get("/provider/model")
    return protocol.ViewListResult(views=[_info(view, own_model) for view in views], chosen=views[0].name)


def _info(view: FolderView, own_model: str | None) -> protocol.ViewInfo:
    usual = own_model if view.name == NEXUS else PROGRAMS[view.name].instructions.assistant.model
    model = view.model or usual
    limits = None if model is None else get_model_limits(model)
    return protocol.ViewInfo(
        name=view.name,
        title=view.title,
        reason=view.reason,
        in_use=view.in_use,
        model=model,
        limit=None if limits is None else limits.available(None, 0),
    )
