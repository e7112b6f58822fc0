"""Answer `nexus/mcp/*`: the MCP servers of a folder. Nothing starts without trust and approval."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.config.package_runners import explain_unpinned, find_unpinned
from nexus_context.config.picked_model import with_choice
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.shortening import shorten_message
from nexus_context.conversation.tools import name_of
from nexus_context.disk.files import exists
from nexus_context.errors import RequestError
from nexus_context.folder.layers.installed_packages import installed_lookup
from nexus_context.folder.snapshot import Snapshot
from nexus_context.servers.changes import DefinitionChange
from nexus_context.servers.launch import Launch
from nexus_context.servers.offered import OfferedTool, count_tools, offered_tools
from nexus_context.servers.prompts import find_prompt, prompt_text, prompt_usage, read_arguments
from nexus_context.servers.result_text import result_text
from nexus_context.tokens import TokenCounter
from nexus_context.turn import deferral
from nexus_context.turn.offered_tools import offered_tools as select_tools
from nexus_context.turn.request import Options
from nexus_daemon import protocol
from nexus_daemon.api import editor_answers, resolve, server_costs
from nexus_daemon.api.server_costs import FolderTools
from nexus_daemon.lsp import convert
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.process import lazy
from nexus_daemon.servers.folder_servers import ServerView, log_of

if TYPE_CHECKING:
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.connection import Connection
    from nexus_daemon.windows.live_folder import LiveFolder

RESULT_SHARE = 4
"""One answer of a tool may take 1/RESULT_SHARE of a request's tokens. A longer answer is shortened."""
LARGEST_ANSWER = 4 << 20  # bytes of JSON


async def servers(client: "Connection", params: protocol.ServersParams) -> protocol.ServersResult:
    """List the MCP servers of a folder or an agent: what each would start, its state, its tools and their
    cost.

    Nothing is started. For a server that does not run, the tools are those that it offered last.
    """
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    folder_tools, ledger = await _read_folder_tools(client, folder, snapshot)
    return await client.read(server_costs.summarize, folder_tools, ledger, client.now())


async def approve(client: "Connection", params: protocol.ApproveParams) -> protocol.ServerInfo:
    """Approve what a server would start, or with `pin` what it offers now. The server is not started.

    The approval is bound to `hash`: program, arguments, directory and variables, or address and headers. If
    one of them changes, the server asks again.
    """
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    await client.daemon.servers.approve(
        folder, snapshot, params.name, launch_hash=params.hash, pin=params.pin
    )
    return await _info(client, folder, snapshot, params.name)


async def revoke(client: "Connection", params: protocol.ServerParams) -> protocol.ServerInfo:
    """Withdraw the approval of a server, and end the server."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    await client.daemon.servers.revoke(folder, snapshot, params.name)
    return await _info(client, folder, snapshot, params.name)


async def start(client: "Connection", params: protocol.ServerParams) -> protocol.ServerInfo:
    """Start an approved server of a trusted folder, and wait until it has listed its tools or has failed."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    await client.daemon.servers.start(folder, snapshot, params.name)
    return await _info(client, folder, snapshot, params.name)


async def stop(client: "Connection", params: protocol.ServerParams) -> protocol.ServerInfo:
    """End a server, also for all other folders that share it."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    await client.daemon.servers.stop(folder, snapshot, params.name)
    return await _info(client, folder, snapshot, params.name)


async def refresh(client: "Connection", params: protocol.ServerParams) -> protocol.ServerInfo:
    """List again what a server offers. A server that does not run is started."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    await client.daemon.servers.refresh(folder, snapshot, params.name)
    return await _info(client, folder, snapshot, params.name)


async def call(client: "Connection", params: protocol.ServerCallParams) -> protocol.ServerCallResult:
    """Call a tool of a server, which is started if it does not run. The client has already asked the user.

    A tool that the agent was not granted, or that the settings deny, is refused.
    """
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    view = await client.daemon.servers.start(folder, snapshot, params.server)
    await client.work(_check_permission, snapshot, view, params.tool)
    answer = await client.daemon.servers.call(view, tool=params.tool, arguments=params.arguments)
    return await client.work(_call_result, snapshot, answer, params)


async def prompt(client: "Connection", params: protocol.ServerPromptParams) -> protocol.ServerPromptResult:
    """Return the text of a server's prompt. The server is started if it does not run.

    The text is not marked as data, since the user asks for it and sends it.
    """
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    view = await client.daemon.servers.start(folder, snapshot, params.server)
    await client.work(_check_access, snapshot, view)
    prompt_definition = find_prompt(params.server, view.definitions, params.prompt)
    words = params.words
    arguments = params.arguments if words is None else read_arguments(params.server, prompt_definition, words)
    answer = await client.daemon.servers.prompt(view, params.prompt, arguments)

    def build() -> protocol.ServerPromptResult:
        text = prompt_text(params.server, _checked_parts(answer, "messages"))
        shortened_text, tokens = _shortened(snapshot, text)
        return protocol.ServerPromptResult(
            text=shortened_text, tokens=tokens, description=answer.get("description")
        )

    return await client.work(build)


