"""Run one server: start it, list and call its tools, notice changes, start it again after a crash.

1. It lives in the thread of the servers. Other threads read `status`, a frozen value that is replaced as a
   whole.
2. A server that was ready and ends by itself is started again after RESTART_S, doubled each time. After
   MOST_RESTARTS in a row it has failed. A server that ran for STEADY_S counts as new. A server that never was
   ready has failed at once: its settings are wrong, and a request waits for it.
3. When a server says that its tools changed, they are listed again, at most once in RELIST_S. The caller
   (`folder_servers`) decides whether they may be called.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal

import mcp_types
import msgspec
from mcp import Client
from mcp.shared.exceptions import MCPError

from nexus_context.errors import RequestError
from nexus_context.servers.changes import ReviewedDefinitions, review
from nexus_context.servers.definitions import (
    MOST_BYTES,
    MOST_TOOLS,
    DefinitionsError,
    ServerDefinitions,
    checked,
)
from nexus_context.servers.launch import Launch, LaunchError
from nexus_daemon.servers.connect import connect
from nexus_daemon.servers.process_guard import ProcessGuard
from nexus_daemon.servers.server_log import ServerLog

logger = logging.getLogger(__name__)

START_S = 60.0  # until it has listed its tools: a first `npx` installs what it runs
STOP_S = 5.0  # that ending a session may take
CLOSED_S = 1.0  # that the SDK has to notice that the output of a server has ended
RESTART_S = 1.0
MOST_RESTARTS = 5
STEADY_S = 60.0
RELIST_S = 1.0
MOST_PAGES = 200

State = Literal["starting", "ready", "failed", "needs-auth", "stopped"]


class CallError(RequestError):
    """A tool could not be called. The text says why."""


class ServerStatus(msgspec.Struct, frozen=True):
    """What is known of a running server. `error` is a sentence; `offered` is what the server listed last."""

    state: State
    offered: ReviewedDefinitions | None = None
    error: str | None = None
    started: float = 0.0


class RunningServer:
    """A server with its connection.

    `on_change` is called in the servers' thread whenever `status` changes.
    """

    def __init__(
        self,
        launch: Launch,
        environ: Mapping[str, str],
        *,
        log: ServerLog,
        guard: ProcessGuard,
        may_start: Callable[[], bool],
        on_change: Callable[["RunningServer"], None],
    ) -> None:
        self.launch = launch
        self.status = ServerStatus("starting", started=time.time())
        self.log = log
        self.settled = asyncio.Event()
        """Set when the server is ready, or has failed."""
        self._environ = environ
        self._guard = guard
        self._may_start = may_start
        self._on_change = on_change
        self._client: Client | None = None
        self._was_ready = False
        self._is_listed = False  # since it was started the last time
        self._wants_sign_in = asyncio.Event()
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()  # its tools
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the server, with all processes that it started."""
        self._stop.set()
        await asyncio.wait([self._task])

    async def refresh(self) -> None:
        """List again what the server offers. CallError if it is not ready."""
        client = self._connected()
        try:
            offered = await _list(client)
        except Exception as error:  # noqa: BLE001 - whatever a server makes the SDK raise
            raise self._refusal(error) from None
        self._set(msgspec.structs.replace(self.status, offered=offered))

    async def ask(
        self, request: Callable[[Client], Coroutine[Any, Any, Any]], *, pin: str, seconds: float
    ) -> dict[str, Any]:
        """Return the answer to a request as JSON.

        CallError if what the server offers does not have this pin.
        """
        client, name = self._connected(), self.launch.name
        if self.status.offered is None or self.status.offered.pin != pin:
            raise CallError(f"The server {name!r} offers other tools than a moment ago.", code="mcp-changed")
        return await self._answer(_within(seconds, request(client)))

    async def _answer(self, request: Coroutine[Any, Any, Any]) -> dict[str, Any]:
        """The answer to a request as JSON. CallError if the server ends, or answers with an error."""
        call, ended = asyncio.ensure_future(request), asyncio.ensure_future(self._stop.wait())
        tasks = {call, ended, self._task}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise CallError(
                    f"The server {self.launch.name!r} ended while it was called.", code="mcp-ended"
                )
            answer: dict[str, Any] = call.result().model_dump(mode="json", by_alias=True, exclude_none=True)
            return answer
        except CallError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a server makes the SDK raise
            raise self._refusal(error) from None
        finally:
            for task in (call, ended):
                task.cancel()

    def _refusal(self, error: Exception) -> CallError:
        name = self.launch.name
        if not isinstance(error, MCPError):
            words = self.log.cover(str(error))[:500] or type(error).__name__
            return CallError(
                f"The server {name!r} gave an answer that cannot be used: {words}", code="mcp-bad-answer"
            )
        # servers use the codes of the SDK, too
        if error.code == mcp_types.CONNECTION_CLOSED and error.error.message == "Connection closed":
            return CallError(f"The server {name!r} ended while it was called.", code="mcp-ended")
        if error.code == mcp_types.REQUEST_TIMEOUT and error.error.message.endswith("timed out"):
            return CallError(f"The server {name!r} did not answer in time.", code="mcp-slow")
        words = self.log.cover(error.error.message)[:2_000]
        return CallError(f"The server {name!r} refused the call: {words}", code="mcp-refused")

    def _connected(self) -> Client:
        if self._client is None:
            why = self.status.error or "It is not running."
            raise CallError(f"The server {self.launch.name!r} cannot be asked. {why}", code="mcp-not-ready")
        return self._client

    async def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            error = await self._serve_until_stopped()
            if self._stop.is_set():
                break
            failures = 1 if time.monotonic() - began > STEADY_S else failures + 1
            if self._wants_sign_in.is_set():
                error = _Ending(_refusal_text(self.launch), is_final=True, state="needs-auth")
            if error.is_final or failures > MOST_RESTARTS or not self._was_ready:
                self._set(ServerStatus(error.state, self.status.offered, error.text, self.status.started))
                self.settled.set()
                return
            self.settled.clear()
            self._set(ServerStatus("starting", self.status.offered, error.text, time.time()))
            try:
                async with asyncio.timeout(RESTART_S * 2 ** (failures - 1)):
                    await self._stop.wait()
            except TimeoutError:
                continue
        self._set(ServerStatus("stopped", self.status.offered))
        self.settled.set()

    async def _serve_until_stopped(self) -> "_Ending":
        """Run the server once, if it still may; also one that hangs ends when it is to be stopped."""
        if not await asyncio.to_thread(self._may_start):
            return _Ending(
                "It would start something else than was approved, or is no longer approved or trusted.",
                is_final=True,
            )
        ended = asyncio.Event()
        serving = asyncio.ensure_future(self._serve(ended))
        stop = asyncio.ensure_future(self._stop.wait())
        closed = asyncio.ensure_future(ended.wait())
        await asyncio.wait({serving, stop, closed}, return_when=asyncio.FIRST_COMPLETED)
        if closed.done():  # the SDK says why, unless it waits for an answer that cannot come
            await asyncio.wait({serving, stop}, timeout=CLOSED_S, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done() and not self._is_listed:  # it hangs in the handshake; else it stops by itself
            serving.cancel()
        done, _ = await asyncio.wait({serving}, timeout=None if not stop.done() else STOP_S)
        if not done:  # a server that never answers to the end of its session
            serving.cancel()
            await asyncio.wait({serving})
        stop.cancel()
        closed.cancel()
        if not serving.cancelled():
            return serving.result()
        last_words = f" Its last words: {self.log.last}" if self.log.last else ""
        return _Ending(f"The server could not be reached: its output has ended.{last_words}")

    async def _serve(self, ended: asyncio.Event) -> "_Ending":
        self._is_listed = False
        try:
            async with (
                asyncio.timeout(START_S) as limit,
                connect(
                    self.launch,
                    self._environ,
                    log=self.log,
                    guard=self._guard,
                    ended=ended,
                    refused=self._wants_sign_in,
                    on_message=self._receive,
                ) as client,
            ):
                offered = await _list(client)
                limit.reschedule(None)
                self._client, self._was_ready, self._is_listed = client, True, True
                self._set(ServerStatus("ready", offered, started=time.time()))
                self.settled.set()
                await self._watch(client, ended)
            return _Ending("The server ended by itself.")
        except BaseExceptionGroup as group:
            return _ending_of(_first_error(group), self.log)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a server makes the SDK raise
            return _ending_of(error, self.log)
        finally:
            self._client = None

    async def _watch(self, client: Client, ended: asyncio.Event) -> None:
        """Follow changes of the tools until it ends or is to be stopped."""
        ends = (ended.wait(), self._stop.wait(), self._wants_sign_in.wait())
        tasks: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(awaitable) for awaitable in (*ends, self._list_changes(client))
        ]
        listener = asyncio.ensure_future(self._listen(client))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            closed, stop = tasks[:2]
            if closed in done and stop not in done:  # nobody may call it while it is cleared away
                self._client = None
                self.settled.clear()
                self._set(msgspec.structs.replace(self.status, state="starting"))
            for task in done:
                task.result()
        finally:
            for task in (*tasks, listener):
                task.cancel()

    async def _list_changes(self, client: Client) -> None:
        """List the tools again whenever the server says so; what it says meanwhile counts once."""
        while await self._changed.wait():
            self._changed.clear()
            self._set(msgspec.structs.replace(self.status, offered=await _list(client)))
            await asyncio.sleep(RELIST_S)

    async def _listen(self, client: Client) -> None:
        """Notice changes of a server whose era has streams of events for them."""
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._changed.set()
        except Exception as error:  # noqa: BLE001 - an older era, or it does not offer that
            logger.debug("%s: no stream of changes: %s", self.launch.name, type(error).__name__)

    async def _receive(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._changed.set()

    def _set(self, status: ServerStatus) -> None:
        if status != self.status:
            self.status = status
            self._on_change(self)


def _refusal_text(launch: Launch) -> str:
    if launch.signs_in:
        return f"The server wants somebody to sign in: `nexus mcp login {launch.name}`."
    return "The server refuses the Authorization header that its file gives."


class _Ending(msgspec.Struct, frozen=True):
    """Why a server ended; `is_final`: it would end so again."""

    text: str
    is_final: bool = False
    state: Literal["failed", "needs-auth"] = "failed"


def _ending_of(error: BaseException, log: ServerLog) -> _Ending:
    if isinstance(error, LaunchError | DefinitionsError):
        return _Ending(str(error), is_final=True)
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        return _Ending(f"The program cannot be started: {error.strerror}.", is_final=True)
    if isinstance(error, TimeoutError):
        return _Ending(f"The server did not list its tools within {START_S:g} s.", is_final=True)
    last_words = f" Its last words: {log.last}" if log.last else ""
    words = str(error.error.message if isinstance(error, MCPError) else error) or type(error).__name__
    text = log.cover(f"The server could not be reached: {words.rstrip('.')}.{last_words}")
    return _Ending(text[:1_000])


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error


async def _within(seconds: float, request: Coroutine[Any, Any, Any]) -> Any:
    """A request with a time limit, and the SDK's error for it, which has one for tools alone."""
    try:
        return await asyncio.wait_for(request, seconds)
    except TimeoutError:
        raise MCPError(mcp_types.REQUEST_TIMEOUT, "Request timed out") from None


async def _list(client: Client) -> ReviewedDefinitions:
    """List the server's current definitions. DefinitionsError if they cannot be used."""
    capabilities = client.server_capabilities
    info = client.server_info
    definitions = ServerDefinitions(
        tools=tuple(await _pages(client.list_tools, "tools") if capabilities.tools else ()),
        instructions=client.instructions or "",
        prompts=tuple(await _pages(client.list_prompts, "prompts") if capabilities.prompts else ()),
        resources=tuple(await _pages(client.list_resources, "resources") if capabilities.resources else ()),
        title="" if info is None else info.title or info.name,
        version="" if info is None else info.version,
    )
    # the SDK would hold answers against them: a pattern that never ends would stop the whole process
    schemas = client.session._tool_output_schemas  # noqa: SLF001 - there is no option for it
    schemas.update(dict.fromkeys(schemas))
    return review(checked(definitions))


async def _pages(fetch: Callable[..., Coroutine[Any, Any, Any]], name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    size = 0
    for _ in range(MOST_PAGES):
        page = await fetch(cursor=cursor, cache_mode="refresh")
        page_items = [
            item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in getattr(page, name)
        ]
        size += len(msgspec.json.encode(page_items))
        items += page_items
        if size > MOST_BYTES or len(items) > MOST_TOOLS:
            break  # `checked` says so
        cursor = page.next_cursor
        if cursor is None:
            break
    return items
