"""What a command line or a daemon takes from its process: directories and variables, read once."""

import os
from pathlib import Path

from nexus_context.prompt.environment import detect
from nexus_daemon.folders import Surroundings


def nexus_home() -> str:
    """The global configuration directory: NEXUS_HOME, else ~/.nexus3. Absolute."""
    given = os.environ.get("NEXUS_HOME")
    return str(Path(given).expanduser().absolute()) if given else str(Path.home() / ".nexus3")


def surroundings() -> Surroundings:
    """The process's own, for the life of the daemon."""
    return Surroundings(
        nexus_home=nexus_home(),
        user_home=str(Path.home()),
        environment=detect("editor", environ=os.environ),
        environ=dict(os.environ),
    )
