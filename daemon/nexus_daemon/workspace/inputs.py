"""Build the inputs that folders are loaded with, from the environment of the daemon, a command or a
client.
"""

from collections.abc import Mapping

from nexus_context.disk.user_state import NoStateDirectoryError
from nexus_context.folder.layers.walk import global_directory, user_home
from nexus_context.folder.prompt.environment import detect
from nexus_context.folder.snapshot import LoadInputs
from nexus_context.folder.trust import trust_file


def load_inputs(environ: Mapping[str, str]) -> LoadInputs:
    """Build the inputs from the directories and variables of an environment. The environment is copied."""
    environ = dict(environ)
    try:
        file = trust_file(environ)
    except NoStateDirectoryError:
        file = None
    return LoadInputs(
        home=global_directory(environ),
        user_home=user_home(environ),
        environment=detect("editor", environ=environ),
        environ=environ,
        trusted=False if file is None else None,
        trust_file=file,
    )
