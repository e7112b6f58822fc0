"""Manage conversations: list, show, search, export, import, keep, append, compact, fork.

list, show and search have those of all programs, the others those in the ledger. A session is one
conversation of one folder: the current one, or that of --folder. The session that editors use by default is
called main.
"""

import argparse
import importlib
import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from nexus_context.assistants.programs import WITH_SESSIONS
from nexus_context.errors import RequestError
from nexus_daemon.cli import output

EPILOG = """\
examples:
  nexus sessions list --all
  nexus sessions list --assistants
  nexus sessions search 'disk full' --all
  nexus sessions export main --format markdown -o main.md
  nexus sessions import ~/.claude/projects/*/*.jsonl
  nexus sessions keep --all
  nexus sessions append main 'We deploy on Fridays.'
  nexus sessions compact main --pin 'Never touch prod.'
  nexus sessions undo main
  nexus sessions rebase main
  nexus sessions fork main second-try --turn 12
  nexus sessions verify
  nexus sessions backup ~/backups/ledger-today.db
  nexus sessions restore

The ledger is $NEXUS_STATE/ledger.db, else ledger.db in the user's state directory, else the file that
ledger.path of the global config.json names.

exit codes: 0 success; 1 failure, also of a part; 2 wrong usage
"""

ROLES = ("user", "assistant")
"""Roles of a message that is given as a text."""

LIST = """\
One list of Nexus's own conversations and those of Claude Code, Codex, opencode and Gemini CLI, in the folder,
in those inside it, and in those above it up to the home, the last turn first. A conversation that is kept
(nexus sessions keep) and its file are one row.

  session    the beginning of its id, for nexus sessions show
  folder     where it is, if not the folder itself
  last turn  in the conversation, not when it was imported or kept
  window     tokens of a program's last request; of others, what the next request would send
  cost       what its program states, else its sums by list prices; of Nexus's own none is known
  kept       whether the ledger has it

The last row is the sum. With --json, sessions has what the ledger keeps of the folder, conversations the
list, total the sum.
"""

SHOW = """\
A session of the folder, by its name or id. Else the session with this id of any program, in the folder,
inside it and above it, else in any folder: if it is not kept, it is read from its program's file, and the
tokens of its messages are estimates by length.
"""

SEARCH = """\
All words must occur; upper and lower case and accents make no difference.
  disk full       both words, anywhere in a message
  '"disk full"'   side by side, in this order
  'work*'         words that begin with work
  'disk -full'    messages with disk and without full
In scripts without spaces between words, a word is found anywhere in the text.
The search covers texts, tool calls with their arguments, and tool results, including those that a compaction
replaced, in the folder, in those inside it, and in those above it up to the home.

Conversations of Claude Code, Codex, opencode and Gemini CLI that are not kept (nexus sessions keep), or have
grown since, are searched in their files, the newest first; a line says how many these are. There, accents
make a difference, and letters beyond ASCII are found in lower, upper or title case. A session that you
deleted from the ledger is searched again when its file has grown.
"""

IMPORT = """\
Formats, plain or gzipped; the content of a file decides, not its name:
  exports of nexus sessions export --format jsonl
  Claude Code       ~/.claude/projects/*/*.jsonl; sub-agents become sessions of their own
  Codex             ~/.codex/sessions/**/rollout-*.jsonl, also the forms of older versions
  Gemini CLI        ~/.gemini/tmp/*/chats/*.jsonl
  opencode          opencode export SESSION
  aider             .aider.chat.history.md, one session for each start of aider
  Claude's web page conversations.json of a data export, one session for each chat
  SWE-agent         *.traj
  OpenHands         lists of events, and benchmark records with a history of events
  pydantic-ai       messages, as all_messages_json() writes them
  OpenAI            messages, request bodies, and items, requests and responses of the Responses API
  Anthropic         messages and request bodies
  Gemini            contents, requests and answers
  tau-bench         records, one session each
Messages before a compaction are imported, too. The command prints what it read, and what it left out and why;
with --json for programs.
A conversation that was imported from a file of the same name before is not imported again. If the file has
newer turns, the session is continued, provided that the id that its program gave it, or else its name, system
prompt and model, are the same.
Tokens are counted for the model of the conversation, else for the folder's model.
Each message is imported exactly, or left out with a message that names file, line and reason. A file that was
cut is imported up to the cut. One exception:
half a surrogate pair in another program's file becomes U+FFFD.

Limits for the unpacked file: 64 MiB for files of other programs; 1 GiB for exports, with at most 64 MiB per
line; 10 million JSON values. Beyond 16 MiB, a file must not unpack to more than 250 times its size.
"""

