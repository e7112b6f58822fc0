"""Use a server's process as a transport of the SDK: minimal environment, limited lines, errors in a log.

1. The process is started without a shell, in a session of its own, so that it is ended with all processes
   that it started.
2. A line of its output that is longer than LONGEST_LINE ends the connection, and so do MOST_NOISE lines that
   are not messages.
3. The process is ended as the protocol says: its input is closed, then it gets SIGTERM, then SIGKILL.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from nexus_context.servers.launch import Launch
from nexus_daemon.servers.process_guard import ProcessGuard
from nexus_daemon.servers.server_log import ServerLog

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

LONGEST_LINE = 16 << 20
MOST_NOISE = 1_000
MOST_ERRORS = 200  # lines of the standard error that are kept of a second
_CHUNK = 64 << 10
PATIENCE_S = 2.0  # for each step of its end
POLL_S = 0.02


@asynccontextmanager
async def stdio_transport(
    launch: Launch,
    environ: Mapping[str, str],
    *,
    log: ServerLog,
    guard: ProcessGuard,
    ended: asyncio.Event,
) -> AsyncIterator["TransportStreams"]:
    """Start a process and yield its streams. `ended` is set when its output ends.

    OSError if the process cannot be started, LaunchError if a variable is missing.
    """
    process = await asyncio.create_subprocess_exec(
        launch.executable,
        *launch.arguments[1:],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=launch.environment(environ),
        cwd=launch.directory,
        limit=LONGEST_LINE,
        start_new_session=True,
    )
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process.stdout, incoming, log, ended)),
        asyncio.create_task(_write(process.stdin, outgoing)),
        asyncio.create_task(_read_errors(process.stderr, log)),
    ]
    try:
        guard.add(process.pid)
        yield received, sent
    finally:

        async def end() -> None:
            await _end(process)
            guard.remove(process.pid)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (incoming, received, sent, outgoing):
                await stream.aclose()

        with anyio.CancelScope(shield=True):
            await _wait_to_the_end(asyncio.ensure_future(end()))


async def _wait_to_the_end(ending: "asyncio.Future[None]") -> None:
    """Wait for what must not be left half done, also if this task is cancelled meanwhile."""
    is_cancelled = False
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError


async def _read(output: Any, incoming: Any, log: ServerLog, ended: asyncio.Event) -> None:
    try:
        async with incoming:
            await _read_messages(output, incoming, log)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # nobody reads any more
    finally:
        ended.set()


async def _read_messages(output: Any, incoming: Any, log: ServerLog) -> None:
    noise = 0
    while True:
        try:
            line = await output.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            log.write(f"Nexus: a message has more than {LONGEST_LINE >> 20} MiB: the server was ended.")
            return
        if not line.strip():
            continue
        try:
            message: Any = SessionMessage(
                mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            )
        except ValueError:
            noise += 1
            log.write(f"(output) {line.decode('utf-8', 'replace')}")
            if noise >= MOST_NOISE:
                log.write("Nexus: too many lines are not MCP messages: the server was ended.")
                return
            continue
        noise = 0
        await incoming.send(message)


async def _write(pipe: Any, outgoing: Any) -> None:
    with suppress(OSError):
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            pipe.write(text.encode("utf-8", "surrogatepass") + b"\n")
            await pipe.drain()


async def _read_errors(errors: Any, log: ServerLog) -> None:
    """Keep the lines of the standard error, at most MOST_ERRORS a second: more cost the other servers."""
    partial_line, since, count = b"", 0.0, 0
    while data := await errors.read(_CHUNK):
        *lines, partial_line = (partial_line + data).split(b"\n")
        if time.monotonic() - since > 1.0:
            since, count = time.monotonic(), 0
        for line in lines[: MOST_ERRORS - count]:
            log.write(line[:8_000].decode("utf-8", "replace"))
        count = min(count + len(lines), MOST_ERRORS)
        partial_line = partial_line[-_CHUNK:]
        await asyncio.sleep(0)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while process.returncode is None:  # `wait` waits for its pipes, too, which may be full
                    await asyncio.sleep(POLL_S)
                break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what it started and left behind
    # a process that left the group may hold the pipes open; nothing public closes them
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
