"""Prints the running agents of a folder as a table."""

from collections.abc import Sequence

from nexus_context.agents import MAIN
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import short_path
from nexus_daemon.cli.tables import LEAST_PATH, Column, print_columns


def print_agents(agents: Sequence[protocol.AgentInfo]) -> None:
    """Print a table of agents."""
    totals = [f"{'' if agent.usage.counter.exact else '≈'}{agent.usage.total:,}" for agent in agents]
    columns = [
        Column("agent", [visible_line(agent.agent_id) for agent in agents]),
        Column("role", [visible_line(agent.role) for agent in agents], worth=1),
        Column("below", [visible_line(agent.parent or MAIN) for agent in agents], worth=0),
        Column("tokens", totals, justify="right"),
        Column(
            "directory", [short_path(agent.cwd) for agent in agents], worth=3, least=LEAST_PATH, cut="start"
        ),
        Column("task", [visible_line(agent.task or "") for agent in agents], worth=2, least=LEAST_PATH),
    ]
    print_columns(columns)
    for agent in agents:
        if agent.notice is not None:
            output.complain("agents", f"{agent.agent_id}: {agent.notice}")
