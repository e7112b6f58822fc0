"""Show on one screen which assistants are in use in a folder, what they read, what is wrong, and what runs.

`nexus` without a command prints this for the current directory.
"""

import argparse

from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, folder_of


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", nargs="?", default=".", help="a folder (default: .)")


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.path))
    if folder is None:
        output.complain("overview", f"{options.path} does not exist.")
        return 2
    from nexus_daemon.cli import folder_overview  # which needs what other commands do

    folder_overview.print_overview(folder, options.path)
    return 0
