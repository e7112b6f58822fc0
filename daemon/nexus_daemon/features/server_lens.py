"""Show code lenses of each MCP server in a file: its state, its cost, and what the user can do next.

1. The first lens of a server shows its state, and its tools with their tokens in every request. Nothing is
   started for it: the tools of a server that does not run are those that it offered last.
2. The second lens offers the next step: `Approve…`, `Start`, `Stop`, `Show what changed` or `Show log`.
3. A server that another file overrides only has a lens that says so.
4. Before those, each program in use that takes the server from the file has a lens. It shows whether the
   server starts there, and the tokens of its tools if Nexus has seen them.
5. The client runs the command of a lens, `nexus.showServer`, or else the server (`api.server_answers`). Its
   argument names the server and the action; without an action, the server is described.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.assistants.reading.profile_types import AssistantServer
from nexus_context.assistants.views.mcp_servers import STARTS
from nexus_context.config.mcp import McpServer
from nexus_context.errors import Span
from nexus_context.text.visible import visible_line
from nexus_daemon.features.server_text import flag_lines, state_text, tools_text
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.protocol.mcp import ServerInfo

if TYPE_CHECKING:
    from nexus_context.folder.snapshot import Snapshot

NOTHING = ""
"""The command of a lens that only shows its title."""
COMMAND = "nexus.showServer"
LONGEST_ERROR = 100  # characters of an error in a title; the tooltip has all of it


class ProgramServer(NamedTuple):
    """A server that a program in use takes from a file: the program's title, and where the file names it.

    `info` is what Nexus knows of the server, if it has seen its tools.
    """

    title: str
    server: AssistantServer
    span: Span
    info: ServerInfo | None


def program_lenses(servers: Sequence[ProgramServer], path: str, locate: Locator) -> list[dict[str, Any]]:
    """Return a lens for each server of a file and each program: whether it starts, and what its tools
    cost.
    """
    lenses = []
    for program_server in servers:
        title = f"{program_server.title}: {STARTS[program_server.server.start]}"
        if program_server.info is not None and program_server.info.tools:
            title += f" · {tools_text(program_server.info)}"
        command = {"title": title, "command": NOTHING}
        if program_server.server.reason:
            command["tooltip"] = visible_line(program_server.server.reason)
        lenses.append({"range": locate.range(path, program_server.span), "command": command})
    return lenses


def names_servers(snapshot: "Snapshot", path: str) -> bool:
    """Whether a file names MCP servers of the folder."""
    return any(server.path == path for server in snapshot.layers.servers)


def server_lenses(
    snapshot: "Snapshot", path: str, encoding: str, *, folder: str, servers: Sequence[ServerInfo]
) -> list[dict[str, Any]]:
    """Return the lenses of one file.

    `folder` is the URI of the snapshot's folder, `servers` are the servers in force in that folder.
    """
    locate = Locator(snapshot.layers, encoding)
    by_name = {server.name: server for server in servers}
    lenses: list[dict[str, Any]] = []
    for server in snapshot.layers.servers:
        if server.path != path:
            continue
        lens_range = locate.range(path, _lens_span(server))
        info = by_name.get(server.name)
        for title, action, tooltip in _lenses(server, info):
            target = {"workspaceFolder": folder, "name": server.name}
            if action:
                target["action"] = action
            command = {"title": title, "command": COMMAND, "arguments": [target]}
            if tooltip:
                command["tooltip"] = tooltip
            lenses.append({"range": lens_range, "command": command})
    return lenses


def _lens_span(server: McpServer) -> Span:
    """The name of a server in front of its object, else the first character of the object: one line."""
    if server.name_span.start < server.span.start:
        return server.name_span
    return Span(server.span.start, server.span.start + 1)


def _lenses(server: McpServer, info: ServerInfo | None) -> list[tuple[str, str, str]]:
    """Title, action and tooltip of each lens of a server."""
    if server.shadowed_by is not None:
        return [(f"overridden by {visible_line(server.shadowed_by)}", "", "")]
    if info is None:  # the file was changed meanwhile; the client requests its lenses again
        return []
    title, error = state_text(info), visible_line(info.error or "")
    if info.state == "failed" and error:
        title += f": {error if len(error) <= LONGEST_ERROR else f'{error[:LONGEST_ERROR]}…'}"
    tooltip = "\n".join((*((error,) if error else ()), *flag_lines(info)))
    lenses = [(title, "", tooltip)]
    action, label = _next_action(info)
    if action:
        lenses.append((label, action, ""))
    return lenses


def _next_action(info: ServerInfo) -> tuple[str, str]:
    """Return the user's next action and its title. Both are empty if there is none."""
    if info.state == "unapproved":
        return "approve", "Approve…"
    if info.state == "changed":
        return "approve", "Show what changed"
    if info.state == "stopped":
        return "start", "Start"
    if info.state in ("starting", "ready"):
        return "stop", "Stop"
    if info.state == "needs-auth":
        return "login", "Sign in…"
    if info.state == "failed" and info.log is not None:
        return "log", "Show log"
    return "", ""