async def resource(
    client: "Connection", params: protocol.ServerResourceParams
) -> protocol.ServerResourceResult:
    """Return the contents of a server's resource. The server is started if it does not run."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    view = await client.daemon.servers.start(folder, snapshot, params.server)
    await client.work(_check_access, snapshot, view)
    answer = await client.daemon.servers.resource(view, params.uri)

    def build() -> protocol.ServerResourceResult:
        contents = _checked_parts(answer, "contents")
        text = result_text(params.server, params.uri, contents, kind="resource")
        return protocol.ServerResourceResult(*_shortened(snapshot, text))

    return await client.work(build)


async def server(client: "Connection", params: protocol.ServerParams) -> protocol.ServerInfo:
    """Return one server of a folder, as in `nexus/mcp/servers`."""
    folder = client.folders.at(params.workspace_folder)
    return await _info(client, folder, await folder.current(), params.name)


async def login(client: "Connection", params: protocol.ServerParams) -> protocol.ServerInfo:
    """Have the user sign in to a server with OAuth, and start the server.

    The answer comes when both are done.

    The page is opened with `window/showDocument`, or a message (`window/showMessage`) names its address.
    Tokens are kept in the system's keyring, or else in a file that only the user can read.
    """
    return await sign_in(client, params, open_page=partial(editor_answers.open_page, client))


async def sign_in(
    client: "Connection", params: protocol.ServerParams, *, open_page: Callable[[str], Awaitable[None]]
) -> protocol.ServerInfo:
    """Do the work of `login`. `open_page` opens an address for the user."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    await client.daemon.servers.sign_in(folder, snapshot, params.name, open_page=open_page)
    return await _info(client, folder, snapshot, params.name)


async def logout(client: "Connection", params: protocol.ServerParams) -> protocol.ServerInfo:
    """Delete the tokens of a server, and end the server."""
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    await client.daemon.servers.sign_out(folder, snapshot, params.name)
    return await _info(client, folder, snapshot, params.name)


async def search(client: "Connection", params: protocol.ToolSearchParams) -> protocol.ToolSearchResult:
    """Search the tools of the MCP servers, for a model that was sent only their names (`tools.defer`).

    Only tools that the settings and the agent's grant allow are found. Servers that may start are started.
    """
    folder = client.folders.at(params.workspace_folder)
    snapshot = await resolve.snapshot_of(client, folder, params.agent)
    offered = await client.daemon.servers.offered(folder, snapshot, starts=True)
    with client.daemon.workers.counting():
        return await client.work(_search, snapshot, offered, params.query)


async def _info(
    client: "Connection", folder: "LiveFolder", snapshot: Snapshot, name: str
) -> protocol.ServerInfo:
    await client.daemon.servers.view(folder, snapshot, name)  # says which there are
    folder_tools, _ = await _read_folder_tools(client, folder, snapshot)
    return next(info for info in folder_tools.infos if info.name == name)


async def _read_folder_tools(
    client: "Connection", folder: "LiveFolder", snapshot: Snapshot
) -> tuple[FolderTools, "FolderLedger | None"]:
    """What is known of all servers of a folder: whether a tool is deferred depends on the others.

    The ledger, if it can be read, has the model that was picked last.
    """
    views = await client.daemon.servers.views(folder, snapshot)
    try:
        ledger = await client.daemon.ledgers.of(snapshot, folder)
    except RequestError:
        ledger = None
    picked = None if ledger is None else ledger.options(None)
    effective = with_choice(snapshot.effective, None if picked is None else picked.choice)
    layers = msgspec.structs.replace(snapshot.layers, effective=effective)
    snapshot = msgspec.structs.replace(snapshot, layers=layers)
    locate = Locator(snapshot.layers, client.capabilities.position_encoding)
    environ = client.folders.load_inputs.environ

    def build() -> FolderTools:
        room = server_costs.room_of(snapshot)
        tools = {view.server.name: _tools_of(view) for view in views}
        infos = [
            _build(view, tools[view.server.name], locate, environ=environ, counter=room.counter)
            for view in views
        ]
        return server_costs.with_settings(snapshot, infos, tools, room)

    with client.daemon.workers.counting():
        return await client.work(build), ledger


def _tools_of(view: ServerView) -> list[OfferedTool]:
    return [] if view.definitions is None else offered_tools(view.server.name, view.definitions)


