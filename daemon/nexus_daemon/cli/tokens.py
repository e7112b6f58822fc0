"""Count the tokens of files: exactly if the model's vocabulary is known, else as a labelled estimate.

With --accuracy: how wrong the counts of requests have been, for each family of models, by what providers
counted.
"""

import argparse
import sys
from pathlib import Path

from nexus_context import files
from nexus_context.tokens import counter_for, get_token_counter
from nexus_daemon.api.tokens import not_utf8
from nexus_daemon.cli import invocation, output

NOT_EXACT = "The count is an estimate: it covers only what could be read."


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="*", metavar="FILE", help="a text file, or - for standard input")
    command.add_argument(
        "--accuracy", action="store_true", help="show how wrong our counts of requests have been"
    )
    command.add_argument("--json", action="store_true", help="print JSON (with --accuracy)")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--model", help="count for this model (default: o200k_base)")
    which.add_argument(
        "--encoding", choices=("o200k_base", "cl100k_base"), help="count with this vocabulary instead"
    )


def run(options: argparse.Namespace) -> int:
    if options.accuracy and not options.files:
        from nexus_daemon.cli import accuracy  # a count of files needs no ledger

        return accuracy.run(options)
    if options.accuracy or options.json or not options.files:
        message = "--accuracy takes no FILE" if options.accuracy else "name a FILE, or use --accuracy"
        output.complain("tokens", f"{message}; see nexus tokens --help.")
        return 2
    if options.model:
        counter = counter_for(options.model)
    else:
        counter = get_token_counter(encoding=options.encoding or "o200k_base")
    total, exact, failed = 0, counter.exact, False
    for name in options.files:
        read = _read(name)
        if read.text is None:
            why = read.problems[0].message if read.problems else "The file does not exist."
            output.complain("tokens", f"{name}: {why}")
            failed = True
            continue
        odd = not_utf8(read)
        for problem in odd:
            output.complain("tokens", f"{name}: {problem.message} {NOT_EXACT}")
        exact = exact and not odd
        count = counter.count(read.text)
        total += count
        output.line(f"{_mark(counter.exact and not odd)}{count:>9,}  {name}")
    if len(options.files) > 1:
        output.line(f"{_mark(exact)}{total:>9,}  total")
    output.line(f"counted with {counter.name}" + ("" if counter.exact else ", an estimate for this model"))
    return 1 if failed else 0


def _mark(exact: bool) -> str:
    return "" if exact else "≈"


def _read(name: str) -> files.FileRead:
    if name == "-":
        return files.decode(name, sys.stdin.buffer.read())
    return files.read_text(str(Path(invocation.current().cwd, name)), limit=1 << 30)
