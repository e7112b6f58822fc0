"""The running agents of a folder as a table."""

from collections.abc import Sequence

from nexus_context.agents import MAIN
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import short_path
from nexus_daemon.cli.tables import LEAST_PATH, Column, print_columns


def print_agents(agents: Sequence[protocol.AgentInfo]) -> None:
    """A table of agents."""
    totals = [f"{'' if one.usage.counter.exact else '≈'}{one.usage.total:,}" for one in agents]
    columns = [
        Column("agent", [visible_line(one.agent_id) for one in agents]),
        Column("role", [visible_line(one.role) for one in agents], worth=1),
        Column("below", [visible_line(one.parent or MAIN) for one in agents], worth=0),
        Column("tokens", totals, justify="right"),
        Column("directory", [short_path(one.cwd) for one in agents], worth=3, least=LEAST_PATH, cut="start"),
        Column("task", [visible_line(one.task or "") for one in agents], worth=2, least=LEAST_PATH),
    ]
    print_columns(columns)
    for one in agents:
        if one.notice is not None:
            output.complain("agents", f"{one.agent_id}: {one.notice}")
