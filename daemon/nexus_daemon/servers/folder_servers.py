"""Manage the MCP servers of a daemon's folders: which may start, which run, and which may be called.

1. A server starts only in a folder that the user trusts. It also needs an approval that is bound to its
   launch, or a file of the user that names it. Trust and approval are read from the disk at each start,
   restart and call; a server ends when one of them is withdrawn.
2. One server runs for each launch and each set of values that it is sent (`RunKey`). Folders with the same
   launch and values share it. It ends when the last of them is closed, or with the daemon.
3. The tools of a server are pinned when it is first started after its approval. If it offers something else
   later, it is not called until the user has approved the change.
4. The SDK and the servers live in a thread of their own (`server_thread`); the class here lives on the event
   loop.
5. Changes of a launch are reported at most once in TELL_S. The last change is always reported.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

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
from nexus_daemon.servers.token_store import SERVICE, delete_tokens, saved_at
from nexus_daemon.workspace.folders import Folder
from nexus_daemon.workspace.queue import TaskQueue
from nexus_daemon.workspace.trusted_folders import is_trusted
from nexus_daemon.workspace.workers import Workers

if TYPE_CHECKING:  # importing the SDK takes half a second
    from mcp import Client

    from nexus_daemon.servers.running_server import RunningServer, ServerStatus

logger = logging.getLogger(__name__)

FIRST_LIST_S = 5.0  # that a turn waits for the tools of a server that never ran before
CALL_S = 120.0
TELL_S = 1.0  # between two reports of a launch


class RunKey(NamedTuple):
    """The key of a running server: the hash of its launch, and the digest of the values that it is sent."""

    launch_hash: str
    values_digest: str


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """A server of a folder, and what is known of it. `error` is a sentence.

    `launch` is None, and `key` empty, if the server cannot be started as it is configured. `definitions` are
    what it offers now, or else what it offered when it ran last; `pin` identifies them. `is_pinned` says that
    definitions were approved; `changes` are the differences from those. `is_seen_elsewhere` says that this
    launch never ran: then `definitions` are what its program offered in another folder, and only estimate its
    cost.
    """

    server: McpServer
    state: State
    launch: Launch | None = None
    key: RunKey = RunKey("", "")
    error: str | None = None
    definitions: ServerDefinitions | None = None
    pin: str | None = None
    is_pinned: bool = False
    is_seen_elsewhere: bool = False
    changes: tuple[DefinitionChange, ...] = ()
    flags: tuple[Flag, ...] = ()
    started: float = 0.0


class FolderServers:
    """The MCP servers of all folders. Use it on the event loop.

    `changed` is called on the event loop with the hash of a launch whose server has changed. `inputs_of`
    returns what a folder is loaded with; any thread may call it.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        inputs_of: Callable[[Any], LoadInputs],
        changed: Callable[[str], None],
    ) -> None:
        self._workers = workers
        self._inputs_of = inputs_of
        self._on_change = changed
        self._reports: dict[str, TaskQueue[str]] = {}  # of each launch
        self._thread = ServerThread()
        self._guard = ProcessGuard()
        self._running: dict[RunKey, RunningServer] = {}
        self._users: dict[RunKey, set[Folder]] = {}
        self._sign_ins: dict[str, asyncio.Future[None]] = {}  # under way, by the hash of the launch
        self._states = WeakKeyDictionary[Folder, dict[str, State]]()  # of servers by name, as last looked at
        self._starting = asyncio.Lock()
        self._is_closed = False

    # ------------------------------------------------------------ what is there

    async def views(self, folder: Folder, snapshot: Snapshot) -> list[ServerView]:
        """Return the servers in force in a folder, in the order of the layers."""
        servers = [server for server in snapshot.layers.servers if server.shadowed_by is None]
        return await self._views(folder, snapshot, servers) if servers else []

    async def _views(self, folder: Folder, snapshot: Snapshot, servers: list[McpServer]) -> list[ServerView]:
        statuses = {key: running.status for key, running in self._running.items()}
        folder_snapshot = folder.snapshot or snapshot  # an agent's servers are started as those of the folder
        views = await self._workers.run(
            _read_views, folder_snapshot, servers, inputs=self._inputs_of(folder), statuses=statuses
        )
        states: dict[str, State] = {view.server.name: view.state for view in views}
        self._states[folder] = {**self._states.get(folder, {}), **states}
        return views

    async def view(self, folder: Folder, snapshot: Snapshot, name: str) -> ServerView:
        """Return the server of this name. RequestError if the folder has none."""
        servers = [server for server in snapshot.layers.servers if server.shadowed_by is None]
        named_servers = [server for server in servers if server.name == name]
        if not named_servers:
            names = ", ".join(server.name for server in servers) or "none"
            raise RequestError(
                f"There is no MCP server {name!r} in this folder. There are: {names}.", code="unknown-server"
            )
        return (await self._views(folder, snapshot, named_servers))[0]

    # ------------------------------------------------------------ approvals

    async def approve(
        self, folder: Folder, snapshot: Snapshot, name: str, *, launch_hash: str, pin: str | None
    ) -> None:
        """Approve a launch, or with `pin` what its server offers now.

        RequestError if the launch or what the server offers is no longer what the user approves.
        """
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
        self._report(launch.hash)

    async def revoke(self, folder: Folder, snapshot: Snapshot, name: str) -> None:
        """Withdraw an approval, and end the servers that run by it.

        RequestError if the user's own file approves it.
        """
        launch = _launch_of(await self.view(folder, snapshot, name))
        if launch.is_of_user:
            raise RequestError(
                f"The server {name!r} is approved by your own file that names it. Take it out of that file, "
                'or add `"enabled": false` there.',
                code="mcp-of-user",
            )
        await self._writing(partial(approval_file.revoke, self._inputs_of(folder).environ, launch))
        await self._end_all(launch)

    async def _writing(self, write: Callable[[], Any]) -> Any:
        try:
            return await self._workers.run(write)
        except OSError as error:
            raise RequestError(
                f"The approval cannot be written: {error.strerror or error}.", code="mcp-not-written"
            ) from None

    # ------------------------------------------------------------ signing in

    async def sign_in(
        self, folder: Folder, snapshot: Snapshot, name: str, *, open_page: Callable[[str], Awaitable[None]]
    ) -> ServerView:
        """Have the user sign in on the page that `open_page` opens, and start the server.

        RequestError if the server may not start, has no sign-in, or if signing in fails.
        """
        view = await self.view(folder, snapshot, name)
        launch = _startable(view)
        if not launch.signs_in:
            raise RequestError(
                f"Nobody can sign in to the server {name!r}: it is a process, or its file gives the "
                "Authorization header.",
                code="mcp-no-sign-in",
            )
        await self._workers.run(_import_sdk)
        page: Future[str] = Future()
        work = _sign_in(launch, self._inputs_of(folder).environ, show_page=page.set_result)
        signing, shown_page = asyncio.wrap_future(self._thread.submit(work)), asyncio.wrap_future(page)
        futures: list[asyncio.Future[Any]] = [signing, shown_page]
        self._sign_ins[launch.hash] = signing
        try:
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if shown_page.done():
                await open_page(shown_page.result())
            await asyncio.wait({signing})
            if signing.cancelled():
                raise RequestError(
                    f"The sign-in to {name!r} was ended: the server was signed out or may no longer start.",
                    code="mcp-sign-in-refused",
                )
            signing.result()
        finally:
            signing.cancel()
            self._sign_ins.pop(launch.hash, None)
        await self._end(view.key)
        return await self.start(folder, snapshot, name)

    async def sign_out(self, folder: Folder, snapshot: Snapshot, name: str) -> ServerView:
        """Delete the tokens of a server, and end the server.

        RequestError if a keyring may still have them.
        """
        launch = _launch_of(await self.view(folder, snapshot, name))
        try:
            is_forgotten = await delete_tokens(self._inputs_of(folder).environ, launch.hash)
        except OSError as error:
            raise RequestError(
                f"The tokens cannot be deleted: {error.strerror or error}.", code="mcp-not-written"
            ) from None
        await self._end_all(launch)
        if not is_forgotten:
            raise RequestError(
                f"The system's keyring does not answer. Delete the entry {launch.hash} of `{SERVICE}` there.",
                code="mcp-no-keyring",
            )
        return await self.view(folder, snapshot, name)

    # ------------------------------------------------------------ running

    async def start(
        self, folder: Folder, snapshot: Snapshot, name: str, *, seconds: float | None = None
    ) -> ServerView:
        """Start a server unless it runs, and wait at most `seconds` until it has listed its tools.

        RequestError if it may not start. A server that fails has the state `failed`.
        """
        view = await self.view(folder, snapshot, name)
        launch = _startable(view)
        if view.state == "changed" or (view.state == "ready" and view.is_pinned):
            self._users.setdefault(view.key, set()).add(folder)
            return view
        running = await self._run(folder, launch, view.key)
        settled = asyncio.wrap_future(self._thread.submit(_settled(running)))
        try:
            await asyncio.wait_for(settled, seconds)
        except TimeoutError:
            return await self.view(folder, snapshot, name)
        await self._pin(folder, running)
        return await self.view(folder, snapshot, name)

    async def stop(self, folder: Folder, snapshot: Snapshot, name: str) -> ServerView:
        """End a server, also for all other folders that share it."""
        view = await self.view(folder, snapshot, name)
        if view.launch is not None:
            await self._end(view.key)
            self._report(view.key.launch_hash)
        return await self.view(folder, snapshot, name)

    async def refresh(self, folder: Folder, snapshot: Snapshot, name: str) -> ServerView:
        """List again what a server offers. A server that does not run is started."""
        view = await self.view(folder, snapshot, name)
        _startable(view)
        running = self._running.get(view.key)
        if running is None or view.state not in ("ready", "changed"):
            return await self.start(folder, snapshot, name)
        await asyncio.wrap_future(self._thread.submit(running.refresh()))
        await self._pin(folder, running)
        return await self.view(folder, snapshot, name)

    async def call(self, view: ServerView, *, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool of a server that was started (`start`), and return the result as JSON.

        RequestError if the server or the tool may not be called.
        """
        self._ready(view)
        names = {definition["name"] for definition in view.definitions.tools} if view.definitions else set()
        if tool not in names:
            raise RequestError(
                f"The server {view.server.name!r} has no tool {tool!r}. It has: "
                f"{', '.join(sorted(names)) or 'none'}.",
                code="unknown-tool",
            )
        return await self._ask(view, lambda client: client.call_tool(tool, arguments))

    async def prompt(self, view: ServerView, prompt: str, arguments: dict[str, str]) -> dict[str, Any]:
        """Return a prompt of a server that was started, as JSON.

        RequestError if the server may not be called.
        """
        return await self._ask(view, lambda client: client.get_prompt(prompt, arguments))

    async def resource(self, view: ServerView, uri: str) -> dict[str, Any]:
        """Return the contents of a resource of a server that was started, as JSON.

        RequestError if the server may not be called.
        """
        return await self._ask(view, lambda client: client.read_resource(uri, cache_mode="refresh"))

    async def _ask(
        self, view: ServerView, request: "Callable[[Client], Coroutine[Any, Any, Any]]"
    ) -> dict[str, Any]:
        """Send a request of the SDK to the server of a view, and return the answer."""
        pending_answer = self._ready(view).ask(request, pin=view.pin or "", seconds=CALL_S)
        return await asyncio.wrap_future(self._thread.submit(pending_answer))

    def _ready(self, view: ServerView) -> "RunningServer":
        """The server of a view, with the approved tools; RequestError if it may not be asked."""
        name = view.server.name
        if view.state == "changed":
            raise RequestError(
                f"The server {name!r} offers other tools than you approved, so it is not called. Look at "
                "what changed (`nexus mcp diff`), and approve that.",
                code="mcp-changed",
            )
        _launch_of(view)
        running = self._running.get(view.key)
        if running is None or view.state != "ready":
            raise RequestError(
                f"The server {name!r} is not ready. {view.error or ''}".rstrip(), code="mcp-not-ready"
            )
        return running

    async def offered(self, folder: Folder, snapshot: Snapshot, *, starts: bool) -> list[OfferedTool]:
        """Return the tools that a turn may have: from servers that may start and whose definitions are
        approved.

        With `starts`, servers that do not run are started; only a server that never listed its tools is
        waited for. Without it, the tools of a server that does not run are those that it offered last.
        """
        tools: list[OfferedTool] = []
        views = await self.views(folder, snapshot)
        if starts:
            views = await asyncio.gather(*(self._started(folder, snapshot, view) for view in views))
        may_run = ("starting", "ready") if starts else ("stopped", "starting", "ready")
        for server_view in views:
            is_approved = server_view.is_pinned and not server_view.is_seen_elsewhere
            if is_approved and server_view.definitions is not None and server_view.state in may_run:
                tools += offered_tools(server_view.server.name, server_view.definitions)
        return tools

    async def _started(self, folder: Folder, snapshot: Snapshot, view: ServerView) -> ServerView:
        """The server of a view, started if it may and does not run; as it was if that fails."""
        if view.state not in ("stopped", "starting", "ready") or (view.state == "ready" and view.is_pinned):
            return view
        seconds = 0.0 if view.is_pinned and view.definitions is not None else FIRST_LIST_S
        try:
            return await self.start(folder, snapshot, view.server.name, seconds=seconds)
        except RequestError as error:  # one server must not keep the turn from being sent
            logger.warning("the tools of %s are not offered: %s", view.server.name, error)
            return view

    async def release(self, folder: Folder, kept: frozenset[RunKey] = frozenset()) -> None:
        """End the servers that only this folder used, except those in `kept`."""
        for key, users in list(self._users.items()):
            if key not in kept and folder in users:
                users.discard(folder)
                if not users:
                    await self._end(key)

    async def follow(self, folder: Folder, snapshot: Snapshot) -> None:
        """End the servers of a folder that its files no longer name, or that it may no longer start.

        Agents of the folder have no servers of their own: they call servers of the folder that they were
        granted.
        """
        if any(folder in users for users in self._users.values()):
            may_run = ("stopped", "starting", "ready", "changed", "failed", "needs-auth")
            views = await self.views(folder, snapshot)
            await self.release(folder, frozenset(view.key for view in views if view.state in may_run))

    async def approvals_changed(self, folder: Folder, snapshot: Snapshot) -> None:
        """Take over what another process did: approve servers of a folder, withdraw approvals, or sign in."""
        previous_states, environ = self._states.get(folder, {}), self._inputs_of(folder).environ
        await self.follow(folder, snapshot)
        for view in await self.views(folder, snapshot):
            if view.state == "needs-auth":
                saved = await self._workers.run(saved_at, environ, view.key.launch_hash)
                running = self._running.get(view.key)
                status = None if running is None else running.status
                if status is not None and status.state == "needs-auth" and saved > status.started:
                    await self._stop(view.key)  # it may start again
                    self._report(view.key.launch_hash)
            if view.state != previous_states.get(view.server.name, view.state):
                self._report(view.key.launch_hash)

    async def close(self) -> None:
        """End all servers, and return when they have ended."""
        self._is_closed = True
        for reports in self._reports.values():
            reports.stop()
        running, self._running = list(self._running.values()), {}
        await asyncio.to_thread(self._thread.close, partial(_stop_all, running))
        self._guard.close()

    async def _run(self, folder: Folder, launch: Launch, key: RunKey) -> "RunningServer":
        self._users.setdefault(key, set()).add(folder)
        async with self._starting:
            if self._is_closed:
                raise RequestError("The daemon is ending.", code="mcp-not-ready")
            existing_server = self._running.get(key)
            if existing_server is not None and existing_server.status.state not in (
                "failed",
                "needs-auth",
                "stopped",
            ):
                return existing_server
            environ = self._inputs_of(folder).environ
            await self._workers.run(_import_sdk)
            making = _make_running(
                launch,
                environ,
                guard=self._guard,
                may_start=partial(self._may_start, launch, key, environ),
                on_change=partial(self._status_changed, asyncio.get_running_loop()),
            )
            running: RunningServer = await asyncio.wrap_future(self._thread.submit(making))
            if folder not in self._users.get(key, ()):  # it was revoked, or the folder has left
                await asyncio.wrap_future(self._thread.submit(running.stop()))
                raise RequestError(f"The server {launch.name!r} was stopped meanwhile.", code="mcp-not-ready")
            self._running[key] = running
            return running

    async def _end(self, key: RunKey) -> None:
        self._users.pop(key, None)
        await self._stop(key)

    async def _stop(self, key: RunKey) -> None:
        """End a server for its users, who may be starting the next one."""
        running = self._running.pop(key, None)
        if running is not None:
            await asyncio.wrap_future(self._thread.submit(running.stop()))

    async def _end_all(self, launch: Launch) -> None:
        """End the servers of a launch, whatever values they were sent."""
        if launch.hash in self._sign_ins:
            self._sign_ins.pop(launch.hash).cancel()
        for key in [key for key in self._users if key.launch_hash == launch.hash]:
            await self._end(key)
        self._report(launch.hash)

    def _may_start(self, launch: Launch, key: RunKey, environ: Mapping[str, str]) -> bool:
        """Whether a launch still starts what was approved, in a trusted folder (rule 1). In a thread."""
        if not (launch.url or real_path(launch.executable) == launch.program):
            return False
        if not (launch.is_of_user or approval_file.read_approvals(environ).allows(launch.hash)):
            return False
        users = tuple(self._users.get(key, ()))
        return any(is_trusted(folder.path, self._inputs_of(folder)) for folder in users)

    async def _pin(self, folder: Folder, running: "RunningServer") -> None:
        """Keep what a server offers when it is first seen (rule 3): from then on turns may have its tools."""
        offered, environ = running.status.offered, self._inputs_of(folder).environ
        if offered is None or running.status.state != "ready":
            return

        def keep() -> bool:
            if approval_file.read_approvals(environ).pin_of(running.launch.hash) is not None:
                return False
            approval_file.keep_first(environ, running.launch, offered)
            return True

        if await self._writing(keep):
            self._report(running.launch.hash)

    def _status_changed(self, loop: asyncio.AbstractEventLoop, running: "RunningServer") -> None:
        """Tell the loop of a change; in the servers' thread."""
        loop.call_soon_threadsafe(self._report, running.launch.hash)

    def _report(self, launch_hash: str) -> None:
        if not self._is_closed:
            if launch_hash not in self._reports:
                self._reports[launch_hash] = TaskQueue(self._send_report, lambda _, later: later)
            self._reports[launch_hash].request(launch_hash)

    async def _send_report(self, launch_hash: str) -> None:
        self._on_change(launch_hash)
        await asyncio.sleep(TELL_S)  # what is reported meanwhile is reported once then


def log_of(launch: Launch, environ: Mapping[str, str]) -> ServerLog:
    """Build the log of a launch.

    It covers the values that the launch's file gives, and the values of variables in them.
    """
    secrets = [*launch.variables.values(), *launch.headers.values(), *launch.hidden_words]
    for values in (launch.environment, launch.sent_headers):
        try:
            resolved = values(environ)
        except LaunchError:
            continue
        secrets += (resolved[name] for name in (*launch.variables, *launch.headers) if name in resolved)
    return ServerLog(server_log.log_path(environ, launch.hash), secrets)


# ---------------------------------------------------------------- in worker threads


def _read_views(
    snapshot: Snapshot,
    servers: list[McpServer],
    *,
    inputs: LoadInputs,
    statuses: Mapping[RunKey, "ServerStatus"],
) -> list[ServerView]:
    trusted, approvals = is_trusted(snapshot.folder, inputs), approval_file.read_approvals(inputs.environ)
    views = []
    for server in servers:
        try:
            launch = plan_launch(server, _context(server, snapshot, inputs))
        except LaunchError as error:
            state: State = "failed" if server.enabled else "disabled"
            views.append(ServerView(server=server, state=state, error=str(error)))
            continue
        key = RunKey(launch.hash, launch.values_digest(inputs.environ))
        status = statuses.get(key)
        view = ServerView(
            server=server,
            state=_state(server, launch, approvals, status, trusted=trusted),
            launch=launch,
            key=key,
            error=None if status is None else status.error,
            started=0.0 if status is None else status.started,
        )
        pinned = _read_pinned(inputs.environ, approvals, launch.hash)
        view = _with_definitions(view, status, pinned, approvals.pin_of(launch.hash))
        if view.definitions is None:
            elsewhere = _read_pinned(inputs.environ, approvals, approvals.launch_of_program(launch.text))
            if elsewhere is not None:
                view = msgspec.structs.replace(
                    view, definitions=elsewhere.definitions, is_seen_elsewhere=True
                )
        views.append(view)
    return views


def _read_pinned(
    environ: Mapping[str, str], approvals: Approvals, launch_hash: str | None
) -> ReviewedDefinitions | None:
    """Read the definitions that were pinned for a launch. None if unknown, or if the file was changed."""
    if launch_hash is None:
        return None
    reviewed = approval_file.read_definitions(environ, launch_hash)
    return reviewed if reviewed is not None and reviewed.pin == approvals.pin_of(launch_hash) else None


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


def _with_definitions(
    view: ServerView, status: "ServerStatus | None", pinned: ReviewedDefinitions | None, pin: str | None
) -> ServerView:
    """Add the server's definitions to the view, and compare them with the ones approved under `pin`."""
    offered = pinned if status is None or status.offered is None else status.offered
    if view.state != "ready" and offered is not None and pin not in (None, offered.pin):
        offered = pinned  # it ended after it had offered something else: no turn may have that
    view = msgspec.structs.replace(view, is_pinned=pin is not None)
    if offered is None:
        return view
    view = msgspec.structs.replace(
        view, definitions=offered.definitions, pin=offered.pin, flags=offered.flags
    )
    if view.state != "ready" or pin in (None, offered.pin):
        return view
    pinned_definitions = ServerDefinitions() if pinned is None else pinned.definitions
    return msgspec.structs.replace(
        view, state="changed", changes=compare(pinned_definitions, offered.definitions)
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


def _import_sdk() -> None:
    """Import the SDK: the loop would wait for half a second."""
    try:
        from nexus_daemon.servers import running_server  # noqa: F401
    except ImportError as error:
        raise RequestError(
            f"Starting MCP servers needs the package {error.name}: install `nexusd[mcp]`.", code="mcp-no-sdk"
        ) from None


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


async def _sign_in(launch: Launch, environ: Mapping[str, str], *, show_page: Callable[[str], Any]) -> None:
    import httpx2

    from nexus_daemon.servers.sign_in import sign_in

    try:
        await sign_in(launch, environ, show_page=show_page)
    except (httpx2.HTTPError, OSError) as error:
        raise RequestError(
            f"Signing in to the server {launch.name!r} failed: {type(error).__name__}.",
            code="mcp-sign-in-failed",
        ) from None


async def _settled(running: "RunningServer") -> None:
    await running.settled.wait()


async def _stop_all(running: list["RunningServer"]) -> None:
    await asyncio.gather(*(server.stop() for server in running), return_exceptions=True)
