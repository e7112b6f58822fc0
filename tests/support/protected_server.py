"""A server of MCP that wants a sign-in, and the browser of its user."""

import contextlib
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from support.waiting import answers, block_until, free_port

PROGRAM = Path(__file__).resolve().parent / "mcp_auth_server.py"


@contextlib.contextmanager
def protected(directory: Path, mode: str = "") -> Iterator[str]:
    """The address of a server that wants a sign-in."""
    port = free_port()
    program = [sys.executable, str(PROGRAM), str(port), str(directory), mode]
    with subprocess.Popen(program) as process:
        try:
            block_until(lambda: answers(port), 20.0)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.send_signal(signal.SIGKILL)


def browse(page: str) -> str:
    """What the user sees in the end. OSError for an error of HTTP."""
    with urllib.request.urlopen(page, timeout=20) as answer:  # noqa: S310 - of our own server
        return str(answer.read().decode())
