"""Answer `nexus/context/*`: what the model will see, what it costs, and why."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from nexus_context.errors import RequestError
from nexus_context.folder.prompt.imports import Import
from nexus_context.folder.prompt.token_attribution import tokens_by_path
from nexus_context.folder.request_prompt import prompt_for
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.models import model_of
from nexus_daemon import api, protocol
from nexus_daemon.api import resolve
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import prompt_sources, results, turns
from nexus_daemon.sessions import usage as costs

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

T = TypeVar("T")


async def assemble(client: "Connection", params: protocol.AssembleParams) -> protocol.AssembledContext:
    """Assemble a chat turn, ready to send: prompt, history, message, tools, parameters; every token has its
    row.

    The request leaves the conversation unchanged, with one exception: a turn that reaches the compaction
    threshold compacts it first. A turn is a request with a `message`, or one after a tool's result with a
    `format` that has a body. A request that sets the reserve or the strategy is not a turn. Nor is a request
    that sets another model or `maxContextTokens` than the conversation's. After a compaction that did not
    help, none follows until a turn was below the threshold; after an undone compaction, none follows until
    one is requested.

    If the settings leave the model to the editor (`provider.name`), a request with a `message` that names a
    model picks it for the conversation, with `maxContextTokens` and the tools that it offers, as
    `nexus/model/pick` does. From then on it applies to requests that name no model, and to all figures.

    The summary is written as by `nexus/session/compact`. A client's model has half a minute to write it; the
    client may end that wait with an error.

    Memory goes before the user's message: messages that wait for the `agent` (by default `main`), the newest
    messages of the conversation if its history does not show them (`memory.levels` adds other levels), what
    agents below did and clients published since the last turn (`memory.events`), and passages from the files
    of `memory.knowledge` that match the message. Memory takes only the room that is left, and is dropped
    first.

    Besides the time, the turn states the git branch of the folder (`context.git`). If the client trusts the
    folder and git answers at once, it also states the changed files.

    With a `format` the result has the `request` to send: the body of `POST /v1/chat/completions`,
    `/v1/responses`, `/v1/messages` or `/v1beta/models/MODEL:generateContent`. `metadata.repairs` lists each
    difference between the body and the history, `metadata.unsent` each parameter that the body leaves out. A
    provider's own reasoning and compactions in the history are sent back to it unchanged (docs/library.md).

    If the history does not fit, it is cut for this request. An unknown format, a parameter that does not
    exist or is out of range, and a body that would not fit the model are errors.

    With `dryRun` no conversation changes: the result is what a turn would get, before a compaction that is
    due, with an `explanation` of its parts. It may be for an agent that is not started, or for messages that
    no conversation has.
    """
    if params.dry_run is not None:
        async with resolve.using_dry_run(client, params, params.dry_run) as scope:
            return await turns.dry_run(scope, params, params.dry_run.messages)
    async with resolve.using_agent_session(client, params, turn=True) as scope:
        return await turns.assemble(scope, params)


async def usage(client: "Connection", params: protocol.UsageParams) -> protocol.TokenUsage:
    """Return what the next request of a conversation costs, before its own message and tools.

    With `nextTurn` the figure covers everything that a turn of `nexus/context/assemble` would send, except
    the user's message and the passages that match it: tools, time, git state, memory and the editor's
    attachments. Its `options` apply until the conversation has had a turn; after that, the options of that
    turn apply.

    With `assistant` it is what the folder's files cost in each request of that program, by the profile of
    `nexus/assistant/context`. The program's own system prompt and tools are included if Nexus knows their
    size.
    """
    if params.assistant is not None:
        _refuse_agent(params.agent)
        return await api.assistant.usage(client, params.workspace_folder, params.assistant)
    async with resolve.using_agent_session(client, params) as scope:
        if scope.agent is None:
            folder = client.folders.at(params.workspace_folder)
            await resolve.snapshot_of(client, folder, params.agent)  # an unknown agent is an error
        if params.next_turn is None:
            return await scope.work(costs.read_usage)
        return await turns.predict_usage(scope, params.next_turn, agent=params.agent)


async def preview(client: "Connection", params: protocol.PreviewParams) -> protocol.Preview:
    """Return the system prompt as the model sees it, with the source of every part.

    `agent` selects a live agent. `viewAs` describes an agent that is not started; if it could not be started,
    the error is that of `nexus/agent/spawn`. `assistant` selects another program: the preview then has the
    texts of its requests that hold the folder's files.
    """
    if params.assistant is not None:
        _refuse_agent(params.agent or params.view_as)
        return await api.assistant.preview(client, params.workspace_folder, params.assistant)
    if params.view_as is None:
        return await of_snapshot(client, params, partial(build_preview, now=client.now()))
    _refuse_agent_beside_view(params)
    folder = client.folders.at(params.workspace_folder)
    snapshot = (await resolve.view_as(client, folder, params.view_as)).snapshot
    return await client.read(build_preview, snapshot, _locator(client, snapshot), client.now())


async def layers(client: "Connection", params: protocol.LayersParams) -> protocol.LayersResult:
    """Return the layers and files of a folder or agent directory, what was skipped and why, and all problems.

    With `assistant` they are the files that this program reads, by scope.
    """
    if params.assistant is not None:
        _refuse_agent(params.agent or params.view_as)
        return await api.assistant.layers(client, params.workspace_folder, params.assistant)
    folder = client.folders.at(params.workspace_folder)
    if params.view_as is not None:
        _refuse_agent_beside_view(params)
        snapshot = (await resolve.view_as(client, folder, params.view_as)).snapshot
        return await client.read(build_layers, snapshot, _locator(client, snapshot), client.now())
    result = await of_snapshot(client, params, partial(build_layers, now=client.now()))
    return msgspec.structs.replace(result, freshness=results.freshness(client.daemon.freshness(folder)))


async def of_snapshot(
    client: "Connection", params: protocol.AgentViewParams, job: Callable[[Snapshot, Locator], T]
) -> T:
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    return await client.read(job, snapshot, _locator(client, snapshot))


def _refuse_agent(agent: object) -> None:
    if agent is not None:
        raise RequestError(
            "`assistant` is another program, and agents are those of Nexus. Set only one of them.",
            code="bad-option",
        )


def _refuse_agent_beside_view(params: protocol.LayersParams) -> None:
    if params.agent is not None:
        raise RequestError(
            "Both `agent` and `viewAs` are set. Set only one: `viewAs` is for an agent that is not started.",
            code="bad-option",
        )


def _locator(client: "Connection", snapshot: Snapshot) -> Locator:
    return Locator(snapshot.layers, client.capabilities.position_encoding)


def build_preview(snapshot: Snapshot, locate: Locator, now: datetime) -> protocol.Preview:
    """Build the preview of the prompt that a request would send now, with the date if the settings ask for
    it.
    """
    prompt = prompt_for(snapshot, now=now)
    _, counter = model_of(snapshot, None)
    fragments = prompt_sources.fragments_of(prompt, snapshot, locate, counter)
    return protocol.Preview(
        revision=snapshot.revision,
        text=prompt.text,
        fragments=fragments,
        tokens=sum(fragment.tokens for fragment in fragments),
    )


def build_layers(snapshot: Snapshot, locate: Locator, now: datetime) -> protocol.LayersResult:
    _, counter = model_of(snapshot, None)
    tokens = tokens_by_path(prompt_for(snapshot, now=now), counter)
    by_layer: dict[str | None, int] = {}
    for path, layer_name in prompt_sources.layers_by_path(snapshot).items():
        by_layer[layer_name] = by_layer.get(layer_name, 0) + tokens.get(path, 0)
    tree = _Tree(snapshot, locate, tokens)
    skills = {layer_skill.skill.path: layer_skill.skill for layer_skill in snapshot.layers.skills}
    return protocol.LayersResult(
        revision=snapshot.revision,
        layers=[
            protocol.Layer(
                layer.name,
                layer.config_directory,
                [
                    protocol.LayerFile(
                        file.kind,
                        locate.uri(file.path),
                        file.status,
                        tokens=tokens.get(file.path),
                        imports=tree.imports_of(file.path) if file.status == "loaded" else None,
                        applies_to=file.applies_to,
                        name=skills[file.path].name if file.path in skills else None,
                        description=skills[file.path].description if file.path in skills else None,
                    )
                    for file in layer.files
                ],
                by_layer.get(layer.name, 0),
            )
            for layer in snapshot.layers.layers
        ],
        skipped=[protocol.SkippedLayer(skipped.path, skipped.reason) for skipped in snapshot.layers.not_read],
        problems=results.problems(locate, snapshot.problems),
        counter=protocol.Counter(counter.name, counter.exact),
    )


class _Tree:
    """Which file imports which; a prompt has each file only once, so there are no cycles."""

    def __init__(self, snapshot: Snapshot, locate: Locator, tokens: Mapping[str, int]) -> None:
        self._locate = locate
        self._tokens = tokens
        self._by_importer: dict[str, list[Import]] = {}
        for file_import in snapshot.contents.imports:
            self._by_importer.setdefault(file_import.path, []).append(file_import)

    def imports_of(self, path: str) -> list[protocol.ImportedFile] | None:
        """A file's imports in order, each followed by its own imports; None if it imports nothing."""
        return list(self._walk_imports(path, 1)) or None

    def _walk_imports(self, path: str, depth: int) -> Iterator[protocol.ImportedFile]:
        for file_import in self._by_importer.get(path, ()):
            source = self._locate.location(path, file_import.span)
            tokens = self._tokens.get(file_import.target)
            yield protocol.ImportedFile(self._locate.uri(file_import.target), depth, source, tokens)
            yield from self._walk_imports(file_import.target, depth + 1)
