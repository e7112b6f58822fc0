"""Talk to the model of the configured provider, with the folder's context, tools and agents.

The conversation is that of every other window of the folder: what is said here is in the ledger.
"""

import argparse
import sys

from nexus_context.errors import RequestError
from nexus_daemon.cli import output

EPILOG = """\
examples:
  nexus chat
  nexus chat --session review
  nexus chat -p 'Which files does the login touch?'
  git diff | nexus chat -p - --format json

In the chat, /help lists the commands. Ctrl-C cancels an answer, Ctrl-D ends the chat.

exit codes: 0 success; 1 failure; 2 wrong usage
"""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-p", "--print", metavar="TEXT", help="send one message, print the answer; -: read it"
    )
    command.add_argument("--session", metavar="NAME", help="the conversation (default: main, or the agent's)")
    command.add_argument("--agent", metavar="NAME", help="talk to a running agent of the folder")
    command.add_argument("--model", help="instead of the configured model")
    command.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PATTERN",
        help="run tools of these names without a question, such as 'mcp__github__*' (repeatable)",
    )
    command.add_argument(
        "--key",
        action="store_true",
        help="ask for the provider's key and store it in the system's keyring; an empty one is forgotten",
    )
    command.add_argument("--format", choices=("text", "json"), default="text", help="of -p (default: text)")
    command.add_argument("--folder", default=".", metavar="PATH", help="the workspace folder (default: .)")


def run(options: argparse.Namespace) -> int:
    from nexus_daemon.cli.chat.conversation import answer_once, ask_key, converse  # --help needs no daemon

    if options.print is None and not sys.stdin.isatty():
        output.complain("chat", "a conversation needs a terminal; -p TEXT sends one message, -p - reads it.")
        return 2
    if options.print is None and options.format == "json":
        output.complain("chat", "--format json goes with -p.")
        return 2
    try:
        if options.key:
            return ask_key(options)
        return converse(options) if options.print is None else answer_once(options)
    except RequestError as error:
        output.complain("chat", str(error))
        return 2 if error.code == "unknown-folder" else 1
