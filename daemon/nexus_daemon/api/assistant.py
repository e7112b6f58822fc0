"""`nexus/assistant/*`: what other assistants read in a folder."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nexus_context.assistants import ASSISTANT_NAMES
from nexus_context.assistants.disk import Disk
from nexus_context.assistants.instruction_files import settings_files
from nexus_context.assistants.model import Profile, Surroundings
from nexus_context.assistants.profile import ASSISTANTS, COMMANDS, read_profile
from nexus_context.errors import RequestError, Span
from nexus_context.files import which
from nexus_context.layers.walk import user_home
from nexus_daemon import protocol
from nexus_daemon.lsp import convert

if TYPE_CHECKING:
    from nexus_daemon.connection import Connection


async def list_assistants(
    client: "Connection",
    params: protocol.NoParams,  # noqa: ARG001 - as of every handler
) -> protocol.AssistantListResult:
    """The assistants that Nexus has profiles of, and which of them the client's user has."""
    return await client.read(build_list, client.folders.load_inputs.environ)


async def context(client: "Connection", params: protocol.AssistantParams) -> protocol.AssistantContextResult:
    """What an assistant sends of a folder's files with every request, what later, and what it never reads.

    An open document's unsaved text wins over the disk, as if it were saved. An unknown name is an error.
    """
    if params.assistant not in ASSISTANT_NAMES:
        names = ", ".join(ASSISTANT_NAMES)
        message = f"There is no assistant {params.assistant!r}. There are: {names}."
        raise RequestError(message, code="unknown-assistant")
    folder = client.folders.at(params.workspace_folder)
    inputs = client.folders.load_inputs
    surroundings = Surroundings(folder.path, inputs.user_home, inputs.environ)
    disk, encoding = Disk(dict(client.folders.overlays)), client.position_encoding
    return await client.read(_context, params.assistant, surroundings, disk, encoding=encoding)


def build_list(environ: Mapping[str, str]) -> protocol.AssistantListResult:
    """All assistants, for the user whose variables these are."""
    disk, search = Disk(), environ.get("PATH")
    surroundings = Surroundings(os.sep, user_home(environ), environ)
    return protocol.AssistantListResult(
        [
            protocol.AssistantInfo(
                name=each.name,
                title=each.title,
                version=each.version,
                verified=each.verified,
                model=each.model,
                names=list(each.names),
                installed=search is not None and which(COMMANDS[each.name], search=search) is not None,
                settings=[
                    convert.path_to_uri(path) for path in settings_files(disk, surroundings, each.name)
                ],
            )
            for each in ASSISTANTS
        ]
    )


def _context(
    name: str, surroundings: Surroundings, disk: Disk, *, encoding: str
) -> protocol.AssistantContextResult:
    return build_context(read_profile(name, surroundings, disk=disk), encoding)


def build_context(
    profile: Profile, encoding: str = convert.DEFAULT_ENCODING
) -> protocol.AssistantContextResult:
    """A profile as it crosses the wire."""
    assistant = profile.assistant
    return protocol.AssistantContextResult(
        assistant=assistant.name,
        version=assistant.version,
        verified=assistant.verified,
        files=[*_sent(profile, encoding), *_later(profile), *_ignored(profile)],
        total=profile.total,
        limit=assistant.limit,
        counter=profile.counter,
        problems=len(profile.problems),
        servers=[
            protocol.AssistantMcpServer(
                name=each.name,
                uri=convert.path_to_uri(each.path) if os.path.isabs(each.path) else each.path,
                scope=each.scope,
                start=each.start,
                reason=each.reason,
            )
            for each in profile.servers
        ],
    )


def _sent(profile: Profile, encoding: str) -> list[protocol.AssistantFile]:
    locate = convert.Locator(profile, encoding)
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


def _later(profile: Profile) -> list[protocol.AssistantFile]:
    return [
        protocol.AssistantFile(
            uri=convert.path_to_uri(each.path),
            role="none",
            scope=each.scope,
            tokens=each.tokens,
            exact=profile.exact,
            loaded=False,
            reason=f"Sent {each.when}.",
        )
        for each in profile.later
    ]


def _ignored(profile: Profile) -> list[protocol.AssistantFile]:
    return [
        protocol.AssistantFile(
            uri=convert.path_to_uri(each.path) if os.path.isabs(each.path) else each.path,
            role="none",
            scope="other",
            exact=profile.exact,
            loaded=False,
            reason=each.reason,
        )
        for each in profile.ignored
    ]
