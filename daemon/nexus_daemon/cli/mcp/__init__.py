"""Serve what Nexus knows of a folder to other assistants: MCP on standard input and output.

Assistants start this command; on a terminal it prints this help. Its tools only read, unless --write is
given, and execute nothing. With an ACTION it manages the MCP servers of a folder instead.
"""

import sys

from nexus_daemon.shared.mcp_server import definitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

MAX_TOKENS = 2_000
LEAST_TOKENS, MOST_TOKENS = 200, 20_000

EPILOG = """\
examples:
  claude mcp add nexus -- nexus mcp         add it to Claude Code; docs/assistants.md has the other assistants
  nexus mcp --tokens                        what its tools cost in every request
  nexus mcp list                            the MCP servers of this folder, and what they cost
  nexus mcp approve github                  show what a server would start, and approve that
  nexus mcp call github search_code '{"query": "gate"}'
  nexus mcp --tool search_conversations --arguments '{"query": "gate"}'

exit codes: 0 success; 1 the tool reports an error; 2 wrong usage
"""


def arguments(command: "argparse.ArgumentParser") -> None:
    command.add_argument(
        "--folder",
        action="append",
        metavar="PATH",
        help="the workspace; may be repeated (default: the client's roots, else the working directory)",
    )
    command.add_argument("--write", action="store_true", help="offer add_memory, too, which keeps a note")
    command.add_argument(
        "--max-tokens",
        type=_number,
        default=MAX_TOKENS,
        metavar="N",
        help=f"of one answer, which goes on on further pages (default: {MAX_TOKENS:,})",
    )
    command.add_argument(
        "--for",
        dest="assistant",
        choices=definitions.ASSISTANTS[:-2],
        help="the assistant that calls (default: what the client says it is)",
    )
    command.add_argument("--local", action="store_true", help="answer without the shared daemon")
    command.add_argument("--tokens", action="store_true", help="print what the tools cost, and exit")
    command.add_argument("--tool", choices=definitions.NAMES, metavar="NAME", help="call one tool, and exit")
    command.add_argument("--arguments", default="{}", metavar="JSON", help="the arguments of --tool")
    command.add_argument("--json", action="store_true", help="with --tool or --tokens: print JSON")
    command.set_defaults(print_help=command.print_help)
    from nexus_daemon.cli.mcp.actions import add_actions

    add_actions(command)


def _number(text: str) -> int:
    import argparse

    if not (text.isascii() and text.isdecimal() and LEAST_TOKENS <= int(text) <= MOST_TOKENS):
        raise argparse.ArgumentTypeError(
            f"{text} is not a whole number from {LEAST_TOKENS:,} to {MOST_TOKENS:,}"
        )
    return int(text)


def run(options: "argparse.Namespace") -> int:
    """Serve until the client leaves, which ends the process. With other options, do what they say instead."""
    if options.action is not None:
        from nexus_daemon.cli.mcp import servers

        return servers.run(options)
    if options.tokens:
        from nexus_daemon.cli.mcp.cost import print_cost

        return print_cost(as_json=options.json)
    if options.tool is not None:
        return _call_tool(options)
    if sys.stdin is None or sys.stdin.isatty():
        options.print_help()
        return 0
    from nexus_daemon.shared.mcp_server import process

    return process.serve(
        run_here,
        options.folder or (),
        writes=options.write,
        assistant=options.assistant,
        options=("--max-tokens", str(options.max_tokens)),
        uses_daemon=not options.local,
    )


def run_here(
    arguments: list[str], folder: str, is_cancelled: "Callable[[], bool]"
) -> tuple[bytes, bytes] | None:
    """Answer a call in this process, as `call_runner.RunHere` requires.

    The code for it is imported with the first call.
    """
    from nexus_daemon.cli.mcp import local_call

    return local_call.run_here(arguments, folder, is_cancelled)


def _call_tool(options: "argparse.Namespace") -> int:
    from nexus_daemon.cli import output
    from nexus_daemon.cli.invocation import LocalOnlyError, RemoteInvocation, current
    from nexus_daemon.cli.mcp.answer_call import print_answer

    if options.tool in definitions.WRITING and not options.write:
        output.complain("mcp", f"{options.tool} writes: add --write to allow that.")
        return 2
    if options.tool in definitions.WRITING and isinstance(current(), RemoteInvocation):
        raise LocalOnlyError  # the daemon runs only what reads
    return print_answer(options)
