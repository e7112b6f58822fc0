"""Run the language server on standard input and output.

Editors start this command; editors/ shows how. It ends when the editor does.
"""

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from nexus_daemon.cli import output
from nexus_daemon.process.lean_imports import import_lean

if TYPE_CHECKING:
    import argparse

    from nexus_daemon.lsp.first_message import Opening
    from nexus_daemon.windows.daemon import Daemon


SWITCH_S = 0.000_5
"""Seconds for which a worker thread may keep the interpreter: with Python's 5 ms, edits feel slow."""


def arguments(command: "argparse.ArgumentParser") -> None:
    command.add_argument("--stdio", action="store_true", help="the default; some editors add it")
    command.add_argument(
        "--remote",
        choices=("auto", "off"),
        default="off",
        help="auto: use the daemon that all windows share, and start it where none runs (default: off)",
    )
    endpoint = command.add_mutually_exclusive_group()
    endpoint.add_argument(
        "--socket", metavar="PATH", help="serve any number of clients at a Unix socket instead"
    )
    endpoint.add_argument(
        "--tcp",
        metavar="PORT",
        type=int,
        help="serve any number of clients on a port of 127.0.0.1 instead (0: any); they need its token",
    )


def run(options: "argparse.Namespace | None") -> int:
    """Serve until the client leaves, which ends the process. At a socket or port, serve until a signal."""
    socket, port = getattr(options, "socket", None), getattr(options, "tcp", None)
    if socket is not None or port is not None:
        return _serve_directly(socket, port)
    return _serve_stdio()


def _serve_directly(path: str | None, port: int | None) -> int:
    from nexus_daemon.shared import process
    from nexus_daemon.shared.identity import NoSharedDaemonError

    try:
        if path is not None:
            output.beside(f"nexus serve listens at {path}. Ctrl-C ends it.\n")
            return process.run_at(path)
        return process.run_on_loopback(port or 0, _report_port)
    except (OSError, OverflowError, NoSharedDaemonError) as error:
        output.complain("serve", f"cannot listen: {getattr(error, 'strerror', None) or error}")
        return 1


def _report_port(port: int, token: str) -> None:
    output.beside(f"nexus serve listens on 127.0.0.1:{port}; the token is in {token}. Ctrl-C ends it.\n")


def _serve_stdio() -> NoReturn:
    if sys.stdin is not None and sys.stdin.isatty():
        output.beside(
            "nexus serve reads LSP messages from standard input; editors start it. Ctrl-C ends it.\n"
        )
    from nexus_daemon.api.methods import OFFER
    from nexus_daemon.lsp.first_message import answer_first_message, take_stdio

    streams = take_stdio()
    opening = answer_first_message(OFFER, *streams)
    import_lean("asyncio")
    import asyncio
    import logging

    sys.setswitchinterval(SWITCH_S)
    code = asyncio.run(_serve(streams, opening))
    # every reply is written. Python's own exit would wait for the threads: until a long text is counted, or
    # forever on a dead file system
    logging.shutdown()
    with suppress(OSError):
        output.flush()
    os._exit(code)


async def _serve(streams: tuple[int, int], opening: "Opening") -> int:
    from functools import partial

    from nexus_daemon.lsp.stdio import serve_stdio
    from nexus_daemon.server import build

    started: list[Daemon] = []

    def start() -> "Daemon":
        from nexus_daemon.cli.folder import load_inputs
        from nexus_daemon.windows.daemon import Daemon

        started.append(Daemon(load_inputs()))
        return started[-1]

    try:
        return await serve_stdio(partial(build, start), streams, opening)
    finally:
        for daemon in started:
            await daemon.close()
