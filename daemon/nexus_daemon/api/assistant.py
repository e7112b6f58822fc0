"""Answer `nexus/assistant/*`: what other assistants read in a folder."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Profile, Surroundings
from nexus_context.assistants.views.instruction_files import settings_files
from nexus_context.assistants.views.profile import ASSISTANTS, read_profile
from nexus_context.assistants.views.readers import who_reads_what
from nexus_context.disk.files import which
from nexus_context.errors import RequestError, Span
from nexus_context.folder.layers.walk import user_home
from nexus_daemon import protocol
from nexus_daemon.api import assistant_views, resolve
from nexus_daemon.lsp import convert, lsp_types

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

T = TypeVar("T")


async def list_assistants(
    client: "Connection",
    params: protocol.NoParams,  # noqa: ARG001 - as of every handler
) -> protocol.AssistantListResult:
    """List the assistants that Nexus has profiles of, and which of them the client's user has installed."""
    return await client.read(build_list, client.folders.load_inputs.environ)


async def context(client: "Connection", params: protocol.AssistantParams) -> protocol.AssistantContextResult:
    """Return the files of a folder that an assistant sends with every request, sends later, or never reads.

    An open document's unsaved text wins over the disk, as if it were saved. An unknown name is an error.
    """
    return await _of_profile(client, params.workspace_folder, params.assistant, _context)


async def readers(client: "Connection", params: protocol.FolderParams) -> protocol.AssistantReadersResult:
    """Return who reads what: the instruction files around a folder, and what each assistant does with them.

    An open document's unsaved text wins over the disk, as if it were saved.
    """
    surroundings, disk = _surroundings(client, params.workspace_folder)
    return await client.read(_readers, surroundings, disk)


async def preview(client: "Connection", workspace_folder: str, name: str) -> protocol.Preview:
    """Answer `nexus/context/preview` for another assistant."""
    revision = await _revision(client, workspace_folder)
    job = partial(assistant_views.build_preview, revision=revision)
    return await _of_profile(client, workspace_folder, name, job)


async def usage(client: "Connection", workspace_folder: str, name: str) -> protocol.TokenUsage:
    """Answer `nexus/context/usage` for another assistant."""
    return await _of_profile(client, workspace_folder, name, assistant_views.build_usage)


async def layers(client: "Connection", workspace_folder: str, name: str) -> protocol.LayersResult:
    """Answer `nexus/context/layers` for another assistant."""
    revision = await _revision(client, workspace_folder)
    job = partial(assistant_views.build_layers, revision=revision)
    return await _of_profile(client, workspace_folder, name, job)


async def _revision(client: "Connection", workspace_folder: str) -> int:
    folder = client.folders.at(workspace_folder)
    return (await resolve.snapshot_of(client, folder, None)).revision


async def _of_profile(
    client: "Connection", workspace_folder: str, name: str, job: Callable[[Profile, convert.Locator], T]
) -> T:
    """The result of a job on an assistant's profile of a folder; RequestError for an unknown name."""
    if name not in PROGRAMS:
        names = ", ".join(PROGRAMS)
        message = f"There is no assistant {name!r}. There are: {names}."
        raise RequestError(message, code="unknown-assistant")
    surroundings, disk = _surroundings(client, workspace_folder)
    encoding = client.capabilities.position_encoding

    def run() -> T:
        profile = read_profile(name, surroundings, disk=disk)
        return job(profile, convert.Locator(profile, encoding))

    return await client.read(run)


def _surroundings(client: "Connection", workspace_folder: str) -> tuple[Surroundings, Disk]:
    folder = client.folders.at(workspace_folder)
    inputs = client.folders.load_inputs
    return Surroundings(folder.path, inputs.user_home, inputs.environ), Disk(dict(client.folders.overlays))


def build_list(environ: Mapping[str, str]) -> protocol.AssistantListResult:
    """Describe all assistants. `environ` is the user's environment, which says which are installed."""
    disk, search = Disk(), environ.get("PATH")
    surroundings = Surroundings(os.sep, user_home(environ), environ)
    return protocol.AssistantListResult(
        [
            protocol.AssistantInfo(
                name=assistant.name,
                title=assistant.title,
                version=assistant.version,
                verified=assistant.verified,
                model=assistant.model,
                names=list(assistant.names),
                installed=search is not None
                and which(PROGRAMS[assistant.name].command, search=search) is not None,
                settings=[
                    convert.path_to_uri(path) for path in settings_files(disk, surroundings, assistant.name)
                ],
            )
            for assistant in ASSISTANTS
        ]
    )


def build_context(profile: Profile) -> protocol.AssistantContextResult:
    """Build the protocol's form of a profile, with positions in LSP's default encoding."""
    return _context(profile, convert.Locator(profile, lsp_types.DEFAULT_ENCODING))


def _context(profile: Profile, locate: convert.Locator) -> protocol.AssistantContextResult:
    assistant = profile.assistant
    return protocol.AssistantContextResult(
        assistant=assistant.name,
        version=assistant.version,
        verified=assistant.verified,
        files=[*_sent_files(profile, locate), *_later_files(profile), *_ignored_files(profile)],
        total=profile.total,
        limit=assistant.limit,
        counter=profile.counter,
        problems=len(profile.problems),
        servers=assistant_views.build_servers(profile),
        own_tokens=profile.own_tokens,
    )


def _sent_files(profile: Profile, locate: convert.Locator) -> list[protocol.AssistantFile]:
    parts = [(block, part) for block in profile.blocks for part in block.parts]
    files: list[protocol.AssistantFile] = []
    for block, part in parts:
        if part.path is None:
            continue
        start = part.content.end - part.content.start
        cut = None if part.cut is None else locate.range(part.path, Span(start, start)).start
        files.append(
            protocol.AssistantFile(
                uri=convert.path_to_uri(part.path),
                role=block.place,
                scope=part.scope,
                order=len(files),
                tokens=part.tokens,
                exact=profile.exact,
                loaded=True,
                reason=None if part.cut is None else f"{part.cut.reason}.".capitalize(),
                cut_at=cut,
                imported_by=None if part.importer is None else convert.path_to_uri(part.importer),
            )
        )
    return files


def _later_files(profile: Profile) -> list[protocol.AssistantFile]:
    return [
        protocol.AssistantFile(
            uri=convert.path_to_uri(file.path),
            role="none",
            scope=file.scope,
            tokens=file.tokens,
            exact=profile.exact,
            loaded=False,
            reason=f"Sent {file.when}.",
        )
        for file in profile.later
    ]


def _ignored_files(profile: Profile) -> list[protocol.AssistantFile]:
    return [
        protocol.AssistantFile(
            uri=convert.path_to_uri(file.path) if os.path.isabs(file.path) else file.path,
            role="none",
            scope="other",
            exact=profile.exact,
            loaded=False,
            reason=file.reason,
        )
        for file in profile.ignored
    ]


def _readers(surroundings: Surroundings, disk: Disk) -> protocol.AssistantReadersResult:
    table = who_reads_what(surroundings, disk=disk)
    return protocol.AssistantReadersResult(
        assistants=[
            protocol.AssistantColumn(
                name=profile.assistant.name,
                title=profile.assistant.title,
                verified=profile.assistant.verified,
                tokens=profile.total,
                exact=profile.exact,
                own_tokens=profile.own_tokens,
            )
            for profile in table.profiles
        ],
        files=[
            protocol.FileReaders(
                convert.path_to_uri(row.path),
                [
                    protocol.FileReader(name, use.use, use.tokens, exact=use.exact, reason=use.reason)
                    for name, use in row.uses.items()
                ],
            )
            for row in table.files
        ],
    )
