"""Run the language server on standard input and output.

Editors start this command; editors/ shows how. It ends when the editor does.
"""

import argparse
import asyncio
import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from nexus_daemon.cli import output

if TYPE_CHECKING:
    from nexus_daemon.state import Daemon

HELP = "run the language server on standard input and output (for editors)"


SWITCH_S = 0.000_5
"""Seconds for which a worker thread may keep the interpreter: with Python's 5 ms, edits feel slow."""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--stdio", action="store_true", help="the default; some editors add it")
    command.add_argument(
        "--remote",
        choices=("auto", "off"),
        default="off",
        help="auto: use the daemon that all windows share, and start it where none runs (default: off)",
    )


def run(_: argparse.Namespace) -> NoReturn:
    if sys.stdin is not None and sys.stdin.isatty():
        output.beside(
            "nexus serve reads LSP messages from standard input; editors start it. Ctrl-C ends it.\n"
        )
    sys.setswitchinterval(SWITCH_S)
    code = asyncio.run(_serve())
    # every reply is written. Python's own exit would wait for the threads: until a long text is counted, or
    # forever on a dead file system
    logging.shutdown()
    output.flush()
    os._exit(code)


async def _serve() -> int:
    from nexus_daemon.lsp.stdio import serve_stdio
    from nexus_daemon.server import OFFER, build

    started: list[Daemon] = []

    def start() -> "Daemon":
        from nexus_daemon.cli.folder import load_inputs
        from nexus_daemon.state import Daemon

        started.append(Daemon(load_inputs()))
        return started[-1]

    try:
        return await serve_stdio(partial(build, start), offer=OFFER)
    finally:
        for daemon in started:
            await daemon.close()
