"""Run the event loop of the shared daemon: every connection, from its first bytes to its end.

1. A connection begins with `hello`, or at once with a frame of the protocol (from editors that connect to a
   Unix socket themselves). In the second case the client has the environment of the daemon.
2. Other first bytes end the connection before anything is built for it, and so does a wrong proof on a port
   of the loopback interface. The same holds for a client of another user, for a client that is silent for
   HELLO_S, and for more clients than allowed.
3. Each editor has a `StreamLink`, a protocol object and a `Connection` of its own; they share one `Daemon`.
4. A client with a newer version replaces the daemon: the daemon drains, and forwarders connect to the next
   one.
5. Draining means: stop listening; wait at most DRAIN_S for the requests that run; tell each forwarder to
   connect again, which sends unanswered messages once more; close the ledger.
6. Every CHECK_S the daemon checks its files. If its socket was removed, it makes a new one. If its lock was
   removed, it drains, since another daemon may run by now. It also drains if its package was replaced:
   modules that it has not imported yet may be gone, or be those of another version.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from nexus_daemon.lsp import framing, serving
from nexus_daemon.lsp.link import Limits, StreamLink
from nexus_daemon.lsp.pipe import SocketReader, SocketWriter
from nexus_daemon.lsp.stdio import serve_stream
from nexus_daemon.process import version
from nexus_daemon.process.client_process import ClientProcess
from nexus_daemon.process.version import PROTOCOL, __version__
from nexus_daemon.shared import client, election, hello
from nexus_daemon.shared.command_runner import CommandRunner, RunCommand
from nexus_daemon.shared.goodbye import CLOSED, REPLACED, STOPPED, goodbye
from nexus_daemon.shared.hook_runner import HookRunner
from nexus_daemon.shared.identity import Place

if TYPE_CHECKING:
    from nexus_daemon.lsp.dispatch import NexusServer
    from nexus_daemon.windows.daemon import Daemon

HELLO_S = 5.0
DRAIN_S = 5.0
CHECK_S = 30.0
COLLECT_S = 5.0  # after a client has left; with those that leave meanwhile
IDLE_LOOK_S = 1.0  # without a client before the daemon reads how long it may be idle
LOG_S = 0.5  # without a client before the log starts
MOST_CLIENTS = 1_000
SWITCH_S = 0.000_5
_PLAIN = b"content-"  # how a frame of the protocol begins, in any case
_READ = 64 * 1024  # bytes
logger = logging.getLogger(__name__)


def serve(
    place: Place, listener: socket.socket, lock: int | None, run_command: RunCommand | None = None
) -> int:
    """Serve clients until the daemon is idle or told to end. Return the exit code.

    Without a `lock` it is a server for direct use, which is never idle and which no client replaces. Without
    `run_command` it runs no commands.
    """
    sys.setswitchinterval(SWITCH_S)
    # on Windows, the usual loop cannot wait for sockets
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop if os.name == "nt" else None) as runner:
        daemon = SharedDaemon(place, listener, lock, run_command)
        return runner.run(daemon.run())


class SharedDaemon:
    """The shared daemon with the connections of this process. Use it on the event loop."""

    def __init__(
        self, place: Place, listener: socket.socket, lock: int | None, run_command: RunCommand | None
    ) -> None:
        self._place = place
        self._listener = listener
        self._lock = lock
        self._code = _code_stamp()
        self._token = None if place.has_socket else client.read_token(place)[1]
        self._commands = None if run_command is None else CommandRunner(run_command)
        self._hooks = HookRunner(place, self._start)
        self._log = contextlib.ExitStack()
        self._has_log = False
        self._daemon: Daemon | None = None
        self._clients: dict[asyncio.Task[None], StreamLink | None] = {}
        self._collecting: asyncio.TimerHandle | None = None
        self._reason: str | None = None  # why the daemon ends
        self._ended = asyncio.Event()
        self._idle: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Accept clients until the daemon ends."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError):  # Windows
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.end, STOPPED)
        loop.add_reader(self._listener, self._accept)
        starting_log = loop.call_later(LOG_S, self._start_log)
        checking = loop.create_task(self._check_files())
        self._watch_idleness()
        try:
            await self._ended.wait()
            if self._draining is not None:
                await self._draining
        finally:
            checking.cancel()
            starting_log.cancel()
            await asyncio.to_thread(self._hooks.close)
            if self._daemon is not None:
                await self._daemon.close()
            self._log.close()
            if self._lock is not None:
                os.close(self._lock)
        return 0

    def end(self, reason: str) -> None:
        """Drain the daemon and end it for this reason. Later calls do nothing."""
        if self._reason is None:
            self._start_log()
            logger.info("the shared daemon ends: %s", reason)
            self._reason = reason
            self._draining = asyncio.get_running_loop().create_task(self._drain(reason))

    def _start_log(self) -> None:
        """Write the log from here on.

        The first client waits for its reply to `initialize`, so what this imports comes after that. Standard
        error of the shared daemon is a file that only crashes are written to.
        """
        if self._has_log:
            return
        self._has_log = True
        from nexus_daemon.lsp.client_log import ClientLog
        from nexus_daemon.process.logs.process_log import logging_process

        is_shared = self._lock is not None
        role = "shared" if is_shared else "server"
        log = logging_process(role, serving.current_number, ClientLog(), to_stderr=not is_shared)
        self._log.enter_context(log)

    # ------------------------------------------------------------ accepting

    def _accept(self) -> None:
        """Accept every connection that waits."""
        for _ in range(election.QUEUE):
            try:
                connected, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # too many open files: it is in the queue still, and comes again
                self._start_log()
                logger.warning("a connection cannot be accepted: %s", error)
                self._pause_accepting()
                return
            connected.setblocking(False)
            if len(self._clients) >= MOST_CLIENTS or self._is_anothers(connected):
                connected.close()
                continue
            task = asyncio.get_running_loop().create_task(self._serve(connected))
            self._clients[task] = None
            task.add_done_callback(self._client_left)
            self._watch_idleness()

    def _is_anothers(self, connected: socket.socket) -> bool:
        """Whether a process of another user connected to the Unix socket."""
        if self._token is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return False
        return client.peer_user(connected) not in (None, os.getuid())

    def _pause_accepting(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener)
        loop.call_later(1.0, self._resume_accepting)

    def _resume_accepting(self) -> None:
        if self._reason is None:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _client_left(self, task: asyncio.Task[None]) -> None:
        link = self._clients.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._start_log()
            logger.error("serving a client failed", exc_info=error)
        self._watch_idleness()
        if link is not None and self._collecting is None:
            self._collecting = asyncio.get_running_loop().call_later(COLLECT_S, self._collect)

    def _collect(self) -> None:
        """Free what editors that have left leave behind in cycles: by itself that happens too rarely."""
        self._collecting = None
        gc.collect()

    # ------------------------------------------------------------ one client

    async def _serve(self, connected: socket.socket) -> None:
        """Serve one client from its first bytes to its end."""
        try:
            async with asyncio.timeout(HELLO_S):
                if self._token is not None:
                    await self._prove(connected, self._token)
                fields, first_data = await self._receive_hello(connected)
                if fields is not None and not await self._welcome(connected, fields):
                    connected.close()
                    return
        except (hello.HelloError, EOFError, OSError, TimeoutError) as error:
            self._start_log()
            logger.warning("refused a connection: %s", str(error) or "it said nothing")
            connected.close()
            return
        except BaseException:
            connected.close()
            raise
        purpose = "editor" if fields is None else fields.get("purpose")
        if purpose == "stop":
            self.end(STOPPED)
        if purpose in ("stop", "status"):
            connected.close()
        elif purpose == "command" and fields is not None and self._commands is not None:
            await self._commands.serve(connected, fields)
        elif purpose == "hook" and fields is not None:
            await self._hooks.serve(connected, fields)
        else:
            await self._serve_editor(connected, fields, first_data)

    async def _prove(self, connected: socket.socket, token: str) -> None:
        """Prove that this is the daemon; HelloError unless the client proves that it is the user's."""
        loop = asyncio.get_running_loop()

        async def receive(count: int) -> bytes:
            data = b""
            while len(data) < count:
                piece = await loop.sock_recv(connected, count - len(data))
                if not piece:
                    raise EOFError
                data += piece
            return data

        beginning = await receive(len(hello.PROOF_MAGIC) + hello.NUMBER + 1)
        if not beginning.startswith(hello.PROOF_MAGIC):
            raise hello.HelloError("this is not how a client of Nexus begins")
        number = hello.random_number()
        numbers = beginning[len(hello.PROOF_MAGIC) : -1] + b" " + number
        reply = number + b" " + hello.proof(token, "daemon", numbers) + b"\n"
        await loop.sock_sendall(connected, reply)
        if not hello.is_proof((await receive(hello.NUMBER + 1))[:-1], token, "client", numbers):
            raise hello.HelloError("the client does not know the token of this daemon")

    async def _receive_hello(self, connected: socket.socket) -> tuple[hello.Fields | None, bytes]:
        """The client's first message, if it sends one, and the bytes after it."""
        loop = asyncio.get_running_loop()
        data = b""
        line: bytes | None = None
        while line is None:
            piece = await loop.sock_recv(connected, _READ)
            if not piece:
                raise EOFError
            data += piece
            start = data[: len(_PLAIN)].lower()
            if _PLAIN.startswith(start) and start and self._token is None:
                if len(data) >= len(_PLAIN):
                    return None, data
            elif not data.startswith(hello.MAGIC[: len(data)]):
                raise hello.HelloError("this is not how a client of Nexus begins")
            elif b"\n" in data:
                line = data[: data.index(b"\n")]
            elif len(data) > hello.LONGEST_LINE:
                raise hello.HelloError("the first line has no end")
        body = bytearray(data[len(line) + 1 :])
        length = hello.body_length(line)
        while len(body) < length:
            piece = await loop.sock_recv(connected, _READ)
            if not piece:
                raise EOFError
            body += piece
        return hello.decode(bytes(body[:length])), bytes(body[length:])

    async def _welcome(self, connected: socket.socket, fields: hello.Fields) -> bool:
        """Reply to a client's first message; whether it may go on."""
        status, message = self._judge(fields)
        if status == "ok" and fields.get("purpose") == "hook":
            return True  # its answer is the reply
        windows = sum(link is not None for link in self._clients.values())
        daemon_fields = (("version", __version__), ("protocol", str(PROTOCOL)), ("pid", str(os.getpid())))
        reply_fields = [("message", message), ("windows", str(windows))]
        if status == "ok" and fields.get("purpose") == "status":
            reply_fields.append(("state", self._describe()))
        reply = hello.Fields((("status", status), *daemon_fields, *reply_fields))
        await asyncio.get_running_loop().sock_sendall(connected, hello.encode(reply))
        return status == "ok"

    def _describe(self) -> str:
        """Return the state of this daemon as JSON: the result of `nexus/status`, and its identity."""
        from nexus_daemon.api.status import describe

        process_info = {
            "pid": os.getpid(),
            "version": __version__,
            "identity": self._place.facts.splitlines(),
        }
        state = {} if self._daemon is None else msgspec.to_builtins(describe(self._daemon))
        return framing.encode({**process_info, **state, "assistants": self._hooks.describe()}).decode()

    def _judge(self, fields: hello.Fields) -> tuple[str, str]:
        if self._reason is not None:
            return "ending", "the daemon ends"
        if fields.get("purpose") == "status":
            return "ok", ""  # of any daemon of the user
        if self._place.facts and fields.get("facts") != self._place.facts:
            return "refused", "another NEXUS_HOME, NEXUS_STATE or home directory has another daemon"
        purpose = fields.get("purpose")
        if purpose == "editor" and self._lock is not None and hello.newer(fields.get("version"), __version__):
            self.end(REPLACED)
            return "replaced", f"version {__version__} makes way"
        if purpose == "command" and (self._commands is None or fields.get("version") != __version__):
            return "refused", f"this daemon, version {__version__}, runs no commands of this client"
        if purpose not in ("editor", "command", "hook", "stop"):
            return "refused", f"version {__version__} does not know the purpose {purpose!r}"
        return "ok", ""

    async def _serve_editor(
        self, connected: socket.socket, fields: hello.Fields | None, first_data: bytes
    ) -> None:
        from nexus_daemon.server import build

        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - only tasks call this

        async def attach(link: StreamLink) -> None:
            self._clients[task] = link
            loop = asyncio.get_running_loop()
            if fields is not None:
                link.goodbye = framing.encode(goodbye(CLOSED))
            link.use_writer(SocketWriter(connected, link, loop))
            if self._reason is not None:  # since the reply to the first message
                _dismiss(link, self._reason)
                return
            link.use_reader(SocketReader(connected, link, loop))
            if first_data:  # which may end the connection: it closes what it reads from
                link.data_received(first_data)

        def build_logged(server: "NexusServer") -> None:
            self._start_log()
            server.outdated = partial(self.end, REPLACED)
            build(self._start, server, process=_client_process(fields))

        await serve_stream(attach, build_logged, limits=Limits())

    def _start(self) -> "Daemon":
        """The state that all clients share; the first client starts it."""
        if self._daemon is None:
            from nexus_daemon.windows.daemon import Daemon
            from nexus_daemon.workspace.inputs import load_inputs

            self._daemon = Daemon(load_inputs(os.environ))
        return self._daemon

    # ------------------------------------------------------------ the end

    async def _drain(self, reason: str) -> None:
        self._stop_listening()
        links = [link for link in self._clients.values() if link is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(*(link.settle() for link in links))
        for link in links:
            _dismiss(link, reason)
        client_tasks = [task for task in self._clients if task is not asyncio.current_task()]
        if client_tasks:
            await asyncio.wait(client_tasks, timeout=DRAIN_S)
        self._ended.set()

    def _stop_listening(self) -> None:
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        if self._is_ours:
            with contextlib.suppress(OSError):
                os.unlink(self._place.address)

    def _watch_idleness(self) -> None:
        """Count the time without clients, from now on."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._clients and self._reason is None and self._lock is not None:
            self._idle = asyncio.get_running_loop().create_task(self._end_when_idle())

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(
            IDLE_LOOK_S
        )  # the first client comes soon, and must not wait for the imports below
        minutes = await asyncio.to_thread(_idle_minutes)
        if minutes:
            await asyncio.sleep(max(minutes * 60 - IDLE_LOOK_S, 0))
            self.end(STOPPED)

    async def _check_files(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            if self._reason is not None:
                return
            if not self._is_ours:
                self.end(REPLACED)
            elif _code_stamp() != self._code:
                self._start_log()
                logger.warning("Nexus was updated: this daemon ends, and windows go on with a new one")
                self.end(REPLACED)
            elif not os.path.exists(self._place.address):
                self._listen_again()

    @property
    def _is_ours(self) -> bool:
        """Whether no other daemon can have taken the address."""
        return self._lock is None or election.holds_lock(self._place, self._lock)

    def _listen_again(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            listener = election.listen(self._place)
        except OSError as error:
            self._start_log()
            logger.warning("%s cannot be made again: %s", self._place.address, error)
            return
        if self._token is not None:
            self._token = client.read_token(self._place)[1]
        loop.remove_reader(self._listener)
        self._listener.close()
        self._listener = listener
        loop.add_reader(listener, self._accept)


def _code_stamp() -> tuple[int, ...]:
    """Return a stamp that changes when the package is replaced."""
    try:
        status = os.stat(version.__file__)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _dismiss(link: StreamLink, reason: str) -> None:
    """End a connection because the daemon ends; a forwarder is told why."""
    if link.goodbye is not None:
        # before the failures of requests that still run: the next daemon gets those again
        link.goodbye = None
        link.send(framing.encode(goodbye(reason, link.running)))
    link.end(0, reason)


def _client_process(fields: hello.Fields | None) -> ClientProcess | None:
    """Return the client's process from its first message. Without one, the daemon's environment counts."""
    if fields is None:
        return None
    umask = fields.get("umask")
    return ClientProcess(fields.environ, int(umask) & 0o777 if umask.isdecimal() else None)


def _idle_minutes() -> float:
    """The setting `daemon.idle_minutes` of the user, as it is now."""
    from nexus_context.folder.loading import load
    from nexus_daemon.workspace.inputs import load_inputs

    inputs = load_inputs(os.environ)
    minutes: float = load(inputs.home, inputs).effective.get("/daemon/idle_minutes")
    return minutes
