"""List, show, search, export, import, fork, rename, delete, verify and back up conversations of the ledger.

A session belongs to a folder: that of --folder, else the current one. Editors call theirs main unless they
say otherwise.
"""

import argparse
import importlib
from typing import NamedTuple

from nexus_context.errors import RequestError
from nexus_daemon.cli import output

HELP = "list, search, export, import and verify conversations"

EPILOG = """\
examples:
  nexus sessions list --all
  nexus sessions search 'disk full' --all
  nexus sessions export main --format markdown -o main.md
  nexus sessions import ~/.claude/projects/*/*.jsonl
  nexus sessions fork main second-try --turn 12
  nexus sessions verify
  nexus sessions backup ~/backups/ledger-today.db

The ledger is $NEXUS_STATE/ledger.db, else ledger.db in the user's state directory, else what ledger.path of
the global config.json names.

exit codes: 0 fine; 1 it could not be done, or not all of it; 2 wrong usage
"""

SEARCH = """\
All words must occur; upper and lower case and accents make no difference.
  disk full       both words, anywhere in a message
  '"disk full"'   side by side, in this order
  'work*'         words that begin so
  'disk -full'    messages with the one and without the other
In scripts without spaces between words, a word is found anywhere in the text.
The search covers texts, tool calls with their arguments, and tool results, including those that a compaction
replaced.
"""

IMPORT = """\
It reads, as JSON lines or as a list, plain or gzipped:
  exports of nexus sessions export --format jsonl
  session files of Claude Code (~/.claude/projects/*/*.jsonl), with the messages before their compactions
  messages or bodies of requests in the form of OpenAI or of Anthropic
  tau-bench's records, one session each
A conversation that the folder already has from a file of this name is not imported again. If the file has
newer turns, the session is continued, provided that name, system prompt and model are the same, or Claude
Code's session id is.
Tokens are counted for the model of the conversation, else for the folder's model.
Each line is imported exactly, or left out with a message that names file, line and reason. One exception:
half a surrogate pair in another program's file becomes U+FFFD.

Limits, of the unpacked file: 64 MiB for files of other programs; 1 GiB for exports, and 64 MiB for each of
their lines; 10 million JSON values. Beyond 16 MiB, a file must not unpack to more than 250 times its size.
"""

VERIFY = """\
Each turn has a checksum over its content and the turn before it. This command checks every turn in the
sessions of all folders, and the database file itself. Exit code 1 if anything was changed or lost.

A small file beside the ledger, ledger.db.witness, records the last acknowledged write. A ledger without that
write was cut, replaced or restored from an older copy; it is set aside when opened. To restore a backup:
  cp ledger-today.db ~/.local/state/nexus/restored.db
  nexus sessions verify --accept ~/.local/state/nexus/restored.db
The second command moves that file to the ledger's place, and sets aside the ledger that was there.
"""

BACKUP = """\
Copies the ledger as it is at one moment into one file, even while other programs write to it. The copy is
verified before it gets its name, only you can read it, and an existing file is never overwritten. The exit
code is also 1 where the ledger was set aside when it was opened: the copy is then of the new one.
"""

SALVAGE = "Bring what can still be read of a ledger that was set aside as broken into the one in use."


class _Action(NamedTuple):
    """One thing to do: the module that does it, help, and longer text below the options."""

    module: str
    help: str
    epilog: str | None = None


