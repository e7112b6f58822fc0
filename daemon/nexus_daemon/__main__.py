"""Start `nexus` and `python -m nexus_daemon` without importing anything from the working directory.

Before a line of this module runs, `python -m` itself looks for Nexus and a few modules of Python in the
working directory. In a folder that may hold anything, start `nexus` or `python -P -m nexus_daemon`.

1. `python -m` puts the working directory first in `sys.path`. An empty entry of PYTHONPATH means that
   directory, too, and a relative entry means a directory in it. Python makes such entries absolute at
   start-up, so they are recognized by the directory that they lead to.
2. All such entries come before the standard library. Entries after the standard library belong to the
   installation.
3. The directory that Nexus itself came from stays, as the last entry: all other packages come from elsewhere.
4. Before `clean_path` has run, only modules that every interpreter has imported by then may be imported.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nexus_daemon.shared.command_runner import CommandRequest, Send

GC_THRESHOLD = 200_000  # new objects between two collections: imports create thousands, and no garbage


def main() -> int:
    """Run the command line with a clean search path, and end the process with its exit code.

    The process ends without Python's own exit, which would first free every object. That takes a tenth of the
    time of `nexus check`.
    """
    clean_path()
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        from nexus_daemon.shared import hook_client

        os._exit(hook_client.run(sys.argv[2:]))
    if sys.argv[1:] == ["--version"]:
        from nexus_daemon.process import version

        if version.print_version():
            os._exit(0)
    import gc

    gc.set_threshold(GC_THRESHOLD, 20, 50)
    if sys.argv[1:2] == ["serve"]:
        from nexus_daemon.shared import entry

        code = entry.main(sys.argv[2:], _run_command)
        if code is not None:
            return code
    if sys.argv[1:] == ["statusline"]:
        from nexus_daemon.cli import statusline

        os._exit(statusline.run())
    if sys.argv[1:] == ["mcp"] and not os.isatty(0):
        from nexus_daemon.cli import mcp
        from nexus_daemon.shared.mcp_server import process

        process.serve(mcp.run_here)
    import atexit

    from nexus_daemon import cli

    code = cli.main()  # everything is written
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name
    os._exit(code)


def _run_command(request: "CommandRequest", send: "Send") -> int | None:
    """Run a command of another process: commands are above the daemon that runs them."""
    from nexus_daemon.cli import warm

    return warm.run_for(request, send)


def clean_path() -> None:
    """Remove the entries of `sys.path` that are the working directory or are relative to it."""
    library_index = _library_at(sys.path)
    sys.path[:library_index] = [entry for entry in sys.path[:library_index] if not _is_unsafe(entry)]
    installation = os.path.dirname(os.path.dirname(__file__))
    if installation not in sys.path:
        sys.path.append(installation)


def _library_at(entries: list[str]) -> int:
    """Return the index of the first entry of the standard library, or `len(entries)`."""
    library = os.path.dirname(os.__file__)
    library_parent = os.path.dirname(library)  # where its archive would be
    for index, entry in enumerate(entries):
        if entry == library or (entry.endswith(".zip") and os.path.dirname(entry) == library_parent):
            return index
    return len(entries)


def _is_unsafe(entry: str) -> bool:
    if not os.path.isabs(entry):
        return True
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it has been removed: nothing can be imported from it
        return False
    relative = [
        path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not os.path.isabs(path)
    ]
    real = os.path.realpath(entry)
    if real == here or real in (os.path.realpath(os.path.join(here, path)) for path in relative):
        return True
    return here != os.path.dirname(here) and real.startswith(here + os.sep)


if __name__ == "__main__":
    sys.exit(main())
