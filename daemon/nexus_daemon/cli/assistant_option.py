"""The option `--for` of commands: another assistant instead of Nexus, and where it would run."""

import argparse
from typing import TYPE_CHECKING

from nexus_context.assistants.programs import PROGRAMS

if TYPE_CHECKING:
    pass

ALL = "all"
_WITH_FOR = {"command", "path", "assistant", "tokens", "source", "layers", "format", "turn"}


def add_option(command: argparse.ArgumentParser, text: str) -> None:
    """Add `--for`, with its help."""
    command.add_argument("--for", dest="assistant", choices=(*PROGRAMS, ALL), help=text)


def tokens(text: str) -> int:
    """A number of tokens; commas and underscores may part its digits."""
    digits = text.replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text} is not a number of tokens")
    return int(digits)


def wrong_usage(options: argparse.Namespace) -> str | None:
    """Options that say nothing about another assistant."""
    if options.assistant is None:
        return None
    other = [name for name, value in vars(options).items() if name not in _WITH_FOR and value]
    if other:
        return f"--for does not go with --{other[0].replace('_', '-')}, which is about requests of Nexus."
    if options.format not in ("text", "json"):
        return f"--format {options.format} is a request of Nexus; --for has text and json."
    return None
