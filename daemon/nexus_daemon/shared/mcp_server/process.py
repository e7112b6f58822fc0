"""Run the process of `nexus mcp`, from its start to its end."""

import os
import signal

from nexus_daemon.shared.mcp_server.call_runner import CallRunner
from nexus_daemon.shared.mcp_server.stdio_server import StdioServer
from nexus_daemon.shared.mcp_server.workspace_folders import WorkspaceFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from nexus_daemon.shared.mcp_server.call_runner import RunHere


def serve(
    run_here: "RunHere",
    folders: "tuple[str, ...] | list[str]" = (),
    *,
    writes: bool = False,
    assistant: str | None = None,
    options: tuple[str, ...] = (),
    uses_daemon: bool = True,
) -> "NoReturn":
    """Serve the client at standard input and output, and end the process.

    `folders` are those of the command line. `options` are added to the command line of every call.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # some clients end their servers so
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # nothing else may write between the messages
    directory = _working_directory()
    paths = tuple(os.path.normpath(os.path.join(directory, folder)) for folder in folders)
    server = StdioServer(
        folders=WorkspaceFolders(paths, directory),
        writes=writes,
        execute=CallRunner(run_here, assistant=assistant, options=options, uses_daemon=uses_daemon).run,
        write=lambda data: _write(stdout, data),
    )
    try:
        server.serve(lambda size: os.read(stdin, size))
    except OSError:  # the client is gone
        os._exit(1)
    os._exit(0)


def _working_directory() -> str:
    """The working directory; where it was, if it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return os.path.abspath(os.path.join(os.sep, os.environ.get("PWD", "")))


def _write(descriptor: int, data: bytes) -> None:
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]
