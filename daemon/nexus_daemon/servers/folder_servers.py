"""The MCP servers of a daemon's folders: what may start, what runs, and what it may be asked.

1. A server starts only in a folder that the user trusts, by an approval that is bound to its launch, or
   because a file of the user names it. Both are looked up at each start and each call, from the disk.
2. One server runs for each launch. Folders whose launch is the same share it; it ends with the last of them,
   and with the daemon.
3. What it offers is pinned when it is first started after its approval. If it offers something else later,
   it is not called until the user has approved the change.
4. The SDK and the servers live in a thread of their own (`server_thread`); the class here lives on the loop.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.config.mcp import McpServer
from nexus_context.disk.files import real_path, which
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_context.servers.approvals import Approvals
from nexus_context.servers.changes import DefinitionChange, Flag, ReviewedDefinitions, compare
from nexus_context.servers.definitions import ServerDefinitions
from nexus_context.servers.launch import Launch, LaunchContext, LaunchError, plan_launch
from nexus_context.servers.offered import OfferedTool, offered_tools
from nexus_daemon.protocol.mcp import State
from nexus_daemon.servers import approval_file, server_log
from nexus_daemon.servers.process_guard import ProcessGuard
from nexus_daemon.servers.server_log import ServerLog
from nexus_daemon.servers.server_thread import ServerThread
from nexus_daemon.workspace.workers import Workers

if TYPE_CHECKING:  # importing the SDK takes half a second
    from nexus_daemon.servers.running_server import RunningServer, ServerStatus

logger = logging.getLogger(__name__)

FIRST_LIST_S = 5.0  # that a turn waits for the tools of a server that never ran before
CALL_S = 120.0


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """A server of a folder, and what is known of it. `error` is a sentence.

    `launch` is None if it cannot be started as it is configured. `definitions` are what it offers now, else
    what it offered when it ran last, `pin` stands for them. `is_pinned`: something is approved, from which
    `changes` are the differences.
    """

    server: McpServer
    state: State
    launch: Launch | None = None
    error: str | None = None
    definitions: ServerDefinitions | None = None
    pin: str | None = None
    is_pinned: bool = False
    changes: tuple[DefinitionChange, ...] = ()
    flags: tuple[Flag, ...] = ()
    started: float = 0.0


class _Facts(msgspec.Struct, frozen=True):
    """What the disk says of the servers of a folder: launches or why there is none, and approvals."""

    launches: Mapping[str, Launch | LaunchError]
    approvals: Approvals
    kept: Mapping[str, ReviewedDefinitions]


class FolderServers:
    """The servers of all folders. `changed` is called on the loop with the hash of a launch.

    `inputs_of` gives what a folder is loaded with, `is_trusted` whether the user trusts it.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        inputs_of: Callable[[Any], LoadInputs],
        is_trusted: Callable[[Any], bool],
        changed: Callable[[str], None],
    ) -> None:
        self._workers = workers
        self._inputs_of = inputs_of
        self._is_trusted = is_trusted
        self._on_change = changed
        self._thread = ServerThread()
        self._guard = ProcessGuard()
        self._running: dict[str, RunningServer] = {}
        self._users: dict[str, set[int]] = {}  # the folders that use each launch, by identity
        self._starting = asyncio.Lock()
        self._is_closed = False

    # ------------------------------------------------------------ what is there

    async def views(self, folder: object, snapshot: Snapshot) -> list[ServerView]:
        """The servers in force in a folder, in the order of the layers."""
        servers = [server for server in snapshot.layers.servers if server.shadowed_by is None]
        return await self._views(folder, snapshot, servers) if servers else []

    async def _views(self, folder: object, snapshot: Snapshot, servers: list[McpServer]) -> list[ServerView]:
        statuses = {key: running.status for key, running in self._running.items()}
        inputs, trusted = self._inputs_of(folder), self._is_trusted(folder)
        return await self._workers.run(
            _read_views, servers, snapshot, inputs=inputs, statuses=statuses, trusted=trusted
        )

    async def view(self, folder: object, snapshot: Snapshot, name: str) -> ServerView:
        """One server. RequestError if there is none of this name."""
        servers = [server for server in snapshot.layers.servers if server.shadowed_by is None]
        found = [server for server in servers if server.name == name]
        if not found:
            names = ", ".join(server.name for server in servers) or "none"
            raise RequestError(
                f"There is no MCP server {name!r} in this folder. There are: {names}.", code="unknown-server"
            )
        return (await self._views(folder, snapshot, found))[0]

    # ------------------------------------------------------------ approvals

    async def approve(
        self, folder: object, snapshot: Snapshot, name: str, *, launch_hash: str, pin: str | None
    ) -> None:
        """Approve a launch, or with `pin` what its server offers now. RequestError for another one."""
        view = await self.view(folder, snapshot, name)
        launch = _launch_of(view)
        if launch.hash != launch_hash:
            raise RequestError(
                f"The server {name!r} would now start something else than what you approve: {launch.text}. "
                "Look at it again.",
                code="mcp-other-hash",
            )
        if view.state == "changed" and pin != view.pin:
            raise RequestError(
                f"The server {name!r} offers other tools than before. Look at what changed, and approve that "
                "with its pin.",
                code="mcp-changed",
            )
        environ = self._inputs_of(folder).environ
        if pin is not None and view.pin == pin and view.definitions is not None:
            keep = partial(approval_file.keep_definitions, environ, launch, view.definitions)
            await self._writing(keep)
        await self._writing(partial(approval_file.approve, environ, launch, pin))
        self._on_change(launch.hash)

    async def revoke(self, folder: object, snapshot: Snapshot, name: str) -> None:
        """Take an approval back, and end the server."""
        launch = _launch_of(await self.view(folder, snapshot, name))
        await self._writing(partial(approval_file.revoke, self._inputs_of(folder).environ, launch))
        await self._end(launch.hash)
        self._on_change(launch.hash)

    async def _writing(self, write: Callable[[], Any]) -> None:
        try:
            await self._workers.run(write)
        except OSError as error:
            raise RequestError(
                f"The approval cannot be written: {error.strerror or error}.", code="mcp-not-written"
            ) from None

    # ------------------------------------------------------------ running

    async def start(
        self, folder: object, snapshot: Snapshot, name: str, *, seconds: float | None = None
    ) -> ServerView:
        """Start a server, unless it runs, and wait until it has listed its tools, for `seconds` at most.

        RequestError if it may not start. One that fails has the state `failed`.
        """
        view = await self.view(folder, snapshot, name)
        launch = _startable(view)
        if view.state == "changed" or (view.state == "ready" and view.is_pinned):
            self._users.setdefault(launch.hash, set()).add(id(folder))
            return view
        running = await self._run(folder, launch)
        waiting = asyncio.wrap_future(self._thread.submit(_settled(running)))
        try:
            await asyncio.wait_for(waiting, seconds)
        except TimeoutError:
            return await self.view(folder, snapshot, name)
        await self._pin(folder, running)
        return await self.view(folder, snapshot, name)

    async def stop(self, folder: object, snapshot: Snapshot, name: str) -> ServerView:
        """End a server for all folders that share it."""
        view = await self.view(folder, snapshot, name)
        if view.launch is not None:
            await self._end(view.launch.hash)
            self._on_change(view.launch.hash)
        return await self.view(folder, snapshot, name)

    async def refresh(self, folder: object, snapshot: Snapshot, name: str) -> ServerView:
        """List again what a server offers; it is started if it does not run."""
        view = await self.view(folder, snapshot, name)
        running = self._running.get(_startable(view).hash)
        if running is None or view.state not in ("ready", "changed"):
            return await self.start(folder, snapshot, name)
        await asyncio.wrap_future(self._thread.submit(running.refresh()))
        await self._pin(folder, running)
        return await self.view(folder, snapshot, name)

    async def call(self, view: ServerView, *, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of a tool of a server that was started (`start`), as JSON.

        RequestError if the server or the tool may not be called.
        """
        name = view.server.name
        if view.state == "changed":
            raise RequestError(
                f"The server {name!r} offers other tools than you approved, so it is not called. Look at "
                "what changed (`nexus mcp diff`), and approve that.",
                code="mcp-changed",
            )
        launch = _launch_of(view)
        running = self._running.get(launch.hash)
        if running is None or view.state != "ready":
            raise RequestError(
                f"The server {name!r} is not ready. {view.error or ''}".rstrip(), code="mcp-not-ready"
            )
        names = {each["name"] for each in view.definitions.tools} if view.definitions else set()
        if tool not in names:
            raise RequestError(
                f"The server {name!r} has no tool {tool!r}. It has: {', '.join(sorted(names)) or 'none'}.",
                code="unknown-tool",
            )
        call = running.call(tool, arguments, pin=view.pin or "", seconds=CALL_S)
        return await asyncio.wrap_future(self._thread.submit(call))

    async def offered(self, folder: object, snapshot: Snapshot) -> list[OfferedTool]:
        """The tools that a turn may have: those of servers that may start and offer what was approved.

        Servers that do not run are started; only one that never listed its tools is waited for.
        """
        tools: list[OfferedTool] = []
        for view in await self.views(folder, snapshot):
            if view.state not in ("stopped", "starting", "ready"):
                continue
            try:
                known = view
                if view.state != "ready" or not view.is_pinned:
                    seconds = 0.0 if view.is_pinned and view.definitions is not None else FIRST_LIST_S
                    known = await self.start(folder, snapshot, view.server.name, seconds=seconds)
            except RequestError as error:  # one server must not keep the turn from being sent
                logger.warning("the tools of %s are not offered: %s", view.server.name, error)
                continue
            if known.is_pinned and known.definitions is not None and known.state in ("starting", "ready"):
                tools += offered_tools(known.server.name, known.definitions)
        return tools

    async def release(self, folder: object, kept: frozenset[str] = frozenset()) -> None:
        """End the servers that only this folder used, except launches of these hashes."""
        for key, users in list(self._users.items()):
            if key not in kept and id(folder) in users:
                users.discard(id(folder))
                if not users:
                    await self._end(key)

    async def follow(self, folder: object, snapshot: Snapshot) -> None:
        """End the servers of a folder that its files no longer name, or that it may no longer start."""
        if any(id(folder) in users for users in self._users.values()):
            views = await self.views(folder, snapshot)
            may_run = ("stopped", "starting", "ready", "changed", "failed", "needs-auth")
            kept = (view.launch.hash for view in views if view.launch is not None and view.state in may_run)
            await self.release(folder, frozenset(kept))

    def close(self) -> None:
        """End all servers; returns when they have ended. In a thread."""
        self._is_closed = True
        running, self._running = list(self._running.values()), {}
        self._thread.close(partial(_stop_all, running))
        self._guard.close()

    async def _run(self, folder: object, launch: Launch) -> "RunningServer":
        self._users.setdefault(launch.hash, set()).add(id(folder))
        async with self._starting:
            if self._is_closed:
                raise RequestError("The daemon is ending.", code="mcp-not-ready")
            earlier = self._running.get(launch.hash)
            if earlier is not None and earlier.status.state not in ("failed", "needs-auth", "stopped"):
                return earlier
            environ = self._inputs_of(folder).environ
            make = partial(
                _make_running,
                launch,
                environ,
                guard=self._guard,
                may_start=partial(_may_start, launch, environ),
                on_change=partial(self._status_changed, asyncio.get_running_loop()),
            )
            make_running = await self._workers.run(_imported, make)
            running: RunningServer = await asyncio.wrap_future(self._thread.submit(make_running()))
            if id(folder) not in self._users.get(launch.hash, ()):  # it was revoked, or the folder has left
                await asyncio.wrap_future(self._thread.submit(running.stop()))
                raise RequestError(f"The server {launch.name!r} was stopped meanwhile.", code="mcp-not-ready")
            self._running[launch.hash] = running
            return running

    async def _end(self, key: str) -> None:
        running = self._running.pop(key, None)
        self._users.pop(key, None)
        if running is not None:
            await asyncio.wrap_future(self._thread.submit(running.stop()))

    async def _pin(self, folder: object, running: "RunningServer") -> None:
        """Keep what a server offers when it is first seen (rule 3)."""
        offered, environ = running.status.offered, self._inputs_of(folder).environ
        if offered is None or running.status.state != "ready":
            return

        def keep() -> None:
            if approval_file.read_approvals(environ).pin_of(running.launch.hash) is None:
                approval_file.keep_first(environ, running.launch, offered)

        await self._writing(keep)

    def _status_changed(self, loop: asyncio.AbstractEventLoop, running: "RunningServer") -> None:
        """Tell the loop of a change; in the servers' thread."""
        loop.call_soon_threadsafe(self._on_change, running.launch.hash)


def log_of(launch: Launch, environ: Mapping[str, str]) -> ServerLog:
    """The log of a launch, which covers the values that its file gives, and what they stand for."""
    secrets = [*launch.variables.values(), *launch.headers.values()]
    secrets += (word for word in (*launch.arguments, launch.url) if word and word not in launch.written)
    for values in (launch.environment, launch.sent_headers):
        try:
            resolved = values(environ)
        except LaunchError:
            continue
        secrets += (resolved[name] for name in (*launch.variables, *launch.headers) if name in resolved)
    return ServerLog(server_log.log_path(environ, launch.hash), secrets)


# ---------------------------------------------------------------- in worker threads


def _read_facts(servers: list[McpServer], snapshot: Snapshot, inputs: LoadInputs) -> _Facts:
    environ = inputs.environ
    launches: dict[str, Launch | LaunchError] = {}
    kept: dict[str, ReviewedDefinitions] = {}
    for server in servers:
        try:
            launch = launches[server.name] = plan_launch(server, _context(server, snapshot, inputs))
        except LaunchError as error:
            launches[server.name] = error
            continue
        definitions = approval_file.read_definitions(environ, launch)
        if definitions is not None:
            kept[launch.hash] = definitions
    return _Facts(launches, approval_file.read_approvals(environ), kept)


def _context(server: McpServer, snapshot: Snapshot, inputs: LoadInputs) -> LaunchContext:
    directory = next(
        (layer.directory for layer in snapshot.layers.layers if layer.name == server.origin), snapshot.folder
    )
    search = inputs.environ.get("PATH")
    return LaunchContext(
        folder=snapshot.folder,
        directory=directory,
        user_home=inputs.user_home,
        environ=inputs.environ,
        which=lambda program: which(program, search=search),
    )


def _read_views(
    servers: list[McpServer],
    snapshot: Snapshot,
    *,
    inputs: LoadInputs,
    statuses: Mapping[str, "ServerStatus"],
    trusted: bool,
) -> list[ServerView]:
    facts = _read_facts(servers, snapshot, inputs)
    return [_view(server, facts, statuses, trusted=trusted) for server in servers]


def _view(
    server: McpServer, facts: _Facts, statuses: Mapping[str, "ServerStatus"], *, trusted: bool
) -> ServerView:
    launch = facts.launches[server.name]
    if isinstance(launch, LaunchError):
        state: State = "failed" if server.enabled else "disabled"
        return ServerView(server=server, state=state, error=str(launch))
    status = statuses.get(launch.hash)
    approved = facts.approvals.pin_of(launch.hash)
    kept = facts.kept.get(launch.hash)
    if kept is not None and kept.pin != approved:
        kept = None  # what somebody has written there since
    offered = kept if status is None or status.offered is None else status.offered
    changes: tuple[DefinitionChange, ...] = ()
    state = _state(server, launch, facts.approvals, status, trusted=trusted)
    if state == "ready" and offered is not None and approved not in (None, offered.pin):
        state = "changed"
        before = ServerDefinitions() if kept is None else kept.definitions
        changes = compare(before, offered.definitions)
    return ServerView(
        server=server,
        state=state,
        launch=launch,
        error=None if status is None else status.error,
        definitions=None if offered is None else offered.definitions,
        pin=None if offered is None else offered.pin,
        is_pinned=approved is not None,
        changes=changes,
        flags=() if offered is None else offered.flags,
        started=0.0 if status is None else status.started,
    )


def _state(
    server: McpServer,
    launch: Launch,
    approvals: Approvals,
    status: "ServerStatus | None",
    *,
    trusted: bool,
) -> State:
    if not server.enabled:
        return "disabled"
    if not trusted:
        return "untrusted"
    if not launch.is_of_user and not approvals.allows(launch.hash):
        return "unapproved"
    return "stopped" if status is None else status.state


def _launch_of(view: ServerView) -> Launch:
    if view.launch is None:
        raise RequestError(view.error or "It cannot be started.", code="mcp-cannot-start")
    return view.launch


def _startable(view: ServerView) -> Launch:
    """The launch of a server that may start; RequestError with what the user has to do."""
    name = view.server.name
    if view.state == "disabled":
        raise RequestError(f"The server {name!r} is switched off in its file.", code="mcp-disabled")
    if view.state == "untrusted":
        raise RequestError(
            "The folder is not trusted, so nothing is started in it. `nexus trust` trusts it.",
            code="mcp-untrusted",
        )
    if view.state == "unapproved":
        raise RequestError(
            f"The server {name!r} is not approved. `nexus mcp approve {name}` shows what it would start.",
            code="mcp-unapproved",
        )
    return _launch_of(view)


def _may_start(launch: Launch, environ: Mapping[str, str]) -> bool:
    """Whether a launch still starts what was approved: also before it is started again. In a thread."""
    is_same = launch.url or real_path(launch.executable) == launch.program
    return bool(is_same and (launch.is_of_user or approval_file.read_approvals(environ).allows(launch.hash)))


def _imported(make: Any) -> Any:
    """Import the SDK, in a worker thread: the loop would wait for half a second."""
    try:
        from nexus_daemon.servers import running_server  # noqa: F401
    except ImportError as error:
        raise RequestError(
            f"Starting MCP servers needs the package {error.name}: install `nexusd[mcp]`.", code="mcp-no-sdk"
        ) from None
    return make


# ---------------------------------------------------------------- in the servers' thread


async def _make_running(
    launch: Launch,
    environ: Mapping[str, str],
    *,
    guard: ProcessGuard,
    may_start: Callable[[], bool],
    on_change: Callable[[Any], None],
) -> "RunningServer":
    from nexus_daemon.servers.running_server import RunningServer

    server_log.remove_expired(environ)
    return RunningServer(
        launch,
        environ,
        log=log_of(launch, environ),
        guard=guard,
        may_start=may_start,
        on_change=on_change,
    )


async def _settled(running: "RunningServer") -> None:
    await running.settled.wait()


async def _stop_all(running: list["RunningServer"]) -> None:
    await asyncio.gather(*(each.stop() for each in running), return_exceptions=True)
