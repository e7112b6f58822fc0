"""What folders are loaded with: from the environment of the daemon, of a command or of a client."""

from collections.abc import Mapping

from nexus_context.layers.walk import global_directory, user_home
from nexus_context.prompt.environment import detect
from nexus_context.snapshot import LoadInputs


def load_inputs(environ: Mapping[str, str]) -> LoadInputs:
    """The directories and variables of an environment, which is copied."""
    environ = dict(environ)
    return LoadInputs(
        home=global_directory(environ),
        user_home=user_home(environ),
        environment=detect("editor", environ=environ),
        environ=environ,
    )