ACTIONS = {
    "list": _Action("list_show", "list the sessions of a folder, those that changed last first"),
    "show": _Action("list_show", "show the messages of a session, a line each"),
    "search": _Action("list_show", "find messages by their words", SEARCH),
    "export": _Action("transfer", "write a session to a file: all of it as JSON lines, or for reading"),
    "import": _Action("transfer", "read conversations from files, also of other programs", IMPORT),
    "fork": _Action("change", "begin a session that shares the turns of another"),
    "rename": _Action("change", "give a session another name"),
    "delete": _Action("change", "remove sessions for good"),
    "verify": _Action("verifying", "check that no turn was changed or lost", VERIFY),
    "backup": _Action("verifying", "copy the ledger while it is in use", BACKUP),
    "salvage": _Action("change", "recover what a broken ledger still holds", SALVAGE),
}


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, action in ACTIONS.items():
        form = argparse.RawDescriptionHelpFormatter
        made = actions.add_parser(name, help=action.help, epilog=action.epilog, formatter_class=form)
        made.description = f"{action.help[:1].upper()}{action.help[1:]}."
        _OPTIONS[name](made)
        if name not in ("salvage", "verify", "backup"):
            made.add_argument(
                "--folder", default=".", metavar="PATH", help="the folder of the session (default: .)"
            )


def run(options: argparse.Namespace) -> int:
    module = importlib.import_module(f"nexus_daemon.cli.sessions.{ACTIONS[options.action].module}")
    try:
        code: int = getattr(module, f"run_{options.action}")(options)
    except RequestError as error:
        output.complain("sessions", str(error))
        return 1
    return code


def take(options: argparse.Namespace, rest: list[str]) -> bool:
    """Take arguments that are no options: words that a search excludes; False where they are wrong usage."""
    if options.action != "search" or any(one.startswith("--") for one in rest):
        return False
    options.query += rest
    return True


# ---------------------------------------------------------------- options


def _list(command: argparse.ArgumentParser) -> None:
    _all(command, "list those of all folders")
    _json(command)


def _show(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument("--last", type=_number, metavar="N", help="the last N turns only")
    _json(command)


def _search(command: argparse.ArgumentParser) -> None:
    command.add_argument("query", nargs="+", metavar="WORD", help="what to look for; see below")
    command.add_argument("--session", metavar="NAME", help="in this session only")
    command.add_argument("--limit", type=_number, default=20, metavar="N", help="at most N (default: 20)")
    _all(command, "search the sessions of all folders")
    _json(command)


def _export(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument(
        "--format",
        choices=("jsonl", "markdown"),
        help="jsonl: everything, to be imported again; markdown: for reading (default: jsonl, or as the "
        "file's name ends)",
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file (default and -: print it)"
    )
    command.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def _import(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help="a file, or - for standard input")


def _fork(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument("to", metavar="NEW", help="name of the new session")
    command.add_argument(
        "--turn", metavar="N", help="share the turns up to this one, by number or id (default: all)"
    )


def _rename(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument("to", metavar="NEW", help="its new name")


def _delete(command: argparse.ArgumentParser) -> None:
    command.add_argument("sessions", nargs="+", metavar="SESSION", help="a session")
    command.add_argument("--yes", action="store_true", help="do not ask")


def _verify(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--accept",
        nargs="?",
        const="",
        metavar="FILE",
        help="first accept the ledger as complete, or put FILE, such as a backup, in its place",
    )
    _json(command)


def _backup(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="the file to write, which must not exist")


def _salvage(command: argparse.ArgumentParser) -> None:
    command.add_argument("broken", metavar="FILE", help="the ledger that was set aside: ledger.db.broken-…")
    command.add_argument(
        "--session",
        dest="sessions",
        action="append",
        metavar="NAME",
        help="only this session, which may be one of the ledger in use; may be repeated (default: all)",
    )
    command.add_argument(
        "--folder", default=".", metavar="PATH", help="the folder of the sessions named (default: .)"
    )


_OPTIONS = {
    "list": _list,
    "show": _show,
    "search": _search,
    "export": _export,
    "import": _import,
    "fork": _fork,
    "rename": _rename,
    "delete": _delete,
    "verify": _verify,
    "backup": _backup,
    "salvage": _salvage,
}


def _session(command: argparse.ArgumentParser) -> None:
    command.add_argument("session", metavar="SESSION", help="name of the session")


def _all(command: argparse.ArgumentParser, said: str) -> None:
    command.add_argument("--all", action="store_true", help=said)


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _number(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and int(given)):
        raise argparse.ArgumentTypeError(f"{given} is not a whole number of at least 1")
    return int(given)