KEEP = """\
Each session of these programs becomes a session of the folder where it worked, with the same messages as
nexus sessions import gives. Run it again at any time, from cron for example: a file that has not changed is
not read, and one that has grown is read from where the last run ended. What the program deletes, cuts off or
takes back stays here. Sub-agents become sessions of their own. Nothing is written where the programs write.

If you continue a session here, what its program writes later goes to a fork. If you delete one here, it is
not kept again. What was imported from the same file before is continued. If the user went back in the
program, the new branch is a fork.

Token counts of such sessions are estimates by length until you open them. Secrets are kept as they are, and
covered in what search, show and list print; exports are complete.
"""

VERIFY = """\
Each turn has a checksum over its content and the turn before it. This command checks every turn in the
sessions of all folders, and the database file itself. Exit code 1 if anything was changed or lost.

A small file beside the ledger, ledger.db.witness, records the last acknowledged write. A ledger without that
write was cut, replaced or restored from an older copy; it is set aside when opened. If you put it there
yourself, --accept with the name that it was given puts it back. nexus sessions restore restores a backup.
"""

BACKUP = """\
Copies a consistent state of the ledger into one file, even while other programs write to it. The copy is
verified before it gets its name, only you can read it, and an existing file is never overwritten. The exit
code is also 1 if the ledger had to be set aside when it was opened: the copy is then that of the new one.
"""

RESTORE = """\
While an editor is open, its daemon copies the ledger once a day and verifies the copy; three stay, in
ledger.db.backups. This command puts a copy of one in the ledger's place, by default the newest intact one,
moves the ledger that was there beside it, and prints which turns the backup does not have. Editors may stay
open.
"""

SALVAGE = """\
Copies what SQLite can still read of a ledger that was set aside into the ledger in use, as separate sessions
with a new chain: sessions that are intact as they were, of others the turns whose messages are.
"""


def _list(command: argparse.ArgumentParser) -> None:
    _all(command, "list the conversations of all folders")
    command.add_argument(
        "--program", choices=("nexus", *WITH_SESSIONS), help="list only the conversations of one program"
    )
    command.add_argument(
        "--since",
        type=_time,
        metavar="WHEN",
        help="list only those whose last turn is not older: a day, as 2026-11-28, or 7d, 12h",
    )
    command.add_argument(
        "--assistants",
        action="store_true",
        help="list only the sessions that Claude Code, Codex, opencode and Gemini CLI have in their files",
    )
    _json(command)


