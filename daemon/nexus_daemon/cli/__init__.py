"""Runs the command `nexus`: one module per command, each imported only when it runs."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command; return its exit code: 0 success, 1 failure or problems, 2 usage, 130 interrupted.

    Without `argv`, the arguments are those of this process, and the shared daemon runs the command if there
    is one.
    """
    code = run_warm(sys.argv[1:]) if argv is None else None
    return run_here(list(sys.argv[1:] if argv is None else argv)) if code is None else code


def run_warm(arguments: list[str]) -> int | None:
    """Run a command in the shared daemon, and return its exit code. None if this process has to run it."""
    from nexus_daemon.cli.commands import may_run_warm

    if not may_run_warm(arguments):
        return None
    from nexus_daemon.shared import command_client

    return command_client.run(arguments)


def run_here(arguments: list[str]) -> int:
    """Run a command in this process, and return its exit code."""
    from nexus_daemon.process.lean_imports import import_lean

    import_lean("msgspec")  # which nearly every command needs
    from nexus_daemon.cli import output

    with output.guarded():
        try:
            code = _main(arguments)
        except KeyboardInterrupt:
            output.beside("\n")
            code = 130
        except BrokenPipeError:  # the reader of the output (head, less) has closed it
            output.drop()
            code = 0
        return output.finish(code)


def _main(arguments: list[str]) -> int:
    from nexus_daemon.cli import output

    if arguments[:1] == ["--init-global"]:
        arguments[:1] = ["init", "--global"]
    if arguments == ["serve"]:
        return _run("serve")  # an editor waits: build no parser
    if arguments[:1] != ["serve"]:
        output.replace_unencodable()
    from nexus_daemon.cli.commands import COMMANDS, OVERVIEW
    from nexus_daemon.cli.parser import parse

    if not arguments or (arguments[0] not in COMMANDS and os.path.isdir(arguments[0])):
        arguments = [OVERVIEW, *arguments]
    options = parse(arguments)
    return _run(options.command, options)


def _run(command: str, options: "argparse.Namespace | None" = None) -> int:
    import importlib

    module = importlib.import_module(f"nexus_daemon.cli.{command}")
    try:
        code: int = module.run(options)
    except OSError as error:
        from nexus_context.disk.user_state import NoStateDirectoryError
        from nexus_daemon.cli import output

        if not isinstance(error, NoStateDirectoryError):
            raise
        output.complain(command, str(error))
        return 1
    return code
