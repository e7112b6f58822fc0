"""Runs `nexus mcp list`, `approve`, `login` and so on: the MCP servers of a folder.

A server starts only in a trusted folder, and after its exact command was approved.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from nexus_context.disk.files import read_text
from nexus_context.errors import RequestError
from nexus_context.text.visible import visible, visible_line
from nexus_daemon import protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, folder_of, short_path
from nexus_daemon.cli.tables import Column, print_columns
from nexus_daemon.features.server_text import STATES, change_lines, flag_lines, launch_lines
from nexus_daemon.lsp.convert import uri_to_path

if TYPE_CHECKING:
    from nexus_daemon.cli.asking import FolderClient

MOST_LOG = 2 << 20  # bytes


def run(options: argparse.Namespace) -> int:
    """Run one action; return the exit code."""
    folder = folder_of(absolute(options.in_folder))
    if folder is None:
        output.complain("mcp", f"{options.in_folder} does not exist.")
        return 2
    from nexus_daemon.cli.asking import reading  # the daemon, which serving does not need

    actions: dict[str, Callable[[FolderClient, argparse.Namespace], int]] = {
        "list": _list,
        "approve": _approve,
        "revoke": _revoke,
        "tools": _print_tools,
        "call": _call,
        "login": _login,
        "logout": _logout,
        "logs": _print_log,
        "diff": _print_changes,
    }
    try:
        with reading("mcp", folder) as client:
            return actions[options.action](client, options)
    except RequestError as error:
        output.complain("mcp", str(error))
        return 1


# ---------------------------------------------------------------- actions


def _list(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    result = client.ask(mcp.servers, protocol.ServersParams(client.uri))
    if options.json:
        output.json_value(msgspec.to_builtins(result))
        return 0
    files = [file for layer in client.snapshot().layers.layers for file in layer.files if file.kind == "mcp"]
    for file in files:
        if file.status == "invalid":
            output.complain("mcp", f"{short_path(file.path)} has an error: none of its servers counts.")
    if not result.servers:
        output.complain("mcp", "this folder has no MCP servers.")
        return 0
    print_columns(
        [
            Column("server", [visible_line(server.name) for server in result.servers]),
            Column("state", [STATES.get(server.state, server.state) for server in result.servers], worth=5),
            Column("tools", [_count(server) for server in result.servers], worth=4, justify="right"),
            Column("tokens", [_tokens(server) for server in result.servers], worth=3, justify="right"),
            Column("called", [_last_call(server) for server in result.servers], worth=1),
            Column("starts", [_target(server) for server in result.servers], worth=2),
            Column("file", [short_path(uri_to_path(server.uri) or server.uri) for server in result.servers]),
        ]
    )
    for server in result.servers:
        if server.error is not None:
            output.complain("mcp", f"{visible_line(server.name)}: {visible_line(server.error)}")
    if result.summary is not None:
        output.line(result.summary)
    return 0


def _approve(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    server = _server(client, options.name)
    if server.state == "untrusted":
        output.complain("mcp", "the folder is not trusted; `nexus trust` trusts it.")
        return 1
    if server.hash is None:
        output.complain("mcp", server.error or "it cannot be started.")
        return 1
    is_change = server.state == "changed"
    if not is_change and server.state not in ("unapproved", "disabled"):
        server = client.ask(mcp.start, protocol.ServerParams(client.uri, name=options.name))
        is_change = server.state == "changed"
        if not is_change:
            output.line(f"{visible_line(server.name)} is approved already.")
            return 0
    if is_change:
        _print_differences(server)
    else:
        for line in launch_lines(server, short_path(uri_to_path(server.uri) or server.uri)):
            output.line(line)
    if not (options.yes or output.is_confirmed("mcp", "approve")):
        return 1
    params = protocol.ApproveParams(
        client.uri, name=server.name, hash=server.hash or "", pin=server.pin if is_change else None
    )
    client.ask(mcp.approve, params)
    approved = "what it offers now" if is_change else "exactly this, and nothing else"
    output.line(f"{visible_line(server.name)} is approved: {approved}.")
    return 0


def _revoke(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    client.ask(mcp.revoke, protocol.ServerParams(client.uri, name=options.name))
    output.line(f"{visible_line(options.name)} is approved no longer.")
    return 0


def _print_tools(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    server = _server(client, options.name)
    if (not server.tools or server.seen_elsewhere) and server.state == "stopped":
        server = client.ask(mcp.start, protocol.ServerParams(client.uri, name=options.name))
    if options.json:
        output.json_value(msgspec.to_builtins(server))
        return 0
    if server.error is not None:
        output.complain("mcp", visible_line(server.error))
    if not server.tools:
        output.complain("mcp", f"nothing is known of its tools: {STATES.get(server.state, server.state)}.")
        return 1
    if server.seen_elsewhere:
        output.complain("mcp", "it has not run here; its program offered these tools in another folder.")
    print_columns(
        [
            Column("tool", [visible_line(tool.name) for tool in server.tools]),
            Column("tokens", [f"{tool.tokens:,}" for tool in server.tools], worth=5, justify="right"),
            Column("sent", [_use(tool) for tool in server.tools], worth=4),
            Column("description", [visible_line(tool.description) for tool in server.tools], least=20),
        ]
    )
    mark = "" if server.exact else "≈"
    is_deferred = any(tool.deferred for tool in server.tools)
    when = "once the model has found them" if is_deferred else "in every request"
    output.line(f"together {mark}{server.tokens:,} tokens {when}")
    _print_flags(server)
    return 0


def _call(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    try:
        arguments = json.loads(options.tool_arguments)
    except ValueError as error:
        output.complain("mcp", f"the arguments are not JSON: {error}.")
        return 2
    if not isinstance(arguments, dict):
        output.complain("mcp", "the arguments are not a JSON object.")
        return 2
    params = protocol.ServerCallParams(
        client.uri, server=options.name, tool=options.tool_name, arguments=arguments
    )
    result = client.ask(mcp.call, params)
    if options.json:
        output.json_value(msgspec.to_builtins(result))
    else:
        for part in result.content:
            text = part.get("text")
            placeholder = f"({part.get('type')}: {part.get('mimeType') or 'data'})"
            output.page(visible(text if isinstance(text, str) else placeholder) + "\n")
    return 1 if result.is_error else 0


def _login(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    async def open_page(address: str) -> None:
        output.beside(f"Open this address in a browser on this machine, and sign in:\n  {address}\n")

    sign_in = partial(mcp.sign_in, open_page=open_page)
    server = client.ask(sign_in, protocol.ServerParams(client.uri, name=options.name))
    output.line(f"{visible_line(server.name)} {STATES.get(server.state, server.state)}.")
    return 0 if server.state in ("ready", "changed") else 1


def _logout(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    client.ask(mcp.logout, protocol.ServerParams(client.uri, name=options.name))
    output.line(f"Nexus has no tokens of {visible_line(options.name)} any more.")
    return 0


def _print_log(client: "FolderClient", options: argparse.Namespace) -> int:
    server = _server(client, options.name)
    path = uri_to_path(server.log) if server.log is not None else None
    text = None if path is None else read_text(path, limit=MOST_LOG).text
    if text is None:
        output.complain("mcp", f"{visible_line(options.name)} has written nothing yet.")
        return 0
    output.page(text)
    return 0


def _print_changes(client: "FolderClient", options: argparse.Namespace) -> int:
    from nexus_daemon.api import mcp

    server = client.ask(mcp.start, protocol.ServerParams(client.uri, name=options.name))
    if options.json:
        output.json_value({"changes": msgspec.to_builtins(server.changes)})
    elif server.state == "failed":
        output.complain("mcp", visible_line(server.error or "it failed."))
        return 1
    elif not server.changes:
        output.line(f"{visible_line(server.name)} offers what you approved.")
    else:
        _print_differences(server)
    return 1 if server.changes else 0


def _print_differences(server: protocol.ServerInfo) -> None:
    for line in change_lines(server):
        output.line(line)
    _print_flags(server)


def _print_flags(server: protocol.ServerInfo) -> None:
    for line in flag_lines(server):
        output.complain("mcp", line)


# ---------------------------------------------------------------- parts


def _server(client: "FolderClient", name: str) -> protocol.ServerInfo:
    """The server of a name; RequestError if there is none."""
    from nexus_daemon.api import mcp

    result = client.ask(mcp.servers, protocol.ServersParams(client.uri))
    server = next((candidate for candidate in result.servers if candidate.name == name), None)
    if server is None:
        names = ", ".join(candidate.name for candidate in result.servers) or "none"
        raise RequestError(
            f"There is no MCP server {name!r} in this folder. There are: {names}.", code="unknown-server"
        )
    return server


def _target(server: protocol.ServerInfo) -> str:
    return visible_line(server.command or server.url or "–")


def _count(server: protocol.ServerInfo) -> str:
    return f"{len(server.tools):,}" if server.tools else "?"


def _last_call(server: protocol.ServerInfo) -> str:
    return "–" if server.last_call is None else server.last_call[:10]


def _use(tool: protocol.ServerTool) -> str:
    return "left out" if not tool.enabled else "on search" if tool.deferred else "always"


def _tokens(server: protocol.ServerInfo) -> str:
    return f"{'' if server.exact else '≈'}{server.tokens:,}" if server.tools else "?"
