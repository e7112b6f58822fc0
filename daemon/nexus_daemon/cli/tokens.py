"""Count the tokens of files, exactly where the model's vocabulary is known, else as a labelled estimate."""

import argparse
import sys
from pathlib import Path

from nexus_context import files
from nexus_context.tokens import counter_for, get_token_counter

HELP = "count the tokens of files"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help="a text file, or - for standard input")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--model", help="count for this model (default: o200k_base)")
    which.add_argument("--encoding", choices=("o200k_base", "cl100k_base"), help="count with this vocabulary")


def run(options: argparse.Namespace) -> int:
    if options.model:
        counter = counter_for(options.model)
    else:
        counter = get_token_counter(encoding=options.encoding or "o200k_base")
    mark = "" if counter.exact else "≈"
    total, failed = 0, False
    for name in options.files:
        text = _read(name)
        if text is None:
            failed = True
            continue
        count = counter.count(text)
        total += count
        print(f"{mark}{count:>9,}  {name}")
    if len(options.files) > 1:
        print(f"{mark}{total:>9,}  total")
    print(f"counted with {counter.name}" + ("" if counter.exact else ", an estimate for this model"))
    return 1 if failed else 0


def _read(name: str) -> str | None:
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    read = files.read_text(str(Path(name).absolute()), limit=1 << 30)
    if read.text is not None:
        return read.text
    why = read.problems[0].message if read.problems else "The file does not exist."
    sys.stderr.write(f"nexus tokens: {name}: {why}\n")
    return None