def _build(
    view: ServerView,
    offered: list[OfferedTool],
    locate: Locator,
    *,
    environ: Mapping[str, str],
    counter: TokenCounter,
) -> protocol.ServerInfo:
    server, launch, definitions = view.server, view.launch, view.definitions
    info = protocol.ServerInfo(
        name=server.name,
        origin=server.origin,
        uri=locate.uri(server.path),
        range=locate.range(server.path, server.span),
        transport=server.type,
        state=view.state,
        error=view.error,
        pin=view.pin,
        exact=counter.exact and not view.is_seen_elsewhere,
        seen_elsewhere=view.is_seen_elsewhere,
        changes=[_change(change) for change in view.changes],
        flags=[protocol.ServerFlag(flag.suspicion, flag.place, flag.message) for flag in view.flags],
    )
    if launch is not None:
        log = log_of(launch, environ).path
        info = msgspec.structs.replace(
            info,
            hash=launch.hash,
            command=None if launch.url else launch.text,
            program=launch.program or None,
            directory=launch.directory or None,
            variables=launch.printable_variables,
            headers=launch.printable_headers,
            url=launch.text if launch.url else None,
            log=convert.path_to_uri(log) if view.started or exists(log) else None,
            warnings=_warnings(launch, environ),
        )
    if definitions is None:
        return info
    tokens = count_tools(offered, counter)
    tools = [
        protocol.ServerTool(
            name=tool.tool,
            offered_as=tool.name,
            description=tool.definition["description"],
            tokens=tokens[tool.tool],
        )
        for tool in offered
    ]
    return msgspec.structs.replace(
        info,
        tools=tools,
        instructions=definitions.instructions or None,
        prompts=[str(definition.get("name")) for definition in definitions.prompts],
        prompt_usages=[prompt_usage(definition) for definition in definitions.prompts],
        resources=[str(definition.get("uri")) for definition in definitions.resources],
    )


def _warnings(launch: Launch, environ: Any) -> list[str]:
    installed = installed_lookup(environ)
    installations = [
        (package, installed(package, launch.directory)) for package in find_unpinned(launch.written)
    ]
    return [
        explain_unpinned(package, installation.version)
        for package, installation in installations
        if not installation.is_of_folder
    ]


def _change(change: DefinitionChange) -> protocol.ToolChange:
    words = [protocol.TextChange(word.text, word.state) for word in change.words]
    return protocol.ToolChange(change.kind, change.place, words)


def _check_permission(snapshot: Snapshot, view: ServerView, tool: str) -> None:
    """RequestError for a tool that the settings, or what the agent was granted, leave out."""
    model, _ = lazy.models.model_of(snapshot, None)
    offered = next((offered_tool for offered_tool in _tools_of(view) if offered_tool.tool == tool), None)
    if offered is None:
        return  # the call says so
    selection = select_tools(snapshot, Options(additional_tools=[offered.definition]), model)
    if offered.name in selection.left_out:
        reason = selection.left_out[offered.name]
        raise RequestError(f"{offered.name} may not be called: {reason}.", code="permission")


def _check_access(snapshot: Snapshot, view: ServerView) -> None:
    """RequestError if the settings or the agent's grant leave out every tool of the server."""
    model, _ = lazy.models.model_of(snapshot, None)
    offered = _tools_of(view)
    options = Options(additional_tools=[offered_tool.definition for offered_tool in offered])
    left_out = select_tools(snapshot, options, model).left_out
    if offered and all(offered_tool.name in left_out for offered_tool in offered):
        reason = left_out[offered[0].name]
        raise RequestError(f"The server {view.server.name!r} may not be used: {reason}.", code="permission")


def _search(snapshot: Snapshot, offered: list[OfferedTool], query: str) -> protocol.ToolSearchResult:
    model, counter = lazy.models.model_of(snapshot, None)
    options = Options(server_tools=[tool.definition for tool in offered])
    names = {tool.name for tool in offered}
    tools = [tool for tool in select_tools(snapshot, options, model).tools if name_of(tool) in names]
    matches = deferral.search(tools, query)
    text = deferral.search_answer(matches)
    return protocol.ToolSearchResult(text, matches, counter.count(text))


def _call_result(
    snapshot: Snapshot, answer: dict[str, Any], call: protocol.ServerCallParams
) -> protocol.ServerCallResult:
    counter = server_costs.room_of(snapshot).counter
    content = _checked_parts(answer, "content")
    tokens = sum(counter.count(part["text"]) for part in content if isinstance(part.get("text"), str))
    full_text = result_text(call.server, call.tool, content)
    shortened_text, _ = _shortened(snapshot, full_text)
    return protocol.ServerCallResult(
        content,
        answer.get("isError") is True,
        tokens,
        shortened_text,
        whole=None if shortened_text == full_text else full_text,
    )


def _checked_parts(answer: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The parts of an answer; RequestError if they are too large to be passed on."""
    parts = [part for part in answer.get(key, ()) if isinstance(part, dict)]
    if len(msgspec.json.encode(parts)) > LARGEST_ANSWER:
        raise RequestError(
            f"The answer of the server has more than {LARGEST_ANSWER >> 20} MiB. Ask it for less.",
            code="mcp-answer-too-large",
        )
    return parts


def _shortened(snapshot: Snapshot, text: str) -> tuple[str, int]:
    """A text with the middle left out where it is long, and its tokens."""
    room = server_costs.room_of(snapshot)
    limit = room.available // RESULT_SHARE
    message = Message(role="tool", content=text)
    shortened_message, tokens = shorten_message(message, room.counter.count(text), limit, room.counter)
    return text_of(shortened_message), tokens
