"""Defines the option `--for` of commands: an assistant, and what goes with it."""

import argparse

from nexus_context.assistants.programs import PROGRAMS

ALL = "all"
NEXUS = "nexus"
_WITH_FOR = {"command", "path", "assistant", "tokens", "source", "layers", "format", "turn"}


def add_option(command: argparse.ArgumentParser, text: str, *, besides: tuple[str, ...] = ()) -> None:
    """Add `--for` with its help. `besides` are names that are allowed besides those of assistants."""
    command.add_argument("--for", dest="assistant", choices=(*PROGRAMS, *besides, ALL), help=text)


def tokens(text: str) -> int:
    """Read a number of tokens. Commas and underscores may separate its digits."""
    digits = text.replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text} is not a number of tokens")
    return int(digits)


def wrong_usage(options: argparse.Namespace) -> str | None:
    """Return the message if an option does not go with `--for`, else None."""
    option = option_of_nexus(options)
    if option is None:
        return None
    if option.startswith("--format"):
        return f"{option} is a request of Nexus; --for has text and json."
    return f"--for does not go with {option}, which is about requests of Nexus."


def option_of_nexus(options: argparse.Namespace) -> str | None:
    """Return an option that is only about requests of Nexus. None if each goes with any assistant."""
    nexus_options = [name for name, value in vars(options).items() if name not in _WITH_FOR and value]
    if nexus_options:
        return f"--{nexus_options[0].replace('_', '-')}"
    return None if options.format in ("text", "json") else f"--format {options.format}"
