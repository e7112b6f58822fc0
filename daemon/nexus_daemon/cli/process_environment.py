"""The load inputs of this process: its directories and environment variables."""

import os

from nexus_context.layers.walk import global_directory, user_home
from nexus_context.prompt.environment import detect
from nexus_context.snapshot import LoadInputs


def load_inputs() -> LoadInputs:
    """Read the inputs that folders are loaded with; they hold as long as the process runs."""
    environ = dict(os.environ)
    return LoadInputs(
        home=global_directory(environ),
        user_home=user_home(environ),
        environment=detect("editor", environ=environ),
        environ=environ,
    )