def _show(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument("--last", type=_number, metavar="N", help="show only the last N turns")
    _json(command)


def _search(command: argparse.ArgumentParser) -> None:
    command.add_argument("query", nargs="+", metavar="WORD", help="a word to search for; see below")
    command.add_argument(
        "--session", metavar="NAME", help="search only this session; one of a program also by its id"
    )
    command.add_argument(
        "--limit",
        type=_number,
        default=20,
        metavar="N",
        help="print at most N messages of the ledger, and N of files (default: 20)",
    )
    _all(command, "search the sessions of all folders")
    _json(command)


def _export(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument(
        "--format",
        choices=("jsonl", "markdown"),
        help="jsonl: complete, for import; markdown: for reading (default: by the file's name, else jsonl)",
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file (default, or -: standard output)"
    )
    command.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def _import(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help="a file, or - for standard input")
    _json(command)


def _keep(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "folder",
        nargs="?",
        default=".",
        metavar="FOLDER",
        help="keep the sessions of this folder and those inside it (default: .)",
    )
    _all(command, "keep the sessions of all folders")
    command.add_argument("--assistant", choices=tuple(WITH_SESSIONS), help="keep only those of one assistant")
    _json(command)


def _append(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument("text", nargs="?", metavar="TEXT", help="the text of one message")
    command.add_argument("--role", choices=ROLES, help="the role of TEXT (default: user)")
    command.add_argument(
        "--messages",
        metavar="FILE",
        help="append the messages of this file as one turn, in any format of nexus sessions import; "
        "- for standard input",
    )
    command.add_argument(
        "--key", metavar="KEY", help="append once: a second append with the same key adds nothing"
    )
    command.add_argument("--model", help="the model that answered")
    _json(command)


def _compact(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument(
        "--pin",
        action="append",
        default=[],
        metavar="TEXT",
        help="keep this text verbatim; a number keeps the message of that position, from 0 (repeatable)",
    )
    command.add_argument(
        "--overflow", action="store_true", help="compact further: a provider refused the context as too long"
    )
    _json(command)


def _undo(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument(
        "--compaction",
        metavar="ID",
        help="the compaction to undo, with all later ones (default: the last one)",
    )
    _json(command)


def _rebase(command: argparse.ArgumentParser) -> None:
    _session(command)
    _json(command)


def _fork(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument("to", metavar="NEW", help="the name of the new session")
    command.add_argument(
        "--turn", metavar="N", help="share the turns up to this one, by number or id (default: all)"
    )


def _rename(command: argparse.ArgumentParser) -> None:
    _session(command)
    command.add_argument("to", metavar="NEW", help="the new name")


def _delete(command: argparse.ArgumentParser) -> None:
    command.add_argument("sessions", nargs="+", metavar="SESSION", help="the name of a session")
    command.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _verify(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--accept",
        nargs="?",
        const="",
        metavar="FILE",
        help="first accept the ledger as complete, or replace it with FILE, for example a backup",
    )
    _json(command)


def _backup(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="the file to write; it must not exist")


def _restore(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "backup", nargs="?", metavar="BACKUP", help="its day, as 2026-11-28, or a file (default: the newest)"
    )
    command.add_argument("--list", action="store_true", help="only list the daily backups")
    _json(command)


def _salvage(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "broken", metavar="FILE", help="the ledger that was set aside, named ledger.db.broken-…"
    )
    command.add_argument(
        "--session",
        dest="sessions",
        action="append",
        metavar="NAME",
        help="recover only this session, which may be in the ledger in use (repeatable; default: all)",
    )
    command.add_argument(
        "--folder", default=".", metavar="PATH", help="the folder of those sessions (default: .)"
    )


def _session(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "session", metavar="SESSION", help="the name or id of the session, or the beginning of one"
    )


def _all(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--all", action="store_true", help=text)


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def _time(text: str) -> float:
    """A day or how long ago, as seconds since 1970."""
    count, unit = text[:-1], {"d": 86_400, "h": 3_600}.get(text[-1:])
    try:
        if unit is not None and count.isascii() and count.isdecimal():
            return time.time() - int(count) * unit
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text} is neither a day, such as 2026-11-28, nor a time ago, such as 7d or 12h"
        ) from None


class _Action(NamedTuple):
    """One thing to do: the module that does it, its options, help, and longer text below the options."""

    module: str
    options: Callable[[argparse.ArgumentParser], None]
    help: str
    epilog: str | None = None


ACTIONS = {
    "list": _Action(
        "conversation_list",
        _list,
        "list the conversations of all programs in a folder, inside it and above it",
        LIST,
    ),
    "show": _Action("show_search", _show, "show the messages of a session, a line each", SHOW),
    "search": _Action("show_search", _search, "find messages by their words", SEARCH),
    "export": _Action(
        "transfer", _export, "write a session to a file: all of it as JSON lines, or for reading"
    ),
    "import": _Action("transfer", _import, "read conversations from files, also of other programs", IMPORT),
    "keep": _Action(
        "keep",
        _keep,
        "keep what Claude Code, Codex, opencode and Gemini CLI write here, before they delete it",
        KEEP,
    ),
    "append": _Action("converse", _append, "append messages to a session as one turn; begin it if needed"),
    "compact": _Action(
        "converse", _compact, "replace the old messages of a session with a summary; prints what was lost"
    ),
    "undo": _Action("converse", _undo, "restore the messages that a compaction replaced"),
    "rebase": _Action(
        "converse", _rebase, "begin the next request of a session with the present system prompt and tools"
    ),
    "fork": _Action("change", _fork, "begin a session that shares the turns of another"),
    "rename": _Action("change", _rename, "give a session another name"),
    "delete": _Action("change", _delete, "remove sessions for good"),
    "verify": _Action("maintenance", _verify, "check that no turn was changed or lost", VERIFY),
    "backup": _Action("maintenance", _backup, "copy the ledger while it is in use", BACKUP),
    "restore": _Action("maintenance", _restore, "put a backup in the ledger's place", RESTORE),
    "salvage": _Action("maintenance", _salvage, "recover what a broken ledger still holds", SALVAGE),
}


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, action in ACTIONS.items():
        form = argparse.RawDescriptionHelpFormatter
        parser = actions.add_parser(name, help=action.help, epilog=action.epilog, formatter_class=form)
        parser.description = f"{action.help[:1].upper()}{action.help[1:]}."
        action.options(parser)
        if name not in ("salvage", "verify", "backup", "restore", "keep"):
            parser.add_argument(
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
    """Accept words that look like options, which a search excludes. False if they are wrong usage."""
    if options.action != "search" or any(argument.startswith("--") for argument in rest):
        return False
    options.query += rest
    return True
