"""Take the events of hooks in order and send the answers: the daemon's side of `hook_client`.

1. One thread takes the events, in the order in which they came. Another thread makes answers, so that an
   event never waits for the answer to an earlier one.
2. A client that expects no answer has ended by then.
3. Events that `hook_client` spooled are taken before the first event, and whenever a client says so.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_daemon.shared import hello
from nexus_daemon.shared.hook_client import MOST_SPOOLED, spool_path
from nexus_daemon.shared.identity import Place

if TYPE_CHECKING:
    from nexus_daemon.assistants.hooks.handler import HookHandler
    from nexus_daemon.assistants.hooks.hook_event import HookCall
    from nexus_daemon.windows.daemon import Daemon

ANSWER_S = 5.0  # in which a client takes its answer
logger = logging.getLogger(__name__)


class HookRunner:
    """Runs hooks for clients. Use it on the event loop; nothing is imported before the first hook.

    `start` returns the daemon, which it starts if needed. Most hooks do not need it.
    """

    def __init__(self, place: Place, start: "Callable[[], Daemon]") -> None:
        self._place = place
        self._start_daemon = start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handler: HookHandler | None = None
        self._events = ThreadPoolExecutor(1, thread_name_prefix="hook-events")
        self._answers = ThreadPoolExecutor(2, thread_name_prefix="hook-answers")

    async def serve(self, connected: socket.socket, fields: hello.Fields) -> None:
        """Handle a client's event and close its connection, a socket that does not block."""
        loop = self._loop = asyncio.get_running_loop()
        with connected:
            answer = await loop.run_in_executor(self._events, self._take, fields)
            if fields.get("answer") != "1":
                return
            text = "" if answer is None else await loop.run_in_executor(self._answers, _make, answer)
            try:
                async with asyncio.timeout(ANSWER_S):
                    reply = hello.Fields((("status", "ok"), ("output", text)))
                    await loop.sock_sendall(connected, hello.encode(reply))
            except (OSError, TimeoutError):  # it does not wait any longer
                logger.info("a hook's answer came too late")

    def describe(self) -> list[dict[str, Any]]:
        """Return the running sessions of other assistants, as JSON."""
        if self._handler is None:
            return []
        from nexus_daemon.assistants.hooks.running import RUNNING

        return [msgspec.to_builtins(session) for session in RUNNING.all()]

    def close(self) -> None:
        """End the threads once their current work is done.

        Do not call it on the event loop, which does a part of that work.
        """
        self._events.shutdown(cancel_futures=True)
        self._answers.shutdown(cancel_futures=True)
        if self._handler is not None:
            self._handler.close()

    def _take(self, fields: hello.Fields) -> "Callable[[], str] | None":
        from nexus_daemon.assistants.hooks.hook_event import HookCall

        try:
            handler = self._start(fields)
            if fields.get("spooled"):
                self._take_spooled(handler, fields)
                return None
            call = HookCall(
                fields.get("assistant"),
                fields.get("event"),
                tuple(fields.get_all("option")),
                payload=os.fsencode(fields.get("payload")),
                environ=fields.environ,
            )
            return handler.take(call)
        except Exception:
            logger.exception("a hook failed")
            return None

    def _start(self, fields: hello.Fields) -> "HookHandler":
        """The handler, which first gets what was spooled."""
        if self._handler is None:
            from nexus_daemon.assistants.hooks.handler import HookHandler
            from nexus_daemon.assistants.hooks.hook_folders import HookFolders

            assert self._loop is not None  # noqa: S101 - `serve` has set it
            self._handler = HookHandler(HookFolders(self._start_daemon, self._loop))
            self._take_spooled(self._handler, fields)
        return self._handler

    def _take_spooled(self, handler: "HookHandler", fields: hello.Fields) -> None:
        for call in self._spooled(fields):
            handler.take(call)

    def _spooled(self, fields: hello.Fields) -> "list[HookCall]":
        """The spooled events; the file is removed."""
        from nexus_daemon.assistants.hooks.hook_event import HookCall

        path = spool_path(self._place)
        taken_path = f"{path}.{os.getpid()}"
        try:
            os.rename(path, taken_path)  # what is appended from now on is in another file
            with open(taken_path, "rb") as file:
                lines = file.read(MOST_SPOOLED).splitlines()
            os.unlink(taken_path)
        except OSError:  # there is none
            return []
        rows = [line.split(b"\t", 2) for line in lines]
        return [
            HookCall(os.fsdecode(row[0]), os.fsdecode(row[1]), (), payload=row[2], environ=fields.environ)
            for row in rows
            if len(row) == 3
        ]


def _make(answer: Callable[[], str]) -> str:
    try:
        return answer()
    except Exception:
        logger.exception("the answer to a hook failed")
        return ""
