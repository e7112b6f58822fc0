"""List, start, run and end the agents of a folder, follow their work, and send them messages.

The ledger keeps running agents: editors see within a second what these commands change, and the agents that
editors start are listed here.
"""

import argparse
from typing import Any

from nexus_context.agents import MAIN, ROLES
from nexus_context.config.scope import LEVELS
from nexus_context.errors import RequestError
from nexus_daemon.cli import output

EPILOG = """\
examples:
  nexus agents spawn auth --cwd backend/auth-service --task 'Fix the login.'
  nexus agents spawn auth --task 'Fix the login.' --run --tool 'mcp__files__*'
  nexus agents follow auth
  nexus agents message auth 'The token format has changed.' --priority 0.9
  nexus agents list
  nexus agents dispose auth

What you leave out comes from `agents` of config.json, then from the parent. `nexus show --agent NAME` shows
what an agent would see, without starting it. With --run it works on its task at once, with the configured
provider, and reports to its manager; tools that --tool names run without a question. Ctrl-C, or dispose in
another terminal, stops it.

exit codes: 0 success; 1 failure; 2 wrong usage
"""


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _list(_action(actions, "list", "list the running agents of a folder"))
    _spawn(_action(actions, "spawn", "start an agent below the folder's own or another one"))
    _follow(_action(actions, "follow", "print what an agent says and does, until it ends"))
    _message(_action(actions, "message", "leave a message for an agent's next turn"))
    _dispose(_action(actions, "dispose", "end an agent and all agents below it"))


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=f"{text[:1].upper()}{text[1:]}."
    )
    return command


def _list(command: argparse.ArgumentParser) -> None:
    _common(command)


def _spawn(command: argparse.ArgumentParser) -> None:
    command.add_argument("agent", metavar="NAME", help="its name")
    command.add_argument("--cwd", metavar="PATH", help="its working directory, relative to --folder")
    command.add_argument("--role", choices=ROLES, help="its role (default: the configured one, else worker)")
    command.add_argument("--task", help="its task")
    command.add_argument("--parent", metavar="AGENT", help=f"the agent above it (default: {MAIN})")
    command.add_argument("--model", help="the model of its requests")
    command.add_argument("--system-prompt", metavar="TEXT", help="replace its files and its parents' prompt")
    _patterns(command, "--tool", "tools", "offer the tools with this name or pattern")
    command.add_argument("--level", choices=LEVELS, help="its permission level")
    _patterns(command, "--allow", "allow", "allow only tools and permissions with these names or patterns")
    _patterns(command, "--deny", "deny", "deny tools and permissions with this name or pattern")
    command.add_argument("--run", action="store_true", help="have it work on its task at once, and report")
    command.add_argument("--max-steps", type=int, metavar="N", help="with --run: at most so many requests")
    command.add_argument("--max-tokens", type=int, metavar="N", help="with --run: at most so many tokens")
    command.add_argument("--max-usd", type=float, metavar="USD", help="with --run: at most so many dollars")
    _common(command)


def _follow(command: argparse.ArgumentParser) -> None:
    command.add_argument("agent", metavar="NAME", help="a running agent")
    command.add_argument("--folder", default=".", metavar="PATH", help="the workspace folder (default: .)")


def _message(command: argparse.ArgumentParser) -> None:
    command.add_argument("agent", metavar="NAME", help="the recipient")
    command.add_argument("text", metavar="TEXT", help="the message, at most 16,000 characters")
    command.add_argument("--from", dest="source", default=MAIN, metavar="AGENT", help="the sender")
    command.add_argument("--priority", type=float, default=0.5, metavar="P", help="0 to 1 (default: 0.5)")
    command.add_argument("--ttl", type=float, metavar="SECONDS", help="when it expires (default: never)")
    command.add_argument("--node", help="the recipient's node, if it has several")
    command.add_argument("--task", help="the related task")
    _common(command)


def _dispose(command: argparse.ArgumentParser) -> None:
    command.add_argument("agent", metavar="NAME", help="a running agent")
    _common(command)


def _patterns(command: argparse.ArgumentParser, option: str, name: str, text: str) -> None:
    command.add_argument(option, action="append", dest=name, metavar="PATTERN", help=f"{text} (repeatable)")


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--folder", default=".", metavar="PATH", help="the workspace folder (default: .)")
    command.add_argument("--json", action="store_true", help="print JSON, as nexus/agent/* returns it")


def run(options: argparse.Namespace) -> int:
    from nexus_daemon.cli.agents import actions  # the daemon, which other commands do not need

    try:
        code: int = getattr(actions, f"run_{options.action}")(options)
    except RequestError as error:
        output.complain("agents", str(error))
        return 2 if error.code == "unknown-folder" else 1
    return code
