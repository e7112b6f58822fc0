"""Agents below a workspace folder: what each reads, what it may do, and who is above whom.

patterns     patterns of names: is one within another, do they meet
permissions  what an agent may do, which only narrows
places       the directory that an agent works in
agent        one agent: its snapshot, its conversation, what it was granted
making       what a new agent has from its parent and the settings
pool         the live agents of a folder
"""

from nexus_context.agents.agent import ROLES, Agent
from nexus_context.agents.making import MAX_DEPTH
from nexus_context.agents.permissions import Permissions
from nexus_context.agents.pool import MAX_AGENTS, AgentPool, Around
from nexus_context.layers.agents import MAIN

__all__ = ["MAIN", "MAX_AGENTS", "MAX_DEPTH", "ROLES", "Agent", "AgentPool", "Around", "Permissions"]
