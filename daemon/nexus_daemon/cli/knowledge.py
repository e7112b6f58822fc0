"""Search the files of a folder's knowledge base, as each chat turn does, and show what is indexed.

The files are those of `memory.knowledge.paths`. Both commands bring the index up to date first; daemons use
the same index.
"""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nexus_context.errors import RequestError
from nexus_daemon import protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, folder_of
from nexus_daemon.lsp.convert import uri_to_path

if TYPE_CHECKING:
    from nexus_daemon.cli.asking import FolderClient

LOOK_S = 0.005  # between two looks at an index that is being updated
MOST_S = 45.0  # that a command waits for it
EPILOG = """\
examples:
  nexus knowledge query When is a rollback possible?
  nexus knowledge query 'roll back' --limit 2 --json
  nexus knowledge status

exit codes: 0 success, with or without a passage; 1 failure, or there is no knowledge base; 2 wrong usage
"""


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _query(_action(actions, "query", "print the passages that match a text, best first"))
    _action(actions, "status", "show which files are indexed and how they are searched")


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=f"{text[:1].upper()}{text[1:]}."
    )
    command.add_argument("--folder", default=".", metavar="PATH", help="the workspace folder (default: .)")
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def _query(command: argparse.ArgumentParser) -> None:
    command.add_argument("text", nargs="+", metavar="TEXT", help="words or a question, as a user's message")
    command.add_argument(
        "--limit", type=_number, metavar="N", help="at most N passages (default: memory.knowledge.top_k)"
    )
    command.add_argument(
        "--max-tokens",
        type=_number,
        metavar="N",
        help="at most N tokens of passages (default: memory.knowledge.max_tokens)",
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.folder))
    if folder is None:
        output.complain("knowledge", f"{options.folder} does not exist.")
        return 2
    from nexus_daemon.cli.asking import reading  # the daemon, which the options of a command do not need

    actions: dict[str, Callable[[FolderClient, protocol.KnowledgeStatusResult, argparse.Namespace], None]]
    actions = {"query": _print_passages, "status": _print_status}
    try:
        with reading("knowledge", folder) as client:
            status = settled_status(client)
            if not status.paths:
                setting = "memory.knowledge.paths of .nexus3/config.json (docs/memory.md)"
                output.complain("knowledge", f"{folder} has no knowledge base; name its files in {setting}.")
                return 1
            actions[options.action](client, status, options)
    except RequestError as error:
        output.complain("knowledge", str(error))
        return 1
    return 0


def settled_status(client: "FolderClient") -> protocol.KnowledgeStatusResult:
    """Return the status of the index once it is up to date, or after MOST_S seconds.

    RequestError if it cannot be read.
    """
    from nexus_daemon.api import knowledge

    until = time.monotonic() + MOST_S
    while True:
        status = client.ask(knowledge.status, protocol.FolderParams(client.uri))
        if not status.updating:
            return status
        if time.monotonic() > until:
            output.complain(
                "knowledge", "the index is still being updated: it may lack files, or another process has it."
            )
            return status
        time.sleep(LOOK_S)


# ---------------------------------------------------------------- actions


def _print_passages(
    client: "FolderClient", status: protocol.KnowledgeStatusResult, options: argparse.Namespace
) -> None:
    from nexus_daemon.api import knowledge
    from nexus_daemon.workspace.knowledge import WORDS_ONLY

    params = protocol.KnowledgeQueryParams(
        client.uri, query=" ".join(options.text), limit=options.limit, max_tokens=options.max_tokens
    )
    passages = client.ask(knowledge.query, params).passages
    for problem in status.problems:
        if problem.message.startswith(WORDS_ONLY):
            output.complain("knowledge", problem.message)
    if options.json:
        output.json_value({"passages": passages})
        return
    if not passages:
        output.complain("knowledge", "no passage matches.")
    for passage in passages:
        path = uri_to_path(passage.uri) or passage.uri
        heading = f" › {passage.heading}" if passage.heading else ""
        meaning = f" (by {' and '.join(passage.matched_by)})" if "meaning" in passage.matched_by else ""
        output.line(f"{path}:{passage.range.start.line + 1}{heading}{meaning}")
        output.page(f"\n{passage.text.strip()}\n\n")


def _print_status(
    _: "FolderClient", status: protocol.KnowledgeStatusResult, options: argparse.Namespace
) -> None:
    problems = [problem.message for problem in status.problems]
    if options.json:
        output.json_value(
            {
                "paths": status.paths,
                "files": status.files,
                "passages": status.passages,
                "model": status.model,
                "vectors": status.vectors,
                "index": status.index,
                "problems": problems,
            }
        )
        return
    for path in status.paths:
        output.line(f"path         {path}")
    output.line(f"files        {status.files:,}")
    output.line(f"passages     {status.passages:,}")
    output.line(f"searched by  {_search(status)}")
    output.line(f"index        {status.index}")
    for message in problems:
        output.complain("knowledge", message)


def _search(status: protocol.KnowledgeStatusResult) -> str:
    if status.model is None:
        return "words"
    return f"words and meaning ({status.model}: {output.counted(status.vectors or 0, 'vector')})"
