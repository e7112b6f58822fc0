"""Count the tokens of files, also of all below a directory.

The count is exact if the model's vocabulary is known, else a labelled estimate.

With --accuracy: how wrong the counts of requests have been, for each family of models, by what providers
counted.
"""

import argparse
import glob
import os
import sys
from collections.abc import Iterator

from nexus_context.disk import files
from nexus_context.tokens import counter_for, get_token_counter
from nexus_daemon.api.tokens import not_utf8
from nexus_daemon.cli import invocation, output

NOT_EXACT = "The count is an estimate: it covers only what could be read."
NOT_ENTERED = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__"})
"""Directories whose files are not counted with those around them."""
_FILE = "a text file, a directory or a quoted glob such as 'docs/**/*.md', or - for standard input"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="*", metavar="FILE", help=_FILE)
    command.add_argument(
        "--accuracy", action="store_true", help="show how wrong our counts of requests have been"
    )
    command.add_argument("--json", action="store_true", help="print JSON (with --accuracy)")
    counter_choice = command.add_mutually_exclusive_group()
    counter_choice.add_argument("--model", help="count for this model (default: o200k_base)")
    counter_choice.add_argument(
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
    names = {name: is_named for argument in options.files for name, is_named in _files(argument)}
    file_count = 0
    for name, is_named in names.items():
        file_read = _read(name)
        if not is_named and (file_read.text is None or not_utf8(file_read) or "\0" in file_read.text):
            continue  # of a directory, only the texts count
        if file_read.text is None:
            why = file_read.problems[0].message if file_read.problems else "The file does not exist."
            output.complain("tokens", f"{name}: {why}")
            failed = True
            continue
        odd = not_utf8(file_read)
        for problem in odd:
            output.complain("tokens", f"{name}: {problem.message} {NOT_EXACT}")
        exact = exact and not odd
        count = counter.count(file_read.text)
        total += count
        file_count += 1
        output.line(f"{_mark(counter.exact and not odd)}{count:>9,}  {name}")
    if not file_count and not failed:
        output.complain("tokens", f"{' '.join(options.files)}: there is no text file.")
        return 1
    if len(options.files) > 1 or file_count > 1:
        output.line(f"{_mark(exact)}{total:>9,}  total")
    output.line(f"counted with {counter.name}" + ("" if counter.exact else ", an estimate for this model"))
    return 1 if failed else 0


def _mark(exact: bool) -> str:
    return "" if exact else "≈"


def _files(name: str) -> Iterator[tuple[str, bool]]:
    """The file, or those below the directory or of the glob; with each, whether it is named itself."""
    cwd = invocation.current().cwd
    path = os.path.join(cwd, name)
    if not os.path.lexists(path) and glob.has_magic(name):
        for match in sorted(glob.glob(name, root_dir=cwd, recursive=True)):
            if NOT_ENTERED.isdisjoint(match.split(os.sep)):
                yield from ((file_name, False) for file_name, _ in _files(match))
        return
    if not files.is_dir(path):
        yield name, True
    for parent, directories, entries in os.walk(path):
        directories[:] = sorted(set(directories) - NOT_ENTERED)
        directory = os.path.join(name, os.path.relpath(parent, path))
        yield from ((os.path.normpath(os.path.join(directory, entry)), False) for entry in sorted(entries))


def _read(name: str) -> files.FileRead:
    if name == "-":
        return files.decode(name, sys.stdin.buffer.read())
    return files.read_text(os.path.join(invocation.current().cwd, name), limit=1 << 30)
