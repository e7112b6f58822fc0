"""Many agents in a process of their own: `python -m benchmarks.agents.worker LAYOUT HOME FOLDERS AGENTS`.

LAYOUT is `folders`: each folder is a workspace folder with a pool of its own, or `directories`: all are
directories of one workspace folder, in as many pools of it as the limit of agents makes necessary. Prints
`Many` as JSON.
"""

import gc
import os
import sys
import time
from pathlib import Path

import msgspec
from benchmarks.agents.workspace import Workspace
from benchmarks.processes import resident_mb

from nexus_context.agents import MAX_AGENTS, AgentPool

FOLDERS, DIRECTORIES = "folders", "directories"


class Many(msgspec.Struct, frozen=True):
    """All agents of all folders alive at once."""

    agents: int
    seconds: float  # of the processor, to load the folders and to spawn all
    kilobytes: float  # resident, for each agent, beyond the loaded workspace folders
    text: int  # characters of all prompts, of which agents share the most


def main() -> None:
    """Loads, spawns, counts."""
    layout, home, folders, each = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    company = home / "company"
    workspace = Workspace(home, company, tuple(sorted(company.glob("service-*"))[:folders]))
    workspace.pool(workspace.company).view_as("first")  # whatever only the first one does
    gc.collect()
    gc.freeze()
    gc.disable()
    started = time.process_time()
    pools = _pools(workspace, layout, each)
    before = resident_mb(os.getpid())
    agents = [pool.spawn(f"{cwd or 'agent'}-{number}", cwd) for number in range(each) for pool, cwd in pools]
    seconds = time.process_time() - started
    gc.collect()
    grown = resident_mb(os.getpid()) - before
    result = Many(
        agents=len(agents),
        seconds=seconds,
        kilobytes=grown * 1e3 / len(agents),
        text=sum(len(agent.prompt.text) for agent in agents),
    )
    sys.stdout.buffer.write(msgspec.json.encode(result))


def _pools(workspace: Workspace, layout: str, each: int) -> list[tuple[AgentPool, str | None]]:
    """For each folder the pool of its agents, and its name where it is a directory of the pool's folder."""
    if layout == FOLDERS:
        return [(workspace.pool(service), None) for service in workspace.services]
    snapshot = workspace.load(workspace.company)
    at_once = MAX_AGENTS // each
    pools = [AgentPool(snapshot, workspace.inputs) for _ in range(-(-len(workspace.services) // at_once))]
    return [(pools[index // at_once], service.name) for index, service in enumerate(workspace.services)]


if __name__ == "__main__":
    main()
