"""The handlers of the `nexus/*` requests: find the folder, wait for its snapshot, do the work in a thread.

A method's handler has its name: `nexus/context/assemble` is `context_assemble`; those of `nexus/session/*`
are in `sessions`, those of `nexus/memory/*` and `nexus/agent/*` in `agents`. A session's lock is taken before
anything is waited for: requests about it are answered in the order in which they came. It is free again when
the thread has ended that works on the session (`Daemon.work`), cancelled or not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nexus_context.errors import RequestError
from nexus_context.init import plan_init
from nexus_context.snapshot import Snapshot
from nexus_daemon import protocol, results
from nexus_daemon.agents import resolve
from nexus_daemon.agents.resolve import using_own
from nexus_daemon.api import context, tokens
from nexus_daemon.api import status as daemon_status
from nexus_daemon.api.agents import (
    agent_dispose,
    agent_get,
    agent_list,
    agent_message,
    agent_messages,
    agent_spawn,
    memory_query,
)
from nexus_daemon.api.model import model_pick
from nexus_daemon.api.sessions import (
    session_append,
    session_clear,
    session_compact,
    session_create,
    session_delete,
    session_export,
    session_focus,
    session_fork,
    session_list,
    session_messages,
    session_receipt,
    session_rename,
    session_search,
    session_transcript,
    session_undo_compaction,
)
from nexus_daemon.lsp import convert
from nexus_daemon.sessions import turns, usage
from nexus_daemon.workspace.scaffold import scaffold

if TYPE_CHECKING:
    from nexus_daemon.workspace.client import Client

__all__ = [
    "agent_dispose",
    "agent_get",
    "agent_list",
    "agent_message",
    "agent_messages",
    "agent_spawn",
    "config_effective",
    "context_assemble",
    "context_layers",
    "context_preview",
    "context_usage",
    "memory_query",
    "model_pick",
    "session_append",
    "session_clear",
    "session_compact",
    "session_create",
    "session_delete",
    "session_export",
    "session_focus",
    "session_fork",
    "session_list",
    "session_messages",
    "session_receipt",
    "session_rename",
    "session_search",
    "session_transcript",
    "session_undo_compaction",
    "status",
    "tokens_count",
    "workspace_init",
]

T = TypeVar("T")


async def context_assemble(client: "Client", params: protocol.AssembleParams) -> protocol.AssembledContext:
    """One chat turn, ready to send: prompt, history, message, tools and parameters, every token with its row.

    The conversation stays as it was, but for one thing: a turn that reaches the compaction threshold is
    compacted first. A turn is a request with a `message`, or with a `format` that has a body, after a tool's
    result; not one that sets the reserve or the strategy itself, nor one that sets the model or
    `maxContextTokens`, unless they are the conversation's. Nor is anything
    compacted after a compaction that did not help, until a turn was below the threshold, or after one that
    was undone, until one is asked for.

    Where the settings leave the model to the editor (`provider.name`), a request with a `message` that names
    a model picks it for the conversation, with `maxContextTokens` and the tools that it offers, as
    `nexus/model/pick` does: requests that name none, and all figures, are for it from then on.

    The summary is written as by `nexus/session/compact`; a client's model has half a minute for it, and a
    client that is asked may end the waiting with an error.

    A turn is put together with what is remembered: before what the user says stand messages that wait for the
    `agent`, without one for `main`, the newest messages of the conversation where its history does not show
    them, and passages of the files of `memory.knowledge` that belong to the message. They take what room is
    left, and are left out first.

    With the time, the turn is told the state of git in the folder (`context.git`): its branch, and where the
    client trusts the folder the changed files, as far as git says so at once.

    What does not fit is cut from the history for this request. An unknown format, a parameter that does not
    exist or is out of range, and a body that would not fit the model are errors.
    """
    async with using_own(client, params, turn=True) as scope:
        return await turns.assemble(scope, params)


async def context_usage(client: "Client", params: protocol.UsageParams) -> protocol.TokenUsage:
    """What the next request of a conversation costs, before its own message and tools.

    With `nextTurn` it is all that a turn of `nexus/context/assemble` would be sent with, but for what the
    user says and passages that belong to it: tools, time, the state of git, what is remembered and what the
    editor attaches. Its `options` count until the conversation has had a turn; then that turn's hold.
    """
    async with using_own(client, params) as scope:
        if scope.agent is None:
            await resolve.snapshot_of(client, scope.folder, params.agent)  # an unknown agent is an error
        if params.next_turn is None:
            return await scope.work(usage.read_usage)
        return await turns.predict_usage(scope, params.next_turn, agent=params.agent)


async def context_preview(client: "Client", params: protocol.PreviewParams) -> protocol.Preview:
    """The system prompt as the model sees it, with the source of every part.

    With `agent` it is a live agent's, with `viewAs` that of one that is not started: what cannot be started
    is the same error as for `nexus/agent/spawn`.
    """
    if params.view_as is None:
        return await _of_snapshot(client, params, context.preview)
    if params.agent is not None:
        raise RequestError(
            "Both `agent` and `viewAs` are given. Give one: a live agent, or what one would be.",
            code="bad-option",
        )
    folder = client.daemon.folders.at(params.workspace_folder)
    agents = await resolve.opened(client, folder)
    seen = (await agents.view_as(resolve.asked_of(params.view_as))).snapshot
    return await client.daemon.work(context.preview, seen, _locator(client, seen))


async def context_layers(client: "Client", params: protocol.AgentViewParams) -> protocol.LayersResult:
    """The layers of a folder, or of an agent's directory, their files, what was left out and why, and every
    problem.
    """
    folder = client.daemon.folders.at(params.workspace_folder)
    result = await _of_snapshot(client, params, context.layers)
    return msgspec.structs.replace(result, freshness=results.freshness(client.daemon.freshness(folder)))


async def config_effective(client: "Client", params: protocol.AgentViewParams) -> protocol.EffectiveResult:
    """The settings in force, the layers that set each of them, and the MCP servers.

    An agent's are those of its directory, with what it was granted in place of what that says.
    """
    return await _of_snapshot(client, params, context.effective)


async def tokens_count(client: "Client", params: protocol.CountParams) -> protocol.CountResult:
    """Count the tokens of texts and files. Nothing is sent anywhere."""
    overlays = dict(client.daemon.folders.overlays)
    return await client.daemon.work(tokens.count, params, overlays, client.position_encoding)


async def workspace_init(client: "Client", params: protocol.FolderParams) -> protocol.InitResult:
    """Write templates into the folder's `.nexus3/`. A file that exists is never touched."""
    folder = client.daemon.folders.at(params.workspace_folder)
    if folder is not client.daemon.folders.get(params.workspace_folder):
        raise RequestError(
            f"{params.workspace_folder} lies inside {folder.uri}. Nothing was written: name a workspace "
            "folder itself, or add this one to the workspace first.",
            code="not-a-workspace-folder",
        )
    done = await client.daemon.work(lambda: scaffold(plan_init(folder.path)))
    folder.reload.request("layers")
    return protocol.InitResult(
        created=[convert.path_to_uri(path) for path in done.created],
        existing=[convert.path_to_uri(path) for path in done.existing],
    )


async def status(client: "Client", _: protocol.NoParams) -> protocol.Status:
    """What the daemon holds: folders, sessions, clients, memory."""
    return daemon_status.status(client.daemon)


def _locator(client: "Client", snapshot: Snapshot) -> convert.Locator:
    return convert.Locator(snapshot.layers, client.position_encoding)


async def _of_snapshot(
    client: "Client", params: protocol.AgentViewParams, job: Callable[[Snapshot, convert.Locator], T]
) -> T:
    folder = client.daemon.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    result: Any = await client.daemon.work(job, snapshot, _locator(client, snapshot))
    return result  # type: ignore[no-any-return]
