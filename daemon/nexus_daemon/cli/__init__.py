"""The command `nexus`: one module per command, each imported only when it runs."""

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nexus_daemon.cli import output

if TYPE_CHECKING:
    import argparse


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 success, 1 failure or problems, 2 usage, 130 interrupted."""
    with output.guarded():
        try:
            code = _main(list(sys.argv[1:] if argv is None else argv))
        except KeyboardInterrupt:
            output.beside("\n")
            code = 130
        except BrokenPipeError:  # the reader of the output (head, less) has closed it
            output.drop()
            code = 0
        return output.finish(code)


def _main(arguments: list[str]) -> int:
    if arguments[:1] == ["--init-global"]:
        arguments[:1] = ["init", "--global"]
    if arguments == ["serve"]:
        return _run("serve")  # an editor waits: build no parser
    if arguments[:1] != ["serve"]:
        output.replace_unencodable()
    from nexus_daemon.cli.parser import parse

    options = parse(arguments)
    return _run(options.command, options)


def _run(command: str, options: "argparse.Namespace | None" = None) -> int:
    module = importlib.import_module(f"nexus_daemon.cli.{command}")
    code: int = module.run(options)
    return code
