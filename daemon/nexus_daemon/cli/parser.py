"""Parses the command line. It imports the module of a command only to parse that command."""

import argparse
import importlib
from collections.abc import Sequence
from typing import Any, NoReturn

from nexus_daemon.cli.commands import COMMANDS, GROUPS
from nexus_daemon.cli.invocation import LocalOnlyError, RemoteInvocation, current
from nexus_daemon.process.version import __version__

_EPILOG = """\
Start with `nexus` in a project, then `nexus check`.
Configuration is read from ~/.nexus3 (or $NEXUS_HOME), then from .nexus3 in each folder above the project,
then from .nexus3 in the project itself.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    SystemExit after help, a version or wrong usage has been printed. LocalOnlyError if another process has to
    print it.
    """
    top = parser(arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else tuple(COMMANDS))
    options, unknown_arguments = top.parse_known_args(arguments)
    if unknown_arguments:
        take = getattr(importlib.import_module(f"nexus_daemon.cli.{options.command}"), "take", None)
        if take is None or not take(options, unknown_arguments):
            top.error(f"unrecognized arguments: {' '.join(unknown_arguments)}")
    return options


def parser(names: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of these commands. To build the parsers of all takes longer than to parse."""
    top = _Parser(
        prog="nexus",
        description=_description(names),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"nexus {__version__}")
    top.add_argument("--init-global", action="store_true", help="the same as: nexus init --global")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="nexus", parser_class=_CommandParser
    )
    for name in names:
        commands.add_parser(name).command = name
    return top


def _description(names: Sequence[str]) -> str:
    """What `nexus` is, and these commands by what people want to do."""
    width = max(map(len, COMMANDS))
    groups = (
        "\n".join((f"{title}:", *(f"  {name:<{width}}  {COMMANDS[name]}" for name in group if name in names)))
        for title, group in GROUPS.items()
    )
    return "\n\n".join(("The context engine of the editor: what the model sees, what it costs.", *groups))


class _Parser(argparse.ArgumentParser):
    """A parser that prints in its own process only, where it lays out texts as the interpreter does."""

    def print_help(self, file: Any = None) -> None:
        _stay_local()
        super().print_help(file)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        _stay_local()
        super().exit(status, message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check as argparse does, and suggest a similar choice."""
        if action.choices is not None and value not in action.choices:
            from difflib import get_close_matches  # for mistakes only

            suggestions = get_close_matches(str(value), map(str, action.choices), 1)
            if suggestions:
                raise argparse.ArgumentError(action, f"{value!r} is unknown; did you mean {suggestions[0]}?")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        _stay_local()
        super().error(message)


def _stay_local() -> None:
    if isinstance(current(), RemoteInvocation):
        raise LocalOnlyError


class _CommandParser(_Parser):
    """The parser of a command, which gets its options when it first parses, or of one of its actions."""

    command: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.command is not None:
            command, self.command = self.command, None
            self._complete(command)
        return super().parse_known_args(args, namespace)

    def _complete(self, command: str) -> None:
        module = importlib.import_module(f"nexus_daemon.cli.{command}")
        self.description = module.__doc__
        self.epilog = getattr(module, "EPILOG", None)
        if self.epilog:
            self.formatter_class = argparse.RawDescriptionHelpFormatter
        module.arguments(self)
