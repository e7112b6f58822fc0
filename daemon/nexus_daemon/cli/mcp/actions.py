"""Defines the subcommands of `nexus mcp`: their arguments, without what they do (`servers`)."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_actions(command: "argparse.ArgumentParser") -> None:
    """Add the subcommands. Without one, `nexus mcp` serves."""
    actions = command.add_subparsers(dest="action", metavar="ACTION", title="the MCP servers of a folder")
    _action(actions, "list", "list the servers, what they would start, and what they cost")
    approve = _action(actions, "approve", "show what a server would start, and approve it")
    approve.add_argument("name", metavar="SERVER", help="the server's name in its file")
    approve.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    revoke = _action(actions, "revoke", "take an approval back")
    revoke.add_argument("name", metavar="SERVER", help="the server's name in its file")
    tools = _action(actions, "tools", "list the tools of a server with their tokens; starts it if need be")
    tools.add_argument("name", metavar="SERVER", help="the server's name in its file")
    call = _action(actions, "call", "call a tool, and print its answer")
    call.add_argument("name", metavar="SERVER", help="the server's name in its file")
    call.add_argument("tool_name", metavar="TOOL", help="the tool's name at the server")
    call.add_argument("tool_arguments", metavar="JSON", nargs="?", default="{}", help="its arguments")
    login = _action(actions, "login", "sign in to a server with a browser, and start it")
    login.add_argument("name", metavar="SERVER", help="the server's name in its file")
    logout = _action(actions, "logout", "delete the tokens of a server")
    logout.add_argument("name", metavar="SERVER", help="the server's name in its file")
    logs = _action(actions, "logs", "print what a server wrote to its standard error")
    logs.add_argument("name", metavar="SERVER", help="the server's name in its file")
    diff = _action(actions, "diff", "start a server, and show what it offers now and did not before")
    diff.add_argument("name", metavar="SERVER", help="the server's name in its file")


def _action(actions: "Any", name: str, text: str) -> "argparse.ArgumentParser":
    action: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=f"{text[:1].upper()}{text[1:]}."
    )
    action.add_argument("--in", dest="in_folder", default=".", metavar="PATH", help="the folder (default: .)")
    action.add_argument("--json", action="store_true", help="print JSON")
    return action
