"""Manages the agents below a workspace folder: what each reads, what it may do, and which agent is its
parent.

permissions          what an agent may do, which only narrows
agent                one agent: its snapshot, its conversation, what it was granted
spawn                what a new agent gets from its parent and the settings
parents              a new agent's parent and default options
directory_snapshots  the directories that agents work in, as snapshots that they share
pool                 the live agents of a folder
tool_calls           a model's calls of the agent tools
"""

from nexus_context.agents.agent import ROLES, Agent
from nexus_context.agents.permissions import AgentPermissions
from nexus_context.agents.pool import MAX_AGENTS, AgentPool
from nexus_context.folder.layers.agent_definitions import MAIN, MAX_DEPTH

__all__ = ["MAIN", "MAX_AGENTS", "MAX_DEPTH", "ROLES", "Agent", "AgentPermissions", "AgentPool"]
