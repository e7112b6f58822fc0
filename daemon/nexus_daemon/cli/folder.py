"""Reads the folder that a command line names, as the daemon would see it without open editors."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nexus_context.config.conversations import explain_not_read, reads_conversations
from nexus_context.disk.files import exists, is_dir
from nexus_context.folder.layers.instructions import TOOL_DIRECTORIES
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY, user_home
from nexus_context.folder.loading import load
from nexus_context.folder.prompt.environment import detect
from nexus_context.folder.skills import PROGRAMS
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_context.text.visible import visible_line
from nexus_daemon.cli import invocation
from nexus_daemon.workspace import inputs

if TYPE_CHECKING:  # most commands want no sessions
    from nexus_context.assistants.sessions.session_types import Place

DOT_DIRECTORIES = (CONFIG_DIRECTORY, ".vscode", *TOOL_DIRECTORIES.values())


def absolute(path: str) -> Path:
    """Return the path as an absolute one without `..`, from the current directory. Links are not resolved."""
    return Path(invocation.current().absolute(path))


def current_directory() -> str:
    """Return the current directory with links resolved."""
    return os.path.realpath(absolute("."))


def short_path(path: str, folder: str | None = None) -> str:
    """Shorten a path for people, in one line.

    Below the folder it is relative to that; below the home directory it begins with `~`.
    """
    home = user_home(invocation.current().environ)
    for directory, prefix in ((folder, ""), (home, f"~{os.sep}")):
        if path == directory == home:
            return "~"
        if directory is not None and path.startswith(directory.rstrip(os.sep) + os.sep):
            return visible_line(prefix + path[len(directory.rstrip(os.sep)) + 1 :])
    return visible_line(path)


def folder_of(path: Path) -> Path | None:
    """Return the folder to check for a path: the path itself, or the folder that it configures.

    None if nothing is there. A directory inside a configuration directory (`.claude/skills/tests`) belongs to
    the folder around that if the folder reads a file there. Otherwise it is a folder of its own: people have
    whole projects there.
    """
    if not exists(str(path)):
        return None
    folder = path if is_dir(str(path)) else path.parent
    if folder.name in DOT_DIRECTORIES:
        return folder.parent
    configured_folders = [
        directory.parent for directory in reversed(folder.parents) if directory.name in DOT_DIRECTORIES
    ]
    return next((directory for directory in configured_folders if _reads_in(directory, folder)), folder)


def _reads_in(folder: Path, directory: Path) -> bool:
    """Whether the folder reads some file beneath the directory."""
    return any(Path(path).is_relative_to(directory) for path in files_of(read(folder)))


def is_read(snapshot: Snapshot, path: Path) -> bool:
    """Whether the folder reads the file, or tries to."""
    return str(path) in files_of(snapshot)


def files_of(snapshot: Snapshot) -> set[str]:
    """Return the paths of the files that the folder reads, or tries to."""
    layers = snapshot.layers
    paths = {file.path for layer in layers.layers for file in layer.files}
    return paths.union(layers.texts, (problem.path for problem in snapshot.problems))


def read(folder: Path, inputs: LoadInputs | None = None) -> Snapshot:
    """Load the folder and its settings. The folder need not exist any more."""
    with invocation.current().deadline() as deadline:
        return load(str(folder), inputs or load_inputs(), deadline=deadline)


def place_of(snapshot: Snapshot) -> "Place":
    """Return where other programs have their sessions, and whether the folder's settings let them be read."""
    from nexus_context.assistants.sessions.session_types import Place  # as above

    inputs = load_inputs()
    return Place(
        str(inputs.user_home),
        inputs.environ,
        reads_conversations(snapshot.effective),
        explain_not_read(snapshot.effective),
    )


def workspace_inputs(inputs: LoadInputs) -> LoadInputs:
    """Return the inputs without the user and the machine: no files of the user, no variables.

    Every program counts as installed.
    """
    return msgspec.structs.replace(
        inputs,
        environment=detect("editor", environ={}),
        environ={},
        which=lambda name: name,
        trusted=None,
        trust_file=None,
        of_user=False,
    )


def has_user_files(inputs: LoadInputs) -> bool:
    """Whether the user has files that count in every folder."""
    skills = (os.path.join(inputs.user_home, program, "skills") for program in PROGRAMS)
    return any(exists(path) for path in (inputs.home, *skills))


def load_inputs() -> LoadInputs:
    """Return the inputs that this process loads folders with: its directories and environment variables."""
    return inputs.load_inputs(invocation.current().environ)
