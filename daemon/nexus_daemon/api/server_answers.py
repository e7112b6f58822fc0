"""Run the command of an MCP server's lens, for an editor that has no client of ours.

Before an approval, the daemon asks the user and shows exactly what is approved. No answer means no.
"""

from typing import TYPE_CHECKING, Any

from nexus_context.errors import RequestError
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.api import mcp
from nexus_daemon.api.editor_answers import Done, say, show_document
from nexus_daemon.features.server_text import change_lines, flag_lines, launch_lines, state_text
from nexus_daemon.lsp.convert import uri_to_path
from nexus_daemon.lsp.failures import ClientError
from nexus_daemon.lsp.lsp_types import WARNING

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

ASK_S = 600.0
APPROVE = "Approve"


class ServerTarget(protocol.Wire, frozen=True):
    """The argument of a lens's command: a server, and the action.

    Without an action the server is described.
    """

    workspace_folder: str
    name: str = ""
    action: str = ""


async def show_server(client: "Connection", params: ServerTarget) -> Done:
    """Do what the lens of a server says, and tell the user the result."""
    server_params = protocol.ServerParams(params.workspace_folder, name=params.name)
    if params.action == "start":
        server = await mcp.start(client, server_params)
    elif params.action == "stop":
        server = await mcp.stop(client, server_params)
    elif params.action == "login":
        server = await mcp.login(client, server_params)
    else:
        server = await mcp.server(client, server_params)
        if params.action == "approve":
            if not await _approve(client, server_params, server):
                return Done()
            server = await mcp.start(client, server_params)
        elif params.action == "log" and server.log is not None and await show_document(client, server.log):
            return Done()
    say(client, "\n".join((f"{visible_line(server.name)}: {state_text(server)}", *_details(server))))
    return Done()


async def _approve(
    client: "Connection", server_params: protocol.ServerParams, server: protocol.ServerInfo
) -> bool:
    """Ask the user, and approve a server; false if the user does not."""
    is_change = server.state == "changed"
    if not is_change and server.state != "unapproved":
        return False
    if server.hash is None:
        raise RequestError(server.error or "It cannot be started.", code="mcp-cannot-start")
    path = uri_to_path(server.uri) or server.uri
    lines = change_lines(server) if is_change else launch_lines(server, path)
    question = {
        "type": WARNING,
        "message": "\n".join((*lines, *flag_lines(server))),
        "actions": [{"title": APPROVE}, {"title": "Cancel"}],
    }
    try:
        answer = await client.ask("window/showMessageRequest", question, Any, timeout_s=ASK_S)
    except (ClientError, TimeoutError):
        return False
    if not isinstance(answer, dict) or answer.get("title") != APPROVE:
        return False
    pin = server.pin if is_change else None
    approval = protocol.ApproveParams(
        server_params.workspace_folder, name=server_params.name, hash=server.hash, pin=pin
    )
    await mcp.approve(client, approval)
    return True


def _details(server: protocol.ServerInfo) -> list[str]:
    error = [visible_line(server.error)] if server.error else []
    log = uri_to_path(server.log) if server.log is not None and server.error else None
    tools = [f"  {visible_line(tool.name)}: {tool.tokens:,} tokens" for tool in server.tools]
    return [*error, *([f"Its log is {log}."] if log else []), *tools]
