"""What a command line or a daemon takes from its process: directories and variables, read once."""

import os

from nexus_context.layers.walk import global_directory, user_home
from nexus_context.prompt.environment import detect
from nexus_daemon.workspace.folders import Surroundings


def surroundings() -> Surroundings:
    """The process's own, for the life of the daemon."""
    environ = dict(os.environ)
    return Surroundings(
        nexus_home=global_directory(environ),
        user_home=user_home(environ),
        environment=detect("editor", environ=environ),
        environ=environ,
    )
