"""Stores the running agents of a workspace, from their start until they are disposed of.

1. A name belongs to one running agent at a time. No other process can start an agent with the same name.
2. The parent of an agent is a stored agent, or the folder's own agent. An agent ends together with its
   parent.
3. The conversation of an agent is an ordinary session, which stays when the agent ends.
4. The name of an agent stays known after its end.
"""

import apsw

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import LiveAgent, NewAgent
from nexus_context.ledger.rows import json_text, value, value_of
from nexus_context.ledger.sessions import now

_LISTED = """
SELECT agent.number, agent.name, above.name, agent.started, agent.wanted
FROM agent LEFT JOIN agent AS above ON above.number = agent.parent
WHERE agent.workspace = ? ORDER BY agent.number
"""
_BELOW = """
WITH RECURSIVE gone (number, depth) AS (
    SELECT number, 0 FROM agent WHERE workspace = ? AND name = ?
    UNION ALL SELECT agent.number, gone.depth + 1 FROM agent JOIN gone ON agent.parent = gone.number
)
SELECT agent.name FROM gone JOIN agent USING (number) ORDER BY gone.depth DESC, agent.number
"""
_NUMBER = "SELECT number FROM agent WHERE workspace = ? AND name = ?"
_KNOWN = "INSERT OR IGNORE INTO agent_name (workspace, folded, name) VALUES (?, ?, ?)"
NAMES = """
SELECT agent_name.name, agent.number IS NOT NULL FROM agent_name LEFT JOIN agent USING (workspace, name)
WHERE agent_name.workspace = ? AND agent_name.folded = ? ORDER BY agent_name.name
"""
_INSERT = "INSERT INTO agent (workspace, name, parent, started, wanted) VALUES (?, ?, ?, ?, ?)"


def list_agents(connection: apsw.Connection, workspace: str) -> list[LiveAgent]:
    """Return the running agents of a workspace, in the order of their start."""
    return [
        LiveAgent(
            number=number,
            name=name,
            parent=parent,
            started=started,
            wanted=None if options is None else value_of(options),
        )
        for number, name, parent, started, options in connection.execute(_LISTED, (workspace,))
    ]


def names(connection: apsw.Connection, workspace: str, name: str) -> dict[str, bool]:
    """Return the names of running and ended agents that equal `name` except for case: name → whether the
    agent is running.
    """
    return {
        agent_name: bool(lives)
        for agent_name, lives in connection.execute(NAMES, (workspace, name.casefold()))
    }


def start(connection: apsw.Connection, workspace: str, agent: NewAgent) -> int:
    """Store an agent and return its number. Raise LedgerError if its name is taken, its parent is unknown, or
    too many agents run.
    """
    if value(connection, _NUMBER, workspace, agent.name) is not None:
        raise LedgerError(
            f"An agent {agent.name!r} is already running in {workspace}, started in another window. Choose "
            "another name, or dispose of that agent.",
            code="agent-exists",
        )
    parent = None if agent.parent is None else value(connection, _NUMBER, workspace, agent.parent)
    if agent.parent is not None and parent is None:
        raise LedgerError(
            f"The agent {agent.parent!r} was disposed of in another window, so {agent.name!r} cannot be "
            "started below it. Choose another parent.",
            code="unknown-agent",
        )
    live = value(connection, "SELECT count(*) FROM agent WHERE workspace = ?", workspace)
    if agent.most is not None and live >= agent.most:
        raise LedgerError(
            f"{workspace} has {live} running agents, including those of other windows, which is the limit. "
            "Dispose of one.",
            code="agent-count",
        )
    connection.execute(
        _INSERT,
        (workspace, agent.name, parent, now(), None if agent.wanted is None else json_text(agent.wanted)),
    )
    number = int(connection.last_insert_rowid())
    connection.execute(_KNOWN, (workspace, agent.name.casefold(), agent.name))
    return number


def end(connection: apsw.Connection, workspace: str, name: str) -> list[str]:
    """Remove an agent and all agents below it. Return their names, children before their parents."""
    ended_names = [agent_name for (agent_name,) in connection.execute(_BELOW, (workspace, name))]
    connection.execute("DELETE FROM agent WHERE workspace = ? AND name = ?", (workspace, name))
    return ended_names
