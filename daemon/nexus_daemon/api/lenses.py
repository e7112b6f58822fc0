"""Build the code lenses of a file: one for each assistant in use that reads it, and those of Nexus if it is
in use.

The inputs are read in worker threads, since even the imports take longer than the event loop may wait.
"""

from typing import TYPE_CHECKING, Any

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantServer, Profile, Surroundings
from nexus_context.assistants.tracking.in_use import NEXUS, FolderView, read_views
from nexus_context.assistants.views.instruction_files import find_instruction_files
from nexus_context.assistants.views.mcp_servers import find_server_key
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.readers import UNREAD, file_uses
from nexus_context.tokens import counter_for, get_model_limits
from nexus_daemon import protocol
from nexus_daemon.api import mcp
from nexus_daemon.api.assistant_views import build_preview
from nexus_daemon.features.code_lens import code_lenses
from nexus_daemon.features.reader_lens import FileReader, RequestRoom, reader_lenses
from nexus_daemon.features.server_lens import ProgramServer, names_servers, program_lenses, server_lenses
from nexus_daemon.lsp.convert import Locator, Texts, path_to_uri

if TYPE_CHECKING:
    from nexus_daemon.windows.client_documents import View
    from nexus_daemon.windows.connection import Connection


SETTINGS = (".json", ".jsonc", ".toml")


async def lenses_of(client: "Connection", view: "View") -> list[dict[str, Any]]:
    """Return the lenses of a file that is a part of the context of a folder or of an agent."""
    encoding = client.capabilities.position_encoding
    if view.agent is not None:  # only Nexus knows its agents
        return await client.work(_own_lenses, view, encoding)
    inputs = client.folders.load_inputs
    surroundings = Surroundings(view.snapshot.folder, inputs.user_home, inputs.environ)
    disk = Disk(dict(client.folders.overlays))
    if view.path.endswith(SETTINGS):
        result = await mcp.servers(client, protocol.ServersParams(view.folder))
        arguments = {"surroundings": surroundings, "disk": disk, "servers": result.servers}
        return await client.read(_server_lenses, view, encoding, **arguments)
    return await client.read(_all_lenses, view, encoding, surroundings=surroundings, disk=disk)


def _all_lenses(
    view: "View", encoding: str, *, surroundings: Surroundings, disk: Disk
) -> list[dict[str, Any]]:
    in_use = read_views(surroundings, disk, view.snapshot.effective).in_use
    around = find_instruction_files(disk, surroundings)
    readers = []
    for folder_view in in_use:
        if folder_view.name == NEXUS:
            continue
        profile = read_profile(folder_view.name, surroundings, disk=disk, around=around)
        use = file_uses(profile).get(view.path)
        preview = build_preview(profile, Locator(profile, encoding), view.snapshot.revision)
        change = _change(view.path, profile, disk) if use is not None and use.use in ("sent", "cut") else 0
        readers.append(FileReader(profile, use or UNREAD, _request_room(folder_view), preview, change=change))
    if all(reader.use is UNREAD for reader in readers):
        readers = []  # no assistant knows the file
    locate = Locator(view.snapshot.layers, encoding)
    nexus_lenses = (
        _own_lenses(view, encoding) if any(folder_view.name == NEXUS for folder_view in in_use) else []
    )
    return [*reader_lenses(readers, view.path, locate, folder=view.folder), *nexus_lenses]


def _change(path: str, profile: Profile, disk: Disk) -> int:
    """Count the tokens that the unsaved text of a file adds to the saved text."""
    unsaved, saved = disk.overlays.get(path), Disk().text(path)
    if unsaved is None or saved is None or unsaved == saved:
        return 0
    counter = counter_for(profile.assistant.model)
    return counter.count(unsaved) - counter.count(saved)


def _request_room(view: FolderView) -> RequestRoom | None:
    """The tokens that a request to a view's model may take. None if the model's window is not known."""
    model = view.model or PROGRAMS[view.name].instructions.assistant.model
    limits = get_model_limits(model)
    if not limits.known:
        return None
    available = limits.available(None, 0)
    why = "the model of its last session here" if view.model else "no session here names another one"
    return RequestRoom(available, f"A request to {model} may take {available:,} tokens: {why}.")


def _server_lenses(
    view: "View",
    encoding: str,
    *,
    surroundings: Surroundings,
    disk: Disk,
    servers: list[protocol.ServerInfo],
) -> list[dict[str, Any]]:
    """The lenses of the servers of a settings file: of the programs in use, and of Nexus where that is."""
    in_use = read_views(surroundings, disk, view.snapshot.effective).in_use
    infos_by_name = {info.name: info for info in servers if info.uri == path_to_uri(view.path)}
    program_servers = [
        ProgramServer(
            folder_view.title,
            server,
            find_server_key(view.path, server.name, disk),
            infos_by_name.get(server.name),
        )
        for folder_view in in_use
        if folder_view.name != NEXUS
        for server in _servers_of(folder_view.name, surroundings, disk)
        if server.path == view.path
    ]
    locate = Locator(Texts({view.path: disk.text(view.path) or ""}), encoding)
    lenses = program_lenses(program_servers, view.path, locate)
    if not names_servers(view.snapshot, view.path) or (
        program_servers and all(folder_view.name != NEXUS for folder_view in in_use)
    ):
        return lenses
    nexus_lenses = server_lenses(view.snapshot, view.path, encoding, folder=view.folder, servers=servers)
    return [*lenses, *nexus_lenses]


def _servers_of(name: str, surroundings: Surroundings, disk: Disk) -> tuple[AssistantServer, ...]:
    settings = PROGRAMS[name].settings(disk, surroundings)
    return () if settings.stop else tuple(PROGRAMS[name].servers.read(disk, settings))


def _own_lenses(view: "View", encoding: str) -> list[dict[str, Any]]:
    return code_lenses(
        view.snapshot, view.path, encoding, folder=view.folder, agent=view.agent, is_live=view.is_live
    )
