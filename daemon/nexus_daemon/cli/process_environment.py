"""What a command line or a daemon takes from its process: directories and variables, read once."""

import os

from nexus_context.layers.walk import global_directory, user_home
from nexus_context.prompt.environment import detect
from nexus_context.snapshot import LoadInputs


def load_inputs() -> LoadInputs:
    """What folders are loaded with, for the life of the process."""
    environ = dict(os.environ)
    return LoadInputs(
        home=global_directory(environ),
        user_home=user_home(environ),
        environment=detect("editor", environ=environ),
        environ=environ,
    )
