"""The command `nexus`: one module per command, each imported only when it runs."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from nexus_daemon.cli import output
from nexus_daemon.version import __version__

COMMANDS = (
    "serve",
    "check",
    "show",
    "tokens",
    "sessions",
    "agents",
    "memory",
    "knowledge",
    "skill",
    "status",
    "stop",
    "init",
    "schema",
)

_EPILOG = """\
Start with `nexus check` in a project, then `nexus show --tokens`.
Configuration is read from ~/.nexus3 (or $NEXUS_HOME), then from .nexus3 in each folder above the project,
then from .nexus3 in the project itself.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 success, 1 failure or problems, 2 usage, 130 interrupted."""
    with output.guarded():
        try:
            return _main(list(sys.argv[1:] if argv is None else argv))
        except KeyboardInterrupt:
            output.beside("\n")
            return 130


def _main(arguments: list[str]) -> int:
    if arguments[:1] == ["--init-global"]:
        arguments[:1] = ["init", "--global"]
    if arguments[:1] == ["serve"] and len(arguments) == 1:
        return _run("serve", argparse.Namespace())  # an editor waits: build no parser
    if arguments[:1] != ["serve"]:
        output.replace_unencodable()
    options = _parsed(arguments)
    try:
        return _run(options.command, options)
    except BrokenPipeError:
        # the reader of the output (head, less) has closed it
        output.close_beside()
        return 0


def _parsed(arguments: list[str]) -> argparse.Namespace:
    top = parser()
    options, rest = top.parse_known_args(arguments)
    if rest:
        take = getattr(importlib.import_module(f"nexus_daemon.cli.{options.command}"), "take", None)
        if take is None or not take(options, rest):
            top.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line: for --help, completion and the docs."""
    top = argparse.ArgumentParser(
        prog="nexus",
        description="The context engine of the editor: what the model sees, what it costs, what broke.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"nexus {__version__}")
    top.add_argument("--init-global", action="store_true", help="the same as: nexus init --global")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = importlib.import_module(f"nexus_daemon.cli.{name}")
        epilog = getattr(module, "EPILOG", None)
        form = argparse.RawDescriptionHelpFormatter if epilog else argparse.HelpFormatter
        command = commands.add_parser(
            name, help=module.HELP, description=module.__doc__, epilog=epilog, formatter_class=form
        )
        module.arguments(command)
    return top


def _run(command: str, options: argparse.Namespace) -> int:
    module = importlib.import_module(f"nexus_daemon.cli.{command}")
    code: int = module.run(options)
    return code
