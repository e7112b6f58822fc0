"""Serve an editor: a language server on standard input and output.

An editor starts this command; see editors/ for how. It ends with the editor.
"""

import argparse
import asyncio
import logging
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from nexus_daemon.cli import output

if TYPE_CHECKING:
    from nexus_daemon.state import Daemon

HELP = "run the language server on standard input and output (an editor starts it)"


SWITCH_S = 0.000_5
"""Seconds that a worker thread may keep the interpreter while an edit waits; Python's own 5 ms are felt."""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--stdio", action="store_true", help="accepted for editors that add it; the default")


def run(_: argparse.Namespace) -> NoReturn:
    if sys.stdin is not None and sys.stdin.isatty():
        output.beside("nexus serve speaks LSP on standard input; an editor starts it. Ctrl-C to end.\n")
    sys.setswitchinterval(SWITCH_S)
    code = asyncio.run(_serve())
    # everything is answered and written. What a thread still does nobody waits for, and Python's own way
    # out would: until a long text is counted, or for good on a dead file system
    logging.shutdown()
    output.flush()
    os._exit(code)


async def _serve() -> int:
    from functools import partial

    from nexus_daemon.lsp.stdio import serve_stdio
    from nexus_daemon.server import OFFER, build

    started: list[Daemon] = []

    def start() -> "Daemon":
        from nexus_daemon.cli.process_environment import load_inputs
        from nexus_daemon.state import Daemon

        started.append(Daemon(load_inputs()))
        return started[-1]

    try:
        return await serve_stdio(partial(build, start), offer=OFFER)
    finally:
        for daemon in started:
            await daemon.close()
