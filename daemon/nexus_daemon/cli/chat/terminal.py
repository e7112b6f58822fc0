"""Makes the terminal a client of the daemon: it shows what is streamed, and answers questions about tools."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from nexus_context.config.patterns import Patterns
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.chat.screen import Screen, short_json
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.failures import METHOD_NOT_FOUND, ClientError
from nexus_daemon.protocol.chat import ChatParams

LONGEST_ARGUMENTS = 2_000
"""Characters of a call's arguments that the question shows."""


class Terminal(NexusServer):
    """The client of a connection, as the daemon sees it: this terminal.

    A tool whose name is among the patterns `allowed` runs without a question.
    """

    def __init__(self, screen: Screen, allowed: Sequence[str]) -> None:
        super().__init__()
        self._screen = screen
        self._allowed = Patterns(tuple(allowed)) if allowed else None
        self._asking = asyncio.Lock()

    def notify(self, method: str, params: Any = None) -> None:  # noqa: ARG002 - of the base class
        if isinstance(params, ChatParams):
            self._screen.show(params.value)

    async def request(
        self, method: str, params: Any = None, result_type: Any = None, *, timeout_s: float | None = None
    ) -> Any:
        if method != "nexus/tool/approve":
            raise ClientError(METHOD_NOT_FOUND, f"There is no method {method}.")
        if self._allowed is not None and self._allowed.matches(params.tool):
            return result_type(approved=True)
        if not output.can_ask():
            return result_type()
        async with self._asking:
            self._screen.flush()
            _drop_typed()
            return await asyncio.wait_for(_ask(params), timeout_s)


async def _ask(question: protocol.ToolApproveParams) -> protocol.ToolApproveResult:
    arguments = visible_line(short_json(question.arguments, LONGEST_ARGUMENTS))
    server_label = "" if question.server is None else f" of the MCP server {visible_line(question.server)}"
    agent = "" if question.agent is None else f"Agent {visible_line(question.agent)} calls "
    output.beside(f"{agent}{visible_line(question.tool)}{server_label}: {arguments}\n")
    output.beside("Run it? [y]es, [a]lways in this conversation, [N]o: ")
    answer = (await _read_line()).strip().lower()
    return protocol.ToolApproveResult(
        approved=answer in ("y", "yes", "a", "always"), remember=answer in ("a", "always")
    )


def _drop_typed() -> None:
    """Forget what was typed before a question was shown: it does not answer it."""
    with suppress(ImportError):  # Windows
        from termios import TCIFLUSH, tcflush

        tcflush(sys.stdin.fileno(), TCIFLUSH)


async def _read_line() -> str:
    """A line of standard input; Ctrl-C and a timeout end the wait."""
    loop, is_typed = asyncio.get_running_loop(), asyncio.Event()
    descriptor = sys.stdin.fileno()
    try:
        loop.add_reader(descriptor, is_typed.set)
    except NotImplementedError:  # Windows
        return sys.stdin.readline()
    try:
        await is_typed.wait()
    finally:
        loop.remove_reader(descriptor)
    return sys.stdin.readline()
