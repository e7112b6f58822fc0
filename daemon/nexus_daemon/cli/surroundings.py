"""Tells where the assistants of a command would run."""

from pathlib import Path

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.folder.layers.walk import user_home
from nexus_daemon.cli import invocation


def surroundings_of(folder: Path) -> Surroundings:
    """Return where an assistant would run, with the variables of the command's process."""
    environ = invocation.current().environ
    return Surroundings(str(folder), user_home(environ), environ)
