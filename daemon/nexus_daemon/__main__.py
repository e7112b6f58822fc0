"""`python -m nexus_daemon` and the command `nexus`: they import nothing from the folder they start in.

`python -m` itself looks for Nexus and a few modules of Python there, before a line of ours runs. In a folder
that may hold anything, start `nexus` or `python -P -m nexus_daemon`.

1. `python -m` puts the working directory first. So does an empty entry of PYTHONPATH; a relative one names
   something in it. Start-up makes such entries absolute, so they are known by where they lead.
2. All of them stand before the standard library. What stands behind it belongs to the installation.
3. The directory that Nexus itself came from stays, as the last one: all other packages come from elsewhere.
4. Nothing may be imported before `clean_path` but what every interpreter has imported by then.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nexus_daemon.shared.command_runner import CommandRequest, Send

GC_THRESHOLD = 200_000  # new objects between two collections: imports create thousands, and no garbage


def main() -> int:
    """Run the command line with a clean search path; end the process with its exit code.

    Python's own exit frees every object first, a tenth of the time of `nexus check`.
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
    """Remove from `sys.path` what lies in the working directory, or depends on it."""
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
