"""Recognize documents that only one agent reads, by their name or their directory.

1. AGENT.<agent>.md belongs to that agent. SOUL.<agent>.md and its like belong to nobody.
2. If the settings have agents with directories of their own, these files belong to the agent that works
   there: instruction files in its directory or in a directory between the folder and it, and files in
   `.nexus3` of these directories.
"""

import os
from collections.abc import Mapping

import msgspec

from nexus_context.folder.layers.agent_definitions import MAIN, configured_directory
from nexus_context.folder.layers.bootstrap import AGENT_FILE, variant_of
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.folder.snapshot import Snapshot

SUFFIXES = (".md", ".json")
"""Suffixes of the files that an agent reads in `.nexus3`."""


class AgentDocument(msgspec.Struct, frozen=True):
    """A document of one agent.

    `kind` is the bootstrap file that it is a variant of, or empty for other documents.
    """

    path: str
    kind: str
    agent: str


def named_document(path: str) -> AgentDocument | None:
    """Return the agent's document that the file name at `path` stands for.

    None if the name does not name an agent.
    """
    if not path.endswith(".md"):
        return None
    kind, agent = variant_of(os.path.basename(path)) or ("", "")
    return AgentDocument(path, kind, agent) if kind and (kind, agent) != (AGENT_FILE, MAIN) else None


class AgentDirectories(msgspec.Struct, frozen=True):
    """The directories of a folder's configured agents.

    `agents` maps each directory that an agent would read to the name of one such agent. `names` are the names
    of instruction files in these directories.
    """

    agents: Mapping[str, str] = {}
    names: frozenset[str] = frozenset()

    def document(self, path: str) -> AgentDocument | None:
        """Return the document of the agent that would read this path. None if no agent would."""
        if not self.agents:
            return None
        directory, name = os.path.split(path)
        is_inside = os.path.basename(directory) == CONFIG_DIRECTORY
        agent = self.agents.get(os.path.dirname(directory) if is_inside else directory)
        is_read = name.endswith(SUFFIXES) if is_inside else name in self.names
        return AgentDocument(path, "", agent) if is_read and agent is not None else None


def agent_directories(folder: Snapshot) -> AgentDirectories:
    """Find the directories below a folder that its configured agents would read."""
    agents: dict[str, str] = {}
    directories = [
        (directory, agent)
        for agent in folder.effective.get("/agents") or ()
        if agent != MAIN and (directory := configured_directory(folder.layers, agent)) is not None
    ]
    for directory, agent in sorted(directories, key=lambda pair: len(pair[0])):  # who works there comes first
        parent = directory
        while parent.startswith(folder.folder.rstrip(os.sep) + os.sep):
            agents.setdefault(parent, agent)
            parent = os.path.dirname(parent)
    return AgentDirectories(agents, frozenset(folder.effective.get("/context/instruction_files") or ()))
