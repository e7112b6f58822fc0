"""Describe an MCP server to people: its state, what it would start, and what it offers now.

Names, commands and descriptions come from files and servers: control characters in them are made visible.
"""

from collections.abc import Iterator

from nexus_context.text.visible import visible, visible_line
from nexus_daemon.protocol.mcp import ServerInfo

STATES = {
    "disabled": "off in its file",
    "untrusted": "the folder is not trusted",
    "unapproved": "not approved",
    "stopped": "stopped",
    "starting": "starting",
    "ready": "ready",
    "changed": "offers something else than you approved",
    "failed": "failed",
    "needs-auth": "somebody has to sign in",
}
_MARKS = {"kept": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}


def state_text(server: ServerInfo) -> str:
    """Format the state and cost of a server: `ready · 12 tools · ≈ 3,400 tokens`.

    For a server that never ran, this is the state alone.
    """
    parts = [STATES.get(server.state, server.state)]
    if server.pin is not None:
        parts.append(tools_text(server))
    return " · ".join(parts)


def tools_text(server: ServerInfo) -> str:
    """Format the number and cost of a server's tools: `12 tools · ≈ 3,400 tokens`."""
    number, sign = len(server.tools), "" if server.exact else "≈ "
    tools = f"{number:,} tool{'' if number == 1 else 's'}"
    return f"{tools} · {sign}{server.tokens:,} token{'' if server.tokens == 1 else 's'}"


def launch_lines(server: ServerInfo, path: str) -> Iterator[str]:
    """Describe what the approval of a server allows. `path` names its file."""
    yield f"{visible_line(server.name)}, named by {path}:{server.range.start.line + 1}, would"
    if server.url is not None:
        yield f"  connect to  {visible_line(server.url)}"
        for name, value in server.headers.items():
            yield f"  with        {visible_line(name)}: {visible_line(value)}"
        return
    yield f"  start       {visible_line(server.command or '')}"
    if server.program is not None and server.program not in (server.command or ""):
        yield f"  which is    {visible_line(server.program)}"
    yield f"  in          {visible_line(server.directory or '')}"
    for name, value in server.variables.items():
        yield f"  with        {visible_line(name)}={visible_line(value)}"
    for warning in server.warnings:
        yield f"  note        {visible_line(warning)}"


def change_lines(server: ServerInfo) -> Iterator[str]:
    """Compare the server's definitions with the approved ones, word by word."""
    yield f"{visible_line(server.name)} offers something else than you approved:"
    for change in server.changes:
        yield f"  {change.kind} {visible_line(change.place)}"
        words = "".join(_MARKS[word.state].format(visible(word.text)) for word in change.words)
        yield from (f"    {line}" for line in words.splitlines())


def flag_lines(server: ServerInfo) -> Iterator[str]:
    """List the suspicious passages in the server's texts for models."""
    yield from (f"{visible_line(flag.place)}: {visible_line(flag.message)}" for flag in server.flags)
